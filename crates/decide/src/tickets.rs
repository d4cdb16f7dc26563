//! State shared by all queues: the ticket numbers, how many requests wait, and the news about them.

use std::sync::atomic::Ordering::SeqCst;

use crate::news::News;
use crate::sync::{AtomicU32, AtomicU64};

/// Issues ticket numbers in one order over all services, and counts all waiting requests.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    pub(crate) next: AtomicU64,
    pub(crate) waiting: AtomicU32,
    /// About the slots that the fleet shares.
    pub(crate) news: News,
}

impl Tickets {
    /// Returns whether any request waits in any queue: the only check when a slot is freed while
    /// none does.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }
}
