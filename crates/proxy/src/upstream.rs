//! Connections to servers: kept ones first, fresh ones otherwise.
//!
//! A worker keeps its own, by server address, newest on top, so that a burst's surplus ages and
//! closes. Which may be kept for how long, and used for what, is the learner's to say
//! (`decide::reuse`); here it is told what was seen.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use decide::reuse::{self, Busy, Learner, Promise};
use decide::{Endpoint, Slots};
use model::{Cause, HttpVersion, Moment, ProxyVersion, Service};
use rustc_hash::FxHashMap;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use transport::Stream;
use transport::dial::{self, DialOptions};
use wire::http1::RequestBody;
use wire::proxy_protocol::{self, Header, Origin, Ssl};

use crate::buffer::{Buffer, BufferPool};
use crate::multiplex::{Carrier, Multiplexed};
use crate::tcp_sample::{self, Told};
use crate::worker::Worker;

/// How long the kernel keeps sending to a server that acknowledges nothing, beyond the response
/// timeout: a server whose host vanished is noticed by `TCP_USER_TIMEOUT`, not by keep-alives.
const USER_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// Looked at before a fresh connection is made.
const LOOKED_AT_MAX: usize = 16;

/// An open connection to a server, while an exchange uses it.
pub(crate) struct ServerConnection {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    /// What the learner needs to know of it.
    pub(crate) busy: Busy,
    /// Whether it carried an exchange before this one, or carries others.
    pub(crate) reused: bool,
    /// Whether its last response was bulk, as the next one may be.
    pub(crate) brought_bulk: bool,
    /// What has been counted of it.
    pub(crate) told: Told,
    /// The connection that this is one stream of (HTTP/2).
    pub(crate) carrier: Option<Rc<Carrier>>,
}

/// What a connection is wanted for.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) body: RequestBody,
    /// The request may be sent again.
    pub(crate) repeatable: bool,
}

struct Idle {
    stream: Stream,
    rest: reuse::Idle,
    brought_bulk: bool,
    told: Told,
    /// The longest that the service which used it last keeps one.
    keep_alive: Duration,
}

impl Idle {
    fn take_up(self, learner: &Learner, buffers: &Rc<BufferPool>, now: Moment) -> ServerConnection {
        let buffer = Buffer::new(Rc::clone(buffers));
        let busy = learner.take(self.rest, now);
        let Idle { stream, brought_bulk, told, .. } = self;
        ServerConnection { stream, buffer, busy, reused: true, brought_bulk, told, carrier: None }
    }
}

/// The idle connections to one server.
struct Kept {
    slots: Arc<Slots>,
    /// The newest last.
    idle: VecDeque<Idle>,
    /// How many there were when the slots were last told.
    told: u32,
}

/// A worker's idle server connections, and those of HTTP/2, which are shared.
#[derive(Default)]
pub(crate) struct Pool {
    // Keys are of the configuration, so that nobody can choose them to collide.
    kept: RefCell<FxHashMap<Key, Kept>>,
    /// Idle connections of all servers together.
    idle: Cell<usize>,
    multiplexed: Multiplexed,
}

/// What a connection is good for: a server, spoken to in a certain way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    address: SocketAddr,
    /// Also the name that was verified: one address may answer for several.
    tls: Option<(ByPointer, Option<ServerName<'static>>)>,
    http: HttpVersion,
}

/// A configuration that is the same object is the same (`crate::tls`).
#[derive(Clone)]
struct ByPointer(Arc<ClientConfig>);

impl PartialEq for ByPointer {
    fn eq(&self, other: &ByPointer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ByPointer {}

impl Hash for ByPointer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// How the servers of a service are reached, for a client.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) service: &'a Service,
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
    /// Whom a PROXY header tells of.
    pub(crate) client: Introduced<'a>,
}

/// A client, as a server is told of it.
#[derive(Clone, Copy)]
pub(crate) struct Introduced<'a> {
    pub(crate) peer: SocketAddr,
    pub(crate) stream: &'a Stream,
}

