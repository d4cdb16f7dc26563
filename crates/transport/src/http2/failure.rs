//! Why a stream ended before its exchange was complete. Travels inside an [`io::Error`], like the
//! errors of other connections.

use std::fmt;
use std::io::{self, ErrorKind};

use http2::{Code, Ended, SendError, Violation};

/// Why a read or write of a stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The server has not begun to process the request: declared by `REFUSED_STREAM` or by the last
    /// stream of a GOAWAY (RFC 9113 sections 5.4.1 and 6.8), or the connection had ended before
    /// anything was sent. Any request may be sent again.
    Refused,
    /// The peer reset the stream.
    Reset(Code),
    /// The peer violated HTTP/2, on this stream or on its connection, or speaks another protocol.
    Violation(Violation),
    /// HTTP/2 cannot carry this request; nothing of it was sent.
    Unencodable,
    /// The request is an Upgrade, and the server does not support extended CONNECT (RFC 8441);
    /// nothing of it was sent.
    NoExtendedConnect,
    /// The connection failed or ended; also every error of a connection without streams.
    Connection(ErrorKind),
}

impl StreamError {
    /// Returns the reason in an error of a read or write.
    pub fn of(error: &io::Error) -> StreamError {
        let reason = error.get_ref().and_then(|inner| inner.downcast_ref());
        reason.copied().unwrap_or(StreamError::Connection(error.kind()))
    }

    /// Returns whether it is the equivalent of a close: the peer has no more use for the exchange.
    pub fn is_close(self) -> bool {
        matches!(
            self,
            StreamError::Reset(Code::CANCEL | Code::NO_ERROR)
                | StreamError::Connection(ErrorKind::UnexpectedEof)
        )
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Refused => f.write_str("the stream was not processed"),
            StreamError::Reset(code) => write!(f, "the stream was reset with {code}"),
            StreamError::Violation(violation) => fmt::Display::fmt(violation, f),
            StreamError::Unencodable => f.write_str("HTTP/2 cannot carry this request"),
            StreamError::NoExtendedConnect => f.write_str("the server takes no extended CONNECT"),
            StreamError::Connection(kind) => fmt::Display::fmt(kind, f),
        }
    }
}

impl std::error::Error for StreamError {}

impl From<StreamError> for io::Error {
    fn from(reason: StreamError) -> io::Error {
        let kind = match reason {
            StreamError::Connection(kind) => return kind.into(),
            StreamError::Reset(Code::CANCEL | Code::NO_ERROR) => ErrorKind::UnexpectedEof,
            StreamError::Reset(_) => ErrorKind::ConnectionReset,
            StreamError::Violation(_) => ErrorKind::InvalidData,
            StreamError::Refused | StreamError::Unencodable => ErrorKind::Other,
            StreamError::NoExtendedConnect => ErrorKind::Unsupported,
        };
        io::Error::new(kind, reason)
    }
}

impl From<Ended> for StreamError {
    fn from(why: Ended) -> StreamError {
        match why {
            Ended::Unprocessed => StreamError::Refused,
            Ended::ByPeer(code) => StreamError::Reset(code),
            Ended::Violation(violation) => StreamError::Violation(violation),
        }
    }
}

impl From<SendError> for StreamError {
    fn from(error: SendError) -> StreamError {
        match error {
            SendError::Ended => StreamError::Connection(ErrorKind::BrokenPipe),
            SendError::Leaving => StreamError::Refused,
            SendError::Unencodable => StreamError::Unencodable,
            SendError::NoExtendedConnect => StreamError::NoExtendedConnect,
        }
    }
}
