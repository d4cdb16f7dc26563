//! What was sent and what was not, by signal.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use otlp::Signal;

model::words! {
    /// Why something was not sent, or not accepted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dropped {
        /// More waits than the memory for it takes.
        QueueFull = "queue_full",
        /// The collector refused it for good.
        Refused = "refused",
        /// The collector could not be reached, or could not take it, for minutes.
        Unreachable = "unreachable",
        /// It could not be turned into a message.
        Unreadable = "unreadable",
    }
}

/// The counts of all signals.
#[derive(Debug, Default)]
pub struct Counts([SignalCounts; Signal::ALL.len()]);

/// The counts of one signal: spans, data points or log records; exchanges and events while they are not yet in a
/// message.
#[derive(Debug, Default)]
pub struct SignalCounts {
    sent: AtomicU64,
    dropped: [AtomicU64; Dropped::ALL.len()],
}

impl Counts {
    /// Returns those of a signal.
    pub fn of(&self, signal: Signal) -> &SignalCounts {
        &self.0[signal as usize]
    }
}

impl SignalCounts {
    /// Returns how many the collector has accepted.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Returns how many were dropped for a reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize].load(Relaxed)
    }

    pub(crate) fn count_sent(&self, count: u64) {
        self.sent.fetch_add(count, Relaxed);
    }

    pub(crate) fn count_dropped(&self, why: Dropped, count: u64) {
        self.dropped[why as usize].fetch_add(count, Relaxed);
    }
}
