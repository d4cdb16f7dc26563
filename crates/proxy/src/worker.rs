//! A worker: one thread, one runtime, and everything its connections share without a lock.

use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use decide::{Published, Registry};
use model::{AccessLog, ListenerId, LogFormat};
use observe::{ListenerCounters, ServiceCounters, Shard, TimestampCache};
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, mpsc};

use crate::accept;
use crate::access_log::{AccessBatch, AccessSink};
use crate::buffer::BufferPool;
use crate::roster::{Phase, Roster};
use crate::scratch::ScratchPool;
use crate::upstream::Pool;

/// Connections handed to a worker that it has not yet taken.
pub(crate) const INBOX_MAX: usize = 1024;
/// How often idle server connections are looked through for those that closed or grew too old.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// The longest that an access line waits in a worker before it is handed to the writer.
const ACCESS_FLUSH_EVERY: Duration = Duration::from_millis(50);

/// A client connection on its way to the worker that will serve it.
pub(crate) struct Handed {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) listener: ListenerId,
    pub(crate) counted: Counted,
}

/// What all workers know of one of them.
pub(crate) struct Peer {
    /// Client connections that it serves.
    pub(crate) connections: AtomicUsize,
    /// Takes connections that another worker accepted.
    pub(crate) inbox: mpsc::Sender<Handed>,
    servers_changed: AtomicBool,
    signals: Notify,
}

impl Peer {
    pub(crate) fn new(inbox: mpsc::Sender<Handed>) -> Peer {
        Peer {
            connections: AtomicUsize::new(0),
            inbox,
            servers_changed: AtomicBool::new(false),
            signals: Notify::new(),
        }
    }
}

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    pub(crate) peers: Vec<Peer>,
    /// Client connections in all workers, and by listener.
    pub(crate) connections: AtomicUsize,
    pub(crate) by_listener: Vec<AtomicUsize>,
    draining: AtomicBool,
    stopped: AtomicBool,
}

impl Shared {
    pub(crate) fn new(registry: Arc<Registry>, peers: Vec<Peer>, listeners: usize) -> Shared {
        Shared {
            registry,
            peers,
            connections: AtomicUsize::new(0),
            by_listener: (0..listeners).map(|_| AtomicUsize::new(0)).collect(),
            draining: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Stops accepting; connections end after the exchange they are in.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.signal();
    }

    /// Ends every worker, whatever it is doing.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.drain();
    }

    /// Lets exchanges that wait for a server's head look whether that server is still up.
    pub(crate) fn servers_changed(&self) {
        for peer in &self.peers {
            peer.servers_changed.store(true, Relaxed);
        }
        self.signal();
    }

    fn signal(&self) {
        for peer in &self.peers {
            peer.signals.notify_one();
        }
    }
}

/// A configuration as a worker holds it: with this worker's own counters beside the services.
pub(crate) struct Plane {
    pub(crate) published: Arc<Published>,
    pub(crate) services: Vec<Arc<ServiceCounters>>,
    pub(crate) listeners: Vec<Arc<ListenerCounters>>,
    pub(crate) access_format: Option<LogFormat>,
}

/// What the connections of one worker share. Lives on its thread.
pub(crate) struct Worker {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffers: Rc<BufferPool>,
    pub(crate) scratch: ScratchPool,
    pub(crate) pool: Pool,
    pub(crate) roster: Rc<Roster>,
    pub(crate) rng: RefCell<fastrand::Rng>,
    pub(crate) access: AccessBatch,
    pub(crate) timestamps: RefCell<TimestampCache>,
    pub(crate) shard: Arc<Shard>,
    plane: RefCell<Rc<Plane>>,
}

impl Worker {
    /// The configuration in force, as of this call.
    pub(crate) fn plane(&self) -> Rc<Plane> {
        let current = self.shared.registry.current();
        let mut plane = self.plane.borrow_mut();
        if !Arc::ptr_eq(&current, &plane.published) {
            *plane = Rc::new(Plane::new(Arc::clone(&current), &self.shard));
        }
        Rc::clone(&plane)
    }

