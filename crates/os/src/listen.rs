//! Listening sockets: binds an address, with errors that state a remedy.
//!
//! The caller decides how many sockets listen on an address, and what serves them.

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Maximum of data buffered in the kernel for a client that does not read, beyond what is in
/// flight. Without a bound it is as much as `net.ipv4.tcp_wmem` allows, 4 MiB: a few hundred slow
/// readers would use up the memory that all connections of the machine share.
const UNSENT_MAX_BYTES: u32 = 128 * 1024;

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    /// Non-blocking, close-on-exec.
    pub listener: TcpListener,
    /// The requested backlog: as given, else net.core.somaxconn.
    pub backlog_asked: u32,
    /// The backlog that the kernel grants: never more than net.core.somaxconn.
    pub backlog_granted: u32,
}

/// Listens on `address` with room for `backlog` connections that are not accepted yet (default:
/// net.core.somaxconn).
///
/// An IPv6 address takes IPv6 only, except `[::]`, which takes IPv4 too; `[::]:80` and `0.0.0.0:80`
/// therefore exclude each other. `SO_REUSEADDR` is set, so that connections of an earlier process
/// in `TIME_WAIT` do not prevent binding.
///
/// With `reuse_port`, [`bind_more`] can add sockets for the same address. `SO_REUSEPORT` is set
/// only after this first socket has bound without it: the bind itself then proves that no other
/// process listens there; otherwise a second program of the same user would silently share the
/// port's connections.
///
/// # Errors
/// [`ListenError`] when the address is taken or not of this machine, this process may not bind its
/// port, or there is no descriptor left.
pub fn bind(
    address: SocketAddr,
    backlog: Option<u32>,
    reuse_port: bool,
) -> Result<Bound, ListenError> {
    let wrap = |source| ListenError { address, source };
    let socket = open(address).map_err(wrap)?;
    socket.bind(&SockAddr::from(address)).map_err(wrap)?;
    if reuse_port {
        socket.set_reuse_port(true).map_err(wrap)?;
    }
    listen(socket, backlog).map_err(wrap)
}

/// Adds a socket for the address of a listener that [`bind`] created with `reuse_port`; `address`
/// is that listener's local address, with its real port. The kernel distributes new connections
/// over all of them.
///
/// # Errors
/// As [`bind`]; also when the listener there does not share its address.
pub fn bind_more(address: SocketAddr, backlog: Option<u32>) -> Result<Bound, ListenError> {
    let wrap = |source| ListenError { address, source };
    let socket = open(address).map_err(wrap)?;
    socket.set_reuse_port(true).map_err(wrap)?;
    socket.bind(&SockAddr::from(address)).map_err(wrap)?;
    listen(socket, backlog).map_err(wrap)
}

/// Changes a listening socket's backlog to `backlog` (default: net.core.somaxconn); connections in
/// its queue stay. Returns the requested and the granted backlog.
///
/// # Errors
/// The kernel's error; it has no reason to refuse a listening socket.
pub fn set_backlog(listener: &TcpListener, backlog: Option<u32>) -> io::Result<(u32, u32)> {
    let (asked, granted) = asked_and_granted(backlog);
    // On a socket that already listens, listen(2) changes nothing else.
    rustix::net::listen(listener, clamped(asked))?;
    Ok((asked, granted))
}

/// Returns the backlog that a socket asks for if it is given `backlog` (default: net.core.somaxconn),
/// and the one that the kernel grants.
pub fn asked_and_granted(backlog: Option<u32>) -> (u32, u32) {
    let somaxconn = somaxconn();
    let asked = backlog.unwrap_or(somaxconn);
    (asked, asked.min(somaxconn))
}

