//! The data plane: processes requests on real sockets.
//!
//! [`start`] creates one thread per worker. A connection is accepted (`accept`), its requests are
//! read one by one (`connection`), each goes from route to record (`exchange`), and bytes move
//! through `pump`, or through `tunnel` where they are unframed. All choices on the way are made by
//! pure functions in `decide` and `health`; this crate has the sockets, the timers and the waiting.

mod abandon;
mod accept;
mod access_log;
mod account;
mod answer;
mod authentication;

mod balance;
mod budget;
mod buffer;
mod carrier;
mod client;
mod connection;
mod connection_task;
mod exchange;
mod explain;
mod failure;
mod filter;
mod flight;
mod greeting;
mod head;
mod http2;
mod identity;
mod identity_names;
mod in_flight;
mod isolate;
mod lanes;
mod line_batch;
mod linger;
mod listener;
mod multiplex;

mod parking;
mod pipes;
mod plane;
mod pump;
mod report_queue;
mod requests;
mod roster;
mod scratch;
mod server_connection;
mod servers;
mod shared;
mod shelf;
mod span_lines;
mod tcp;
mod tcp_sample;
mod tls;
mod tunnel;
mod turns;
mod upstream;
mod via;
mod watchdog;
mod worker;
mod worker_thread;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use decide::Registry;
use model::{Moment, Snapshot};
use tokio::sync::mpsc;

pub use access_log::{AccessSink, AccessTarget, AccessWriter};
pub use budget::Budget;
pub use exchange::COPIES_MAX;
pub use explain::MayExplain;
pub use identity::Identity;
pub use in_flight::InFlightReader;
pub use line_batch::SpanSink;
pub use pipes::BODY_PIPES_MAX;

use shared::{INBOX_MAX, Peer, Shared};
use worker::Start;

/// A listener's sockets.
#[derive(Debug)]
pub struct ListenerSockets {
    /// The listener's name in the configuration.
    pub name: Arc<str>,
    /// Listening, non-blocking sockets, distributed to the workers in turn.
    pub sockets: Vec<TcpListener>,
}

/// A listener that was removed or replaced.
#[derive(Debug)]
pub struct RemovedListener {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// The names of the listeners that replace it: the one of the same name, and the one that
    /// accepts on its sockets. Empty if it was removed.
    pub next: Vec<Arc<str>>,
    /// Whether one of these has other security settings ([`model::Listener::has_security_of`]).
    pub security_changed: bool,
}

/// What the data plane needs to start.
pub struct Options {
    /// The configuration in force, and the state that outlives configurations.
    pub registry: Arc<Registry>,
    /// The counters of each worker.
    pub counters: Arc<observe::Registry>,
    /// Worker threads, at least one.
    pub workers: usize,
    /// Destination of access log lines.
    pub access: AccessSink,
    /// Receives the lines of exchanges that become traces.
    pub spans: SpanSink,
    /// Who may request an explanation of routing decisions; `None`: no one.
    pub may_explain: Option<MayExplain>,
    /// The ID by which it recognises requests that it has forwarded itself.
    pub identity: Identity,
    /// Challenges of certificate authorities (ACME) that are pending: listeners answer them.
    pub challenges: Arc<::tls::Challenges>,
    /// What listeners seal session tickets with: keys that processes share, if there are some.
    pub tickets: Arc<::tls::SharedTickets>,
}

