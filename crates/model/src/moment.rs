//! A point in time as the pure crates use it: an argument, never read from a clock.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Microseconds since the process started, from the monotonic clock. A plain number, so that it can
/// be stored in an atomic, written into a test and replayed. I/O code gets it from
/// `os::clock::now()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The start of the process; also "never" in state without a time yet.
    pub const ZERO: Moment = Moment(0);

    /// Returns the moment this many microseconds after the process started.
    pub const fn from_micros(micros: u64) -> Moment {
        Moment(micros)
    }

    /// Returns the moment this many milliseconds after the process started.
    pub const fn from_millis(millis: u64) -> Moment {
        Moment(millis.saturating_mul(1_000))
    }

    /// Returns the microseconds since the process started.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if it is not earlier.
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment this long before; the start of the process if that is later.
    #[must_use]
    pub fn before(self, ago: Duration) -> Moment {
        let micros = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_sub(micros))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, rhs: Duration) -> Moment {
        let micros = u64::try_from(rhs.as_micros()).unwrap_or(u64::MAX);
        Moment(self.0.saturating_add(micros))
    }
}

impl Sub<Moment> for Moment {
    type Output = Duration;
    fn sub(self, rhs: Moment) -> Duration {
        self.since(rhs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let m = Moment::from_millis(5);
        assert_eq!(Moment::ZERO - m, Duration::ZERO);
        assert_eq!((m + Duration::MAX).as_micros(), u64::MAX);
        assert_eq!((m + Duration::from_millis(7)).since(m), Duration::from_millis(7));
    }
}
