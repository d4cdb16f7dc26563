//! What a failed read or write is called, by whose connection it was.

use std::io::ErrorKind;

use model::Cause;
use transport::http2::{FLOODED, PROTOCOL_VIOLATED, STREAM_REFUSED, UNENCODABLE};

/// A server's connection failed with this; not to be asked about an orderly close.
pub(crate) fn server_failed(kind: ErrorKind) -> Cause {
    match kind {
        // Acknowledgements have stopped, or routers say that there is no way any more.
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            Cause::ConnectionLost
        }
        // The kernel says this of no connection, TLS does: the server ended it with an alert.
        ErrorKind::ConnectionAborted => Cause::TlsAlertReceived,
        STREAM_REFUSED => Cause::HttpStreamRefused,
        PROTOCOL_VIOLATED => Cause::HttpProtocolError,
        UNENCODABLE => Cause::HttpRequestError,
        // An extended CONNECT.
        ErrorKind::Unsupported => Cause::HttpUpgradeFailed,
        _ => Cause::ConnectionReset,
    }
}

/// A server's connection has come to its end, which is called `ended` unless a write to it failed
/// before: the kernel tells of an error once, to whoever asks first, and later there is just an end.
pub(crate) fn server_ended(write_failed: Option<ErrorKind>, ended: Cause) -> Cause {
    match write_failed {
        None | Some(ErrorKind::BrokenPipe | ErrorKind::WriteZero) => ended,
        Some(kind) => server_failed(kind),
    }
}

/// A client's connection failed with this; not to be asked about an orderly close.
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