impl Reach<'_> {
    /// What its connections are good for.
    pub(crate) fn key(&self, endpoint: &Endpoint) -> Key {
        let tls =
            self.tls.map(|config| (ByPointer(Arc::clone(config)), self.server_name(endpoint).ok()));
        Key { address: endpoint.row.address, tls, http: self.service.http }
    }

    /// Whether a connection is good for other clients, too.
    fn is_shared(&self) -> bool {
        self.service.send_proxy.is_none()
    }

    /// The PROXY header that begins a connection; empty: none does.
    fn header(&self) -> Vec<u8> {
        let Introduced { peer, stream } = self.client;
        let mut out = Vec::new();
        let Some(version) = self.service.send_proxy else { return out };
        let origin = stream
            .local()
            .map_or(Origin::Unknown, |destination| Origin::Tcp { source: peer, destination });
        match version {
            ProxyVersion::V1 => proxy_protocol::write_v1(&mut out, origin),
            ProxyVersion::V2 => {
                let tls = stream.tls();
                let shown = tls.is_some_and(|tls| tls.peer_certificate.is_some());
                let name = tls.and_then(|tls| tls.peer_certificate.as_deref());
                let name = name.and_then(tls::common_name);
                let ssl = tls.map(|tls| Ssl {
                    tls: true,
                    certificate_in_connection: shown && !tls.resumed,
                    certificate_in_session: shown,
                    verify: 0,
                    version: Some(tls.version),
                    cipher: Some(tls.cipher),
                    common_name: name.as_deref().map(str::as_bytes),
                });
                let header = Header {
                    origin,
                    authority: tls.and_then(|tls| tls.server_name.as_deref()),
                    alpn: tls.and_then(|tls| tls.alpn.as_deref()),
                    unique_id: None,
                    ssl,
                };
                proxy_protocol::write_v2(&mut out, &header);
            }
        }
        out
    }

    /// The name that TLS asks `endpoint` for: as configured, else the server's host name or
    /// address.
    fn server_name(&self, endpoint: &Endpoint) -> Result<ServerName<'static>, Cause> {
        let configured = self.service.tls.as_ref().and_then(|tls| tls.name.as_deref());
        let address = || ServerName::IpAddress(endpoint.row.address.ip().into());
        let host = match configured {
            Some(name) => Some(name),
            None => endpoint.row.name.rsplit_once(':').map(|(host, _)| host),
        };
        match host.map(|host| ServerName::try_from(host.to_owned())) {
            Some(Ok(name)) => Ok(name),
            Some(Err(_)) if configured.is_some() => Err(Cause::ProxyInternalError),
            _ => Ok(address()),
        }
    }
}

impl Pool {
    /// A kept connection to `endpoint` on which such a request may be sent.
    pub(crate) fn take(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        want: Want,
        buffers: &Rc<BufferPool>,
        now: Moment,
    ) -> Option<ServerConnection> {
        if !reach.is_shared() {
            return None;
        }
        let key = reach.key(endpoint);
        if reach.service.http == HttpVersion::Http2 {
            return self.multiplexed.take(&key, want.body, buffers, now);
        }
        let repeatable = want.repeatable;
        let keep_alive = reach.service.timeouts.keep_alive;
        let mut kept = self.kept.borrow_mut();
        let idle = &mut kept.get_mut(&key)?.idle;
        let learner = &endpoint.slots.learner;
        // The newest first; what may not be sent again needs one that has rested a little.
        let rested = |entry: &Idle| repeatable || learner.has_settled(&entry.rest, now);
        let newest = idle.partition_point(rested);
        for at in (newest.saturating_sub(LOOKED_AT_MAX)..newest).rev() {
            let entry = &idle[at];
            let closed = entry.stream.closed_or_readable_hint();
            if !closed && !learner.may_reuse(&entry.rest, repeatable, keep_alive, now) {
                continue;
            }
            let entry = idle.remove(at)?;
            self.idle.set(self.idle.get().saturating_sub(1));
            // The kernel itself is asked last, and only where a request could not be sent again.
            if !closed && (repeatable || entry.stream.is_silent()) {
                return Some(entry.take_up(learner, buffers, now));
            }
            learner.saw_closed(entry.rest, now);
        }
        None
    }

