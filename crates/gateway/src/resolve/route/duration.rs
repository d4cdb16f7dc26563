//! Durations of the Gateway API (GEP-2257), such as `1h30m` and `500ms`.

use std::time::Duration;

/// Reads a duration: one to four numbers of at most five digits, each with one of the units h, m, s and ms.
pub fn read(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok().filter(|_| digits <= 5)?;
        rest = &rest[digits..];
        let unit = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        total += match &rest[..unit] {
            "h" => Duration::from_secs(number * 3600),
            "m" => Duration::from_secs(number * 60),
            "s" => Duration::from_secs(number),
            "ms" => Duration::from_millis(number),
            _ => return None,
        };
        rest = &rest[unit..];
        parts += 1;
    }
    (1..=4).contains(&parts).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_api_defines_them() {
        for (text, expected) in [
            ("0s", Some(0)),
            ("500ms", Some(500)),
            ("1h30m", Some(5_400_000)),
            ("1m2s3ms", Some(62_003)),
            ("99999h", Some(359_996_400_000)),
            ("", None),
            ("1", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("100000s", None),
            ("1d", None),
            ("1s1s1s1s1s", None),
        ] {
            assert_eq!(read(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
