//! State shared by all workers: the configurations, the listeners' sockets on their way to them,
//! the shutdown phase, and the count of connections.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use decide::Registry;
use model::Moment;
use tokio::sync::{Notify, mpsc};

use crate::authentication::Authentications;
use crate::budget::Budget;
use crate::explain::MayExplain;
use crate::identity::Identity;
use crate::listener::LiveListener;
use crate::report_queue::ReportQueue;
use crate::tls::TlsConfigs;
use crate::{ListenerSockets, RemovedListener};

/// Maximum number of connections handed to a worker that it has not yet taken.
pub(crate) const INBOX_MAX: usize = 1024;

/// A client connection on its way to the worker that will serve it.
pub(crate) struct Handed {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) counted: Counted,
}

/// A listening socket on its way to its worker.
pub(crate) struct Dealt {
    pub(crate) listener: Arc<LiveListener>,
    pub(crate) socket: TcpListener,
}

/// The state of one worker that all workers can see.
pub(crate) struct Peer {
    /// Client connections that it serves.
    pub(crate) connections: AtomicUsize,
    /// Receives connections that another worker accepted; closed once this one leaves.
    pub(crate) inbox: mpsc::Sender<Handed>,
    servers_changed: AtomicBool,
    listeners_gone: AtomicBool,
    /// Listening sockets assigned to it that it has not yet taken.
    dealt: Mutex<Vec<Dealt>>,
    /// Pending requests for a report of its exchanges in flight.
    pub(crate) reports: ReportQueue,
    signals: Notify,
}

