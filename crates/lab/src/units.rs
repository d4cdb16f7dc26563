//! Times, sizes, rates and shares, as they are written in the lab's files.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A time: `20us`, `0.5ms`, `300ms`, `5s`, `2m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// Bits per second: `180Mbit`, `2.5Gbit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

/// Bytes: `1500B`, `50kB`, `256KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A part of 1: `2%`, or `0.02`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// The longest time of the lab: a day.
const TIME_MAX_S: f64 = 86_400.0;
/// The highest rate: what no machine of today moves through one thread.
const RATE_MAX_BIT_PER_S: f64 = 1e12;
/// The largest size: 1 TB.
const SIZE_MAX_BYTES: f64 = 1e12;

/// A number, and the factor of the unit behind it.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    number.parse::<f64>().ok().map(|number| number * factor)
}

impl Time {
    /// Reads a time, or says how one is written.
    ///
    /// # Errors
    /// How a time is written.
    pub fn read(text: &str) -> Result<Time, String> {
        let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
        let seconds = scaled(text, &units).filter(|seconds| *seconds <= TIME_MAX_S);
        let wrong = || "a time is a number and a unit, a day at most: 20us, 0.5ms, 300ms, 5s, 2m";
        seconds
            .map(|seconds| Time(Duration::from_secs_f64(seconds)))
            .ok_or_else(wrong)
            .map_err(str::to_owned)
    }

    /// In nanoseconds.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Rate {
    /// Reads a rate, or says how one is written.
    ///
    /// # Errors
    /// How a rate is written.
    pub fn read(text: &str) -> Result<Rate, String> {
        let units = [("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)];
        scaled(text, &units)
            .filter(|rate| (1e3..=RATE_MAX_BIT_PER_S).contains(rate))
            .map(Rate)
            .ok_or_else(|| {
                "a rate is bits per second, 1kbit at least: 64kbit, 180Mbit, 2.5Gbit".to_owned()
            })
    }
}

impl Size {
    /// Reads a size, or says how one is written.
    ///
    /// # Errors
    /// How a size is written.
    pub fn read(text: &str) -> Result<Size, String> {
        let units: Vec<(&str, f64)> =
            config::SIZE_UNITS.iter().map(|(name, factor)| (*name, *factor as f64)).collect();
        scaled(text, &units)
            .filter(|bytes| *bytes <= SIZE_MAX_BYTES)
            .map(|bytes| Size(bytes as u64))
            .ok_or_else(|| "a size is bytes with a unit: 1500B, 50kB, 256KiB, 5MB".to_owned())
    }
}

impl Share {
    /// Reads a share, or says how one is written.
    ///
    /// # Errors
    /// How a share is written.
    pub fn read(text: &str) -> Result<Share, String> {
        scaled(text, &[("%", 0.01), ("", 1.0)])
            .filter(|share| (0.0..=1.0).contains(share))
            .map(Share)
            .ok_or_else(|| "a share is 0% to 100%, or 0.0 to 1.0".to_owned())
    }
}

/// Reads a unit's type from a string of a file.
struct Text<T> {
    read: fn(&str) -> Result<T, String>,
    what: &'static str,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|why| E::custom(format!("`{text}`: {why}")))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! from_text {
    ($($type:ty: $what:literal),* $(,)?) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Text { read: <$type>::read, what: $what })
            }
        }
    )*};
}

from_text! {
    Time: "a time such as \"300ms\"",
    Rate: "a rate such as \"180Mbit\"",
    Size: "a size such as \"50kB\"",
    Share: "a share such as \"2%\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_counts() {
        assert_eq!(Time::read("0.2ms").unwrap().as_nanos(), 200_000);
        assert_eq!(Time::read("2m").unwrap().0, Duration::from_mins(2));
        assert_eq!(Rate::read("2.5Gbit"), Ok(Rate(2.5e9)));
        assert_eq!(Size::read("256KiB"), Ok(Size(262_144)));
        assert_eq!(Share::read("2%"), Ok(Share(0.02)));
        assert_eq!(Share::read("0.5"), Ok(Share(0.5)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for wrong in ["", "5", "ms", "-1s", "1e9s", "25h", "1.2.3s", "5 minutes", "NaNs"] {
            assert!(Time::read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["180", "180mbit", "0kbit", "9999Gbit", "-1Mbit"] {
            assert!(Rate::read(wrong).is_err(), "{wrong}");
        }
        assert!(Size::read("50").is_err() && Size::read("9999GiB").is_err());
        assert!(Share::read("101%").is_err() && Share::read("-0.1").is_err());
    }
}
