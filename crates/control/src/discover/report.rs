//! What sources report to the control loop.

use std::sync::Arc;

use discovery::Answer;
use model::Moment;
use tokio::sync::mpsc;

/// A report of a source, sent to the control loop.
pub(crate) struct Reported {
    pub(super) from: Origin,
    /// When the answer had arrived completely.
    pub(super) arrived: Moment,
    pub(super) result: Result<Found, String>,
}

/// A usable answer, and the source's index of it, if it has one.
pub(crate) type Found = (Answer, Option<u64>);

/// Whose report it is.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) service: Arc<str>,
    /// Identifies the task's service and settings, so that reports of a stopped task are ignored.
    pub(super) watch: u64,
    /// Which of the source's parts it is: a datacenter.
    pub(super) part: usize,
}

/// Where a task sends its reports.
pub(crate) struct Sink {
    pub(super) origin: Origin,
    pub(super) reports: mpsc::Sender<Reported>,
}

impl Reported {
    pub(crate) fn service(&self) -> &Arc<str> {
        &self.from.service
    }

    pub(crate) fn arrived(&self) -> Moment {
        self.arrived
    }
}

impl Sink {
    /// Passes on an answer, or why there is none.
    pub(crate) async fn send(&self, arrived: Moment, result: Result<Found, String>) {
        let report = Reported { from: self.origin.clone(), arrived, result };
        // The loop is gone only when the process stops.
        let _ = self.reports.send(report).await;
    }
}
