//! Reads access lines: the JSON that `observe::AccessRecord::write_json` writes, with a member `trace` if
//! the exchange has one. Members may be missing, since a configuration can choose them.

use std::borrow::Cow;

use model::{Cause, Fault};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A text of a line, borrowed from it unless it has escapes; empty if the line has `null`.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// Returns it, empty if unknown.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        // Serde borrows a `Cow` only as a field, not within an `Option`.
        #[derive(Deserialize)]
        struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
        let text = Option::<Borrowed<'a>>::deserialize(deserializer)?;
        Ok(Text(text.map(|text| text.0).unwrap_or_default()))
    }
}

/// An access line. Milliseconds are as in the access log; an unknown text is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    #[serde(borrow)]
    time: Text<'a>,
    #[serde(borrow)]
    pub(crate) request_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) client: Text<'a>,
    #[serde(borrow)]
    pub(crate) peer: Text<'a>,
    #[serde(borrow)]
    pub(crate) user: Text<'a>,
    #[serde(borrow)]
    pub(crate) listener: Text<'a>,
    #[serde(borrow)]
    pub(crate) method: Text<'a>,
    #[serde(borrow)]
    pub(crate) host: Text<'a>,
    #[serde(borrow)]
    pub(crate) path: Text<'a>,
    #[serde(borrow)]
    pub(crate) protocol: Text<'a>,
    #[serde(borrow)]
    pub(crate) tls: Option<Tls<'a>>,
    pub(crate) status: Option<u16>,
    pub(crate) grpc_status: Option<u16>,
    #[serde(borrow)]
    pub(crate) cause: Text<'a>,
    #[serde(borrow)]
    fault: Text<'a>,
    #[serde(borrow)]
    pub(crate) detail: Text<'a>,
    #[serde(borrow)]
    pub(crate) route: Text<'a>,
    #[serde(borrow)]
    pub(crate) service: Text<'a>,
    #[serde(borrow)]
    pub(crate) server: Text<'a>,
    #[serde(borrow)]
    pub(crate) zone: Text<'a>,
    pub(crate) attempts: Option<u32>,
    #[serde(borrow)]
    pub(crate) failed_attempts: Vec<FailedAttempt<'a>>,
    #[serde(borrow)]
    pub(crate) not_retried: Text<'a>,
    pub(crate) reused: Option<bool>,
    pub(crate) auth_ms: Option<f64>,
    pub(crate) queue_ms: Option<f64>,
    pub(crate) connect_ms: Option<f64>,
    pub(crate) first_byte_ms: Option<f64>,
    pub(crate) total_ms: Option<f64>,
    pub(crate) request_bytes: Option<u64>,
    pub(crate) response_bytes: Option<u64>,
    pub(crate) tcp: Option<Tcp>,
    #[serde(borrow)]
    pub(crate) decision: Option<&'a RawValue>,
    pub(crate) sample_rate: Option<f64>,
    #[serde(borrow)]
    pub(crate) trace: Option<Trace<'a>>,
}

/// The client's TLS parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tls<'a> {
    #[serde(borrow)]
    pub(crate) version: Text<'a>,
    #[serde(borrow)]
    pub(crate) cipher: Text<'a>,
}

/// An attempt that failed and was followed by another.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FailedAttempt<'a> {
    #[serde(borrow)]
    pub(crate) server: Text<'a>,
    #[serde(borrow)]
    pub(crate) cause: Text<'a>,
    pub(crate) status: Option<u16>,
}

/// TCP statistics of both connections.
#[derive(Debug, Deserialize)]
pub(crate) struct Tcp {
    pub(crate) client_rtt_ms: Option<f64>,
    pub(crate) client_retransmits: Option<u64>,
    pub(crate) server_rtt_ms: Option<f64>,
    pub(crate) server_retransmits: Option<u64>,
}

/// The exchange's place in a trace.
#[derive(Debug, Deserialize)]
pub(crate) struct Trace<'a> {
    pub(crate) id: Id<16>,
    pub(crate) span: Id<8>,
    pub(crate) parent: Option<Id<8>>,
    pub(crate) sampled: bool,
    #[serde(borrow, default)]
    pub(crate) why: Text<'a>,
    /// When the exchange ended, in microseconds since 1970; only in a line that becomes a trace.
    pub(crate) end_unix_us: Option<u64>,
    #[serde(default)]
    pub(crate) attempts: Vec<Attempt>,
}

/// An attempt's span.
#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) span: Id<8>,
    /// From the exchange's start to the attempt's.
    pub(crate) after_ms: f64,
    pub(crate) took_ms: f64,
}

/// An identifier of `N` bytes, in a line as hexadecimal digits. Never all zeros, which W3C's Trace Context
/// forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id<const N: usize>(pub(crate) [u8; N]);

