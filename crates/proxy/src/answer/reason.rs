//! Reason phrases.

use wire::http1::encode;

/// The reason phrase of a status that Weir itself may send; for one without a phrase, what an
/// unknown status of its class stands for (RFC 9110 section 15).
pub(super) fn reason(status: u16) -> &'static str {
    match encode::reason_phrase(status) {
        "" if status < 500 => "Client Error",
        "" => "Server Error",
        phrase => phrase,
    }
}
