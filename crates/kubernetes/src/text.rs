//! Times, names, versions and digests as Kubernetes writes them. Pure.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use observe::timestamp::TimestampCache;

/// Returns a time since 1970 as `metav1.Time`: RFC 3339 with seconds.
pub(crate) fn time(since_epoch: Duration) -> String {
    let text = TimestampCache::default().at(since_epoch).to_string();
    format!("{}Z", text.get(..19).unwrap_or_default())
}

/// Returns a time since 1970 as `metav1.MicroTime`: RFC 3339 with microseconds.
pub(crate) fn micro_time(since_epoch: Duration) -> String {
    let text = TimestampCache::default().at(since_epoch).to_string();
    let micros = since_epoch.subsec_micros();
    format!("{}.{micros:06}Z", text.get(..19).unwrap_or_default())
}

/// Returns the first 16 hexadecimal digits of the SHA-256 of a text.
pub(crate) fn short_digest(text: &str) -> String {
    hexadecimal(&digest(&SHA256, text.as_bytes()).as_ref()[..8])
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(u32::from(half), 16)).collect()
}

/// Returns a text as the value of a label: at most 63 characters, of which a longer text keeps the first and a digest.
pub(crate) fn label_value(text: &str) -> String {
    const LABEL_BYTES_MAX: usize = 63;
    if text.len() <= LABEL_BYTES_MAX {
        return text.to_owned();
    }
    let start = &text[..text.floor_char_boundary(LABEL_BYTES_MAX - 17)];
    format!("{}-{}", start.trim_end_matches(['.', '-', '_']), short_digest(text))
}

/// Returns a foreign text as one bounded line for logs.
pub(crate) fn one_line(text: &str) -> String {
    const LINE_BYTES_MAX: usize = 400;
    let text = text.trim();
    let end = text.floor_char_boundary(LINE_BYTES_MAX);
    let mut line: String =
        text[..end].chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if end < text.len() {
        line.push('…');
    }
    line
}

/// Returns whether a `resourceVersion` is older than another. Versions are numbers that only grow (Kubernetes guarantees
/// it since 1.35; before, it was so with etcd). One that is no number is not older.
pub(crate) fn is_older(found: &str, known: &str) -> bool {
    match (found.parse::<u64>(), known.parse::<u64>()) {
        (Ok(found), Ok(known)) => found < known,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_precision_of_the_api() {
        let at = Duration::from_micros(1_767_323_045_000_789);
        assert_eq!(time(at), "2026-01-02T03:04:05Z");
        assert_eq!(micro_time(at), "2026-01-02T03:04:05.000789Z");
        assert_eq!(time(Duration::ZERO), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn digests_are_short_and_hexadecimal() {
        // As of `printf a | sha256sum`.
        assert_eq!(short_digest("a"), "ca978112ca1bbdca");
        assert_eq!(hexadecimal(&[0, 0x0f, 0xff]), "000fff");
    }

    #[test]
    fn values_of_labels_are_bounded_and_differ() {
        assert_eq!(label_value("gw.a"), "gw.a");
        let long = |end: &str| label_value(&format!("{}{end}", "a.".repeat(100)));
        assert_eq!(long("x").len(), 62, "{}", long("x"));
        assert_ne!(long("x"), long("y"));
        assert!(!long("x").contains(".-"));
    }

    #[test]
    fn lines_are_bounded_and_have_no_control_characters() {
        assert_eq!(one_line(" a\nb\u{1b}[0m "), "a b [0m");
        assert!(one_line(&"é".repeat(1000)).len() < 410);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (found, known, expected) in [
            ("9", "10", true),
            ("10", "10", false),
            ("11", "10", false),
            ("x", "10", false),
            ("9", "", false),
        ] {
            assert_eq!(is_older(found, known), expected, "{found} {known}");
        }
    }
}