impl<'de, const N: usize> Deserialize<'de> for Id<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id<N>, D::Error> {
        Id::try_from(Text::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<const N: usize> TryFrom<Text<'_>> for Id<N> {
    type Error = &'static str;

    fn try_from(text: Text<'_>) -> Result<Id<N>, &'static str> {
        let digits = text.0.as_bytes();
        if digits.len() != 2 * N {
            return Err("an identifier of another length");
        }
        let mut id = [0; N];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: &u8| char::from(*digit).to_digit(16);
            match pair {
                [high, low] => match (value(high), value(low)) {
                    (Some(high), Some(low)) => *byte = (high << 4 | low) as u8,
                    _ => return Err("not hexadecimal"),
                },
                _ => return Err("an odd number of digits"),
            }
        }
        if id == [0; N] { Err("an identifier of zeros") } else { Ok(Id(id)) }
    }
}

/// Returns milliseconds as nanoseconds; values that are not a duration become zero.
pub(crate) fn nanoseconds(ms: f64) -> u64 {
    // Conversions of floats saturate.
    (ms * 1e6).round() as u64
}

impl Line<'_> {
    /// Returns who could have prevented the end: the line's `fault`, or else that of its cause.
    pub(crate) fn fault(&self) -> Fault {
        let of_cause = || {
            let cause = Cause::ALL.iter().find(|cause| cause.name() == self.cause.as_str());
            cause.map_or(Fault::None, |cause| cause.fault())
        };
        self.fault.as_str().parse().unwrap_or_else(|_| of_cause())
    }

    /// Returns whether a server, the network, the balancer or the configuration failed, or the status
    /// says so. By the convention for server spans, a client's error is not an error of the server.
    pub(crate) fn failed(&self) -> bool {
        !matches!(self.fault(), Fault::None | Fault::Client) || self.has_error_status()
    }

    /// Returns whether the status is 500 or more.
    pub(crate) fn has_error_status(&self) -> bool {
        self.status.is_some_and(|status| status >= 500)
    }

    /// Returns whether it is a connection of a listener in TCP mode.
    pub(crate) fn is_tcp(&self) -> bool {
        self.protocol.as_str() == "TCP"
    }

    /// Returns when the exchange ended, in nanoseconds since 1970; 0 if unknown.
    pub(crate) fn end_unix_ns(&self) -> u64 {
        match self.trace.as_ref().and_then(|trace| trace.end_unix_us) {
            Some(end_unix_us) => end_unix_us.saturating_mul(1000),
            None => unix_ns(self.time.as_str()).unwrap_or(0),
        }
    }
}

/// Returns the contents of each line, `None` if it cannot be read. Skips empty lines.
pub(crate) fn read(lines: &[u8]) -> impl Iterator<Item = Option<Line<'_>>> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    // Serde would also read an array, as the members in their order.
    lines.map(|line| {
        serde_json::from_slice(line).ok().filter(|_| line.trim_ascii().starts_with(b"{"))
    })
}

/// Returns the nanoseconds since 1970 of a time as `observe::Timestamp` writes it:
/// `2026-11-20T06:13:00.123Z`.
fn unix_ns(time: &str) -> Option<u64> {
    let bytes: &[u8; 24] = time.as_bytes().try_into().ok()?;
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        bytes.get(range)?.iter().try_fold(0, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
        })
    };
    let separators = [4, 7, 10, 13, 16, 19, 23].map(|at| bytes[at]);
    if &separators != b"--T::.Z" {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let days = days_since_1970(year, month, day)?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds * 1000 + number(20..23)?).saturating_mul(1_000_000))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that
/// a leap day is a year's last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719,468 days are from 0000-03-01 to 1970-01-01.
    (year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use observe::TimestampCache;

    use super::*;

    #[test]
    fn times_read_as_they_were_written() {
        let mut cache = TimestampCache::default();
        for ms in [0, 1, 951_782_400_000, 951_868_799_999, 1_764_000_000_123, 4_107_542_399_999] {
            let text = cache.at(Duration::from_millis(ms)).to_string();
            assert_eq!(unix_ns(&text), Some(ms * 1_000_000), "{text}");
        }
        for text in ["", "2026-11-20", "2026-13-20T06:13:00.123Z", "2026-11-20T06:13:00,123Z"] {
            assert_eq!(unix_ns(text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_have_an_exact_length_and_are_never_zero() {
        let id = |text: &'static str| Id::<2>::try_from(Text(text.into()));
        assert_eq!(id("0aFf"), Ok(Id([0x0a, 0xff])));
        for text in ["", "0af", "0aff0", "0000", "0g00", "+1+1", "éé"] {
            assert!(id(text).is_err(), "{text}");
        }
    }
}
