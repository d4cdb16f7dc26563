//! Accepts connections and hands each one to the worker with the fewest connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use transport::{Stream, watched};

use crate::connection_task;
use crate::listener::LiveListener;
use crate::shared::{Counted, Handed};
use crate::via::Via;
use crate::worker::Worker;

/// How long accepting pauses at a connection limit. Clients wait in the listen queue meanwhile.
const PAUSE_AT_LIMIT: Duration = Duration::from_millis(10);
/// How long accepting pauses when the process or the machine has run out of descriptors or memory.
const PAUSE_AT_EXHAUSTION: Duration = Duration::from_millis(100);
/// How long the connections in a closing socket's listen queue may wait for room.
const QUEUE_MAX: Duration = Duration::from_secs(10);
/// Connections accepted in a row before yielding to other tasks.
const BATCH_MAX: usize = 64;

/// A listening socket of this worker and the task that accepts on it.
pub(crate) struct Acceptor {
    listener: Arc<LiveListener>,
    socket: Rc<AsyncFd<TcpListener>>,
    task: JoinHandle<()>,
}

impl Acceptor {
    /// Starts accepting.
    pub(crate) fn start(
        worker: &Rc<Worker>,
        listener: Arc<LiveListener>,
        socket: TcpListener,
    ) -> Option<Acceptor> {
        let socket = match watched(socket) {
            Ok(socket) => Rc::new(socket),
            Err(error) => {
                tracing::error!(worker = worker.id, %error, "cannot watch a listening socket");
                return None;
            }
        };
        let task = accept(Rc::clone(worker), Arc::clone(&listener), Rc::clone(&socket));
        Some(Acceptor { listener, socket, task: tokio::task::spawn_local(task) })
    }

    /// Returns whether the listener has been removed.
    pub(crate) fn is_closing(&self) -> bool {
        self.listener.is_closing()
    }

    /// Accepts what the kernel has already queued, then closes the socket. Closing it with
    /// connections in its queue would reset them. At a connection limit, waits for room for up to
    /// [`QUEUE_MAX`], unless another process accepts on the socket too.
    ///
    /// If the listener is replaced by one with other security settings, the queue is left to the
    /// new listener, or reset if that one has other sockets: nothing more is accepted under the old
    /// rules. So accepting stops with this call, before the returned future is polled.
    pub(crate) fn finish(self, worker: Rc<Worker>) -> impl Future<Output = ()> {
        self.task.abort();
        let until = os::clock::now() + QUEUE_MAX;
        async move {
            while !self.listener.is_replaced() {
                match accept_batch(&worker, &self.listener, self.socket.get_ref()) {
                    Batch::Emptied => return,
                    Batch::More => tokio::task::yield_now().await,
                    Batch::AtLimit | Batch::Failed(_) => {
                        let is_handed_over = worker.shared.leaving() && !worker.shared.draining();
                        if is_handed_over || os::clock::now() >= until {
                            return;
                        }
                        tokio::time::sleep(PAUSE_AT_LIMIT).await;
                    }
                }
            }
        }
    }
}

async fn accept(worker: Rc<Worker>, listener: Arc<LiveListener>, socket: Rc<AsyncFd<TcpListener>>) {
    let mut exhausted = false;
    while let Ok(mut ready) = socket.readable().await {
        match accept_batch(&worker, &listener, socket.get_ref()) {
            Batch::Emptied => ready.clear_ready(),
            Batch::More => tokio::task::yield_now().await,
            Batch::AtLimit => {
                Via::new(&worker, Arc::clone(&listener)).counters().accept_pauses.increment();
                tokio::time::sleep(PAUSE_AT_LIMIT).await;
            }
            Batch::Failed(error) => {
                if !exhausted {
                    tracing::warn!(%error, "cannot accept a connection; pausing (is the \
                        descriptor limit too low? see `ulimit -n`)");
                }
                exhausted = true;
                tokio::time::sleep(PAUSE_AT_EXHAUSTION).await;
                continue;
            }
        }
        exhausted = false;
    }
}

enum Batch {
    /// The accept queue is empty.
    Emptied,
    /// There may be more connections to accept.
    More,
    /// `connections_max` is reached, for this listener or in total.
    AtLimit,
    Failed(io::Error),
}

fn accept_batch(worker: &Rc<Worker>, listener: &Arc<LiveListener>, socket: &TcpListener) -> Batch {
    for _ in 0..BATCH_MAX {
        if at_limit(worker, listener) {
            return Batch::AtLimit;
        }
        match os::accept::accept(socket) {
            Ok((socket, peer)) => place(worker, socket, peer, listener),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Batch::Emptied,
            Err(error) if os::accept::is_transient(&error) => {}
            Err(error) => return Batch::Failed(error),
        }
    }
    Batch::More
}

fn at_limit(worker: &Worker, listener: &LiveListener) -> bool {
    let snapshot = &worker.plane().published.snapshot;
    let of_listener = listener
        .place_in(snapshot)
        .map_or(usize::MAX, |id| snapshot.listeners[id.0 as usize].connections_max as usize);
    worker.shared.connections.load(Relaxed) >= snapshot.connections_max as usize
        || listener.connections.load(Relaxed) >= of_listener
}

/// Serves a connection on this worker unless another worker has clearly fewer. The kernel
/// distributes by hash, which with few long-lived connections can leave one worker with most of
/// them.
fn place(worker: &Rc<Worker>, socket: TcpStream, peer: SocketAddr, listener: &Arc<LiveListener>) {
    let shared = &worker.shared;
    let mine = worker.peer().connections.load(Relaxed);
    let fewest = shared
        .peers
        .iter()
        .enumerate()
        .map(|(id, peer)| (peer.connections.load(Relaxed), id))
        .min()
        .filter(|(connections, _)| mine > connections + 1 + connections / 16);
    let target = fewest.map_or(worker.id, |(_, id)| id);
    let counted = Counted::new(shared, target, listener);
    let handed = Handed { socket, peer, counted };
    if target == worker.id {
        start(worker, handed);
        return;
    }
    match shared.peers[target].inbox.try_send(handed) {
        Ok(()) => {}
        Err(TrySendError::Full(mut back) | TrySendError::Closed(mut back)) => {
            back.counted = Counted::new(shared, worker.id, listener);
            start(worker, back);
        }
    }
}

/// Serves connections that other workers accepted for this one, until `leaving` ends. From then on
/// those workers keep what they accept. What is in the inbox is served first: whatever was left in
/// it when this worker ends would be closed, and its request lost.
pub(crate) async fn take_handed(
    worker: Rc<Worker>,
    mut inbox: mpsc::Receiver<Handed>,
    mut leaving: oneshot::Receiver<()>,
) {
    loop {
        tokio::select! {
            Some(handed) = inbox.recv() => start(&worker, handed),
            _ = &mut leaving, if !inbox.is_closed() => inbox.close(),
            else => return,
        }
    }
}

fn start(worker: &Rc<Worker>, handed: Handed) {
    let Handed { socket, peer, counted } = handed;
    let stream = match Stream::with_peer(socket, peer) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%peer, %error, "an accepted connection was already gone");
            return;
        }
    };
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        connection_task::begin(&worker, stream, peer, counted).await;
    });
}
