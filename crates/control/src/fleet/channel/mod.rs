//! Connections between members over TLS, for what is never in datagrams: session ticket keys, certificates, and answers
//! to challenges of an authority. They have a thread of their own, since handshakes take CPU time, and any client that
//! reaches the port can start one.
//!
//! Each connection is one request and its answer.

mod certificates;
mod fetch;
mod serve;
mod wire;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::StartId;
use keyring::{Key, KeyName, Peer};
use model::Moment;
use tls::MemberTls;
use tokio::sync::{Notify, mpsc, watch};
use zeroize::Zeroizing;

pub(super) use certificates::{Offer, Pem, Received, Versions, catalogue};

/// The longest time of a connection, from its first packet to the end of the answer.
const CONNECTION_MAX: Duration = Duration::from_secs(5);
/// Why a connection to or from another process is given up.
const NOT_OF_A_MEMBER: &str = "its certificate is not valid for the `name` of members";
/// Maximum number of fetches in progress, and of fetches that wait for the thread.
const ASKS_MAX: usize = 8;

/// A key's secret. Its memory is cleared when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) Zeroizing<[u8; tls::TicketKey::SECRET_BYTES]>);

/// Without the bytes.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A key with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretKey {
    pub(super) name: KeyName,
    /// How old it was at the moment beside it.
    pub(super) age: (Duration, Moment),
    pub(super) secret: Secret,
}

impl SecretKey {
    pub(super) fn key(&self) -> Key {
        Key { name: self.name, age: self.age }
    }
}

/// What is fetched.
#[derive(Clone, Debug)]
pub(super) enum Want {
    /// The keys of session tickets.
    TicketKeys,
    /// The catalogue of certificates, the answers to challenges, and those certificates that are newer than these.
    Certificates(Arc<Versions>),
}

impl Want {
    fn kind(&self) -> SecretKind {
        match self {
            Want::TicketKeys => SecretKind::TicketKeys,
            Want::Certificates(_) => SecretKind::Certificates,
        }
    }
}

/// What can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecretKind {
    TicketKeys,
    Certificates,
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecretKind::TicketKeys => "session ticket keys",
            SecretKind::Certificates => "certificates",
        })
    }
}

/// The contents of a reply.
#[derive(Debug)]
pub(super) enum Contents {
    TicketKeys(Vec<SecretKey>),
    Certificates(Received),
}

/// The result of a fetch.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) from: StartId,
    pub(super) address: SocketAddr,
    pub(super) kind: SecretKind,
    /// The contents, or the error in one line.
    pub(super) contents: Result<Contents, String>,
}

/// A request to the thread.
#[derive(Debug)]
struct Ask {
    member: StartId,
    address: SocketAddr,
    want: Want,
}

/// The thread. Dropping it ends the thread, and all that it does, without waiting for it.
#[derive(Debug)]
pub(super) struct Channel {
    settings: watch::Sender<MemberTls>,
    asks: mpsc::Sender<Ask>,
    answers: mpsc::Receiver<Fetched>,
    shared: Arc<Shared>,
}

/// What the thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    /// The keys that other members may fetch.
    keys: Mutex<Vec<SecretKey>>,
    /// The certificates that they may fetch.
    certificates: Mutex<Arc<Offer>>,
    is_listening: AtomicBool,
    /// Why it does not listen, in one line.
    obstacle: Mutex<Option<String>>,
    /// The addresses of the members that live.
    members: Mutex<HashSet<IpAddr>>,
    /// Connections that ended without an answer.
    refused: AtomicU64,
}

impl Shared {
    fn set_obstacle(&self, why: String) {
        *lock(&self.obstacle) = Some(why);
    }

    fn is_member(&self, ip: IpAddr) -> bool {
        lock(&self.members).contains(&ip)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Channel {
    /// Starts the thread, which listens on `address`: at once, or when the address is free. `news` is notified of each
    /// answer.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn start(
        address: SocketAddr,
        tls: MemberTls,
        news: Arc<Notify>,
    ) -> io::Result<Channel> {
        let (settings, tls) = watch::channel(tls);
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let (answers_in, answers) = mpsc::channel(ASKS_MAX);
        let shared: Arc<Shared> = Arc::default();
        let (tls_to_serve, to_serve) = (tls.clone(), Arc::clone(&shared));
        let has_ended = answers_in.clone();
        let fetching = fetch::run(tls, asked, answers_in, news);
        std::thread::Builder::new().name("weir-fleet".into()).spawn(move || {
            // Built here: a runtime that no thread takes cannot be dropped on a thread that runs another one.
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    tracing::error!(%error, "cannot start TLS between members");
                    to_serve.set_obstacle(format!("cannot start TLS between members: {error}"));
                    return;
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    () = has_ended.closed() => {}
                    () = fetching => {}
                    () = serve::run(address, tls_to_serve, to_serve) => {}
                }
            });
        })?;
        Ok(Channel { settings, asks, answers, shared })
    }

    /// Uses other certificates for the next connections.
    pub(super) fn set_tls(&self, tls: MemberTls) {
        self.settings.send_replace(tls);
    }

    /// Sets the keys that other members may fetch.
    pub(super) fn set_keys(&self, keys: Vec<SecretKey>) {
        *lock(&self.shared.keys) = keys;
    }

    /// Sets the certificates and answers that other members may fetch.
    pub(super) fn set_certificates(&self, offer: Offer) {
        *lock(&self.shared.certificates) = Arc::new(offer);
    }

    /// Sets the addresses of the members that live.
    pub(super) fn set_members(&self, members: HashSet<IpAddr>) {
        *lock(&self.shared.members) = members;
    }

    /// Returns why it does not listen; `None`: it does, or no attempt has failed yet.
    pub(super) fn obstacle(&self) -> Option<String> {
        if self.is_listening() { None } else { lock(&self.shared.obstacle).clone() }
    }

    /// Returns whether other members can connect.
    pub(super) fn is_listening(&self) -> bool {
        self.shared.is_listening.load(Relaxed)
    }

    /// Returns how many connections ended without an answer: no TLS, no certificate of a member, an unknown request,
    /// longer than [`CONNECTION_MAX`], or too many at once.
    pub(super) fn refused(&self) -> u64 {
        self.shared.refused.load(Relaxed)
    }

    /// Queues a fetch. Returns false if the queue is full.
    pub(super) fn ask(&self, peer: &Peer, want: Want) -> bool {
        let (member, address) = (StartId(peer.start), peer.address);
        self.asks.try_send(Ask { member, address, want }).is_ok()
    }

    /// Returns the next answer, if there is one.
    pub(super) fn answer(&mut self) -> Option<Fetched> {
        self.answers.try_recv().ok()
    }
}

#[cfg(test)]
mod tests;
