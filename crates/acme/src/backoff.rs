//! How long to wait after failures. Pure: `now_s` and random numbers are arguments.

/// Maximum `Retry-After` that is respected: one wrong field must not keep a certificate from being
/// renewed. An authority that still refuses costs one request a day.
pub(crate) const RETRY_AFTER_MAX_S: i64 = 24 * 3600;

/// How fast the waits grow, and how far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// The first wait; each further one is twice as long.
    pub(crate) first_s: i64,
    /// The longest.
    pub(crate) wait_max_s: i64,
}

/// Consecutive failures of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until_s: i64,
}

impl Backoff {
    /// Notes a failure and returns when to try again: exponential, between three and five quarters
    /// of the wait by `draw` (from 0 to 1), and not before `retry_after_s` seconds have passed, if
    /// the other side named a time.
    pub(crate) fn failed(
        &mut self,
        now_s: i64,
        growth: Growth,
        retry_after_s: Option<i64>,
        draw: f64,
    ) -> i64 {
        let doubled = growth.first_s.saturating_mul(1_i64 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        let wait_s = doubled.min(growth.wait_max_s) as f64 * (0.75 + draw.clamp(0.0, 1.0) / 2.0);
        let asked_s = retry_after_s.unwrap_or(0).clamp(0, RETRY_AFTER_MAX_S);
        self.until_s = now_s.saturating_add((wait_s as i64).max(asked_s).max(1));
        self.until_s
    }

    /// Notes a success.
    pub(crate) fn succeeded(&mut self) {
        *self = Backoff::default();
    }

    /// Returns the number of consecutive failures.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns when the next attempt is due, at the earliest; in the past: now.
    pub(crate) fn until_s(&self, now_s: i64) -> i64 {
        // Otherwise a clock that was wrong and has been set back would stop attempts for years.
        if self.until_s > now_s.saturating_add(2 * RETRY_AFTER_MAX_S) {
            now_s
        } else {
            self.until_s
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWTH: Growth = Growth { first_s: 100, wait_max_s: 1000 };

    #[test]
    fn waits_double_up_to_the_longest_and_vary_by_a_quarter() {
        for (draw, waits) in
            [(0.5, [100, 200, 400, 800, 1000, 1000]), (0.0, [75, 150, 300, 600, 750, 750])]
        {
            let mut backoff = Backoff::default();
            for wait in waits {
                assert_eq!(backoff.failed(7, GROWTH, None, draw), 7 + wait);
            }
            backoff.succeeded();
            assert_eq!(backoff.failed(7, GROWTH, None, draw), 7 + waits[0]);
        }
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            backoff.failed(0, GROWTH, None, 1.0);
        }
        assert_eq!(backoff.failed(0, GROWTH, None, 1.0), 1250);
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_within_a_day() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.failed(0, GROWTH, Some(5000), 0.5), 5000);
        assert_eq!(backoff.failed(0, GROWTH, Some(1), 0.5), 200);
        assert_eq!(backoff.failed(0, GROWTH, Some(i64::MAX), 0.5), RETRY_AFTER_MAX_S);
        assert_eq!(backoff.failed(0, GROWTH, Some(-1), 0.5), 800);
        assert_eq!(backoff.failed(i64::MAX, GROWTH, Some(1), 0.5), i64::MAX);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_attempts() {
        let mut backoff = Backoff::default();
        let year_s = 365 * 24 * 3600;
        backoff.failed(year_s, GROWTH, None, 0.5);
        assert_eq!(backoff.until_s(0), 0);
        assert_eq!(backoff.until_s(year_s), year_s + 100);
    }
}
