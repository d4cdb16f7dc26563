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
    /// Whether the waits have begun again since the last success.
    is_restarted: bool,
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
        *self = Backoff::default();
    }

    /// Notes that the reason of the failures may be over: an API server that starts refuses some requests for some seconds.
    /// The waits begin again at the first one, but only once until a success: something else that comes and goes must not
    /// keep them short for ever.
    pub(crate) fn restart(&mut self) {
        if !self.is_restarted {
            self.failures = 0;
            self.is_restarted = true;
        }
    }

    /// Returns the number of consecutive failures.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

/// Decides when waits end early: when a request succeeds after others have failed, because the API server was absent or
/// refused them. An API server that comes and goes must not be asked by everything each time, so this happens at most
/// once in [`WAIT_MAX`]; a success before that counts later.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    is_absent: bool,
    failures: u64,
    latest: Option<Moment>,
}

impl Recovery {
    /// Notes a failure.
    pub(crate) fn failed(&mut self) {
        self.is_absent = true;
        self.failures += 1;
    }

    /// Returns how many failures there have been.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// Notes a success, and returns whether waits end now.
    pub(crate) fn answered(&mut self, now: Moment) -> bool {
        let is_recent = self.latest.is_some_and(|latest| now.since(latest) < WAIT_MAX);
        let ends = self.is_absent && !is_recent;
        if ends {
            self.is_absent = false;
            self.latest = Some(now);
        }
        ends
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
        let mut backoff = Backoff { failures: u32::MAX, ..Backoff::default() };
        assert_eq!(backoff.failed(None, 7.0), WAIT_MAX);
    }

    #[test]
    fn waits_begin_again_once_until_a_success() {
        let mut backoff = Backoff::default();
        let mut wait = |restarts: bool, succeeds: bool| {
            if succeeds {
                backoff.succeeded();
            }
            if restarts {
                backoff.restart();
            }
            backoff.failed(None, 1.0).as_millis()
        };
        let waits = [(false, false), (false, false), (true, false), (true, false), (true, false)];
        assert_eq!(waits.map(|(restarts, _)| wait(restarts, false)), [500, 1000, 500, 1000, 2000]);
        assert_eq!([wait(false, true), wait(false, false), wait(true, false)], [500, 1000, 500]);
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
        // The last one is late, but it is not lost.
        assert!(!recovery.answered(at(90)) && recovery.answered(at(91)));
        assert!(!recovery.answered(at(200)));
    }
}
