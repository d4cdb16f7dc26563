//! A slot at a server: the guard that a request in flight holds.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::endpoint::Endpoint;

/// A slot at a server, held while a request (in TCP mode, a connection) is in flight. Dropping it
/// hands the slot to the request that has waited for it longest, on any worker.
#[derive(Debug)]
pub struct Slot {
    endpoint: Arc<Endpoint>,
    drawn: bool,
    is_answered: Cell<bool>,
}

impl Slot {
    /// Takes a slot at this server, if one is free.
    pub(crate) fn take(endpoint: &Arc<Endpoint>) -> Option<Slot> {
        endpoint.slots.try_take().then(|| Slot::adopt(endpoint))
    }

    /// Returns the guard of a slot that is already counted.
    pub(crate) fn adopt(endpoint: &Arc<Endpoint>) -> Slot {
        endpoint.state.requests.fetch_add(1, Relaxed);
        Slot { endpoint: Arc::clone(endpoint), drawn: false, is_answered: Cell::new(false) }
    }

    /// Records whether the server was drawn at random among all eligible ones.
    pub(crate) fn drawn(mut self, drawn: bool) -> Slot {
        self.drawn = drawn;
        self
    }

    /// Returns whether the server was chosen in a way that lets it be compared with its peers: at
    /// random while all had room, from the queue, or by the key of `balance = "hash"`.
    pub fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// Records that the server's response to the request has begun.
    pub fn note_response(&self) {
        self.is_answered.set(true);
    }

    /// Returns the server.
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
        if !self.is_answered.get() {
            self.endpoint.state.unanswered.fetch_add(1, Relaxed);
        }
        self.endpoint.slots.release();
    }
}
