//! Durations, sizes, rates and shares as people write them, read and printed back: one parser for
//! the configuration, the lab's incident files and the flags.
//!
//! Quantities are computed in integers, so `0.3s` is exactly 300 ms. Bounds are the callers': a
//! configuration key, a flag and a link of the lab each have their own.

use std::fmt;
use std::time::Duration;

/// A unit's name and how many base units it has.
type Unit = (&'static str, u64);

/// In nanoseconds. The second name of a microsecond is SI's.
const DURATION_UNITS: [Unit; 7] = [
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// In bytes.
const SIZE_UNITS: [Unit; 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// In bits per second.
const BIT_RATE_UNITS: [Unit; 3] = [("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];

/// Digits after the decimal point that count. More are ignored: the result is rounded down.
const DECIMALS_MAX: usize = 18;

/// Why a text is not a quantity, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity {
    /// What is wrong, without the text itself.
    pub why: String,
    /// What to write.
    pub help: String,
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.help)
    }
}

impl std::error::Error for NotAQuantity {}

/// One kind of quantity, for the parser and its errors.
struct Kind {
    /// As in "not a unit of time".
    of: &'static str,
    units: &'static [Unit],
    /// Used in the help: "units are …, as in …".
    listed: &'static str,
    example: &'static str,
    /// The largest value that 64 bits hold.
    max: &'static str,
    /// The unit that was probably meant by a name that is none.
    meant: fn(number: &str, unit: &str) -> Option<String>,
}

const DURATION: Kind = Kind {
    of: "time",
    units: &DURATION_UNITS,
    listed: "us, ms, s, m, h and d",
    example: "\"300ms\", \"5s\" or \"1.5h\"",
    max: "213503d",
    meant: meant_duration,
};

const SIZE: Kind = Kind {
    of: "size",
    units: &SIZE_UNITS,
    listed: "B, kB, MB and GB (of 1000) and KiB, MiB and GiB (of 1024)",
    example: "\"512B\", \"16kB\" or \"1.5MiB\"",
    max: "17179869183GiB",
    meant: meant_size,
};

const BIT_RATE: Kind = Kind {
    of: "bit rate",
    units: &BIT_RATE_UNITS,
    listed: "kbit, Mbit and Gbit (per second)",
    example: "\"64kbit\", \"180Mbit\" or \"2.5Gbit\"",
    max: "18446744073Gbit",
    meant: meant_bit_rate,
};

/// Reads a duration: `20us`, `300ms`, `1.5s`, `2m`, `1h`, `1d`. Rounds down to nanoseconds.
///
/// # Errors
/// If `text` is not a number and a unit of time, or longer than 584 years.
pub fn duration(text: &str) -> Result<Duration, NotAQuantity> {
    scaled(text, &DURATION).map(Duration::from_nanos)
}

/// Reads a size in bytes: `512B`, `16kB`, `1.5MiB`. Rounds down to whole bytes.
///
/// # Errors
/// If `text` is not a number and a unit of size, or too large for 64 bits.
pub fn size(text: &str) -> Result<u64, NotAQuantity> {
    scaled(text, &SIZE)
}

/// Reads a bit rate in bits per second: `64kbit`, `2.5Gbit`. Rounds down to whole bits.
///
/// # Errors
/// If `text` is not a number and a unit of a bit rate, or too large for 64 bits.
pub fn bit_rate(text: &str) -> Result<u64, NotAQuantity> {
    scaled(text, &BIT_RATE)
}

/// Reads a number per second: `100`, `0.5`, `20k`, `20k/s`. Never negative, always finite.
///
/// # Errors
/// If `text` is not such a number.
pub fn per_second(text: &str) -> Result<f64, NotAQuantity> {
    let bare = text.trim().strip_suffix("/s").unwrap_or(text).trim();
    let (bare, factor) = bare.strip_suffix('k').map_or((bare, 1.0), |bare| (bare, 1e3));
    number(bare).map(|rate| rate * factor).filter(|rate| rate.is_finite()).ok_or_else(|| {
        NotAQuantity {
            why: "not a number per second".to_owned(),
            help: "write \"100\", \"0.5\" or \"20k\"".to_owned(),
        }
    })
}

/// Reads a share of 1: `2%` or `0.02`. From 0 to 1.
///
/// # Errors
/// If `text` is not such a number.
pub fn share(text: &str) -> Result<f64, NotAQuantity> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share.filter(|share| *share <= 1.0).ok_or_else(|| NotAQuantity {
        why: "not a share".to_owned(),
        help: "write 0% to 100%, or 0.0 to 1.0".to_owned(),
    })
}

/// Reads a number of percent: `2%` or `2`. Never negative, always finite.
///
/// # Errors
/// If `text` is not such a number.
pub fn percent(text: &str) -> Result<f64, NotAQuantity> {
    let text = text.trim();
    number(text.strip_suffix('%').unwrap_or(text)).ok_or_else(|| NotAQuantity {
        why: "not a percentage".to_owned(),
        help: "write \"0.1%\" or \"2%\"".to_owned(),
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// Reads a decimal number and a unit. The result is in the kind's base unit, rounded down.
fn scaled(text: &str, kind: &Kind) -> Result<u64, NotAQuantity> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = !(whole.is_empty() && decimals.is_empty());
    if !has_digits || decimals.contains('.') || unit.starts_with(',') {
        let (why, help) = ("not a number and a unit", format!("write it as {}", kind.example));
        return Err(NotAQuantity { why: why.to_owned(), help });
    }
    let Some((_, factor)) = kind.units.iter().find(|(name, _)| *name == unit) else {
        let help = (kind.meant)(number, unit)
            .unwrap_or_else(|| format!("units are {}, as in {}", kind.listed, kind.example));
        let why = match unit {
            "" => "the unit is missing".to_owned(),
            _ => format!("{} is not a unit of {}", quote(unit), kind.of),
        };
        return Err(NotAQuantity { why, help });
    };
    let too_large =
        || NotAQuantity { why: "too large".to_owned(), help: format!("at most {}", kind.max) };
    let decimals = &decimals[..decimals.len().min(DECIMALS_MAX)];
    // At most 18 digits by at most 8.64e13: both products fit 128 bits.
    let digits = |digits: &str| match digits {
        "" => Ok(0),
        digits => digits.parse::<u64>().map(u128::from).map_err(|_| too_large()),
    };
    let factor = u128::from(*factor);
    let fraction = digits(decimals)? * factor / 10_u128.pow(decimals.len() as u32);
    u64::try_from(digits(whole)? * factor + fraction).map_err(|_| too_large())
}

fn meant_duration(number: &str, unit: &str) -> Option<String> {
    let short = match unit.to_lowercase().as_str() {
        "" => return Some(format!("write \"{number}s\" or \"{number}ms\"")),
        "usec" | "micros" | "microsecond" | "microseconds" => "us",
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => return None,
    };
    Some(format!("write \"{number}{short}\""))
}

fn meant_size(number: &str, unit: &str) -> Option<String> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" => format!("write \"{number}B\" or \"{number}kB\""),
        "b" | "byte" | "bytes" => format!("write \"{number}B\""),
        "k" | "kb" | "ki" | "kib" => format!(
            "write \"{number}kB\" for {number} × 1000 bytes or \"{number}KiB\" for {number} × 1024 bytes"
        ),
        "m" | "mb" | "mi" | "mib" => format!("write \"{number}MB\" or \"{number}MiB\""),
        "g" | "gb" | "gi" | "gib" => format!("write \"{number}GB\" or \"{number}GiB\""),
        _ => return None,
    })
}

