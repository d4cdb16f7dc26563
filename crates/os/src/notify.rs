//! Notifies the service manager of the program's state (the `sd_notify` protocol).
//!
//! Implemented here: it is one datagram, sent rarely. Without `NOTIFY_SOCKET` in the environment
//! every call does nothing and succeeds.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Reports that startup (or a reload) is finished.
///
/// # Errors
/// When the manager's socket does not exist, is full, or accepts nothing from this process.
pub fn ready() -> io::Result<()> {
    notify("READY=1")
}

/// Reports that the program is stopping.
///
/// # Errors
/// As [`ready`].
pub fn stopping() -> io::Result<()> {
    notify("STOPPING=1")
}

/// Reports that the configuration is being reloaded; [`ready`] reports the end of that.
///
/// # Errors
/// As [`ready`].
pub fn reloading() -> io::Result<()> {
    // The manager compares this with its own clock, so it must be CLOCK_MONOTONIC itself and not
    // the time since the process started.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"))
}

/// Reports that the service's main process is now another one, started by this one. The manager
/// accepts this only from the current main process.
///
/// # Errors
/// As [`ready`].
pub fn main_process(pid: u32) -> io::Result<()> {
    notify(&format!("MAINPID={pid}"))
}

/// Sets the status line in `systemctl status`.
///
/// # Errors
/// As [`ready`].
pub fn status(line: &str) -> io::Result<()> {
    // A line break would begin another assignment.
    notify(&format!("STATUS={}", line.replace(['\n', '\r'], " ")))
}

fn notify(message: &str) -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) if !socket.is_empty() => send(&socket, message),
        _ => Ok(()),
    }
}

/// Sends to a path, or to an abstract name when it begins with `@`.
fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let datagram = UnixDatagram::unbound()?;
    // A manager that does not read must not stop traffic.
    datagram.set_nonblocking(true)?;
    datagram.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_message_arrives_at_a_path() {
        let path = std::env::temp_dir().join(format!("weir-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&manager), "READY=1");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_message_arrives_at_an_abstract_name() {
        let name = format!("weir-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&manager), "STOPPING=1");
    }

    #[test]
    fn an_absent_manager_is_an_error_and_nothing_worse() {
        assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
