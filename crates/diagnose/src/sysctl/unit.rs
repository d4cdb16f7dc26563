//! Units of settings, and values spelt out in them.

use crate::words;

/// What a setting's numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Pages of memory, 4 KiB mostly.
    Pages,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Things with a name: `connections`, `packets`, `retries`.
    Of(&'static str),
    /// A choice of numbers, such as 0 for off and 1 for on.
    Switch,
    /// A word or a list of words.
    Word,
}

impl Unit {
    /// For tables: `bytes`, `pages`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Pages => "pages",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "µs",
            Unit::Of(things) => things,
            Unit::Switch => "switch",
            Unit::Word => "word",
        }
    }

    /// A value with its unit: `8,388,608 pages = 32 GiB`, each of several after a comma. What is no
    /// number stays as it is.
    pub fn spell(self, value: &str, page_bytes: u64) -> String {
        if matches!(self, Unit::Switch | Unit::Word) {
            return value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        }
        let one = |word: &str| match word.parse::<u64>() {
            Ok(number) => self.spell_number(number, page_bytes),
            Err(_) => word.to_owned(),
        };
        value.split_ascii_whitespace().map(one).collect::<Vec<_>>().join("; ")
    }

    fn spell_number(self, number: u64, page_bytes: u64) -> String {
        let plain = words::thousands(number);
        match self {
            Unit::Bytes if number < 1024 => format!("{plain} bytes"),
            Unit::Bytes => format!("{plain} bytes = {}", words::bytes(number)),
            Unit::Pages => {
                format!("{plain} pages = {}", words::bytes(number.saturating_mul(page_bytes)))
            }
            Unit::Seconds if number >= 7_200 => {
                format!("{plain} s = {} hours", words::number(number as f64 / 3600.0))
            }
            Unit::Seconds | Unit::Milliseconds | Unit::Microseconds | Unit::Of(_) => {
                format!("{plain} {}", self.name())
            }
            Unit::Switch | Unit::Word => plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn values_are_spelt_out() {
        let cases = [
            (
                Unit::Pages,
                "8388608 8388608 8388608",
                "8,388,608 pages = 32 GiB; 8,388,608 pages = 32 GiB; 8,388,608 pages = 32 GiB",
            ),
            (Unit::Bytes, "8192\t873800", "8,192 bytes = 8 KiB; 873,800 bytes = 853 KiB"),
            (Unit::Seconds, "432000", "432,000 s = 120 hours"),
            (Unit::Of("connections"), "16384", "16,384 connections"),
            (Unit::Word, "bbr", "bbr"),
            (
                Unit::Bytes,
                "18446744073709551615",
                "18,446,744,073,709,551,615 bytes = 16,777,216 TiB",
            ),
            (Unit::Of("sockets"), "many", "many"),
        ];
        for (unit, value, spelt) in cases {
            assert_eq!(unit.spell(value, 4096), spelt);
        }
    }
}
