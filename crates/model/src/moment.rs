//! A point in time as the pure rooms see it: an argument, never read from a clock.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Microseconds since the process began, from the monotonic clock. A plain number, so that it can
/// be kept in an atomic, written into a test and replayed. Shells make it with `os::clock::now()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The beginning of the process; also "never" where a state keeps no time yet.
    pub const ZERO: Moment = Moment(0);

    /// From microseconds since the process began.
    pub const fn from_micros(micros: u64) -> Moment {
        Moment(micros)
    }

    /// From milliseconds since the process began.
    pub const fn from_millis(millis: u64) -> Moment {
        Moment(millis.saturating_mul(1_000))
    }

    /// Microseconds since the process began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not later.
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
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
