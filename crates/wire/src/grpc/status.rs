//! The status that ends a call (`grpc-status`).

/// Names by code, from gRPC's `doc/statuscodes.md`.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Parses `grpc-status`: decimal digits, no sign. Returns `None` for anything else.
pub fn parse_status(value: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(value).ok()?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Returns the name of a status; `None` if gRPC does not define it.
pub fn status_name(code: u32) -> Option<&'static str> {
    NAMES.get(usize::try_from(code).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_digits_and_have_the_names_of_their_codes() {
        for (value, code) in [("0", Some(0)), ("12", Some(12)), ("99", Some(99))] {
            assert_eq!(parse_status(value.as_bytes()), code);
        }
        for value in ["", "+1", "-1", " 1", "1 ", "x", "99999999999", "\u{661}"] {
            assert_eq!(parse_status(value.as_bytes()), None, "{value:?}");
        }
        assert_eq!(status_name(super::super::UNIMPLEMENTED), Some("UNIMPLEMENTED"));
        assert_eq!(status_name(super::super::NOT_FOUND), Some("NOT_FOUND"));
        assert_eq!(status_name(16), Some("UNAUTHENTICATED"));
        assert_eq!(status_name(17), None);
    }
}
