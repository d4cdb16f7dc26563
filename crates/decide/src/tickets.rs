//! What all queues share: the numbers that order those who wait, and how many wait.

use std::sync::atomic::Ordering::SeqCst;

use crate::sync::{AtomicU32, AtomicU64};

/// Numbers for those who wait, in one order over all services, and how many wait in all.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    pub(crate) next: AtomicU64,
    pub(crate) waiting: AtomicU32,
}

impl Tickets {
    /// Whether anybody waits in any queue: all that is asked when a slot becomes free while
    /// nobody does.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }
}
