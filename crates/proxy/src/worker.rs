//! A worker: everything that the connections of one thread share without locks.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use model::ListenerId;
use observe::{Shard, TimestampCache};

use crate::access_log::AccessSink;
use crate::buffer::BufferPool;
use crate::line_batch::{LineBatch, SpanSink};
use crate::listener::LiveListener;
use crate::parking::Parking;
use crate::plane::Plane;
use crate::roster::Roster;
use crate::scratch::ScratchPool;
use crate::shared::{Peer, Shared};
use crate::span_lines::SpanLines;
use crate::upstream::Pool;

/// State shared by the connections of one worker. Lives on its thread.
pub(crate) struct Worker {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffers: Rc<BufferPool>,
    pub(crate) scratch: ScratchPool,
    pub(crate) pool: Pool,
    pub(crate) roster: Rc<Roster>,
    /// Referred to by each copy of a request that is in flight to a mirror.
    pub(crate) copies: Rc<()>,
    pub(crate) parking: Parking,
    pub(crate) rng: RefCell<fastrand::Rng>,
    pub(crate) access: LineBatch<AccessSink>,
    /// The lines of exchanges that become traces.
    pub(crate) spans: SpanLines,
    pub(crate) timestamps: RefCell<TimestampCache>,
    pub(crate) shard: Arc<Shard>,
    plane: RefCell<Rc<Plane>>,
}

impl Worker {
    /// Returns a worker without connections. Must be called within its runtime, which registers its
    /// descriptors.
    pub(crate) fn new(start: Start) -> io::Result<Worker> {
        let Start { id, shared, access, spans, shard } = start;
        let plane = Plane::new(shared.registry.load_full(), &shard, &shared);
        Ok(Worker {
            id,
            parking: Parking::new()?,
            buffers: Rc::default(),
            scratch: ScratchPool::default(),
            pool: Pool::default(),
            roster: Rc::default(),
            copies: Rc::default(),
            rng: RefCell::new(fastrand::Rng::new()),
            access: LineBatch::new(access),
            spans: SpanLines::new(spans),
            timestamps: RefCell::default(),
            shard,
            plane: RefCell::new(Rc::new(plane)),
            shared,
        })
    }

    /// Returns the configuration in force at this call.
    pub(crate) fn plane(&self) -> Rc<Plane> {
        let current = self.shared.registry.current();
        let mut plane = self.plane.borrow_mut();
        if !Arc::ptr_eq(&current, &plane.published) {
            current.note_use(os::clock::now());
            *plane = Rc::new(Plane::new(Arc::clone(&current), &self.shard, &self.shared));
        }
        Rc::clone(&plane)
    }

    /// Returns the maximum number of idle server connections: its share of `connections_max`, so
    /// that open files are bounded however many servers there are.
    pub(crate) fn idle_server_connections_max(&self) -> usize {
        let all = self.plane.borrow().published.snapshot.connections_max as usize;
        all.div_ceil(self.shared.peers.len())
    }

    /// Returns the configuration for a listener's connections, and the listener's index there: the
    /// one in force, or for a removed listener the last one that contained it.
    pub(crate) fn plane_of(&self, listener: &LiveListener) -> (Rc<Plane>, ListenerId) {
        let plane = self.plane();
        match listener.place_in(&plane.published.snapshot) {
            Some(id) if !listener.is_closing() => (plane, id),
            _ => {
                let last = listener.last();
                // The listener was created for a configuration that contained it.
                let id = listener.place_in(&last.snapshot).unwrap_or(ListenerId(0));
                (Rc::new(Plane::new(last, &self.shard, &self.shared)), id)
            }
        }
    }

    /// Returns this worker's entry among its peers.
    pub(crate) fn peer(&self) -> &Peer {
        &self.shared.peers[self.id]
    }
}

/// What a worker needs to start.
pub(crate) struct Start {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) access: AccessSink,
    pub(crate) spans: SpanSink,
    pub(crate) shard: Arc<Shard>,
}

#[cfg(test)]
pub(crate) mod testing {
    use decide::Registry;
    use model::{AccessLog, Action, Denial, Protocol};
    use tokio::sync::mpsc;

    use super::*;
    use crate::access_log::AccessTarget;
    use crate::identity::Identity;
    use crate::isolate::tests::snapshot;
    use crate::shared::{Handed, INBOX_MAX};

    /// Returns what so many workers share, and their inboxes. There is one listener, `front`; every
    /// request is answered with 418.
    pub(crate) fn shared(workers: usize) -> (Arc<Shared>, Vec<mpsc::Receiver<Handed>>) {
        let any = ([127, 0, 0, 1], 0).into();
        let mut snapshot = snapshot(Protocol::Http, any, any);
        Arc::make_mut(&mut snapshot.routes[0]).action = Action::Deny(Denial::configured(418));
        let registry = Arc::new(Registry::new());
        registry.publish(Arc::new(snapshot), os::clock::now());
        let channels = (0..workers).map(|_| mpsc::channel(INBOX_MAX));
        let (peers, inboxes) = channels.map(|(outbox, inbox)| (Peer::new(outbox), inbox)).unzip();
        let (challenges, tickets) = (Arc::default(), Arc::default());
        let shared = Shared::new(registry, peers, None, Identity::new(1), challenges, tickets);
        (Arc::new(shared), inboxes)
    }

    /// Returns what the worker with this number needs to start.
    pub(crate) fn start(id: usize, shared: &Arc<Shared>) -> Start {
        let target = AccessTarget::open(&AccessLog::Off, None, || Box::new(io::sink())).unwrap();
        let (access, _writer) = AccessSink::start(target).unwrap();
        let (shared, shard) = (Arc::clone(shared), observe::Registry::new().add_shard());
        Start { id, shared, access, spans: Arc::new(|_| {}), shard }
    }
}
