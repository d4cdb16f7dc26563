//! Reason phrases.

use wire::http1::encode;

/// Returns the reason phrase of a status that Weir itself may send; for a status without one, the
/// phrase of its class's x00 code (RFC 9110 section 15).
pub(super) fn reason(status: u16) -> &'static str {
    match encode::reason_phrase(status) {
        "" if status < 500 => "Client Error",
        "" => "Server Error",
        phrase => phrase,
    }
}
