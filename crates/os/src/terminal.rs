//! How wide a terminal is.

#![allow(unsafe_code, reason = "rustix asks for a window's size only with a further feature")]

use std::os::fd::{AsFd, AsRawFd};

/// Columns of the terminal behind `file`; `None`: it is no terminal, or one without a size, as a
/// serial line is.
pub fn columns(file: &impl AsFd) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open for as long as it is borrowed, and TIOCGWINSZ writes one
    // `winsize` (ioctl_tty(2)).
    let result = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_no_terminal_has_no_width() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(super::columns(&file), None);
    }
}