impl Peer {
    pub(crate) fn new(inbox: mpsc::Sender<Handed>) -> Peer {
        Peer {
            connections: AtomicUsize::new(0),
            inbox,
            servers_changed: AtomicBool::new(false),
            listeners_gone: AtomicBool::new(false),
            dealt: Mutex::default(),
            reports: ReportQueue::default(),
            signals: Notify::new(),
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn signalled(&self) {
        self.signals.notified().await;
    }

    /// Returns the listening sockets assigned to it since the last call.
    pub(crate) fn take_dealt(&self) -> Vec<Dealt> {
        std::mem::take(&mut *self.dealt.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether servers have been marked down since the last call.
    pub(crate) fn take_servers_changed(&self) -> bool {
        self.servers_changed.swap(false, Relaxed)
    }

    /// Returns whether listeners have been removed since the last call.
    pub(crate) fn take_listeners_gone(&self) -> bool {
        self.listeners_gone.swap(false, Relaxed)
    }
}

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    pub(crate) peers: Vec<Peer>,
    /// Client connections in all workers.
    pub(crate) connections: AtomicUsize,
    listeners: Mutex<Vec<Arc<LiveListener>>>,
    stopping: AtomicBool,
    leaving: AtomicBool,
    draining: AtomicBool,
    stopped: AtomicBool,
    may_explain: Mutex<Option<MayExplain>>,
    /// The budget for bodies that wait for a server.
    pub(crate) request_buffers: Arc<Budget>,
    /// The budget for compressing responses.
    pub(crate) compression: Arc<Budget>,
    /// Memory for the bodies of copies of requests.
    pub(crate) mirrors: Arc<Budget>,
    /// This instance's ID in loop detection.
    pub(crate) identity: Identity,
    /// TLS configurations, built once for all workers.
    pub(crate) tls: TlsConfigs,
    /// What authenticates requests.
    pub(crate) authentications: Authentications,
    /// Pending challenges of certificate authorities.
    pub(crate) challenges: Arc<tls::Challenges>,
}

impl Shared {
    pub(crate) fn new(
        registry: Arc<Registry>,
        peers: Vec<Peer>,
        may_explain: Option<MayExplain>,
        identity: Identity,
        challenges: Arc<tls::Challenges>,
        tickets: Arc<tls::SharedTickets>,
    ) -> Shared {
        Shared {
            registry,
            peers,
            connections: AtomicUsize::new(0),
            listeners: Mutex::default(),
            stopping: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            may_explain: Mutex::new(may_explain),
            request_buffers: Arc::default(),
            compression: Arc::default(),
            mirrors: Arc::default(),
            identity,
            tls: TlsConfigs::new(tickets),
            authentications: Authentications::new(),
            challenges,
        }
    }

    /// Returns who may request explanations.
    pub(crate) fn may_explain(&self) -> Option<MayExplain> {
        self.may_explain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets who may request explanations, from the next configuration on.
    pub(crate) fn set_may_explain(&self, may_explain: Option<MayExplain>) {
        *self.may_explain.lock().unwrap_or_else(PoisonError::into_inner) = may_explain;
    }

    /// Distributes the sockets of new listeners to the workers; existing ones stay with the
    /// configuration in force. `removed`: the listeners that the new ones replace; `closed`: what
    /// [`Shared::unlisten`] returned for these.
    pub(crate) fn listen(
        &self,
        added: Vec<ListenerSockets>,
        removed: &[RemovedListener],
        closed: &[Arc<LiveListener>],
    ) {
        let published = self.registry.load_full();
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for listener in &*listeners {
            listener.stay(&published);
        }
        for ListenerSockets { name, sockets } in added {
            let replaced = removed.iter().filter(|old| old.next.contains(&name));
            let before = replaced.filter_map(|old| closed.iter().find(|c| *c.name() == old.name));
            let listener = LiveListener::new(Arc::clone(&name), Arc::clone(&published));
            let listener = Arc::new(listener.replacing(before));
            for (socket, peer) in sockets.into_iter().zip(self.peers.iter().cycle()) {
                let dealt = Dealt { listener: Arc::clone(&listener), socket };
                peer.dealt.lock().unwrap_or_else(PoisonError::into_inner).push(dealt);
            }
            listeners.push(listener);
        }
        self.signal();
    }

    /// Closes these listeners, and returns them. `tunnels_end`: when tunnels end of those that are
    /// replaced because of their security settings.
    pub(crate) fn unlisten(
        &self,
        removed: &[RemovedListener],
        tunnels_end: Moment,
    ) -> Vec<Arc<LiveListener>> {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_removed = |listener: &mut Arc<LiveListener>| {
            let found = removed.iter().find(|removed| removed.name == *listener.name());
            match found {
                Some(removed) if removed.security_changed => listener.replace(tunnels_end),
                Some(_) => listener.close(),
                None => {}
            }
            found.is_some()
        };
        let closed = listeners.extract_if(.., is_removed).collect();
        for peer in &self.peers {
            peer.listeners_gone.store(true, Relaxed);
        }
        self.signal();
        closed
    }

    /// Returns whether the process has been told to stop, even if it still accepts connections. Not
    /// if another one has taken over.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Answers health checks that the process stops.
    pub(crate) fn announce_stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Returns whether every exchange must end at once.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Returns whether accepting has stopped, and every exchange is its connection's last.
    pub(crate) fn leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// Returns whether, in addition, idle connections are closed.
    pub(crate) fn draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Stops accepting; connections end after their current exchange, or after the next one.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Relaxed);
        self.signal();
    }

    /// Stops accepting; connections end after their current exchange.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.leave();
    }

    /// Ends every worker, whatever it is doing.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.drain();
    }

    /// Makes exchanges that wait for a server's response head check whether that server is still
    /// up.
    pub(crate) fn servers_changed(&self) {
        for peer in &self.peers {
            peer.servers_changed.store(true, Relaxed);
        }
        self.signal();
    }

    /// Signals every worker to check for changes.
    pub(crate) fn signal(&self) {
        for peer in &self.peers {
            peer.signals.notify_one();
        }
    }
}

/// Counts a client connection for its lifetime, towards the worker that serves it.
pub(crate) struct Counted {
    shared: Arc<Shared>,
    worker: usize,
    pub(crate) listener: Arc<LiveListener>,
}

impl Counted {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        worker: usize,
        listener: &Arc<LiveListener>,
    ) -> Counted {
        shared.peers[worker].connections.fetch_add(1, Relaxed);
        shared.connections.fetch_add(1, Relaxed);
        listener.connections.fetch_add(1, Relaxed);
        Counted { shared: Arc::clone(shared), worker, listener: Arc::clone(listener) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let peer = &self.shared.peers[self.worker];
        self.shared.connections.fetch_sub(1, Relaxed);
        self.listener.connections.fetch_sub(1, Relaxed);
        if peer.connections.fetch_sub(1, Relaxed) == 1 && self.shared.leaving() {
            peer.signals.notify_one();
        }
    }
}
