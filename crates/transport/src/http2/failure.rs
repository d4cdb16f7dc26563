//! Maps HTTP/2 errors to socket error kinds, which the rest of the program uses.

use std::io::ErrorKind;

use http2::{Code, Ended, Violation};

/// The error kind of a stream that its server has not begun to process: declared by
/// `REFUSED_STREAM` or by the last stream ID of a GOAWAY (RFC 9113 sections 5.4.1 and 6.8). Any
/// request may then be sent again.
pub const STREAM_REFUSED: ErrorKind = ErrorKind::ResourceBusy;

/// The error kind of streams whose peer violated HTTP/2, on them or on their connection, or speaks
/// another protocol.
pub const PROTOCOL_VIOLATED: ErrorKind = ErrorKind::InvalidInput;

/// The error kind of a request that HTTP/2 cannot carry: nothing of it was sent.
pub const UNENCODABLE: ErrorKind = ErrorKind::InvalidFilename;

/// The error kind of streams whose connection was ended because its peer causes excessive load
/// (RFC 9113 section 10.5).
pub const FLOODED: ErrorKind = ErrorKind::QuotaExceeded;

/// Returns the error kind for a stream that ended early.
pub(super) fn of_end(why: Ended) -> ErrorKind {
    match why {
        Ended::Unprocessed => STREAM_REFUSED,
        // The peer has cancelled: the equivalent of a close of a connection with one exchange.
        Ended::ByPeer(Code::CANCEL | Code::NO_ERROR) => ErrorKind::UnexpectedEof,
        Ended::ByPeer(_) => ErrorKind::ConnectionReset,
        Ended::Violation(_) => PROTOCOL_VIOLATED,
    }
}

/// Returns the error kind for the streams of a connection that a violation has ended.
pub(super) fn of_violation(violation: Violation) -> ErrorKind {
    if violation.code == Code::ENHANCE_YOUR_CALM { FLOODED } else { PROTOCOL_VIOLATED }
}
