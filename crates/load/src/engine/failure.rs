//! Why a request failed, with the names that `weir explain` uses where it has them.

use std::io;

/// Why. The first of them are the load generator's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No local port was free for that destination (`EADDRNOTAVAIL`): the generator's.
    LocalPorts,
    /// No descriptor or no memory was free for a socket: the generator's.
    LocalDescriptors,
    /// The server's machine answered that nobody listens.
    Refused,
    /// The connection attempt was not answered in time.
    ConnectTimeout,
    /// There is no way to the address.
    Unroutable,
    /// The TLS handshake failed, or what came over TLS was broken.
    Tls,
    /// The whole response had not come in time.
    ResponseTimeout,
    /// The server closed a kept connection just when this request was sent on it.
    IdleClosed,
    /// The connection was reset.
    Reset,
    /// The server closed the connection before its response was whole.
    Incomplete,
    /// What came is not HTTP.
    Protocol,
    /// The server refused or reset the stream (HTTP/2).
    StreamRefused,
    /// Anything else.
    Lost,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = Failure::ALL.len();

impl Failure {
    /// All, in order.
    pub const ALL: [Failure; 13] = [
        Failure::LocalPorts,
        Failure::LocalDescriptors,
        Failure::Refused,
        Failure::ConnectTimeout,
        Failure::Unroutable,
        Failure::Tls,
        Failure::ResponseTimeout,
        Failure::IdleClosed,
        Failure::Reset,
        Failure::Incomplete,
        Failure::Protocol,
        Failure::StreamRefused,
        Failure::Lost,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Failure::LocalPorts => "local_ports_exhausted",
            Failure::LocalDescriptors => "local_descriptors_exhausted",
            Failure::Refused => "connection_refused",
            Failure::ConnectTimeout => "connection_timeout",
            Failure::Unroutable => "destination_ip_unroutable",
            Failure::Tls => "tls_protocol_error",
            Failure::ResponseTimeout => "http_response_timeout",
            Failure::IdleClosed => "server_closed_idle_connection",
            Failure::Reset => "connection_reset",
            Failure::Incomplete => "http_response_incomplete",
            Failure::Protocol => "http_protocol_error",
            Failure::StreamRefused => "http_stream_refused",
            Failure::Lost => "connection_lost",
        }
    }

    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Failure::LocalPorts => "no local port was free (this machine's)",
            Failure::LocalDescriptors => "no descriptor was free (this machine's)",
            Failure::Refused => "nobody listens there",
            Failure::ConnectTimeout => "the connection attempt was not answered in time",
            Failure::Unroutable => "there is no way to the address",
            Failure::Tls => "TLS failed",
            Failure::ResponseTimeout => "no whole response in time",
            Failure::IdleClosed => "the server closed a kept connection as it was used",
            Failure::Reset => "the connection was reset",
            Failure::Incomplete => "the server closed before its response was whole",
            Failure::Protocol => "what came is not HTTP",
            Failure::StreamRefused => "the server refused or reset the stream",
            Failure::Lost => "the connection was lost",
        }
    }

    /// Of an attempt to connect.
    pub(crate) fn of_connect(error: &io::Error) -> Failure {
        use io::ErrorKind as Kind;
        match error.kind() {
            _ if os::limits::is_exhaustion(error) => Failure::LocalDescriptors,
            Kind::AddrNotAvailable | Kind::AddrInUse => Failure::LocalPorts,
            Kind::ConnectionRefused => Failure::Refused,
            Kind::TimedOut => Failure::ConnectTimeout,
            Kind::HostUnreachable | Kind::NetworkUnreachable => Failure::Unroutable,
            Kind::ConnectionReset => Failure::Reset,
            _ => Failure::Lost,
        }
    }

    /// Of reading or writing on a connection.
    pub(crate) fn of_io(error: &io::Error) -> Failure {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionReset | Kind::BrokenPipe => Failure::Reset,
            Kind::UnexpectedEof => Failure::Incomplete,
            Kind::InvalidData => Failure::Tls,
            _ => Failure::Lost,
        }
    }
}