fn meant_bit_rate(number: &str, unit: &str) -> Option<String> {
    let written = match unit.to_ascii_lowercase().as_str() {
        "k" | "kbit" | "kbit/s" | "kbps" => "kbit",
        "" | "m" | "mbit" | "mbit/s" | "mbps" => "Mbit",
        "g" | "gbit" | "gbit/s" | "gbps" => "Gbit",
        _ => return None,
    };
    Some(format!("write \"{number}{written}\""))
}

/// A unit as it may stand in a message: quoted, escaped, bounded.
fn quote(unit: &str) -> String {
    const CHARS_MAX: usize = 60;
    let shown: String = unit.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    let more = if unit.chars().nth(CHARS_MAX).is_some() { "…" } else { "" };
    format!("\"{shown}{more}\"")
}

/// Writes a duration in the largest unit that holds it whole: `1500ms`, `2m`. Parts below a
/// microsecond are left out.
pub fn show_duration(duration: Duration) -> String {
    match u64::try_from(duration.as_nanos()) {
        Ok(nanos) if nanos >= 1_000 => show_whole(nanos / 1_000 * 1_000, &DURATION_UNITS),
        Ok(_) => "0s".to_owned(),
        Err(_) => format!("{}s", duration.as_secs()),
    }
}

/// Writes a size in the largest unit that holds it whole: `16KiB`, `1500B`.
pub fn show_size(bytes: u64) -> String {
    if bytes == 0 { "0".to_owned() } else { show_whole(bytes, &SIZE_UNITS) }
}

