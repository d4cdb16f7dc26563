//! Durations, sizes and status ranges as people write them, and as they are printed back.

use std::time::Duration;

use crate::diagnostic::Wrong;
use crate::diagnostic::quote;

const DURATION_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Units of sizes, and their bytes.
pub const SIZE_UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// `300ms`, `5s`, `2m`, `1h`, `1d`.
pub(crate) fn duration(text: &str) -> Result<Duration, Wrong> {
    let (digits, unit) = split(text);
    let factor = DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (digits.parse::<u64>(), factor) {
        (Ok(n), Some(factor)) => n
            .checked_mul(*factor)
            .map(Duration::from_millis)
            .ok_or_else(|| Wrong::new("far too long")),
        (Ok(n), None) if unit.is_empty() => {
            Err(Wrong::new("the unit is missing").help(format!("write \"{n}s\" or \"{n}ms\"")))
        }
        (Ok(n), None) if !unit.starts_with(['.', ',']) => {
            let help = match long_unit(unit) {
                Some(short) => format!("write \"{n}{short}\""),
                None => "units are ms, s, m, h and d, as in \"300ms\"".to_owned(),
            };
            Err(Wrong::new(format!("{} is not a unit of time", quote(unit))).help(help))
        }
        _ => Err(Wrong::new("not a whole number and a unit")
            .help("write it as \"300ms\", \"5s\", \"2m\" or \"1h\"; fractions in the next smaller unit, as \"1500ms\"")),
    }
}

fn long_unit(unit: &str) -> Option<&'static str> {
    match unit.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Some("ms"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hour" | "hours" => Some("h"),
        "d" | "day" | "days" => Some("d"),
        _ => None,
    }
}

/// `512B`, `16kB`, `1MiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, Wrong> {
    let (digits, unit) = split(text);
    let factor = SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (digits.parse::<u64>(), factor) {
        (Ok(n), Some(factor)) => n.checked_mul(*factor).ok_or_else(|| Wrong::new("far too large")),
        (Ok(n), None) if unit.is_empty() => Err(Wrong::new("the unit is missing")
            .help(format!("write {n} without quotes for bytes, or \"{n}kB\""))),
        (Ok(n), None) if !unit.starts_with(['.', ',']) => {
            let help = match unit.to_ascii_lowercase().as_str() {
                "k" | "kb" | "ki" | "kib" => {
                    format!("write \"{n}kB\" for {n}000 bytes or \"{n}KiB\" for {n} × 1024 bytes")
                }
                "m" | "mb" | "mi" | "mib" => format!("write \"{n}MB\" or \"{n}MiB\""),
                "g" | "gb" | "gi" | "gib" => format!("write \"{n}GB\" or \"{n}GiB\""),
                _ => "units are B, kB, MB, GB, KiB, MiB and GiB".to_owned(),
            };
            Err(Wrong::new(format!("{} is not a unit of size", quote(unit))).help(help))
        }
        _ => Err(Wrong::new("not a whole number and a unit")
            .help("write it as \"16kB\", \"1MiB\", or as a number of bytes without quotes")),
    }
}

/// Leading digits, and what follows without the space before it.
fn split(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

/// `200` or `200-399`: an inclusive range of status codes.
pub(crate) fn status_range(text: &str) -> Result<(u16, u16), Wrong> {
    let wrong = || {
        let wrong = Wrong::new("not a status or a range of statuses");
        match text.as_bytes() {
            [first @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                let first = char::from(*first);
                wrong.help(format!("write \"{first}00-{first}99\""))
            }
            _ => wrong.help("write 200, [200, 204] or \"200-399\""),
        }
    };
    let one = |text: &str| {
        let text = text.trim();
        let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| digits).ok_or_else(wrong)
    };
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (one(low)?, one(high)?),
        None => (one(text)?, one(text)?),
    };
    if low > high {
        return Err(
            Wrong::new("the range ends before it begins").help(format!("write \"{high}-{low}\""))
        );
    }
    // 1xx are never final (RFC 9110 section 15.2), so no probe could succeed with one.
    if low < 200 || high > 599 {
        return Err(Wrong::new("a final status is between 200 and 599"));
    }
    Ok((low, high))
}

/// A duration in the largest unit that holds it whole.
pub fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let (unit, factor) = DURATION_UNITS
        .iter()
        .rev()
        .find(|(_, factor)| millis.is_multiple_of(u128::from(*factor)))
        .unwrap_or(&DURATION_UNITS[0]);
    format!("{}{unit}", millis / u128::from(*factor))
}

/// A size in the largest unit that holds it whole.
pub fn show_size(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    let (unit, factor) = SIZE_UNITS
        .iter()
        .filter(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor)
        .unwrap_or(&SIZE_UNITS[0]);
    format!("{}{unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["1ms", "300ms", "5s", "2m", "90s", "1h", "7d", "1500ms"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
        for text in ["1B", "16kB", "1MiB", "64kB", "16KiB", "3GB", "1GiB"] {
            assert_eq!(show_size(size(text).unwrap()), text);
        }
    }

    #[test]
    fn a_wrong_unit_is_answered_with_the_right_one() {
        let help = |wrong: Wrong| wrong.help.unwrap();
        assert_eq!(help(duration("5").unwrap_err()), "write \"5s\" or \"5ms\"");
        assert_eq!(help(duration("5 sec").unwrap_err()), "write \"5s\"");
        assert_eq!(
            help(size("16k").unwrap_err()),
            "write \"16kB\" for 16000 bytes or \"16KiB\" for 16 × 1024 bytes"
        );
        assert_eq!(help(status_range("2xx").unwrap_err()), "write \"200-299\"");
        for text in ["", "s", "-5s", "99999999999999999999s", "9999999999999999d", "1.5s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "kB", "18446744073709551615GB"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["", "2000", "299-200", "100", "200-", "+20", "²00"] {
            assert!(status_range(text).is_err(), "{text}");
        }
    }
}
