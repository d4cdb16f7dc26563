//! Maps failed reads and writes to causes. The only place that does, depending on whose connection
//! failed.

use std::io::ErrorKind;

use model::Cause;
use transport::http2::{Code, FLOODED, PROTOCOL_VIOLATED, STREAM_REFUSED, UNENCODABLE, Violation};
use wire::http1::ChunkError;

use crate::pump::PumpError;

/// Why an exchange, or a part of it, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) cause: Cause,
    /// Detail beyond the cause, if any.
    pub(crate) detail: &'static str,
}

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Reason {
        Reason { cause, detail: "" }
    }
}

/// The side whose bytes were being forwarded.
#[derive(Clone, Copy)]
pub(crate) enum Sender {
    Client,
    Server {
        /// The cause reported when the server's connection ends too early.
        early_end: Cause,
        /// The error of an earlier write to the server. The kernel reports an error once, to the
        /// first call; later calls only see the end of the stream.
        write_failed: Option<ErrorKind>,
    },
}

/// Returns the cause of a failed transfer from `sender` to the other side.
pub(crate) fn reason(error: &PumpError, sender: Sender) -> Reason {
    let cause = match (sender, error) {
        (_, PumpError::Filter) => Cause::ProxyInternalError,
        (Sender::Client, PumpError::Malformed(error)) => {
            return Reason { cause: Cause::HttpRequestError, detail: error.detail() };
        }
        (Sender::Client, PumpError::TooLarge) => Cause::HttpRequestBodyTooLarge,
        (Sender::Client, PumpError::Incomplete) => Cause::HttpRequestIncomplete,
        (Sender::Client, PumpError::Read(kind))
        | (Sender::Server { .. }, PumpError::Write(kind)) => client_failed(*kind),
        // TLS without close_notify, and a stream reset without an error code, are early ends.
        (
            Sender::Server { early_end, write_failed },
            PumpError::Incomplete
            | PumpError::Read(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe),
        ) => match write_failed {
            None | Some(ErrorKind::BrokenPipe | ErrorKind::WriteZero) => early_end,
            Some(kind) => server_failed(kind),
        },
        (Sender::Client, PumpError::Write(kind))
        | (Sender::Server { .. }, PumpError::Read(kind)) => server_failed(*kind),
        (Sender::Server { .. }, PumpError::Malformed(ChunkError::TrailersTooLarge)) => {
            Cause::HttpResponseTrailerTooLarge
        }
        (Sender::Server { .. }, PumpError::Malformed(_) | PumpError::TooLarge) => {
            Cause::HttpResponseTransferCoding
        }
    };
    cause.into()
}

/// Returns the cause for an error of a server's connection; not for an orderly close.
pub(crate) fn server_failed(kind: ErrorKind) -> Cause {
    match kind {
        // Acknowledgements have stopped, or a router reports that the route is gone.
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            Cause::ConnectionLost
        }
        // The kernel never reports this for a connection; TLS does, for an alert sent by the
        // server.
        ErrorKind::ConnectionAborted => Cause::TlsAlertReceived,
        STREAM_REFUSED => Cause::HttpStreamRefused,
        PROTOCOL_VIOLATED | FLOODED => Cause::HttpProtocolError,
        UNENCODABLE => Cause::HttpRequestError,
        // An extended CONNECT.
        ErrorKind::Unsupported => Cause::HttpUpgradeFailed,
        _ => Cause::ConnectionReset,
    }
}

/// Returns why Weir ended a client's connection that violated HTTP/2.
pub(crate) fn of_violation(violation: Violation) -> Reason {
    let cause = match violation.code {
        Code::ENHANCE_YOUR_CALM => Cause::EnhanceYourCalm,
        _ => Cause::Http2ProtocolError,
    };
    Reason { cause, detail: violation.rule }
}

/// Returns the cause for an error of a client's connection; not for an orderly close.
pub(crate) fn client_failed(kind: ErrorKind) -> Cause {
    match kind {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            Cause::ClientReset
        }
        // Weir closed the connection, not the client.
        PROTOCOL_VIOLATED => Cause::Http2ProtocolError,
        FLOODED => Cause::EnhanceYourCalm,
        _ => Cause::ClientClosed,
    }
}