/// `amount` is not 0, and a multiple of the first unit.
fn show_whole(amount: u64, units: &[Unit]) -> String {
    let holding = units.iter().filter(|(_, factor)| amount.is_multiple_of(*factor));
    // The first of equals: `us` before `µs`.
    let largest = holding.rev().max_by_key(|(_, factor)| *factor);
    let (unit, factor) = largest.unwrap_or(&units[0]);
    format!("{}{unit}", amount / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        let table: [(&str, u64); 14] = [
            ("20us", 20_000),
            ("20µs", 20_000),
            ("0.2ms", 200_000),
            ("300ms", 300_000_000),
            ("0.3s", 300_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            (" 5 s ", 5_000_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7d", 604_800_000_000_000),
            ("0.0000000019s", 1),
            ("0.00000000000000000000000000000001d", 0),
        ];
        for (text, nanos) in table {
            assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn sizes_and_rates_are_exact() {
        let sizes: [(&str, u64); 8] = [
            ("0B", 0),
            ("1B", 1),
            ("16kB", 16_000),
            ("5 MB", 5_000_000),
            ("1.5MB", 1_500_000),
            ("0.1KiB", 102),
            ("256KiB", 262_144),
            ("1GiB", 1 << 30),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(bit_rate("64kbit"), Ok(64_000));
        assert_eq!(bit_rate("2.5Gbit"), Ok(2_500_000_000));
    }

    #[test]
    fn numbers_without_base_unit() {
        let rates = [("100", 100.0), ("0.5/s", 0.5), ("20k", 20_000.0), ("1.5 k/s", 1_500.0)];
        for (text, rate) in rates {
            assert_eq!(per_second(text), Ok(rate), "{text}");
        }
        for (text, of_one) in [("2%", 0.02), ("0.5", 0.5), ("100 %", 1.0), ("0", 0.0)] {
            assert_eq!(share(text), Ok(of_one), "{text}");
        }
        for (text, expected) in [("2%", 2.0), ("0.1 %", 0.1), ("50", 50.0)] {
            assert_eq!(percent(text), Ok(expected), "{text}");
        }
        for wrong in ["", "-1", "NaN", "inf", "1e999", "k", "%"] {
            assert!(per_second(wrong).is_err() && share(wrong).is_err(), "{wrong}");
            assert!(percent(wrong).is_err(), "{wrong}");
        }
        assert!(share("101%").is_err() && share("1.5").is_err());
    }

    #[test]
    fn errors_name_the_mistake_and_what_to_write() {
        let missing = "the unit is missing";
        let table = [
            ("5", missing, "write \"5s\" or \"5ms\""),
            ("1.5", missing, "write \"1.5s\" or \"1.5ms\""),
            ("5 sec", "\"sec\" is not a unit of time", "write \"5s\""),
            ("5S", "\"S\" is not a unit of time", "write \"5s\""),
            (
                "2 fortnights",
                "\"fortnights\" is not a unit of time",
                "units are us, ms, s, m, h and d, as in \"300ms\", \"5s\" or \"1.5h\"",
            ),
        ];
        for (text, why, help) in table {
            let error = duration(text).unwrap_err();
            assert_eq!((error.why.as_str(), error.help.as_str()), (why, help), "{text}");
        }
        for text in ["", "s", "-5s", ".s", "1.2.3s", "1,5s", "NaNs", "²s"] {
            assert_eq!(duration(text).unwrap_err().why, "not a number and a unit", "{text}");
        }
        for text in ["99999999999999999999s", "9999999999999999d", "18446744073709551615h"] {
            assert_eq!(duration(text).unwrap_err().to_string(), "too large: at most 213503d");
        }
        assert_eq!(
            size("16k").unwrap_err().to_string(),
            concat!(
                "\"k\" is not a unit of size: ",
                "write \"16kB\" for 16 × 1000 bytes or \"16KiB\" for 16 × 1024 bytes"
            )
        );
        assert_eq!(size("5mb").unwrap_err().help, "write \"5MB\" or \"5MiB\"");
        assert_eq!(size("512").unwrap_err().help, "write \"512B\" or \"512kB\"");
        assert_eq!(size("18446744073709551615GB").unwrap_err().why, "too large");
        assert_eq!(bit_rate("180mbit").unwrap_err().help, "write \"180Mbit\"");
        let long = duration(&format!("5{}", "x\u{1b}".repeat(1_000))).unwrap_err();
        assert!(long.why.len() < 600 && !long.why.contains('\u{1b}'), "{long}");
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["20us", "1ms", "300ms", "5s", "2m", "90s", "1h", "7d", "1500ms"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
        for text in ["1B", "16kB", "1MiB", "64kB", "16KiB", "3GB", "1GiB"] {
            assert_eq!(show_size(size(text).unwrap()), text);
        }
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(show_duration(Duration::from_nanos(1_700)), "1us");
        assert_eq!(show_duration(Duration::MAX), "18446744073709551615s");
        assert_eq!(show_size(0), "0");
        for kind in [DURATION, SIZE, BIT_RATE] {
            assert!(scaled(kind.max, &kind).is_ok(), "{}", kind.max);
        }
    }
}
