//! How long to wait before a source that fails is asked again.

use std::time::Duration;

/// After a failure a source is asked again after this, doubled each time, up to the maximum.
const FIRST: Duration = Duration::from_millis(250);
const MAX: Duration = Duration::from_secs(10);

/// The failures of a source in a row.
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { failures: 0 }
    }

    /// Counts a failure; returns how long to wait: at random between half and one and a half times the step, so that
    /// balancers do not ask together.
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16)).min(MAX);
        self.failures = self.failures.saturating_add(1);
        doubled.mul_f64(0.5 + fastrand::f64())
    }

    /// Counts a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