/// The running data plane.
pub struct Handle {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// Starts the workers, without listeners: [`Handle::apply`] adds those of the configuration in force
/// when nothing can fail any more. A connection that was accepted would be lost otherwise.
///
/// # Errors
/// When a thread cannot be created.
pub fn start(options: Options) -> io::Result<Handle> {
    let Options {
        registry,
        counters,
        workers,
        access,
        spans,
        may_explain,
        identity,
        challenges,
        tickets,
    } = options;
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..workers.max(1))
        .map(|_| {
            let (sender, receiver) = mpsc::channel(INBOX_MAX);
            (Peer::new(sender), receiver)
        })
        .unzip();
    let shared = Shared::new(registry, peers, may_explain, identity, challenges, tickets);
    let shared = Arc::new(shared);
    shared.authentications.prepare(&shared.registry.current().snapshot);
    if shared.registry.current().snapshot.uses_tls() {
        // Not by the first handshake of a worker, which would hold up all that it serves.
        thread::Builder::new().name("entropy".to_owned()).spawn(::tls::collect_entropy)?;
    }
    let mut workers = Vec::with_capacity(inboxes.len());
    for (id, inbox) in inboxes.into_iter().enumerate() {
        let shared = Arc::clone(&shared);
        let (access, spans) = (access.clone(), spans.clone());
        let shard = counters.add_shard();
        let work = move || {
            let start = Start { id, shared, access, spans, shard };
            if let Err(error) = worker_thread::run(start, inbox) {
                tracing::error!(worker = id, %error, "a worker could not start");
            }
        };
        workers.push(thread::Builder::new().name(format!("worker-{id}")).spawn(work)?);
    }
    Ok(Handle { shared, workers })
}

/// Makes exchanges that wait for a response head check whether their server is still up.
pub struct Alarm(Arc<Shared>);

impl Alarm {
    /// Call after a server has been marked down.
    pub fn ring(&self) {
        self.0.servers_changed();
    }
}

impl Handle {
    /// Returns the alarm to ring when a server has been marked down.
    pub fn alarm(&self) -> Alarm {
        Alarm(Arc::clone(&self.shared))
    }

    /// Returns read access to requests in flight.
    pub fn in_flight_reader(&self) -> InFlightReader {
        InFlightReader(Arc::clone(&self.shared))
    }

    /// Sets who may request explanations, from the next configuration on.
    pub fn set_may_explain(&self, may_explain: Option<MayExplain>) {
        self.shared.set_may_explain(may_explain);
    }

    /// Call before a configuration is published: does what would hold up the workers, in their first
    /// TLS handshake or when they first see the configuration. Takes some 40 ms if it is the first that
    /// uses TLS, and the time to parse its files of users, keys and certificates.
    pub fn prepare(&self, snapshot: &Snapshot) {
        self.shared.authentications.prepare(snapshot);
        self.shared.tls.prepare(snapshot);
        if snapshot.uses_tls() {
            ::tls::collect_entropy();
        }
    }

    /// Applies a configuration that has just been published. Starts accepting on the `added`
    /// listeners; accepts what the kernel has already queued for the `removed` ones and closes
    /// them. Connections of removed listeners end after their current exchange. A listener with
    /// another name, address or other security settings counts as removed and added. Tunnels and
    /// TCP connections end at `tunnels_end` if the security settings changed; otherwise they follow
    /// the listeners that replace theirs, and end when the security settings of one of those
    /// change.
    pub fn apply(
        &self,
        added: Vec<ListenerSockets>,
        removed: &[RemovedListener],
        tunnels_end: Moment,
    ) {
        let closed = self.shared.unlisten(removed, tunnels_end);
        self.shared.listen(added, removed, &closed);
    }

    /// Stops accepting, because another process accepts instead. Exchanges in progress are
    /// finished; every answer announces that its connection closes. Idle connections stay open for
    /// one more request: closing them could race with a request on its way. [`Handle::begin_drain`]
    /// ends the rest.
    pub fn leave(&self) {
        self.shared.leave();
    }

    /// Answers 503 from now on to health checks that ask whether this process takes work (`respond =
    /// "ready"` of a route). Everything else continues.
    pub fn announce_stop(&self) {
        self.shared.announce_stop();
    }

    /// Stops accepting. Exchanges in progress are finished and their connections closed.
    pub fn begin_drain(&self) {
        self.shared.drain();
    }

    /// Returns the number of open client connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// Waits up to `max` until every worker has ended after [`Handle::begin_drain`], then stops
    /// them. Returns how many client connections were cut off.
    pub fn finish(self, max: Duration) -> usize {
        let deadline = os::clock::now() + max;
        while self.workers.iter().any(|w| !w.is_finished()) && os::clock::now() < deadline {
            thread::park_timeout(Duration::from_millis(10));
        }
        let left = self.connections();
        self.shared.stop();
        for worker in self.workers {
            if worker.join().is_err() {
                tracing::error!("a worker thread panicked");
            }
        }
        left
    }
}
