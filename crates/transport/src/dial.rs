//! Opens connections to servers, and reports the cause when that fails.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{Address, Cause, UnixPath};
use os::tcp_info::TcpState;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::{Stream, TlsError};

/// How long to wait before connecting again to a Unix socket whose listen queue is full: the first time,
/// and at most.
const UNIX_PAUSE_MIN: Duration = Duration::from_millis(1);
const UNIX_PAUSE_MAX: Duration = Duration::from_millis(50);

/// Options of a connection.
#[derive(Clone, Debug)]
pub struct DialOptions {
    /// Maximum time until the connection is established, including the TLS handshake.
    pub connect_timeout: Duration,
    /// How long sent data may stay unacknowledged before the connection is closed
    /// (`TCP_USER_TIMEOUT`); `None`: the system's default, about a quarter of an hour.
    pub user_timeout: Option<Duration>,
    /// TLS, with the server name that is sent and verified; `None`: clear text.
    pub tls: Option<(Arc<rustls::ClientConfig>, ServerName<'static>)>,
}

/// Connects to `address`, over TCP with `TCP_NODELAY`. Must be called within a runtime.
///
/// # Errors
/// The connection failed.
pub async fn dial(address: impl Into<Address>, options: &DialOptions) -> Result<Stream, DialError> {
    dial_with(address.into(), options, &[]).await
}

/// As [`dial`]; `preface` is sent first, in clear text, before TLS: a PROXY protocol header.
///
/// # Errors
/// The connection failed.
pub async fn dial_with(
    address: Address,
    options: &DialOptions,
    preface: &[u8],
) -> Result<Stream, DialError> {
    let until = Instant::now() + options.connect_timeout;
    let stream = match address {
        Address::Ip(address) => dial_tcp(address, options, until).await?,
        Address::Unix(path) => dial_unix(path, until).await?,
    };
    if preface.is_empty() && options.tls.is_none() {
        return Ok(stream);
    }
    // Boxed separately from the future of a clear-text dial, which is the common case and small.
    let begin = Box::pin(async {
        (&stream).write_all(preface).await.map_err(DialError::from_io)?;
        match &options.tls {
            None => Ok(stream),
            Some((config, name)) => stream
                .connect_tls(Arc::clone(config), name.clone())
                .await
                .map_err(|refused| DialError::from_tls(refused.error)),
        }
    });
    timeout_at(until, begin).await.unwrap_or_else(|_| Err(DialError::tls_timed_out()))
}

/// Returns the name by which TLS verifies the server at `address` if nothing else names it: the IP
/// address, or [`UnixPath::HOST`].
pub fn server_name(address: Address) -> ServerName<'static> {
    match address {
        Address::Ip(address) => ServerName::IpAddress(address.ip().into()),
        Address::Unix(_) => ServerName::try_from(UnixPath::HOST)
            .unwrap_or(ServerName::IpAddress(os::socket::UNIX_PEER.ip().into())),
    }
}

async fn dial_tcp(
    address: SocketAddr,
    options: &DialOptions,
    until: Instant,
) -> Result<Stream, DialError> {
    let begun = os::socket::connect_begin(address, options.user_timeout)
        .and_then(TcpStream::from_std)
        .map_err(DialError::from_io)?;
    let tcp = match timeout_at(until, connected(&begun)).await {
        Ok(connected) => connected.map(|()| begun).map_err(DialError::from_io)?,
        Err(_) => return Err(DialError::timed_out(&begun)),
    };
    if is_connected_to_itself(&tcp, address) {
        // A reset, because TIME_WAIT would keep a server from binding its own port.
        let _ = os::socket::set_linger_zero(&tcp);
        return Err(DialError::from_io(io::ErrorKind::ConnectionRefused.into()));
    }
    Ok(Stream::from_tokio(tcp, address))
}

