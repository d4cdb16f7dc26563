//! A connection's listener and the configuration in force for it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use model::{Listener, ListenerId};
use observe::ListenerCounters;
use transport::Stream;

use crate::buffer::Buffer;
use crate::listener::LiveListener;
use crate::plane::Plane;
use crate::worker::Worker;

/// A listener, and the configuration that its connections follow.
#[derive(Clone)]
pub(crate) struct Via {
    pub(crate) live: Arc<LiveListener>,
    pub(crate) plane: Rc<Plane>,
    /// The listener's index in `plane`.
    pub(crate) listener: ListenerId,
}

impl Via {
    /// Returns `live` in the configuration in force, or for a removed listener in the last
    /// configuration that contained it.
    pub(crate) fn new(worker: &Worker, live: Arc<LiveListener>) -> Via {
        let (plane, listener) = worker.plane_of(&live);
        Via { live, plane, listener }
    }

    /// Returns the listener's settings in its configuration.
    pub(crate) fn settings(&self) -> &Listener {
        // `plane` and `listener` are only ever set together.
        &self.plane.published.snapshot.listeners[self.listener.0 as usize]
    }

    /// Returns the listener's counters.
    pub(crate) fn counters(&self) -> &Arc<ListenerCounters> {
        &self.plane.listeners[self.listener.0 as usize]
    }

    /// Switches to the configuration in force, as long as it contains the listener. Returns the
    /// previous one if it differs.
    pub(crate) fn follow(&mut self, worker: &Worker) -> Option<Via> {
        let plane = worker.plane();
        if Rc::ptr_eq(&plane, &self.plane) || self.live.is_closing() {
            return None;
        }
        let listener = self.live.place_in(&plane.published.snapshot)?;
        let live = Arc::clone(&self.live);
        Some(std::mem::replace(self, Via { live, plane, listener }))
    }
}

/// A client's connection before its protocol begins.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    /// The client's address: the peer's, or the one that a PROXY header names.
    pub(crate) peer: SocketAddr,
    /// Whether the client spoke TLS to the proxy that sent the PROXY header.
    pub(crate) tls_before: bool,
    /// Bytes read and not yet used.
    pub(crate) buffer: Buffer,
    pub(crate) via: Via,
}
