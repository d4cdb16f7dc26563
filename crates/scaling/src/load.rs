//! The load of a service over a window of time, as sums that can be added.

use std::iter::Sum;
use std::ops::Add;

/// Maximum of each number in a [`Load`]. Sums do not exceed it.
pub const LOAD_MAX: f64 = 1e9;

/// What one instance, or several together, saw of a service over a window of time (such as 15 s).
///
/// Every number is a sum over requests, so the load of a fleet is the sum of the loads of its instances. Means are
/// derived after adding. Each number is finite and from 0 to [`LOAD_MAX`] in loads that this crate returns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Requests that arrived, per second: those that were served, those that wait, and those that were refused.
    /// A retry by a client counts as a new arrival.
    pub arrivals: f64,
    /// Requests that were refused, per second, because no slot was free: the queue was full, they waited too long,
    /// or there was no server.
    pub refusals: f64,
    /// Requests that ended at a server, per second.
    pub completions: f64,
    /// Slot-seconds of the requests that ended at a server, per second: for each, the time for which it held its
    /// slot.
    pub worked: f64,
    /// Mean number of requests in flight at servers, which is the mean number of occupied slots.
    pub in_flight: f64,
    /// Requests in the queue at the end of the window.
    pub waiting: f64,
}

impl Load {
    /// Returns the mean time for which a request holds a slot, in seconds. `None` if no request ended in the window.
    pub fn service_seconds(&self) -> Option<f64> {
        (self.completions > 0.0).then(|| self.worked / self.completions)
    }

    /// Returns whether no request arrived, waits, or is in flight.
    pub fn is_idle(&self) -> bool {
        self.arrivals <= 0.0 && self.waiting <= 0.0 && self.in_flight <= 0.0
    }
}

/// The sum of two loads. Each number stays within [`LOAD_MAX`]. Add each instance only once.
impl Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        let sum = |a: f64, b: f64| bounded(bounded(a) + bounded(b));
        Load {
            arrivals: sum(self.arrivals, other.arrivals),
            refusals: sum(self.refusals, other.refusals),
            completions: sum(self.completions, other.completions),
            worked: sum(self.worked, other.worked),
            in_flight: sum(self.in_flight, other.in_flight),
            waiting: sum(self.waiting, other.waiting),
        }
    }
}

impl Sum for Load {
    fn sum<I: Iterator<Item = Load>>(loads: I) -> Load {
        loads.fold(Load::default(), Add::add)
    }
}

/// Returns the number within the bounds of a load. A number that is not finite becomes 0.
pub(crate) fn bounded(number: f64) -> f64 {
    if number.is_finite() { number.clamp(0.0, LOAD_MAX) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        arrivals: 40.0,
        refusals: 10.0,
        completions: 20.0,
        worked: 2.0,
        in_flight: 3.0,
        waiting: 5.0,
    };

    #[test]
    fn means_are_derived_after_adding() {
        let slow = Load { completions: 5.0, worked: 5.0, ..Load::default() };
        let both = LOAD + slow;
        assert!((both.service_seconds().unwrap() - 7.0 / 25.0).abs() < 1e-12);
        assert!((both.arrivals - 40.0).abs() < 1e-12);
        assert_eq!(Load::default().service_seconds(), None);
    }

    #[test]
    fn sums_stay_within_their_bounds() {
        let odd = Load { arrivals: f64::INFINITY, refusals: f64::NAN, waiting: -7.0, ..LOAD };
        let sum = odd + Load { arrivals: LOAD_MAX, in_flight: f64::INFINITY, ..LOAD };
        assert!((sum.arrivals - LOAD_MAX).abs() < 1.0 && (sum.refusals - 10.0).abs() < 1e-12);
        assert!((sum.waiting - 5.0).abs() < 1e-12 && (sum.in_flight - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_request_that_only_waits_is_load() {
        assert!(Load::default().is_idle());
        assert!(!Load { waiting: 1.0, ..Load::default() }.is_idle());
    }
}
