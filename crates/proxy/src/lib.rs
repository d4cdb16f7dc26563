//! The data plane: a request's walk on real sockets.
//!
//! [`start`] makes one thread per worker. A connection is accepted (`accept`), its requests are
//! read one by one (`connection`), each walks from route to account (`exchange`), and bytes move
//! through `pump`, or `tunnel` where they have no frames. What is chosen on the way is decided by
//! pure functions in `decide` and `health`; here are the sockets, the timers and the waiting.

mod abandon;
mod accept;
mod access_log;
mod account;
mod admission;
mod answer;
mod balance;
mod buffer;
mod connection;
mod exchange;
mod head;
mod linger;
mod pump;
mod roster;
mod scratch;
mod tcp;
mod tunnel;
mod upstream;
mod watchdog;
mod worker;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use decide::Registry;
use model::ListenerId;
use tokio::sync::mpsc;

pub use access_log::AccessSink;

use worker::{INBOX_MAX, Peer, Shared, Start};

/// What the data plane is started with.
pub struct Options {
    /// The configuration in force, and what outlives configurations.
    pub registry: Arc<Registry>,
    /// Where each worker counts.
    pub counters: Arc<observe::Registry>,
    /// For each worker, a listening, non-blocking socket per listener, in order of the snapshot.
    /// As many workers are started as there are elements.
    pub sockets: Vec<Vec<TcpListener>>,
    /// Where access lines go.
    pub access: AccessSink,
}

/// The running data plane.
pub struct Handle {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

/// Starts the workers.
///
/// # Errors
/// When a thread cannot be made.
pub fn start(options: Options) -> io::Result<Handle> {
    let Options { registry, counters, sockets, access } = options;
    let listeners = registry.current().snapshot.listeners.len();
    let (peers, inboxes): (Vec<_>, Vec<_>) = sockets
        .iter()
        .map(|_| {
            let (sender, receiver) = mpsc::channel(INBOX_MAX);
            (Peer::new(sender), receiver)
        })
        .unzip();
    let shared = Arc::new(Shared::new(registry, peers, listeners));
    let mut workers = Vec::with_capacity(sockets.len());
    for (id, (sockets, inbox)) in sockets.into_iter().zip(inboxes).enumerate() {
        let sockets = (0..).map(ListenerId).zip(sockets).collect();
        let shared = Arc::clone(&shared);
        let access = access.clone();
        let shard = counters.add_shard();
        let work = move || {
            let start = Start { id, shared, sockets, inbox, access, shard };
            if let Err(error) = worker::run(start) {
                tracing::error!(worker = id, %error, "a worker could not start");
            }
        };
        workers.push(thread::Builder::new().name(format!("worker-{id}")).spawn(work)?);
    }
    Ok(Handle { shared, workers })
}

/// Tells exchanges that wait for a response head to look whether their server is still up.
pub struct Alarm(Arc<Shared>);

impl Alarm {
    /// To be rung after a server has been marked down.
    pub fn ring(&self) {
        self.0.servers_changed();
    }
}

impl Handle {
    /// What rings when a server has been marked down.
    pub fn alarm(&self) -> Alarm {
        Alarm(Arc::clone(&self.shared))
    }

    /// Stops accepting. Exchanges under way are finished and their connections closed.
    pub fn begin_drain(&self) {
        self.shared.drain();
    }

    /// Client connections that are open.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Relaxed)
    }

    /// Waits until every worker has ended after [`Handle::begin_drain`], at most `max`; then ends
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
                tracing::error!("a worker ended by a panic");
            }
        }
        left
    }
}
