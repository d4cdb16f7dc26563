//! Options of connected sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use model::UnixPath;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrAny};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

/// Starts connecting to `address`, as [`connect_begin`], from the address `source`. The port is
/// chosen once the destination is known (`IP_BIND_ADDRESS_NO_PORT`), so that each destination can
/// use all of the source's ports.
///
/// # Errors
/// When `source` is not an address of this machine (`AddrNotAvailable`), no port is left, or the
/// attempt fails at once, as when there is no route. Later failures are the socket's pending error.
pub fn connect_begin_from(
    address: SocketAddr,
    source: std::net::IpAddr,
) -> io::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_nodelay(true)?;
    bind_address_no_port(&socket)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    finish_begin(socket, address)
}

/// Checks whether a connection could use `source` as its address.
///
/// # Errors
/// `AddrNotAvailable` when `source` is not an address of this machine, else the kernel's error.
pub fn can_connect_from(source: std::net::IpAddr) -> io::Result<()> {
    let address = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    bind_address_no_port(&socket)?;
    socket.bind(&address.into())
}

/// Starts connecting to `address` without waiting: the socket is writable once the connection is
/// established or has failed, and its pending error then tells which. The caller owns the socket,
/// with `TCP_NODELAY` set, meanwhile and can query the state of the handshake.
///
/// # Errors
/// When there is no descriptor for a socket, or the attempt fails at once, as when there is no
/// route. Later failures are the socket's pending error.
pub fn connect_begin(
    address: SocketAddr,
    user_timeout: Option<Duration>,
) -> io::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(timeout) = user_timeout {
        set_user_timeout(&socket, timeout)?;
    }
    finish_begin(socket, address)
}

/// Connects to a Unix socket, which never waits. Returns the connection as a `TcpStream`, non-blocking and
/// close-on-exec: reading, writing, shutting down and splicing are the same calls for both, and what is
/// asked of TCP alone fails.
///
/// # Errors
/// `WouldBlock` when the listen queue is full; it is not reported when there is room again. Otherwise
/// no process listens there, the user may not write to its file, or there is no descriptor left.
pub fn connect_unix(path: UnixPath) -> io::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path.as_path())?)?;
    Ok(socket.into())
}

/// The address of a process at the other end of a Unix socket, which has none of its own: it is a process
/// of this machine. Port 0.
pub const UNIX_PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn finish_begin(socket: Socket, address: SocketAddr) -> io::Result<std::net::TcpStream> {
    match socket.connect(&address.into()) {
        Err(error)
            if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Err(error)
        }
        _ => Ok(socket.into()),
    }
}

/// Makes `bind` choose no port yet (Linux 4.2).
#[allow(unsafe_code, reason = "neither rustix nor socket2 sets IP_BIND_ADDRESS_NO_PORT")]
fn bind_address_no_port(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for as long as it is borrowed, and `on` is valid for reading
    // its own size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends each write at once instead of waiting for the acknowledgement of the one before
/// (`TCP_NODELAY`). A proxy writes whole heads and whole chunks: waiting only adds latency.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn set_nodelay(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_tcp_nodelay(true)
}

/// Sets how long sent data may stay unacknowledged before the connection is closed
/// (`TCP_USER_TIMEOUT`, RFC 5482; milliseconds, rounded up). Without it a vanished peer holds its
/// connection for as long as retransmission goes on: about a quarter of an hour.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn set_user_timeout(socket: &impl AsFd, timeout: Duration) -> io::Result<()> {
    // 0 would mean the system's default: at least 1 ms.
    let millis = timeout.as_nanos().div_ceil(1_000_000).clamp(1, u128::from(u32::MAX)) as u64;
    SockRef::from(socket).set_tcp_user_timeout(Some(Duration::from_millis(millis)))
}

