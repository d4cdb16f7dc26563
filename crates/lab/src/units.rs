//! Times, sizes, rates and shares in incident files: types with the lab's bounds, for serde.

use std::fmt;
use std::time::Duration;

use model::units;

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

/// The longest time in an incident: a day.
const TIME_MAX: Duration = Duration::from_secs(86_400);
/// The lowest rate of a link.
const RATE_MIN_BIT_PER_S: u64 = 1_000;
/// The highest rate of a link: no machine of today moves more through one thread.
const RATE_MAX_BIT_PER_S: u64 = 1_000_000_000_000;
/// The largest size: 1 TB.
const SIZE_MAX_BYTES: u64 = 1_000_000_000_000;

impl Time {
    /// Reads a time of at most a day.
    ///
    /// # Errors
    /// If `text` is not a duration, or too long.
    pub fn read(text: &str) -> Result<Time, String> {
        let time = units::duration(text).map_err(|error| error.to_string())?;
        (time <= TIME_MAX).then_some(Time(time)).ok_or_else(|| "at most 24h".to_owned())
    }

    /// In nanoseconds.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Rate {
    /// Reads a rate from 1 kbit/s to 1 Tbit/s.
    ///
    /// # Errors
    /// If `text` is not a bit rate, or out of bounds.
    pub fn read(text: &str) -> Result<Rate, String> {
        let rate = units::bit_rate(text).map_err(|error| error.to_string())?;
        let in_bounds = (RATE_MIN_BIT_PER_S..=RATE_MAX_BIT_PER_S).contains(&rate);
        in_bounds.then_some(Rate(rate as f64)).ok_or_else(|| "from 1kbit to 1000Gbit".to_owned())
    }
}

impl Size {
    /// Reads a size of at most 1 TB.
    ///
    /// # Errors
    /// If `text` is not a size, or too large.
    pub fn read(text: &str) -> Result<Size, String> {
        let bytes = units::size(text).map_err(|error| error.to_string())?;
        (bytes <= SIZE_MAX_BYTES).then_some(Size(bytes)).ok_or_else(|| "at most 1000GB".to_owned())
    }
}

impl Share {
    /// Reads a share from 0 to 1.
    ///
    /// # Errors
    /// If `text` is not a share.
    pub fn read(text: &str) -> Result<Share, String> {
        units::share(text).map(Share).map_err(|error| error.to_string())
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
    fn values_are_read_in_base_units() {
        assert_eq!(Time::read("0.2ms").unwrap().as_nanos(), 200_000);
        assert_eq!(Time::read("2m").unwrap().0, Duration::from_mins(2));
        assert_eq!(Rate::read("2.5Gbit"), Ok(Rate(2.5e9)));
        assert_eq!(Size::read("256KiB"), Ok(Size(262_144)));
        assert_eq!(Share::read("2%"), Ok(Share(0.02)));
        assert_eq!(Share::read("0.5"), Ok(Share(0.5)));
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
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
