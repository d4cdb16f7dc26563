//! A worker: one thread, one runtime, and everything its connections share without a lock.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use decide::Published;
use model::{AccessLog, ListenerId, LogFormat};
use observe::{ListenerCounters, ServiceCounters, Shard, TimestampCache};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc;
use wire::http1::{Known, RequestHead};

use crate::accept::{self, Acceptor};
use crate::access_log::{AccessBatch, AccessSink};
use crate::buffer::BufferPool;
use crate::explain::{Explanation, MayExplain};
use crate::listener::LiveListener;
use crate::parked::{self, Parking};
use crate::roster::{Phase, Roster};
use crate::scratch::ScratchPool;
use crate::shared::{Dealt, Handed, Peer, Shared};
use crate::tcp_sample::Sampling;
use crate::tls::InUse;
use crate::upstream::Pool;

/// How often idle server connections are looked through for those that closed or grew too old.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether something new is known of a server's habits.
const NEWS_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether the time of parked connections is over, and so how late they may
/// end: a timer for each would hold more than they do.
const PARKED_EVERY: Duration = Duration::from_secs(1);
/// How often what nobody needed of late is given back to the system.
const TRIM_EVERY: Duration = Duration::from_secs(5);
/// How long exchanges that are cut off may take to tell their clients.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);
/// The longest that an access line waits in a worker before it is handed to the writer.
const ACCESS_FLUSH_EVERY: Duration = Duration::from_millis(50);

/// A configuration as a worker holds it: with this worker's own counters beside the services.
pub(crate) struct Plane {
    pub(crate) published: Arc<Published>,
    pub(crate) services: Vec<Arc<ServiceCounters>>,
    pub(crate) listeners: Vec<Arc<ListenerCounters>>,
    pub(crate) access_format: Option<LogFormat>,
    /// Which exchanges are looked at more closely.
    pub(crate) sampling: Sampling,
    may_explain: Option<MayExplain>,
    /// TLS towards clients and servers.
    pub(crate) tls: InUse,
}

/// What the connections of one worker share. Lives on its thread.
pub(crate) struct Worker {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) buffers: Rc<BufferPool>,
    pub(crate) scratch: ScratchPool,
    pub(crate) pool: Pool,
    pub(crate) roster: Rc<Roster>,
    pub(crate) parking: Parking,
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
            current.note_use(os::clock::now());
            *plane = Rc::new(Plane::new(Arc::clone(&current), &self.shard, &self.shared));
        }
        Rc::clone(&plane)
    }

    /// How many idle server connections it keeps at most: its share of `connections_max`, so that
    /// open files are bounded however many servers there are.
    pub(crate) fn idle_server_connections_max(&self) -> usize {
        let all = self.plane.borrow().published.snapshot.connections_max as usize;
        all.div_ceil(self.shared.peers.len())
    }

    /// The configuration that holds for a listener's connections, and its place there: the one in
    /// force, or for a listener that is gone the last one that it was part of.
    pub(crate) fn plane_of(&self, listener: &LiveListener) -> (Rc<Plane>, ListenerId) {
        let plane = self.plane();
        match listener.place_in(&plane.published.snapshot) {
            Some(id) if !listener.is_closing() => (plane, id),
            _ => {
                let last = listener.last();
                // Made for a configuration that it was part of.
                let id = listener.place_in(&last.snapshot).unwrap_or(ListenerId(0));
                (Rc::new(Plane::new(last, &self.shard, &self.shared)), id)
            }
        }
    }

    /// This worker's entry among its peers.
    pub(crate) fn peer(&self) -> &Peer {
        &self.shared.peers[self.id]
    }
}

impl Plane {
    pub(crate) fn new(published: Arc<Published>, shard: &Shard, shared: &Shared) -> Plane {
        let snapshot = &published.snapshot;
        let (generation, services) = (published.generation, snapshot.services.iter());
        let listeners = snapshot.listeners.iter();
        let access_format = (snapshot.log.access != AccessLog::Off).then_some(snapshot.log.format);
        Plane {
            services: services.map(|s| shard.service_of(generation, &s.name)).collect(),
            listeners: listeners.map(|l| shard.listener_of(generation, &l.name)).collect(),
            access_format,
            sampling: Sampling::new(&snapshot.log),
            may_explain: shared.may_explain(),
            tls: shared.tls.of(snapshot),
            published,
        }
    }

    /// What is told of the choices made for a request of this id, if anything is: it is drawn, or
    /// presents the token.
    pub(crate) fn explanation(
        &self,
        id: u128,
        request: Option<&RequestHead>,
    ) -> Option<Box<Explanation>> {
        self.access_format?;
        let asks = || {
            let presented = request?.known(Known::WeirExplain)?;
            self.may_explain.as_ref().filter(|may_explain| may_explain(presented))
        };
        let told = self.sampling.tells_decisions(id) || asks().is_some();
        told.then(Box::default)
    }
}

