//! Parses the values of `weir bench`'s flags: sizes, rates, durations, URLs, fields, address ranges.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use load::objective::Condition;
use load::schedule::{RATE_MAX_PER_S, Stage};
use model::units;

/// Source addresses of one range.
const SOURCES_MAX: u128 = 65_536;

/// A size as in the configuration, or a plain number of bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(bytes) => Ok(bytes),
        Err(_) => units::size(text).map_err(|error| error.to_string()),
    }
}

/// A URL and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) url: String,
    pub(crate) weight: u32,
}

/// `URL`, or `3*URL`.
pub(crate) fn url(text: &str) -> Result<Url, String> {
    let weighted = text.split_once('*').filter(|(weight, _)| {
        !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit())
    });
    let (weight, url) = weighted.unwrap_or(("1", text));
    let weight = weight.parse().ok().filter(|weight| *weight <= 1_000_000);
    let weight = weight.ok_or_else(|| "a weight is at most 1000000".to_owned())?;
    Ok(Url { url: url.to_owned(), weight })
}

/// A duration, or a number of seconds, as `ab` takes it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e9).contains(number));
    let time = match number {
        Some(seconds) => Duration::from_secs_f64(seconds),
        None => units::duration(text).map_err(|error| error.to_string())?,
    };
    if time.is_zero() { Err("longer than 0".to_owned()) } else { Ok(time) }
}

/// Requests per second: `100`, `0.5`, `20k`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = units::per_second(text).map_err(|error| error.to_string())?;
    (0.001..=RATE_MAX_PER_S)
        .contains(&rate)
        .then_some(rate)
        .ok_or_else(|| format!("a rate is from 0.001 to {RATE_MAX_PER_S} per second"))
}

/// Rates, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps(pub(crate) Vec<Stage>);

/// `30s:100,1m:200..1000`.
pub(crate) fn steps(text: &str) -> Result<Steps, String> {
    let step = |text: &str| {
        let (time, rates) = text.split_once(':').ok_or("a step is a time and a rate: 30s:100")?;
        let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
        let zero = |text: &str| if text == "0" { Ok(0.0) } else { rate(text) };
        Ok(Stage { time: seconds(time)?, from_per_s: zero(from)?, to_per_s: zero(to)? })
    };
    text.split(',').map(|text| step(text.trim())).collect::<Result<_, String>>().map(Steps)
}

/// `Name: value`.
pub(crate) fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a field is a name, a colon and a value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Conditions that were given together.
pub(crate) type Conditions = Arc<[Condition]>;

/// `p99<200ms,errors<0.1%`.
pub(crate) fn objective(text: &str) -> Result<Conditions, String> {
    load::objective::read(text).map(Into::into).map_err(|error| error.to_string())
}

/// Addresses that were given together.
pub(crate) type Sources = Arc<[IpAddr]>;

/// `10.0.0.2`, or `10.0.0.2-10.0.0.9`.
pub(crate) fn sources(text: &str) -> Result<Sources, String> {
    let address = |text: &str| {
        let address: Result<IpAddr, _> = text.trim().parse();
        address.map_err(|_| "an address of this machine: 10.0.0.2, or 10.0.0.2-10.0.0.9".to_owned())
    };
    let Some((first, last)) = text.split_once('-') else {
        return Ok([address(text)?].into());
    };
    let (first, last) = (address(first)?, address(last)?);
    let range = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            u128::from(first.to_bits())..=u128::from(last.to_bits())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => first.to_bits()..=last.to_bits(),
        _ => return Err("both ends of a range are of one family".to_owned()),
    };
    if range.is_empty() || range.end() - range.start() >= SOURCES_MAX {
        return Err(format!("a range goes upwards and has at most {SOURCES_MAX} addresses"));
    }
    let of = |bits: u128| match first {
        IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(bits.into()),
    };
    Ok(range.map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_weights() {
        let read = |text: &str| url(text).map(|url| (url.weight, url.url));
        assert_eq!(read("http://h/a*b"), Ok((1, "http://h/a*b".to_owned())));
        assert_eq!(read("3*http://h/"), Ok((3, "http://h/".to_owned())));
        assert!(read("99999999*http://h/").is_err());
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        assert_eq!(seconds("300"), Ok(Duration::from_secs(300)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("5m"), Ok(Duration::from_mins(5)));
        for wrong in ["", "0", "-1", "s", "1y", "inf"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_and_steps_are_read() {
        assert_eq!(rate("20k"), Ok(20_000.0));
        assert_eq!(rate("0.5/s"), Ok(0.5));
        for wrong in ["", "0", "-1", "NaN", "1e99", "k"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        let Steps(stages) = steps("10s:100, 1m:0..1k").unwrap();
        assert_eq!(
            stages[0],
            Stage { time: Duration::from_secs(10), from_per_s: 100.0, to_per_s: 100.0 }
        );
        assert_eq!(
            stages[1],
            Stage { time: Duration::from_mins(1), from_per_s: 0.0, to_per_s: 1_000.0 }
        );
        assert!(steps("100").is_err() && steps("").is_err() && steps("1s:").is_err());
    }

    #[test]
    fn sources_are_one_or_a_range() {
        assert_eq!(sources("10.0.0.9-10.0.1.2").map(|found| found.len()), Ok(250));
        assert_eq!(sources("::1").map(|found| found.len()), Ok(1));
        for wrong in ["", "10.0.0.9-10.0.0.2", "10.0.0.1-::1", "0.0.0.0-255.255.255.255", "eth0"] {
            assert!(sources(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_as_in_the_configuration() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("50kB"), Ok(50_000));
        assert_eq!(size("5MiB"), Ok(5 << 20));
        for wrong in ["", "kB", "-1B", "1,5MB", "5mb", "99999999999999999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
