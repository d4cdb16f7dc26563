//! Maps HTTP/2 errors to socket error kinds, which the rest of the program uses.

use std::io::{self, ErrorKind};

use h2::Reason;

/// The error kind of a stream that its server has not begun to process: declared by
/// `REFUSED_STREAM` or by the last stream ID of a GOAWAY (RFC 9113 sections 5.4.1 and 6.8). Any
/// request may then be sent again.
pub const STREAM_REFUSED: ErrorKind = ErrorKind::ResourceBusy;

/// The error kind of streams whose connection has ended because the peer violated HTTP/2, or speaks
/// another protocol.
pub const PROTOCOL_VIOLATED: ErrorKind = ErrorKind::InvalidInput;

/// The error kind of a request that HTTP/2 cannot carry: nothing of it was sent.
pub const UNENCODABLE: ErrorKind = ErrorKind::InvalidFilename;

/// The error kind of streams whose connection was ended because its client causes excessive load
/// (RFC 9113 section 10.5).
pub const FLOODED: ErrorKind = ErrorKind::QuotaExceeded;

/// Returns the error kind for a stream reset.
pub(super) fn of_reset(reason: Reason) -> ErrorKind {
    match reason {
        Reason::REFUSED_STREAM => STREAM_REFUSED,
        // The peer has cancelled: the equivalent of a close of a connection with one exchange.
        Reason::CANCEL | Reason::NO_ERROR => ErrorKind::UnexpectedEof,
        _ => ErrorKind::ConnectionReset,
    }
}

pub(super) fn to_io(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| ErrorKind::ConnectionReset.into());
    }
    let kind = match error.reason() {
        Some(Reason::ENHANCE_YOUR_CALM) if !error.is_remote() => FLOODED,
        // A GOAWAY only ends streams above its last ID.
        Some(_) if error.is_go_away() && error.is_remote() => STREAM_REFUSED,
        Some(reason) if error.is_reset() && error.is_remote() => of_reset(reason),
        Some(_) if error.is_library() => PROTOCOL_VIOLATED,
        _ => ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}