async fn dial_unix(path: UnixPath, until: Instant) -> Result<Stream, DialError> {
    let mut pause = UNIX_PAUSE_MIN;
    loop {
        match os::socket::connect_unix(path) {
            Ok(connected) => {
                let socket = TcpStream::from_std(connected).map_err(DialError::from_io)?;
                return Ok(Stream::from_tokio(socket, os::socket::UNIX_PEER));
            }
            // Its listen queue is full, and the kernel does not report when that changes.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let now = Instant::now();
                if now >= until {
                    return Err(DialError::queue_full());
                }
                tokio::time::sleep_until((now + pause).min(until)).await;
                pause = (pause * 2).min(UNIX_PAUSE_MAX);
            }
            Err(error) => return Err(DialError::from_unix(error)),
        }
    }
}

/// Waits for the end of the TCP handshake.
async fn connected(tcp: &TcpStream) -> io::Result<()> {
    tcp.writable().await?;
    tcp.take_error()?.map_or(Ok(()), Err)
}

/// Why a connection could not be made.
#[derive(Debug)]
pub struct DialError {
    /// The corresponding cause.
    pub cause: Cause,
    /// The system's error, or TLS's: then it contains a [`TlsError`].
    pub source: io::Error,
    /// How often the kernel had retransmitted the SYN when the timeout expired.
    pub syn_retries: u32,
}

impl DialError {
    /// Returns the error for the connect timeout. Whether the kernel has retransmitted its SYN
    /// distinguishes a host that does not answer from one that would have taken longer than it was
    /// given.
    fn timed_out(tcp: &TcpStream) -> DialError {
        let info = os::tcp_info::read(tcp).ok().filter(|info| info.state == TcpState::SynSent);
        let syn_retries = info.map_or(0, |info| info.total_retrans);
        let cause =
            if syn_retries > 0 { Cause::ConnectSynUnanswered } else { Cause::ConnectionTimeout };
        DialError { cause, source: io::ErrorKind::TimedOut.into(), syn_retries }
    }

    /// Returns the error for a server that accepted the connection and did not finish the TLS
    /// handshake in time.
    fn tls_timed_out() -> DialError {
        let source = io::Error::new(io::ErrorKind::TimedOut, "the TLS handshake took too long");
        DialError { cause: Cause::ConnectionTimeout, source, syn_retries: 0 }
    }

    /// Returns the error for a Unix socket whose listen queue stayed full.
    fn queue_full() -> DialError {
        let source = io::Error::new(io::ErrorKind::TimedOut, "the listen queue stayed full");
        DialError { cause: Cause::ListenQueueFull, source, syn_retries: 0 }
    }

    /// Returns the error for a Unix socket. A missing file, a file without a listening process, and a
    /// missing permission all mean that the server refuses; a lack of descriptors is this machine's.
    fn from_unix(source: io::Error) -> DialError {
        let is_exhaustion = os::limits::is_exhaustion(&source);
        let cause =
            if is_exhaustion { Cause::ConnectionLimitReached } else { Cause::ConnectionRefused };
        DialError { cause, source, syn_retries: 0 }
    }

    fn from_tls(error: TlsError) -> DialError {
        let cause = match error {
            TlsError::Io(source) => return DialError::from_io(source),
            TlsError::Alert(_) => Cause::TlsAlertReceived,
            TlsError::Certificate(_) | TlsError::CertificateMissing => Cause::TlsCertificateError,
            TlsError::NotTls | TlsError::Protocol(_) | TlsError::Closed => Cause::TlsProtocolError,
        };
        DialError { cause, source: error.into(), syn_retries: 0 }
    }

