//! The status and message of gRPC calls that Weir answers itself.

use std::io::Write as _;

use model::Cause;

const CANCELLED: u8 = 1;
const UNKNOWN: u8 = 2;
const DEADLINE_EXCEEDED: u8 = 4;
const PERMISSION_DENIED: u8 = 7;
const RESOURCE_EXHAUSTED: u8 = 8;
const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
const UNAUTHENTICATED: u8 = 16;

/// Returns the status for a cause and the HTTP status that other clients would receive, as gRPC
/// clients map them ("HTTP to gRPC Status Code Mapping"). A stream that the server has reset has the
/// status of its error code (gRPC over HTTP/2, "Errors"), which is in `detail`.
#[allow(clippy::wildcard_enum_match_arm, reason = "of any other cause the status decides")]
pub(super) fn status(cause: Cause, http: u16, detail: &str) -> u8 {
    match (cause, http) {
        (Cause::ClientDeadlineExceeded, _) => DEADLINE_EXCEEDED,
        (Cause::HttpStreamReset, _) => match detail {
            "CANCEL" => CANCELLED,
            "ENHANCE_YOUR_CALM" => RESOURCE_EXHAUSTED,
            "INADEQUATE_SECURITY" => PERMISSION_DENIED,
            _ => INTERNAL,
        },
        (_, 400) => INTERNAL,
        (_, 401) => UNAUTHENTICATED,
        (_, 403) => PERMISSION_DENIED,
        (_, 404) => UNIMPLEMENTED,
        (_, 408) => DEADLINE_EXCEEDED,
        (_, 413 | 431) => RESOURCE_EXHAUSTED,
        (_, 429 | 502..=504) => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

/// Appends the value of `grpc-message`: the cause, its summary, and the detail that the client may
/// see, percent-encoded ("Responses" in gRPC over HTTP/2).
pub(super) fn write_message(cause: Cause, detail: &str, out: &mut Vec<u8>) {
    let parts = [cause.name(), ": ", cause.summary().trim_end_matches('.')];
    let detail = if detail.is_empty() { ["", ""] } else { [": ", detail] };
    for byte in parts.iter().chain(&detail).flat_map(|part| part.bytes()) {
        match byte {
            b' '..=b'$' | b'&'..=b'~' => out.push(byte),
            _ => {
                // Writing to a Vec cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_status_that_is_not_ok() {
        for &cause in Cause::ALL {
            let status = status(cause, cause.status(), "");
            assert!((1..=16).contains(&status), "{}", cause.name());
        }
        assert_eq!(status(Cause::ClientDeadlineExceeded, 408, ""), DEADLINE_EXCEEDED);
        assert_eq!(status(Cause::QueueFull, 503, ""), UNAVAILABLE);
        assert_eq!(status(Cause::HttpStreamReset, 502, "CANCEL"), CANCELLED);
        assert_eq!(status(Cause::HttpStreamReset, 502, "INTERNAL_ERROR"), INTERNAL);
    }

    #[test]
    fn messages_are_percent_encoded() {
        let mut out = Vec::new();
        write_message(Cause::HttpRequestError, "100 % \u{e9}", &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("http_request_error: ") && text.ends_with(": 100 %25 %C3%A9"),
            "{text}"
        );
    }
}
