//! The size of a terminal.

use std::os::fd::AsFd;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// Returns the size of the terminal behind `descriptor`; `None` if it is not a terminal, or its
/// size is unknown.
pub fn size(descriptor: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(descriptor).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some(Size { columns, rows })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_is_no_terminal() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        assert_eq!(super::size(&file), None);
    }
}
