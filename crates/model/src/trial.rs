//! A trial that compares a service's servers: when it runs, and each server's results.
//!
//! Only the counters, as workers share them. `health::comparison` decides when to start a trial and
//! what its counts mean.

use std::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crate::Moment;

/// When a service's servers are compared. While a trial runs, servers are drawn at random, so that
/// no client can choose which server gets the failing requests.
#[derive(Debug, Default)]
pub struct Trial {
    since_us: AtomicU64,
    until_us: AtomicU64,
}

impl Trial {
    /// Returns whether a trial runs at `now`: one atomic load.
    #[inline]
    pub fn is_on(&self, now: Moment) -> bool {
        now.as_micros() < self.until_us.load(Acquire)
    }

    /// Returns whether a trial runs at `now`, and a server chosen at `chosen_at` was chosen during
    /// it.
    pub fn covers(&self, chosen_at: Moment, now: Moment) -> bool {
        self.is_on(now) && chosen_at.as_micros() >= self.since_us.load(Relaxed)
    }

    /// Starts a trial that runs until `until`, after `reset` has cleared the servers' counters.
    /// Returns false if one is already running, if another worker starts one at this moment, or if
    /// the last one ran to its end less than its own length ago: a client that causes failures must
    /// not disable the service's balancing algorithm permanently.
    pub fn begin(&self, now: Moment, until: Moment, reset: impl FnOnce()) -> bool {
        let since = self.since_us.load(Relaxed);
        let ended = self.until_us.load(Acquire);
        // Also true while it runs.
        if now.as_micros() < ended.saturating_add(ended.saturating_sub(since)) {
            return false;
        }
        let begun = now.as_micros().max(since + 1);
        if self.since_us.compare_exchange(since, begun, Relaxed, Relaxed).is_err() {
            return false;
        }
        reset();
        self.until_us.store(until.as_micros(), Release);
        true
    }

    /// Ends the trial.
    pub fn end(&self) {
        self.until_us.store(0, Release);
    }
}

/// One server's counts in its service's trial.
#[derive(Debug, Default)]
pub struct TrialCounts {
    /// [`crate::ServerState::requests`] when the trial started.
    before: AtomicU64,
    good: AtomicU32,
    failed: AtomicU32,
    other: AtomicU32,
}

/// The values of [`TrialCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialRow {
    /// Successful attempts.
    pub good: u64,
    /// Attempts that failed after they were sent.
    pub failed: u64,
    /// Attempts whose outcome is not known yet.
    pub pending: u64,
}

/// The outcome of an attempt in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The server worked.
    Good,
    /// It failed after the request was sent.
    Failed,
    /// It says nothing about the server.
    Other,
}

impl TrialCounts {
    /// Starts from zero; `requests` have been sent to the server so far.
    pub fn reset(&self, requests: u64) {
        self.before.store(requests, Relaxed);
        for count in [&self.good, &self.failed, &self.other] {
            count.store(0, Relaxed);
        }
    }

    /// Counts an attempt on the server during the trial.
    pub fn count(&self, outcome: TrialOutcome) {
        let count = match outcome {
            TrialOutcome::Good => &self.good,
            TrialOutcome::Failed => &self.failed,
            TrialOutcome::Other => &self.other,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Returns the counts; `requests` have been sent to the server so far.
    pub fn row(&self, requests: u64) -> TrialRow {
        let read = |count: &AtomicU32| u64::from(count.load(Relaxed));
        let (good, failed, other) = (read(&self.good), read(&self.failed), read(&self.other));
        let given = requests.saturating_sub(self.before.load(Relaxed));
        TrialRow { good, failed, pending: given.saturating_sub(good + failed + other) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_one_beginner_and_covers_what_was_chosen_within_it() {
        let trial = Trial::default();
        let at = Moment::from_millis;
        assert!(!trial.is_on(at(10)) && !trial.covers(at(10), at(10)));
        assert!(trial.begin(at(10), at(20), || {}));
        assert!(!trial.begin(at(11), at(30), || panic!("reset while it runs")));
        assert!(trial.covers(at(10), at(15)) && !trial.covers(at(9), at(15)));
        assert!(!trial.is_on(at(20)));
        assert!(!trial.begin(at(29), at(40), || panic!("too soon")));
        assert!(trial.begin(at(30), at(40), || {}));
        trial.end();
        assert!(!trial.is_on(at(32)));
        assert!(trial.begin(at(33), at(40), || {}), "one that was ended has no pause behind it");
    }

    #[test]
    fn an_attempt_without_an_outcome_is_pending() {
        let counts = TrialCounts::default();
        counts.reset(100);
        counts.count(TrialOutcome::Good);
        counts.count(TrialOutcome::Failed);
        counts.count(TrialOutcome::Other);
        assert_eq!(counts.row(105), TrialRow { good: 1, failed: 1, pending: 2 });
        assert_eq!(counts.row(90), TrialRow { good: 1, failed: 1, pending: 0 });
    }
}
