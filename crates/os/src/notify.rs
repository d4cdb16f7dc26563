//! Notifies the service manager of the program's state (the `sd_notify` protocol).
//!
//! Implemented here: it is one datagram, sent rarely. Without `NOTIFY_SOCKET` in the environment
//! every call does nothing and succeeds.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

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

/// Returns how often the manager expects [`alive`] at least (`WatchdogSec=` in systemd); `None`: never.
///
/// `WATCHDOG_PID` names the process that the manager started. A process that takes over from that one must be started
/// without this variable, and then takes over this duty, too.
pub fn watchdog_interval() -> Option<Duration> {
    let read = |name: &str| std::env::var(name).ok();
    interval(read("WATCHDOG_USEC").as_deref(), read("WATCHDOG_PID").as_deref(), std::process::id())
}

fn interval(micros: Option<&str>, meant: Option<&str>, this: u32) -> Option<Duration> {
    let is_this = meant.is_none_or(|pid| pid.parse() == Ok(this));
    let micros = micros.filter(|_| is_this)?.parse().ok().filter(|&micros| micros > 0)?;
    Some(Duration::from_micros(micros))
}

/// Reports that the program works, for the manager's watchdog.
///
/// # Errors
/// As [`ready`].
pub fn alive() -> io::Result<()> {
    notify("WATCHDOG=1")
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
    fn a_watchdog_is_for_the_process_that_it_names() {
        let half_minute = Some(Duration::from_secs(30));
        assert_eq!(interval(Some("30000000"), Some("7"), 7), half_minute);
        assert_eq!(interval(Some("30000000"), None, 7), half_minute);
        assert_eq!(interval(Some("30000000"), Some("8"), 7), None);
        assert_eq!(interval(Some("0"), None, 7), None);
        assert_eq!(interval(Some("soon"), None, 7), None);
        assert_eq!(interval(None, None, 7), None);
    }

    #[test]
    fn an_absent_manager_is_an_error_and_nothing_worse() {
        assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
