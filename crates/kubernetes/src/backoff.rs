//! How long to wait after failures. Pure: the random number is an argument.

use std::time::Duration;

use model::Moment;

/// The first wait.
const WAIT_FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);

/// Consecutive failures of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Notes a failure, and returns how long to wait: twice as long after each, up to [`WAIT_MAX`], of which `draw` (from
    /// 0 to 1) chooses a part between a half and the whole. At least `asked`, if the server names a time.
    pub(crate) fn failed(&mut self, asked: Option<Duration>, draw: f64) -> Duration {
        let doubled = WAIT_FIRST.saturating_mul(1 << self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.min(WAIT_MAX).mul_f64(0.5 + draw.clamp(0.0, 1.0) / 2.0);
        wait.max(asked.unwrap_or_default().min(WAIT_MAX))
    }

    /// Notes a success.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of consecutive failures.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

/// Decides when waits end early: when a request succeeds after others have failed, because the API server was absent or
/// refused them. An API server that comes and goes must not be asked by everything each time, so this happens at most
/// once in [`WAIT_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    is_absent: bool,
    latest: Option<Moment>,
}

impl Recovery {
    /// Notes a failure.
    pub(crate) fn failed(&mut self) {
        self.is_absent = true;
    }

    /// Notes a success, and returns whether waits end now.
    pub(crate) fn answered(&mut self, now: Moment) -> bool {
        let was_absent = std::mem::take(&mut self.is_absent);
        let is_recent = self.latest.is_some_and(|latest| now.since(latest) < WAIT_MAX);
        if was_absent && !is_recent {
            self.latest = Some(now);
        }
        was_absent && !is_recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        for (draw, expected) in [
            (1.0, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]),
            (0.0, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]),
        ] {
            let mut backoff = Backoff::default();
            for wait in expected {
                assert_eq!(backoff.failed(None, draw), Duration::from_millis(wait));
            }
            assert_eq!(backoff.failures(), 8);
            backoff.succeeded();
            assert_eq!(backoff.failed(None, draw), Duration::from_millis(expected[0]));
        }
        let mut backoff = Backoff { failures: u32::MAX };
        assert_eq!(backoff.failed(None, 7.0), WAIT_MAX);
    }

    #[test]
    fn a_wait_that_the_server_asks_for_is_bounded() {
        let asked = |seconds| Backoff::default().failed(Some(Duration::from_secs(seconds)), 1.0);
        assert_eq!(asked(0), Duration::from_millis(500));
        assert_eq!(asked(3), Duration::from_secs(3));
        assert_eq!(asked(u64::MAX), WAIT_MAX);
    }

    #[test]
    fn a_server_that_comes_and_goes_ends_few_waits() {
        let mut recovery = Recovery::default();
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        assert!(!recovery.answered(at(0)), "it was not absent");
        let mut ended = Vec::new();
        for second in 1..70 {
            recovery.failed();
            if recovery.answered(at(second)) {
                ended.push(second);
            }
        }
        assert_eq!(ended, [1, 31, 61]);
        assert!(!recovery.answered(at(100)));
    }
}
