//! An empty timer loop beside the load: measures how late this machine wakes an idle thread. If
//! starts are later than that, the load generator or its load is the cause.

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
    /// The 99.9th percentile of each second that is over; `None`: it was not woken in it at all.
    p99_9_by_second: Vec<Option<u64>>,
    /// Of the second that is going on.
    second: Histogram<u64>,
}

impl TimerLateness {
    pub(crate) fn new() -> TimerLateness {
        TimerLateness {
            all: histogram(3),
            p99_9_by_second: Vec::new(),
            second: histogram(SECOND_DIGITS),
        }
    }

    /// It was woken in this second of the run, so late. Seconds do not go back.
    pub(crate) fn woken(&mut self, second: u64, late: u64) {
        while (self.p99_9_by_second.len() as u64) < second {
            self.end_second();
        }
        self.all.saturating_record(late);
        self.second.saturating_record(late);
    }

    /// The second that is going on is over.
    pub(crate) fn end_second(&mut self) {
        let of_second = &mut self.second;
        let p99_9 = (!of_second.is_empty()).then(|| of_second.value_at_quantile(0.999));
        self.p99_9_by_second.push(p99_9);
        of_second.reset();
    }

    /// The 99.9th percentile of a second of the run, from 0; `None`: it was not woken in it.
    pub fn p99_9_of_second(&self, second: u64) -> Option<u64> {
        *self.p99_9_by_second.get(usize::try_from(second).ok()?)?
    }
}

/// Runs until the run has `ends`, or is stopped.
pub(crate) fn run(shared: &Arc<Shared>, ends: u64) -> std::io::Result<TimerLateness> {
    let _ = os::threads::wake_precisely();
    let mut lateness = TimerLateness::new();
    let mut poller = Poller::new()?;
    let mut due = shared.begins;
    while due < ends && shared.orders.load(Ordering::Relaxed) == RUN {
        let now = os::clock::nanos();
        if now < due {
            poller.wait(Duration::from_nanos(due - now))?;
            continue;
        }
        lateness.woken(shared.second(now), now - due);
        due += PERIOD_NS;
    }
    lateness.end_second();
    Ok(lateness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_lateness_or_none() {
        let mut lateness = TimerLateness::new();
        for (second, late) in [(1, 100), (1, 120), (4, 90)] {
            lateness.woken(second, late);
        }
        lateness.end_second();
        let seconds: Vec<_> = (0..6).map(|second| lateness.p99_9_of_second(second)).collect();
        assert_eq!(seconds, [None, Some(120), None, None, Some(90), None]);
        assert_eq!((lateness.all.len(), lateness.all.max()), (3, 120));
    }
}
