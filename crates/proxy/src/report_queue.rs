//! Queue of admin requests that wait for a worker to report its requests in flight.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use observe::{InFlightFilter, InFlightReport};

/// A request for a worker's report.
pub(crate) struct ReportRequest {
    pub(crate) wanted: Arc<InFlightFilter>,
    pub(crate) reply: Sender<InFlightReport>,
}

/// The pending requests for a worker's report.
#[derive(Default)]
pub(crate) struct ReportQueue(Mutex<Vec<ReportRequest>>);

impl ReportQueue {
    /// Requests a report of the exchanges in flight that match `wanted`.
    pub(crate) fn ask(&self, wanted: &Arc<InFlightFilter>) -> Receiver<InFlightReport> {
        let (reply, receiver) = channel();
        let waiting = ReportRequest { wanted: Arc::clone(wanted), reply };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        receiver
    }

    /// Takes all pending requests. Called by the worker when it is signalled.
    pub(crate) fn take(&self) -> Vec<ReportRequest> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