/// Returns it as listen(2) takes it: an int, of which more than `i32::MAX` would wrap to a negative
/// number.
pub(crate) fn clamped(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

/// Returns the largest backlog that the kernel grants (net.core.somaxconn).
pub fn somaxconn() -> u32 {
    // 4096 is the kernel's default since Linux 5.4; without /proc it is the best guess.
    std::fs::read_to_string("/proc/sys/net/core/somaxconn")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(4096)
}

/// Why an address cannot be listened on: one line with what, where, and the remedy.
#[derive(Debug)]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

impl ListenError {
    /// Returns the requested address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether another program (or another listener of this one) uses the address.
    pub fn is_address_in_use(&self) -> bool {
        self.source.raw_os_error() == Some(libc::EADDRINUSE)
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ListenError { address, source } = self;
        write!(f, "cannot listen on {address}: ")?;
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                f.write_str("permission denied")?;
                if (1..1024).contains(&address.port()) {
                    f.write_str("; ports below 1024 need root or CAP_NET_BIND_SERVICE")?;
                }
                Ok(())
            }
            Some(libc::EADDRINUSE) => write!(
                f,
                "address already in use by another program; `ss -ltnp 'sport = :{}'` shows which",
                address.port()
            ),
            Some(libc::EADDRNOTAVAIL) => f.write_str(
                "no interface has this address; `ip address` shows those of this machine",
            ),
            Some(libc::EAFNOSUPPORT) if address.is_ipv6() => f.write_str(
                "IPv6 is off on this machine; use an IPv4 address, or turn IPv6 on (sysctl \
                 net.ipv6.conf.all.disable_ipv6)",
            ),
            Some(libc::EMFILE) => f.write_str(
                "this process has too many open files; raise its limit (ulimit -n, or LimitNOFILE \
                 in the systemd unit)",
            ),
            _ => source.fmt(f),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    if let SocketAddr::V6(v6) = address {
        // Set explicitly, since net.ipv6.bindv6only changes the default.
        socket.set_only_v6(*v6.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    socket.set_reuse_address(true)?;
    // Accepted connections inherit both, which saves two system calls each.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_MAX_BYTES)?;
    Ok(socket)
}

fn listen(socket: Socket, backlog: Option<u32>) -> io::Result<Bound> {
    let (backlog_asked, backlog_granted) = asked_and_granted(backlog);
    socket.listen(clamped(backlog_asked))?;
    Ok(Bound { listener: TcpListener::from(socket), backlog_asked, backlog_granted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    #[test]
    fn a_taken_port_is_named_with_a_way_to_find_who_has_it() {
        let first = bind(loopback(), None, false).unwrap();
        let address = first.listener.local_addr().unwrap();
        for reuse_port in [false, true] {
            let error = bind(address, None, reuse_port).unwrap_err();
            assert!(error.is_address_in_use());
            let port = address.port();
            assert_eq!(
                error.to_string(),
                format!(
                    "cannot listen on {address}: address already in use by another program; \
                     `ss -ltnp 'sport = :{port}'` shows which"
                )
            );
        }
    }

    #[test]
    fn a_group_can_grow_but_a_second_program_cannot_join_it() {
        let first = bind(loopback(), None, true).unwrap();
        let address = first.listener.local_addr().unwrap();
        let second = bind_more(address, None).unwrap();
        assert!(bind(address, None, true).unwrap_err().is_address_in_use());

        // The kernel spreads by a hash of the connection, so 64 all on one side is impossible in
        // practice (2^-63).
        let clients: Vec<_> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
        let count = |bound: &Bound| {
            let mut accepted = 0;
            while crate::accept::accept(&bound.listener).is_ok() {
                accepted += 1;
            }
            accepted
        };
        let counts = (count(&first), count(&second));
        assert_eq!(counts.0 + counts.1, clients.len());
        assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
    }

    #[test]
    fn accepted_sockets_have_nodelay_and_bounded_send_buffers() {
        let bound = bind(loopback(), None, false).unwrap();
        let _client = TcpStream::connect(bound.listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = crate::accept::accept(&bound.listener).unwrap();
        let socket = socket2::SockRef::from(&accepted);
        assert!(socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tcp_notsent_lowat().unwrap(), UNSENT_MAX_BYTES);
    }

    #[test]
    fn a_port_listened_on_with_reuse_port_elsewhere_is_still_taken() {
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        other.set_reuse_port(true).unwrap();
        other.bind(&SockAddr::from(loopback())).unwrap();
        other.listen(1).unwrap();
        let address = other.local_addr().unwrap().as_socket().unwrap();
        assert!(bind(address, None, true).unwrap_err().is_address_in_use());
    }

    #[test]
    fn an_address_of_no_interface_is_said_to_be_so() {
        // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
        let error = bind("192.0.2.1:8080".parse().unwrap(), None, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot listen on 192.0.2.1:8080: no interface has this address; `ip address` shows \
             those of this machine"
        );
    }

    #[test]
    fn permission_errors_explain_low_ports_only_where_they_are_the_reason() {
        let message = |port: u16| {
            let address = SocketAddr::from(([0, 0, 0, 0], port));
            ListenError { address, source: io::Error::from_raw_os_error(libc::EACCES) }.to_string()
        };
        assert_eq!(
            message(80),
            "cannot listen on 0.0.0.0:80: permission denied; ports below 1024 need root or \
             CAP_NET_BIND_SERVICE"
        );
        assert_eq!(message(8080), "cannot listen on 0.0.0.0:8080: permission denied");
    }

    #[test]
    fn the_granted_backlog_is_bounded_by_the_kernel() {
        let bound = bind(loopback(), Some(u32::MAX), false).unwrap();
        assert_eq!(bound.backlog_asked, u32::MAX);
        assert_eq!(bound.backlog_granted, somaxconn());
        let default = bind(loopback(), None, false).unwrap();
        assert_eq!(default.backlog_asked, default.backlog_granted);
        let small = bind(loopback(), Some(7), false).unwrap();
        assert_eq!((small.backlog_asked, small.backlog_granted), (7, 7));
    }

    #[test]
    fn a_backlog_can_change_under_connections_that_wait() {
        let bound = bind(loopback(), Some(1), false).unwrap();
        let client = TcpStream::connect(bound.listener.local_addr().unwrap()).unwrap();
        assert_eq!(set_backlog(&bound.listener, Some(9)).unwrap(), (9, 9));
        let (_, peer) = crate::accept::accept(&bound.listener).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    }

    #[test]
    fn the_ipv6_wildcard_takes_ipv4_and_other_ipv6_addresses_do_not() {
        let dual = bind("[::]:0".parse().unwrap(), None, false).unwrap();
        let port = dual.listener.local_addr().unwrap().port();
        assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
        assert!(TcpStream::connect(("::1", port)).is_ok());

        let six = bind("[::1]:0".parse().unwrap(), None, false).unwrap();
        let port = six.listener.local_addr().unwrap().port();
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