/// Makes closing this socket a reset (`SO_LINGER` with time 0): unsent data is discarded, and no
/// `TIME_WAIT` is left. For probes, and for peers that must notice.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn set_linger_zero(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(Duration::ZERO))
}

/// Enables keep-alive probes to a silent peer after `idle`, then every `interval` (`SO_KEEPALIVE`);
/// whole seconds, at least 1.
///
/// # Errors
/// When the descriptor is not a TCP socket, or a time is longer than the 32,767 seconds that the
/// kernel takes.
pub fn set_keepalive(socket: &impl AsFd, idle: Duration, interval: Duration) -> io::Result<()> {
    let second = Duration::from_secs(1);
    let keepalive = TcpKeepalive::new().with_time(idle.max(second));
    SockRef::from(socket).set_tcp_keepalive(&keepalive.with_interval(interval.max(second)))
}

/// The state of an idle connection's receive side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nothing to read: open and silent, as an idle connection should be.
    Silent,
    /// Unsolicited data.
    Data,
    /// The peer has closed its sending side, or the connection is broken.
    Closed,
}

/// Returns the local address; [`UNIX_PEER`] for a Unix socket.
///
/// # Errors
/// When the descriptor is not a socket; `AddrNotAvailable` when its address is of another kind.
pub fn local_addr(socket: &impl AsFd) -> io::Result<SocketAddr> {
    let name = rustix::net::getsockname(socket)?;
    ip_of(name).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Returns a socket's address; [`UNIX_PEER`] for a Unix socket.
pub(crate) fn ip_of(name: SocketAddrAny) -> Option<SocketAddr> {
    match name.address_family() {
        AddressFamily::UNIX => Some(UNIX_PEER),
        _ => SocketAddr::try_from(name).ok(),
    }
}

/// Returns whether each write is sent at once.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn nodelay(socket: &impl AsFd) -> io::Result<bool> {
    Ok(rustix::net::sockopt::tcp_nodelay(socket)?)
}

/// Checks the receive queue without taking anything (one system call, never waits).
pub fn peek(socket: &impl AsFd) -> Idle {
    let mut byte = [0];
    match rustix::net::recv(socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Idle::Closed,
        Ok(_) => Idle::Data,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Idle::Silent,
        Err(_) => Idle::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn options_take_effect() {
        let (client, _server) = pair();
        let socket = SockRef::from(&client);
        set_nodelay(&client).unwrap();
        assert!(socket.tcp_nodelay().unwrap());
        set_user_timeout(&client, Duration::from_micros(1_500_001)).unwrap();
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(1_501)));
        set_user_timeout(&client, Duration::ZERO).unwrap();
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(1)));
        set_keepalive(&client, Duration::from_secs(30), Duration::ZERO).unwrap();
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(30));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(1));
    }

    #[test]
    fn a_connection_comes_from_the_address_it_was_given() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = "127.0.0.77".parse().unwrap();
        let client = connect_begin_from(listener.local_addr().unwrap(), source).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), source);
        assert_eq!(client.local_addr().unwrap(), peer);
        let elsewhere = "203.0.113.1".parse().unwrap();
        let refused = connect_begin_from(listener.local_addr().unwrap(), elsewhere).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[test]
    fn closing_with_linger_zero_resets() {
        let (client, mut server) = pair();
        set_linger_zero(&client).unwrap();
        drop(client);
        let error = server.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn peek_tells_silent_from_data_from_closed() {
        let (client, mut server) = pair();
        assert_eq!(peek(&client), Idle::Silent);
        server.write_all(b"x").unwrap();
        // Loopback delivers before the write returns.
        assert_eq!(peek(&client), Idle::Data);
        assert_eq!(peek(&client), Idle::Data, "nothing was taken");
        (&client).read_exact(&mut [0]).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(peek(&client), Idle::Closed);

        let (client, server) = pair();
        set_linger_zero(&server).unwrap();
        drop(server);
        assert_eq!(peek(&client), Idle::Closed);
    }
}
