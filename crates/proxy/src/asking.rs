//! Who waits to be told by a worker what is in flight.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use observe::{InFlightTold, InFlightWanted};

/// One that waits to be told by a worker.
pub(crate) struct Waiting {
    pub(crate) wanted: Arc<InFlightWanted>,
    pub(crate) told: Sender<InFlightTold>,
}

/// Whoever waits to be told by a worker.
#[derive(Default)]
pub(crate) struct Asking(Mutex<Vec<Waiting>>);

impl Asking {
    /// Asks what of `wanted` is under way.
    pub(crate) fn ask(&self, wanted: &Arc<InFlightWanted>) -> Receiver<InFlightTold> {
        let (told, receiver) = channel();
        let waiting = Waiting { wanted: Arc::clone(wanted), told };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        receiver
    }

    /// Takes all who wait. By the worker, when it was signalled.
    pub(crate) fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