    /// This worker's entry among its peers.
    pub(crate) fn peer(&self) -> &Peer {
        &self.shared.peers[self.id]
    }
}

impl Plane {
    fn new(published: Arc<Published>, shard: &Shard) -> Plane {
        let snapshot = &published.snapshot;
        let access_format = (snapshot.log.access != AccessLog::Off).then_some(snapshot.log.format);
        Plane {
            services: snapshot.services.iter().map(|s| shard.service(&s.name)).collect(),
            listeners: snapshot.listeners.iter().map(|l| shard.listener(&l.name)).collect(),
            access_format,
            published,
        }
    }
}

/// Counts a client connection for as long as it lives, towards the worker that serves it.
pub(crate) struct Counted {
    shared: Arc<Shared>,
    worker: usize,
    listener: ListenerId,
}

impl Counted {
    pub(crate) fn new(shared: &Arc<Shared>, worker: usize, listener: ListenerId) -> Counted {
        shared.peers[worker].connections.fetch_add(1, Relaxed);
        shared.connections.fetch_add(1, Relaxed);
        shared.by_listener[listener.0 as usize].fetch_add(1, Relaxed);
        Counted { shared: Arc::clone(shared), worker, listener }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let peer = &self.shared.peers[self.worker];
        self.shared.connections.fetch_sub(1, Relaxed);
        self.shared.by_listener[self.listener.0 as usize].fetch_sub(1, Relaxed);
        if peer.connections.fetch_sub(1, Relaxed) == 1 && self.shared.draining() {
            peer.signals.notify_one();
        }
    }
}

/// What a worker thread is started with.
pub(crate) struct Start {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) sockets: Vec<(ListenerId, TcpListener)>,
    pub(crate) inbox: mpsc::Receiver<Handed>,
    pub(crate) access: AccessSink,
    pub(crate) shard: Arc<Shard>,
}

/// A worker's whole life, on the calling thread.
pub(crate) fn run(start: Start) -> io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    let Start { id, shared, sockets, inbox, access, shard } = start;
    let plane = Plane::new(shared.registry.load_full(), &shard);
    let worker = Rc::new(Worker {
        id,
        buffers: Rc::default(),
        scratch: ScratchPool::default(),
        pool: Pool::default(),
        roster: Rc::default(),
        rng: RefCell::new(fastrand::Rng::new()),
        access: AccessBatch::new(access),
        timestamps: RefCell::default(),
        shard,
        plane: RefCell::new(Rc::new(plane)),
        shared,
    });
    runtime.block_on(live(worker, sockets, inbox));
    Ok(())
}

async fn live(
    worker: Rc<Worker>,
    sockets: Vec<(ListenerId, TcpListener)>,
    inbox: mpsc::Receiver<Handed>,
) {
    let acceptors: Vec<_> = sockets
        .into_iter()
        .filter_map(|(listener, socket)| accept::Acceptor::start(&worker, listener, socket))
        .collect();
    tokio::task::spawn_local(accept::take_handed(Rc::clone(&worker), inbox));
    tokio::task::spawn_local(housekeeping(Rc::clone(&worker)));

    loop {
        worker.peer().signals.notified().await;
        if worker.peer().servers_changed.swap(false, Relaxed) {
            worker.roster.wake(Phase::AwaitingServer);
        }
        if worker.shared.draining() {
            break;
        }
    }
    for acceptor in acceptors {
        acceptor.finish(&worker);
    }
    worker.roster.wake(Phase::Idle);
    while worker.peer().connections.load(Relaxed) > 0 && !worker.shared.stopped.load(Relaxed) {
        worker.peer().signals.notified().await;
    }
    worker.access.flush();
}

/// What must be done now and then, whether or not requests come.
async fn housekeeping(worker: Rc<Worker>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut flush = tokio::time::interval(ACCESS_FLUSH_EVERY);
    loop {
        tokio::select! {
            _ = sweep.tick() => worker.pool.sweep(os::clock::now()),
            _ = flush.tick() => {
                worker.access.flush();
                worker.shard.access_lines_dropped.add(worker.access.take_dropped());
            }
        }
    }
}
