//! An empty timer loop beside the load: how late this machine wakes a thread that does nothing
//! else. What starts are late beyond that is the load generator's doing, or its load's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hdrhistogram::Histogram;
use os::poll::Poller;

use super::recorder::histogram;
use super::worker::{RUN, Shared};

/// Between two wake-ups: a thousand a second show the 99.9th percentile and cost little.
const PERIOD_NS: u64 = 1_000_000;

/// Runs until the run has `ends`, or is stopped; yields how late it was woken, in nanoseconds.
pub(crate) fn run(shared: &Arc<Shared>, ends: u64) -> std::io::Result<Histogram<u64>> {
    let _ = os::threads::wake_precisely();
    let mut lateness = histogram(3);
    let mut poller = Poller::new()?;
    let mut due = shared.begins;
    while due < ends && shared.orders.load(Ordering::Relaxed) == RUN {
        let now = os::clock::nanos();
        if now < due {
            poller.wait(Duration::from_nanos(due - now))?;
            continue;
        }
        lateness.saturating_record(now - due);
        due += PERIOD_NS;
    }
    Ok(lateness)
}