/// What a worker thread is started with.
pub(crate) struct Start {
    pub(crate) id: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: mpsc::Receiver<Handed>,
    pub(crate) access: AccessSink,
    pub(crate) shard: Arc<Shard>,
}

/// A worker's whole life, on the calling thread.
pub(crate) fn run(start: Start) -> io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    let Start { id, shared, inbox, access, shard } = start;
    let plane = Plane::new(shared.registry.load_full(), &shard, &shared);
    // Within the runtime, which watches what it makes.
    let live = async {
        let worker = Worker {
            id,
            parking: Parking::new()?,
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
        };
        live(Rc::new(worker), inbox).await;
        Ok(())
    };
    runtime.block_on(live)
}

async fn live(worker: Rc<Worker>, inbox: mpsc::Receiver<Handed>) {
    tokio::task::spawn_local(accept::take_handed(Rc::clone(&worker), inbox));
    tokio::task::spawn_local(housekeeping(Rc::clone(&worker)));
    tokio::task::spawn_local(parked::attend(Rc::clone(&worker)));
    let mut acceptors: Vec<Acceptor> = Vec::new();
    while !worker.shared.leaving() {
        take_sockets(&worker, &mut acceptors);
        heed(&worker);
        worker.peer().signalled().await;
    }
    take_sockets(&worker, &mut acceptors);
    for acceptor in acceptors {
        acceptor.finish(&worker);
    }
    while worker.peer().connections.load(Relaxed) > 0 && !worker.shared.stopped() {
        heed(&worker);
        if worker.shared.draining() {
            close_idle(&worker);
        }
        worker.peer().signalled().await;
    }
    worker.roster.wake_all();
    parked::close_last(&worker);
    let ended = async {
        while worker.peer().connections.load(Relaxed) > 0 {
            worker.peer().signalled().await;
        }
    };
    // Whoever has not heard its last word by then does not hear it.
    let _ = tokio::time::timeout(LAST_WORDS_MAX, ended).await;
    flush(&worker);
}

/// Lets exchanges that wait for a server look whether it is still up, if any was marked down, and
/// tells whoever asks what is in flight.
fn heed(worker: &Rc<Worker>) {
    if worker.peer().take_servers_changed() {
        worker.roster.wake(Phase::awaits_server);
    }
    worker.peer().asking.answer(&worker.roster);
}

/// Begins to accept on the sockets that were dealt to this worker, and ends on those whose
/// listener is gone.
fn take_sockets(worker: &Rc<Worker>, acceptors: &mut Vec<Acceptor>) {
    for Dealt { listener, socket } in worker.peer().take_dealt() {
        acceptors.extend(Acceptor::start(worker, listener, socket));
    }
    if worker.peer().take_listeners_gone() {
        for acceptor in acceptors.extract_if(.., |acceptor| acceptor.is_closing()) {
            acceptor.finish(worker);
        }
        // Those that came by them are not to wait for another request, and tunnels may have an end.
        close_idle(worker);
        worker.roster.wake(|phase| phase == Phase::Tunnel);
    }
}

/// Ends connections that wait for a request, where none is to come any more.
fn close_idle(worker: &Rc<Worker>) {
    worker.roster.wake(|phase| phase == Phase::Idle);
    parked::close_last(worker);
}

/// What must be done now and then, whether or not requests come.
async fn housekeeping(worker: Rc<Worker>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut flush_due = tokio::time::interval(ACCESS_FLUSH_EVERY);
    let mut news = tokio::time::interval(NEWS_EVERY);
    let mut trim = tokio::time::interval(TRIM_EVERY);
    let mut parked_due = tokio::time::interval(PARKED_EVERY);
    loop {
        tokio::select! {
            // One worker tells what all have learned together.
            _ = news.tick(), if worker.id == 0 => tell_news(&worker.plane().published),
            _ = sweep.tick() => worker.pool.sweep(os::clock::now()),
            _ = flush_due.tick() => flush(&worker),
            _ = parked_due.tick() => parked::close_due(&worker, os::clock::now()),
            _ = trim.tick() => {
                worker.buffers.trim();
                worker.scratch.trim();
                worker.parking.trim();
            }
        }
    }
}

/// Hands the access lines on, and counts those that nobody took.
fn flush(worker: &Worker) {
    worker.access.flush();
    worker.shard.access_lines_dropped.add(worker.access.take_dropped());
}

/// Says what has been learned of servers' habits since it was last asked.
fn tell_news(published: &Published) {
    let now = os::clock::now();
    for (service, live) in published.snapshot.services.iter().zip(&published.services) {
        for endpoint in &live.endpoints().all {
            if let Some(news) = endpoint.slots.learner.news(service.timeouts.keep_alive, now) {
                tracing::info!(server = %endpoint.row.name, "{news}");
            }
        }
    }
}