    /// Keeps a connection whose exchange is complete, as far as the learner allows, and while this
    /// worker keeps fewer than `idle_max` in all.
    pub(crate) fn give(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        connection: ServerConnection,
        promise: Promise,
        idle_max: usize,
        now: Moment,
    ) {
        let ServerConnection { stream, buffer, busy, brought_bulk, told, .. } = connection;
        if stream.is_exchange() || !reach.is_shared() {
            return;
        }
        let keep_alive = reach.service.timeouts.keep_alive;
        // What follows a complete response was never asked for; such a server is not trusted to
        // frame the next response either.
        if !buffer.is_empty() {
            return;
        }
        let learner = &endpoint.slots.learner;
        let Some(rest) = learner.rest(busy, promise, keep_alive, now) else { return };
        if stream.closed_or_readable_hint() {
            learner.saw_closed(rest, now);
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let kept = kept.entry(reach.key(endpoint)).or_insert_with(|| Kept {
            slots: Arc::clone(&endpoint.slots),
            idle: VecDeque::new(),
            told: 0,
        });
        let has_room = kept.idle.len() < reach.service.idle_connections_max as usize;
        if has_room && self.idle.get() < idle_max {
            kept.idle.push_back(Idle { stream, rest, brought_bulk, told, keep_alive });
            self.idle.set(self.idle.get() + 1);
        }
    }

    /// Closes what its server closed or what is too old, and tells the learner of all.
    pub(crate) fn sweep(&self, now: Moment) {
        self.multiplexed.sweep(now);
        let mut all = 0;
        self.kept.borrow_mut().retain(|_, kept| {
            let learner = &kept.slots.learner;
            let mut at = 0;
            while at < kept.idle.len() {
                let entry = &mut kept.idle[at];
                if entry.stream.closed_or_readable_hint() {
                    if let Some(closed) = kept.idle.remove(at) {
                        learner.saw_closed(closed.rest, now);
                    }
                } else if learner.saw_open(&mut entry.rest, entry.keep_alive, now) {
                    at += 1;
                } else {
                    kept.idle.remove(at);
                }
            }
            let count = kept.idle.len() as u32;
            kept.slots.idle_changed(kept.told, count);
            kept.told = count;
            all += kept.idle.len();
            count > 0
        });
        self.idle.set(all);
    }
}

/// Why there is no connection.
pub(crate) struct NoConnection {
    pub(crate) cause: Cause,
    /// Another request waited for the same connection, and has been judged for it.
    pub(crate) judged: bool,
}

impl From<Cause> for NoConnection {
    fn from(cause: Cause) -> NoConnection {
        NoConnection { cause, judged: false }
    }
}

/// A fresh connection, or a stream on one that others may use as well, unless it is to be
/// `private`.
pub(crate) async fn open(
    worker: &Worker,
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    want: Want,
    private: bool,
) -> Result<ServerConnection, NoConnection> {
    let Pool { multiplexed, .. } = &worker.pool;
    match reach.service.http {
        HttpVersion::Http2 if private => {
            multiplexed.open_private(reach, endpoint, want.body, &worker.buffers).await
        }
        HttpVersion::Http2 => multiplexed.open(reach, endpoint, want.body, &worker.buffers).await,
        HttpVersion::Http11 => Ok(dial(reach, endpoint, &worker.buffers).await?),
    }
}

/// How long a server may acknowledge nothing of what it was sent (`TCP_USER_TIMEOUT`, tcp(7)).
fn user_timeout(service: &Service) -> Duration {
    service.timeouts.response.max(USER_TIMEOUT_MIN)
}

/// Whether a connection that the kernel gave up belongs to a server that does not read, not to one
/// that is gone: the kernel gives up in the same way. The former has closed its window and has
/// acknowledged the last probe but one, which is sent within half of the time, since their intervals
/// double.
pub(crate) fn is_unread(connection: &ServerConnection, service: &Service) -> bool {
    connection.stream.tcp_info().is_ok_and(|info| {
        info.snd_wnd_bytes == Some(0) && info.last_ack_recv < user_timeout(service) * 3 / 4
    })
}

/// Makes a connection.
pub(crate) async fn dial(
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    buffers: &Rc<BufferPool>,
) -> Result<ServerConnection, Cause> {
    let timeouts = &reach.service.timeouts;
    let tls = match reach.tls {
        Some(config) => Some((Arc::clone(config), reach.server_name(endpoint)?)),
        None => None,
    };
    let options = DialOptions {
        connect_timeout: timeouts.connect,
        user_timeout: Some(user_timeout(reach.service)),
        tls,
    };
    let begun = os::clock::now();
    let dialled = dial::dial_with(endpoint.row.address, &options, &reach.header()).await;
    let now = os::clock::now();
    let learner = &endpoint.slots.learner;
    match dialled {
        Ok(stream) => {
            let buffer = Buffer::new(Rc::clone(buffers));
            let told = tcp_sample::connected(&stream, endpoint, now - begun);
            let busy = learner.connected(now - begun);
            Ok(ServerConnection {
                stream,
                buffer,
                busy,
                reused: false,
                brought_bulk: false,
                told,
                carrier: None,
            })
        }
        Err(error) => {
            if error.cause == Cause::ConnectionRefused {
                learner.restarted(now);
            }
            endpoint.state.tcp.note_dial(error.syn_retries);
            Err(error.cause)
        }
    }
}
