//! Why a request failed, with the names that `weir explain` uses where it has them.

use std::io;

model::words! {
    /// Why. The first of them are the load generator's own.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Failure {
        /// No local port was free for that destination (`EADDRNOTAVAIL`): the generator's.
        LocalPorts = "local_ports_exhausted",
        /// No descriptor or no memory was free for a socket: the generator's.
        LocalDescriptors = "local_descriptors_exhausted",
        /// The server's machine answered that nothing listens.
        Refused = "connection_refused",
        /// The connection attempt was not answered in time.
        ConnectTimeout = "connection_timeout",
        /// There is no way to the address.
        Unroutable = "destination_ip_unroutable",
        /// The TLS handshake failed, or what came over TLS was broken.
        Tls = "tls_protocol_error",
        /// The whole response had not come in time.
        ResponseTimeout = "http_response_timeout",
        /// The server closed a kept connection just when this request was sent on it.
        IdleClosed = "server_closed_idle_connection",
        /// The connection was reset.
        Reset = "connection_reset",
        /// The server closed the connection before its response was whole.
        Incomplete = "http_response_incomplete",
        /// What came is not HTTP.
        Protocol = "http_protocol_error",
        /// The server refused or reset the stream (HTTP/2).
        StreamRefused = "http_stream_refused",
        /// Anything else.
        Lost = "connection_lost",
    }
}

/// How many kinds there are.
pub(crate) const KINDS: usize = Failure::ALL.len();

impl Failure {
    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Failure::LocalPorts => "no local port was free (this machine's)",
            Failure::LocalDescriptors => "no descriptor was free (this machine's)",
            Failure::Refused => "nothing listens there",
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
