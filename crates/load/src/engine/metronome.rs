//! An empty timer loop beside the load: how late this machine wakes a thread that does nothing
//! else. What starts are late beyond that is the load generator's doing, or its load's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hdrhistogram::Histogram;
use os::poll::Poller;

use super::recorder::{SECOND_DIGITS, histogram};
use super::worker::{RUN, Shared};

/// Between two wake-ups: a thousand a second show the 99.9th percentile and cost little.
const PERIOD_NS: u64 = 1_000_000;

/// How late the loop was woken, in nanoseconds.
#[derive(Debug)]
pub struct TimerLateness {
    /// Over the whole run.
    pub all: Histogram<u64>,
    /// The 99.9th percentile of each second; `None`: it was not woken in it at all.
    p99_9_by_second: Vec<Option<u64>>,
}

impl TimerLateness {
    /// The 99.9th percentile of a second of the run, from 0.
    pub fn in_second(&self, second: u64) -> Option<u64> {
        *self.p99_9_by_second.get(usize::try_from(second).ok()?)?
    }
}

/// Runs until the run has `ends`, or is stopped.
pub(crate) fn run(shared: &Arc<Shared>, ends: u64) -> std::io::Result<TimerLateness> {
    let _ = os::threads::wake_precisely();
    let mut all = histogram(3);
    let mut second = histogram(SECOND_DIGITS);
    let mut p99_9_by_second = Vec::new();
    let mut poller = Poller::new()?;
    let mut due = shared.begins;
    while due < ends && shared.orders.load(Ordering::Relaxed) == RUN {
        let now = os::clock::nanos();
        if now < due {
            poller.wait(Duration::from_nanos(due - now))?;
            continue;
        }
        while (p99_9_by_second.len() as u64) < shared.second(now) {
            p99_9_by_second.push(p99_9(&second));
            second.reset();
        }
        all.saturating_record(now - due);
        second.saturating_record(now - due);
        due += PERIOD_NS;
    }
    p99_9_by_second.push(p99_9(&second));
    Ok(TimerLateness { all, p99_9_by_second })
}

fn p99_9(times: &Histogram<u64>) -> Option<u64> {
    (!times.is_empty()).then(|| times.value_at_quantile(0.999))
}
