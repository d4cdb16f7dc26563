//! Listening sockets that a service manager opened and passed to this process (the `sd_listen_fds` protocol).
//!
//! The caller decides what they are for.

use std::io;
use std::net::TcpListener;
use std::os::fd::{OwnedFd, RawFd};

use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{AddressFamily, SocketType};

use crate::handover;

/// The number of the first socket.
const FIRST: RawFd = 3;

/// The greatest number of sockets that is accepted.
const SOCKETS_MAX: usize = 4096;

/// The variables of the protocol. A process that this one starts must not see them: they are about this one.
pub const VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// A socket that was passed, with its `FileDescriptorName=`: systemd's default is the name of the socket unit.
#[derive(Debug)]
pub struct Passed {
    /// The name.
    pub name: String,
    /// The socket.
    pub listener: TcpListener,
}

/// Takes the sockets that were passed to this process; empty if none were. Must be called once, before any
/// descriptor is opened.
///
/// # Errors
/// There are more than 4096, or a descriptor is missing or is not a listening TCP socket; the message contains its name.
pub fn take() -> io::Result<Vec<Passed>> {
    let [pid, count, labels] = VARIABLES.map(|name| std::env::var(name).ok());
    let named = described(pid.as_deref(), count.as_deref(), labels.as_deref(), std::process::id());
    if named.len() > SOCKETS_MAX {
        return Err(io::Error::other(format!("more than {SOCKETS_MAX} were passed")));
    }
    let passed = (FIRST..).zip(named).map(|(number, name)| {
        let refused = |why: String| io::Error::other(format!("descriptor {number} ({name}): {why}"));
        let socket = handover::inherited(number).map_err(|error| refused(error.to_string()))?;
        if !is_tcp_listener(&socket) {
            return Err(refused(
                "it is not a listening TCP socket; use ListenStream= with an address and a port, and Accept=no"
                    .to_owned(),
            ));
        }
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        Ok(Passed { name, listener })
    });
    passed.collect()
}

/// Returns the name of each descriptor that is passed to `this` process; of too many, one more than are accepted.
fn described(
    pid: Option<&str>,
    count: Option<&str>,
    names: Option<&str>,
    this: u32,
) -> Vec<String> {
    if pid.and_then(|pid| pid.parse().ok()) != Some(this) {
        return Vec::new();
    }
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(0).min(SOCKETS_MAX + 1);
    let mut names = names.unwrap_or_default().split(':');
    (0..count).map(|_| names.next().unwrap_or_default().to_owned()).collect()
}

fn is_tcp_listener(socket: &OwnedFd) -> bool {
    let is_ip = rustix::net::getsockname(socket).is_ok_and(|address| {
        [AddressFamily::INET, AddressFamily::INET6].contains(&address.address_family())
    });
    is_ip
        && socket_type(socket) == Ok(SocketType::STREAM)
        && socket_acceptconn(socket).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_for_the_process_that_is_named() {
        assert_eq!(described(Some("7"), Some("2"), Some("public:admin"), 7), ["public", "admin"]);
        assert_eq!(described(Some("7"), Some("2"), None, 7), ["", ""]);
        assert!(described(Some("8"), Some("2"), None, 7).is_empty());
        assert!(described(None, Some("2"), None, 7).is_empty());
        assert!(described(Some("7"), None, None, 7).is_empty());
        assert!(described(Some("7"), Some("99999999"), None, 7).len() > SOCKETS_MAX);
    }

    #[test]
    fn only_listening_tcp_sockets_are_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(is_tcp_listener(&listener.into()));
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!is_tcp_listener(&datagrams.into()));
    }
}
