//! What failed, in the words of sockets, which the rest of the house speaks.

use std::io::{self, ErrorKind};

use h2::Reason;

/// The kind of error with which a stream ends that its server has not begun to process: it says so
/// by `REFUSED_STREAM` or by the last stream id of a GOAWAY (RFC 9113 sections 5.4.1 and 6.8), and
/// any request may then be sent again.
pub const STREAM_REFUSED: ErrorKind = ErrorKind::ResourceBusy;

/// The kind of error with which streams end whose connection has ended because the peer broke the
/// rules of HTTP/2, or speaks something else.
pub const PROTOCOL_VIOLATED: ErrorKind = ErrorKind::InvalidInput;

/// The kind of error with which a stream fails whose request HTTP/2 cannot carry: nothing of it was
/// sent.
pub const UNENCODABLE: ErrorKind = ErrorKind::InvalidFilename;

/// The kind of error with which streams end whose connection was ended because its client asks for
/// more than is good (RFC 9113 section 10.5).
pub const FLOODED: ErrorKind = ErrorKind::QuotaExceeded;

/// How a stream's end by reset is told.
pub(super) fn of_reset(reason: Reason) -> ErrorKind {
    match reason {
        Reason::REFUSED_STREAM => STREAM_REFUSED,
        // Its peer has lost interest: what is a close where a connection carries one exchange.
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
        // Only streams above the last id of a GOAWAY end by it.
        Some(_) if error.is_go_away() && error.is_remote() => STREAM_REFUSED,
        Some(reason) if error.is_reset() && error.is_remote() => of_reset(reason),
        Some(_) if error.is_library() => PROTOCOL_VIOLATED,
        _ => ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}
