//! Maps failed reads and writes to causes. The only place that does, depending on whose connection
//! failed.

use std::io::ErrorKind;

use model::Cause;
use transport::http2::{Code, StreamError, Violation};
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
        write_failed: Option<StreamError>,
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
        (Sender::Client, PumpError::Read(error))
        | (Sender::Server { .. }, PumpError::Write(error)) => client_failed(*error),
        (Sender::Server { early_end, write_failed }, PumpError::Incomplete) => {
            return ended_early(early_end, write_failed);
        }
        // TLS without close_notify is an early end, too.
        (
            Sender::Server { early_end, write_failed },
            PumpError::Read(StreamError::Connection(
                ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe,
            )),
        ) => return ended_early(early_end, write_failed),
        (Sender::Client, PumpError::Write(error))
        | (Sender::Server { .. }, PumpError::Read(error)) => return server_failed(*error),
        (Sender::Server { .. }, PumpError::Malformed(ChunkError::TrailersTooLarge)) => {
            Cause::HttpResponseTrailerTooLarge
        }
        (Sender::Server { .. }, PumpError::Malformed(_) | PumpError::TooLarge) => {
            Cause::HttpResponseTransferCoding
        }
    };
    cause.into()
}

fn ended_early(early_end: Cause, write_failed: Option<StreamError>) -> Reason {
    match write_failed {
        None | Some(StreamError::Connection(ErrorKind::BrokenPipe | ErrorKind::WriteZero)) => {
            early_end.into()
        }
        Some(error) => server_failed(error),
    }
}

/// Returns the reason for an error of a server's connection; not for an orderly close.
pub(crate) fn server_failed(error: StreamError) -> Reason {
    let cause = match error {
        StreamError::Connection(kind) => match kind {
            // Acknowledgements have stopped, or a router reports that the route is gone.
            ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                Cause::ConnectionLost
            }
            // The kernel never reports this for a connection; TLS does, for an alert sent by the
            // server.
            ErrorKind::ConnectionAborted => Cause::TlsAlertReceived,
            _ => Cause::ConnectionReset,
        },
        StreamError::Reset(code) => {
            let detail = code.name().unwrap_or("an unknown error code");
            return Reason { cause: Cause::HttpStreamReset, detail };
        }
        StreamError::Refused => Cause::HttpStreamRefused,
        StreamError::Violation(Violation { rule, .. }) => {
            return Reason { cause: Cause::HttpProtocolError, detail: rule };
        }
        StreamError::Unencodable => Cause::HttpRequestError,
        StreamError::NoExtendedConnect => Cause::HttpUpgradeFailed,
    };
    cause.into()
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
pub(crate) fn client_failed(error: StreamError) -> Cause {
    match error {
        // Weir closed the connection, not the client. The rule is recorded with the connection.
        StreamError::Violation(violation) => of_violation(violation).cause,
        StreamError::Reset(_) if !error.is_close() => Cause::ClientReset,
        StreamError::Connection(
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted,
        ) => Cause::ClientReset,
        _ => Cause::ClientClosed,
    }
}
