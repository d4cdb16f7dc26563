//! Estimates how fast a full service serves requests, which `Retry-After` is computed from.
//!
//! Measured only while requests find the service full, in windows of half a second, so that quiet
//! times before an overload do not make it look slow.

use std::time::Duration;

use model::Moment;

/// The shortest and longest `Retry-After`: the field has no fractions of a second (RFC 9110 section
/// 10.2.3), and nothing more than a minute ahead can be predicted.
pub(crate) const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Minimum length of a measuring window.
const WINDOW_MIN: Duration = Duration::from_millis(500);
/// A window longer than this spans a quiet time and is discarded.
const WINDOW_MAX: Duration = Duration::from_secs(5);
/// The share of a new measurement in the estimate.
const NEW_SHARE: f64 = 0.5;

/// A running estimate of slots granted per second.
#[derive(Debug, Default)]
pub(crate) struct DrainRate {
    window: Option<(Moment, u64)>,
    per_s: Option<f64>,
}

impl DrainRate {
    /// Records that `handed` slots had been granted by `now`, and returns the estimate per second;
    /// `None` before the first window has ended.
    pub(crate) fn observe(&mut self, handed: u64, now: Moment) -> Option<f64> {
        match self.window {
            Some((start, before)) if now.since(start) <= WINDOW_MAX && handed >= before => {
                let length = now.since(start);
                if length >= WINDOW_MIN {
                    let measured = (handed - before) as f64 / length.as_secs_f64();
                    let estimate = self.per_s.unwrap_or(measured);
                    self.per_s = Some(estimate + NEW_SHARE * (measured - estimate));
                    self.window = Some((now, handed));
                }
            }
            _ => self.window = Some((now, handed)),
        }
        self.per_s
    }
}

/// Returns when a client may expect to be served if `waiting` others are before it: the time that
/// serving all of them takes at `per_s`, within [`RETRY_AFTER_MIN`] and [`RETRY_AFTER_MAX`], in
/// whole seconds, rounded up. One second while the rate is unknown.
pub(crate) fn retry_after(waiting: u32, per_s: Option<f64>) -> Duration {
    let Some(per_s) = per_s else {
        return RETRY_AFTER_MIN;
    };
    // Division by a rate of zero gives infinity, which the clamp turns into the maximum.
    let seconds = (f64::from(waiting) + 1.0) / per_s.max(0.0);
    let (min, max) = (RETRY_AFTER_MIN.as_secs_f64(), RETRY_AFTER_MAX.as_secs_f64());
    Duration::from_secs(seconds.ceil().clamp(min, max) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_found_after_one_window() {
        let mut drain = DrainRate::default();
        assert_eq!(drain.observe(1_000, Moment::from_millis(0)), None);
        assert_eq!(drain.observe(1_020, Moment::from_millis(400)), None);
        for step in 1..20 {
            let rate = drain.observe(1_000 + step * 25, Moment::from_millis(step * 500));
            assert_eq!(rate, Some(50.0));
        }
    }

    #[test]
    fn a_quiet_time_does_not_count_and_a_new_rate_is_soon_followed() {
        let mut drain = DrainRate::default();
        drain.observe(0, Moment::from_millis(0));
        assert_eq!(drain.observe(100, Moment::from_millis(1_000)), Some(100.0));
        // An hour with three requests.
        assert_eq!(drain.observe(103, Moment::from_millis(3_600_000)), Some(100.0));
        let mut rate = None;
        for step in 1..=4 {
            rate = drain.observe(103 + step * 5, Moment::from_millis(3_600_000 + step * 500));
        }
        assert!(rate.is_some_and(|rate| (10.0..17.0).contains(&rate)), "{rate:?}");
        // Removing servers removes their counts.
        assert_eq!(drain.observe(7, Moment::from_millis(3_603_000)), rate);
    }

    #[test]
    fn retry_after_is_the_queue_over_the_rate_within_its_bounds() {
        for (waiting, per_s, expected_s) in [
            (0, None, 1),
            (199, None, 1),
            (0, Some(100.0), 1),
            (199, Some(100.0), 2),
            (199, Some(70.0), 3),
            (200, Some(1.0), 60),
            (5, Some(0.0), 60),
        ] {
            assert_eq!(retry_after(waiting, per_s), Duration::from_secs(expected_s));
        }
    }
}
