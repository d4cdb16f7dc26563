//! Accepts a connection from a listener in one system call.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::SocketFlags;

#[cfg(doc)]
use crate::socket::UNIX_PEER;
use crate::socket::ip_of;

/// Returns the next connection of `listener`: non-blocking and close-on-exec from the start
/// (accept4), with the peer's address; an IPv4-mapped one (RFC 4291 section 2.5.5.2) as IPv4, and
/// [`UNIX_PEER`] if the listener is a Unix socket; see [`crate::socket::connect_unix`].
///
/// # Errors
/// `WouldBlock` when none is waiting; `EMFILE`/`ENFILE` when there is no descriptor for it, which
/// stays true until one is closed, so that the caller should pause instead of spinning. See
/// [`is_transient`] and [`crate::limits::is_exhaustion`].
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (fd, peer) =
        rustix::net::acceptfrom_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    let stream = TcpStream::from(fd);
    let peer = match peer.and_then(ip_of) {
        Some(peer) => peer,
        None => ip_of(rustix::net::getpeername(&stream)?.ok_or(Errno::NOTCONN)?)
            .ok_or(Errno::AFNOSUPPORT)?,
    };
    // A socket on [::] reports IPv4 clients as ::ffff:192.0.2.1; everything else treats them as
    // IPv4.
    Ok((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port())))
}

/// Returns whether an error of [`accept`] concerns only the one connection that was lost (its
/// client has already gone, or a packet filter refused it) so that the next call may succeed at
/// once. accept(2) passes on network errors that were pending on the new socket.
pub fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNABORTED
                | libc::EINTR
                | libc::EPERM
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::EOPNOTSUPP
                | libc::ENETUNREACH
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen;

    #[test]
    fn accepted_connections_do_not_block_and_are_not_inherited() {
        let bound = listen::bind("127.0.0.1:0".parse().unwrap(), None, false).unwrap();
        assert_eq!(accept(&bound.listener).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let client = TcpStream::connect(bound.listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = accept(&bound.listener).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        let status = rustix::fs::fcntl_getfl(&stream).unwrap();
        assert!(status.contains(rustix::fs::OFlags::NONBLOCK));
        let flags = rustix::io::fcntl_getfd(&stream).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn ipv4_peers_of_an_ipv6_socket_are_ipv4() {
        let bound = listen::bind("[::]:0".parse().unwrap(), None, false).unwrap();
        let port = bound.listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_stream, peer) = accept(&bound.listener).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(peer.is_ipv4(), "{peer}");
    }

    #[test]
    fn ipv6_peers_keep_their_address() {
        let bound = listen::bind("[::1]:0".parse().unwrap(), None, false).unwrap();
        let client = TcpStream::connect(bound.listener.local_addr().unwrap()).unwrap();
        let (_stream, peer) = accept(&bound.listener).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    }
}
