//! What the workers and the control loop exchange about a key of a rate limit that holds over a fleet.

use std::time::Duration;

/// The requests of one key, counted since it came into use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateReading {
    /// The key: a value of requests, under one limit.
    pub key: u64,
    /// The limit's number, the same on all members.
    pub limit: u32,
    /// Requests, those that were refused included; wraps around.
    pub offered: u32,
    /// Requests that passed; wraps around.
    pub taken: u32,
}

/// What a balancer may use of the limit of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTerms {
    /// Its part of the limit.
    pub share: RateShare,
    /// How late the requests that pass at other members are charged; zero: there are none.
    pub lag: Duration,
}

impl RateTerms {
    /// All requests of the key come to this balancer.
    pub const ALONE: RateTerms = RateTerms { share: RateShare::WHOLE, lag: Duration::ZERO };
}

/// A part of a limit, in units of 1/65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateShare(u32);

impl RateShare {
    /// All of it.
    pub const WHOLE: RateShare = RateShare(1 << 16);

    /// Returns the part closest to a fraction; at least one unit, at most the whole.
    pub fn of(fraction: f64) -> RateShare {
        let units = (fraction * f64::from(RateShare::WHOLE.0)).round();
        RateShare((units as u32).clamp(1, RateShare::WHOLE.0))
    }

    /// Returns the fraction, above 0.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(RateShare::WHOLE.0)
    }

    /// Returns this part of a number, rounded.
    pub fn of_number(self, number: u32) -> u32 {
        let whole = u64::from(RateShare::WHOLE.0);
        ((u64::from(number) * u64::from(self.0) + whole / 2) / whole) as u32
    }

    /// Returns the interval between the requests of this part of a rate, whose own interval is given.
    pub fn of_interval(self, interval_ns: u64) -> u64 {
        let longer = u128::from(interval_ns) * u128::from(RateShare::WHOLE.0) / u128::from(self.0);
        u64::try_from(longer).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_within_bounds() {
        assert_eq!(RateShare::of(1.0), RateShare::WHOLE);
        assert_eq!(RateShare::of(7.0), RateShare::WHOLE);
        assert_eq!(RateShare::of(f64::NAN), RateShare::of(0.0));
        let third = RateShare::of(1.0 / 3.0);
        assert!((third.fraction() - 1.0 / 3.0).abs() < 1e-4);
        assert_eq!(third.of_number(30), 10);
        assert_eq!(RateShare::of(0.5).of_interval(7), 14);
        assert_eq!(RateShare::of(0.0).of_number(u32::MAX), 1 << 16);
        assert_eq!(RateShare::of(0.0).of_interval(u64::MAX), u64::MAX);
    }
}
