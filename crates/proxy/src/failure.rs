//! What a failed read or write is called: the one place that gives it a cause, by whose connection it
//! was.

use std::io::ErrorKind;

use model::Cause;
use transport::http2::{FLOODED, PROTOCOL_VIOLATED, STREAM_REFUSED, UNENCODABLE};
use wire::http1::ChunkError;

use crate::pump::PumpError;

/// Why an exchange, or a part of it, came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) cause: Cause,
    /// What exactly, where there is more to say than the cause does.
    pub(crate) detail: &'static str,
}

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Reason {
        Reason { cause, detail: "" }
    }
}

/// Whose bytes were being moved to the other side.
#[derive(Clone, Copy)]
pub(crate) enum Sender {
    Client,
    Server {
        /// What it is called when the server's connection ends too early.
        early_end: Cause,
        /// An earlier write to the server failed with this. The kernel reports an error once, to
        /// the first call that asks; later calls find just an end.
        write_failed: Option<ErrorKind>,
    },
}

/// Returns what a failed transfer from `sender` to the other side is called.
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
        // TLS without close_notify, and a stream that was reset without an error, are early ends.
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

/// Returns what an error of a server's connection is called; not for an orderly close.
pub(crate) fn server_failed(kind: ErrorKind) -> Cause {
    match kind {
        // Acknowledgements have stopped, or a router reports that there is no route any more.
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            Cause::ConnectionLost
        }
        // The kernel never reports this for a connection; TLS does, for an alert of the server.
        ErrorKind::ConnectionAborted => Cause::TlsAlertReceived,
        STREAM_REFUSED => Cause::HttpStreamRefused,
        PROTOCOL_VIOLATED => Cause::HttpProtocolError,
        UNENCODABLE => Cause::HttpRequestError,
        // An extended CONNECT.
        ErrorKind::Unsupported => Cause::HttpUpgradeFailed,
        _ => Cause::ConnectionReset,
    }
}

/// Returns what an error of a client's connection is called; not for an orderly close.
pub(crate) fn client_failed(kind: ErrorKind) -> Cause {
    match kind {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            Cause::ClientReset
        }
        // Weir has closed, not the client.
        PROTOCOL_VIOLATED => Cause::Http2ProtocolError,
        FLOODED => Cause::EnhanceYourCalm,
        _ => Cause::ClientClosed,
    }
}
