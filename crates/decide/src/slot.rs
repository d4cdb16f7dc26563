//! The right to one request in flight at a server: the guard that a request holds.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::endpoint::Endpoint;

/// A place at a server, held for as long as a request (in tcp mode a connection) is there.
/// Dropping it hands the place to whoever has waited for it longest, on whatever worker.
#[derive(Debug)]
pub struct Slot {
    endpoint: Arc<Endpoint>,
    drawn: bool,
}

impl Slot {
    /// A place at this server, if there is one.
    pub(crate) fn take(endpoint: &Arc<Endpoint>) -> Option<Slot> {
        endpoint.slots.try_take().then(|| Slot::adopt(endpoint))
    }

    /// The guard of a place that is already counted.
    pub(crate) fn adopt(endpoint: &Arc<Endpoint>) -> Slot {
        endpoint.state.requests.fetch_add(1, Relaxed);
        Slot { endpoint: Arc::clone(endpoint), drawn: false }
    }

    /// Notes whether chance chose the server, among all that are eligible.
    pub(crate) fn drawn(mut self, drawn: bool) -> Slot {
        self.drawn = drawn;
        self
    }

    /// Whether the server was chosen in a way that lets it be compared with its peers: at random
    /// while all had room, from the queue, or by the key of `balance = "hash"`.
    pub fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// The server.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl std::ops::Deref for Slot {
    type Target = Endpoint;
    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.endpoint.slots.release();
    }
}
