//! Queue of admin requests that wait for a worker to report its requests in flight.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use observe::{InFlightTold, InFlightWanted};

/// A request for a worker's report.
pub(crate) struct Waiting {
    pub(crate) wanted: Arc<InFlightWanted>,
    pub(crate) reply: Sender<InFlightTold>,
}

/// The pending requests for a worker's report.
#[derive(Default)]
pub(crate) struct Asking(Mutex<Vec<Waiting>>);

impl Asking {
    /// Requests a report of the exchanges in flight that match `wanted`.
    pub(crate) fn ask(&self, wanted: &Arc<InFlightWanted>) -> Receiver<InFlightTold> {
        let (reply, receiver) = channel();
        let waiting = Waiting { wanted: Arc::clone(wanted), reply };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        receiver
    }

    /// Takes all pending requests. Called by the worker when it is signalled.
    pub(crate) fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
