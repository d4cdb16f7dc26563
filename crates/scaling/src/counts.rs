//! Counters of one instance, and the load between two readings of them.

use std::time::Duration;

use crate::load::{Load, bounded};

/// Shortest time between two readings that makes a load. Rates over less are mostly noise.
const BETWEEN_MIN: Duration = Duration::from_millis(100);

/// Counters of a service at one instance, since any start. All but `waiting` only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that arrived.
    pub arrivals: u64,
    /// Requests that were refused because no slot was free.
    pub refusals: u64,
    /// Requests that ended at a server.
    pub completions: u64,
    /// The time for which those held their slots, in microseconds, as a sum.
    pub worked_us: u64,
    /// The time for which all slots were occupied, in microseconds, as a sum: it grows by the number of requests in
    /// flight each microsecond.
    pub occupied_us: u64,
    /// Requests in the queue now.
    pub waiting: u32,
}

impl Counts {
    /// Returns the load since an earlier reading. `None` if less than 100 ms lie between the two, or if a counter
    /// is lower than before because the counters began again.
    pub fn since(&self, earlier: &Counts, between: Duration) -> Option<Load> {
        if between < BETWEEN_MIN {
            return None;
        }
        let seconds = between.as_secs_f64();
        // Divides before bounding: the bound is one of the load, not of microseconds.
        let rate = |now: u64, before: u64, unit: f64| {
            Some(bounded(now.checked_sub(before)? as f64 / unit / seconds))
        };
        Some(Load {
            arrivals: rate(self.arrivals, earlier.arrivals, 1.0)?,
            refusals: rate(self.refusals, earlier.refusals, 1.0)?,
            completions: rate(self.completions, earlier.completions, 1.0)?,
            worked: rate(self.worked_us, earlier.worked_us, 1e6)?,
            in_flight: rate(self.occupied_us, earlier.occupied_us, 1e6)?,
            waiting: f64::from(self.waiting),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_the_difference_per_second() {
        let earlier = Counts { arrivals: 100, completions: 90, ..Counts::default() };
        let later = Counts {
            arrivals: 400,
            refusals: 30,
            completions: 290,
            worked_us: 20_000_000,
            occupied_us: 25_000_000,
            waiting: 7,
        };
        let load = later.since(&earlier, Duration::from_secs(10)).unwrap();
        assert!((load.arrivals - 30.0).abs() < 1e-9 && (load.refusals - 3.0).abs() < 1e-9);
        assert!((load.service_seconds().unwrap() - 0.1).abs() < 1e-9);
        assert!((load.in_flight - 2.5).abs() < 1e-9 && (load.waiting - 7.0).abs() < 1e-9);
        assert_eq!(later.since(&earlier, Duration::from_millis(99)), None);
        assert_eq!(earlier.since(&later, Duration::from_secs(10)), None);
    }

    #[test]
    fn ten_thousand_slots_can_be_occupied() {
        // All are occupied for 15 s, by requests of 1 s.
        let slot_us = 10_000 * 15 * 1_000_000;
        let later = Counts {
            completions: 150_000,
            worked_us: slot_us,
            occupied_us: slot_us,
            ..Counts::default()
        };
        let load = later.since(&Counts::default(), Duration::from_secs(15)).unwrap();
        assert!((load.in_flight - 10_000.0).abs() < 1e-6, "{load:?}");
        assert!((load.worked - 10_000.0).abs() < 1e-6, "{load:?}");
        assert!((load.service_seconds().unwrap() - 1.0).abs() < 1e-9, "{load:?}");
    }
}