    fn from_io(source: io::Error) -> DialError {
        use io::ErrorKind as Kind;
        let cause = match source.kind() {
            _ if os::limits::is_exhaustion(&source) => Cause::ConnectionLimitReached,
            // All local ports towards this address are taken.
            Kind::AddrNotAvailable | Kind::AddrInUse => Cause::ConnectionLimitReached,
            Kind::ConnectionRefused => Cause::ConnectionRefused,
            // The kernel's own timeout, after the last SYN retransmission.
            Kind::TimedOut => Cause::ConnectSynUnanswered,
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => {
                Cause::ConnectionReset
            }
            // No route, an interface that is down, a local packet filter that forbids it, an
            // unsupported address family, a link-local address without its interface.
            _ => Cause::DestinationIpUnroutable,
        };
        DialError { cause, source, syn_retries: 0 }
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.name(), self.source)
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Returns whether a connection is connected to itself. This can happen when dialling a local port
/// without a listener, if the kernel happens to choose that very port as the local one (TCP's
/// simultaneous open, RFC 9293 section 3.5). A server that is down would then seem to be up.
fn is_connected_to_itself(tcp: &TcpStream, address: SocketAddr) -> bool {
    tcp.local_addr().is_ok_and(|local| local == address)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    fn options(connect_timeout: Duration) -> DialOptions {
        DialOptions { connect_timeout, user_timeout: Some(Duration::from_secs(5)), tls: None }
    }

    const LONG: Duration = Duration::from_secs(10);

    fn loopback() -> SocketAddr {
        "127.0.0.1:0".parse().unwrap()
    }

    /// Returns an address whose port is reserved, so that nothing else can take it, and has no
    /// listener.
    fn refusing() -> (TcpSocket, SocketAddr) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[tokio::test]
    async fn it_connects_with_its_options_set() {
        let bound = os::listen::bind(loopback(), None, false).unwrap();
        let address = bound.listener.local_addr().unwrap();
        let stream = dial(address, &options(LONG)).await.unwrap();
        assert!(stream.nodelay().unwrap());
        assert_eq!(stream.peer(), address);
    }

    #[tokio::test]
    async fn a_port_without_a_listener_is_refused() {
        let (_held, address) = refusing();
        let error = dial(address, &options(LONG)).await.unwrap_err();
        assert_eq!(error.cause, Cause::ConnectionRefused);
        assert!(error.to_string().starts_with("connection_refused: "), "{error}");
    }

    #[tokio::test]
    async fn a_silent_host_is_distinguished_from_too_short_a_timeout() {
        // A listener whose queue is full and never emptied drops handshakes: a black hole.
        let bound = os::listen::bind(loopback(), Some(0), false).unwrap();
        let address = bound.listener.local_addr().unwrap();
        let mut filling = Vec::new();
        let error = loop {
            match dial(address, &options(Duration::from_millis(100))).await {
                Ok(stream) => filling.push(stream),
                Err(error) => break error,
            }
            assert!(filling.len() < 8, "a queue of length 0 takes one or two");
        };
        assert_eq!((error.cause, error.syn_retries), (Cause::ConnectionTimeout, 0));
        // The kernel repeats a SYN after a second.
        let error = dial(address, &options(Duration::from_millis(1500))).await.unwrap_err();
        assert_eq!((error.cause, error.syn_retries), (Cause::ConnectSynUnanswered, 1));
    }

    #[tokio::test]
    async fn a_dial_that_meets_itself_is_recognised() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        let tcp = socket.connect(address).await.unwrap();
        assert!(is_connected_to_itself(&tcp, address));
        os::socket::set_linger_zero(&tcp).unwrap();
    }

    #[test]
    fn each_failure_has_its_cause() {
        let cause = |errno| DialError::from_io(io::Error::from_raw_os_error(errno)).cause;
        // Numbers of Linux: EMFILE, ENFILE, ENOBUFS, EADDRNOTAVAIL.
        for errno in [24, 23, 105, 99] {
            assert_eq!(cause(errno), Cause::ConnectionLimitReached, "{errno}");
        }
        // ENETUNREACH, EHOSTUNREACH, ENETDOWN, EACCES, EAFNOSUPPORT.
        for errno in [101, 113, 100, 13, 97] {
            assert_eq!(cause(errno), Cause::DestinationIpUnroutable, "{errno}");
        }
        assert_eq!(cause(111), Cause::ConnectionRefused);
        assert_eq!(cause(110), Cause::ConnectSynUnanswered);
        assert_eq!(cause(104), Cause::ConnectionReset);
    }
}
