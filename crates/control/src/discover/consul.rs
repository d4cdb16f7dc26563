//! Consul's catalogue, by blocking queries over HTTP: each watch asks for the instances of one service in one
//! datacenter, and Consul answers when they change.
//!
//! Over TLS with an agent that speaks HTTP/2, many queries share each connection. Over HTTP/1.1 each needs one
//! while it waits; if there are more watches than `connections_max`, they take turns.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use discovery::consul::{self, Blocking, Reading};
use model::{Consul, HttpPeer, Moment, Text};
use tls::rustls::ClientConfig;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use transport::client::{ClientError, Connection, ExchangeLimits, Request, Response};
use transport::http2::Http2Client;

use super::parsed;
use super::report::{Found, Sink};

/// Maximum time for resolving the agent's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Consul adds up to a sixteenth of the wait to it (its documentation of blocking queries), and needs some
/// time to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Maximum size of an answer: some 10,000 instances.
const BODY_MAX_BYTES: usize = 16 << 20;
/// Shortest time between two queries of one watch, so that a service that changes all the time costs a
/// bounded number of answers. Changes in between come together.
const ASKED_EVERY_MIN: Duration = Duration::from_millis(50);
/// How long a blocking query may wait while watches take turns.
const TURN: Duration = Duration::from_secs(1);
/// Maximum number of queries at the same time that do not wait.
const QUICK_MAX: usize = 8;
/// After a failure a watch asks again after this, doubled each time, up to the maximum.
const BACKOFF: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// The largest response head accepted over HTTP/2.
const HEAD_MAX_BYTES: u32 = 64 * 1024;

/// How Consul is asked: its settings and the connections to it, which all watches share.
pub(super) struct Client {
    peer: HttpPeer,
    /// Why TLS cannot be set up, if so.
    tls: Result<Option<Arc<ClientConfig>>, String>,
    fields: Vec<(String, String)>,
    token: Option<Text>,
    stale: bool,
    wait: Duration,
    /// A blocking query needs one of these permits while it waits; other queries have permits of their own, so that
    /// a new watch does not wait for the others.
    waiting: Semaphore,
    waiting_max: usize,
    /// By datacenter, so that one that does not answer holds up no other.
    quick: Vec<(Option<Box<str>>, Semaphore)>,
    /// Blocking queries for which there are permits at present.
    permits: Cell<usize>,
    /// Permits that are in use and must not be given again.
    excess: Cell<usize>,
    watches: Cell<usize>,
    /// Connections over HTTP/1.1 that no query uses.
    kept: RefCell<Vec<Connection>>,
    shared: RefCell<Vec<Http2Client>>,
    /// Held while a connection is opened: of many queries at once, the first opens one for others, too.
    opening: Mutex<()>,
    /// When a connection could not be opened last, and why.
    failed: RefCell<Option<(Moment, String)>>,
}

/// What a watch asks for.
pub(super) struct Asked {
    pub(super) service: Arc<str>,
    pub(super) tag: Option<Arc<str>>,
    /// `None`: the agent's own.
    pub(super) datacenter: Option<Box<str>>,
    pub(super) reading: Reading,
}

/// An answer of the agent.
struct Answered {
    status: u16,
    index: Option<Vec<u8>>,
    /// Consul has left out what the token may not read.
    is_filtered: bool,
    body: Vec<u8>,
    arrived: Moment,
}

/// Reports the instances that `asked` is about, now and when they change.
pub(super) async fn watch(client: Rc<Client>, asked: Asked, sink: Sink) {
    let _counted = Counted::new(&client);
    let mut blocking = Blocking::new();
    let mut failures = 0_u32;
    loop {
        let begun = os::clock::now();
        let answered = client.ask(&asked, &blocking).await;
        let arrived = answered.as_ref().map_or_else(|_| os::clock::now(), |one| one.arrived);
        let found = match answered {
            Ok(answered) => asked.read(answered, &mut blocking).await,
            Err(why) => Err(why),
        };
        let failed = found.is_err();
        sink.send(arrived, found).await;
        if failed {
            // A new leader, or a catalogue that was restored, may have a smaller index.
            blocking.reset();
            failures = failures.saturating_add(1);
            let doubled = BACKOFF.saturating_mul(1 << (failures - 1).min(16)).min(BACKOFF_MAX);
            tokio::time::sleep(doubled.mul_f64(0.5 + fastrand::f64())).await;
        } else {
            failures = 0;
            let pause = ASKED_EVERY_MIN.saturating_sub(os::clock::now().since(begun));
            tokio::time::sleep(pause).await;
        }
    }
}

/// Returns the datacenters to ask; `None` is the agent's own.
pub(super) fn datacenters(consul: &Consul) -> Vec<Option<Box<str>>> {
    match &*consul.datacenters {
        [] => vec![None],
        named => named.iter().cloned().map(Some).collect(),
    }
}

/// Counts a watch as long as it exists.
struct Counted(Rc<Client>);

impl Counted {
    fn new(client: &Rc<Client>) -> Counted {
        client.watches.set(client.watches.get() + 1);
        Counted(Rc::clone(client))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.watches.set(self.0.watches.get().saturating_sub(1));
    }
}

impl Asked {
    fn path(&self, stale: bool, blocking: &Blocking, wait: Duration) -> String {
        let mut path = String::from("/v1/health/service/");
        put_encoded(&mut path, &self.service);
        path.push('?');
        for (name, value) in [("dc", self.datacenter.as_deref()), ("tag", self.tag.as_deref())] {
            if let Some(value) = value {
                path.push_str(name);
                path.push('=');
                put_encoded(&mut path, value);
                path.push('&');
            }
        }
        if stale {
            path.push_str("stale&");
        }
        path.push_str(&blocking.query(wait));
        let length = path.trim_end_matches(['?', '&']).len();
        path.truncate(length);
        path
    }

    async fn read(&self, answered: Answered, blocking: &mut Blocking) -> Result<Found, String> {
        if answered.status != 200 {
            return Err(refusal(&answered));
        }
        let reading = self.reading;
        let parsed = parsed(answered.body, move |body| consul::instances(body, reading)).await;
        let mut answer = parsed?;
        if answered.is_filtered {
            let why = "the token may not read all instances; it needs service:read and node:read";
            if answer.rows.is_empty() {
                return Err(why.to_owned());
            }
            answer.refuse(&self.service, why);
        }
        blocking.on_index(answered.index.as_deref())?;
        Ok((answer, blocking.index()))
    }
}

/// Returns why an answer is no list of instances.
fn refusal(answered: &Answered) -> String {
    const SAID_MAX_CHARS: usize = 200;
    let said = String::from_utf8_lossy(&answered.body);
    let said: String = said.trim().escape_debug().take(SAID_MAX_CHARS).collect();
    let help = match answered.status {
        403 => "; the token needs service:read and node:read",
        429 => "; raise http_max_conns_per_client of Consul, or lower connections_max",
        _ => "",
    };
    format!("Consul answers {}: {said}{help}", answered.status)
}

/// Appends a text to a path or a query, percent-encoded where it is not unreserved (RFC 3986 section 2.3).
fn put_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into());
            }
            // Writing to a string cannot fail.
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
}

impl Client {
    pub(super) fn new(consul: &Consul) -> Client {
        let mut fields = vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        if let Some(token) = &consul.token {
            fields.push(("X-Consul-Token".to_owned(), token.to_string()));
        }
        let tls = consul.peer.ca.clone().map(tls::own_client_http2).transpose();
        let connections_max = consul.connections_max as usize;
        let datacenters = datacenters(consul);
        let quick_max = (connections_max / 10 / datacenters.len()).clamp(1, QUICK_MAX);
        let waiting_max = connections_max.saturating_sub(quick_max * datacenters.len()).max(1);
        let quick = datacenters.into_iter().map(|name| (name, Semaphore::new(quick_max)));
        Client {
            peer: consul.peer.clone(),
            tls: tls.map_err(|mistake| mistake.to_string()),
            fields,
            token: consul.token.clone(),
            stale: consul.stale,
            wait: consul.wait,
            waiting: Semaphore::new(waiting_max),
            waiting_max,
            quick: quick.collect(),
            permits: Cell::new(waiting_max),
            excess: Cell::new(0),
            watches: Cell::new(0),
            kept: RefCell::default(),
            shared: RefCell::default(),
            opening: Mutex::new(()),
            failed: RefCell::default(),
        }
    }

    /// Returns how long a blocking query may wait at present: less while there are more watches than permits.
    fn wait(&self) -> Duration {
        if self.watches.get() > self.permits.get() { TURN.min(self.wait) } else { self.wait }
    }

    /// Asks, and waits for the answer: for `wait` if the query is a blocking one.
    async fn ask(&self, asked: &Asked, blocking: &Blocking) -> Result<Answered, String> {
        let begun = os::clock::now();
        let quick = || self.quick.iter().find(|(name, _)| *name == asked.datacenter);
        let permits = match quick().filter(|_| !blocking.waits()) {
            Some((_, quick)) => quick,
            None => &self.waiting,
        };
        // The semaphores are never closed.
        let Ok(permit) = permits.acquire().await else { return Err(String::new()) };
        let _permit = Held { permit: Some(permit), client: self, waits: blocking.waits() };
        let wait = self.wait();
        let path = asked.path(self.stale, blocking, wait);
        let waits = if blocking.waits() { wait + wait / 16 } else { Duration::ZERO };
        let limits = ExchangeLimits { timeout: waits + ANSWER_MAX, body_max_bytes: BODY_MAX_BYTES };
        let host = self.peer.url.authority();
        let request = Request { method: "GET", path: &path, host, fields: &self.fields, body: &[] };
        let mut is_first = true;
        loop {
            let (mut connection, is_kept) = self.connection(begun).await?;
            match connection.exchange(&request, &limits).await {
                Ok(response) => return self.answered(connection, response),
                // The agent has closed it in the meantime.
                Err(ClientError::Closed { .. }) if is_kept && is_first => is_first = false,
                Err(error) => return Err(format!("{host}: {error}")),
            }
        }
    }

    fn answered(&self, connection: Connection, response: Response) -> Result<Answered, String> {
        let arrived = os::clock::now();
        let index = connection.head().field("x-consul-index").map(<[u8]>::to_vec);
        let filtered = connection.head().field("x-consul-results-filtered-by-acls");
        let is_filtered = filtered.is_some_and(|value| value == b"true");
        if response.truncated {
            return Err(format!("the answer has more than {BODY_MAX_BYTES} bytes"));
        }
        if connection.reusable() {
            self.kept.borrow_mut().push(connection);
        }
        let mut body = response.body;
        if response.status != 200
            && let Some(token) = &self.token
        {
            // Something on the way may show the fields of the request.
            body = String::from_utf8_lossy(&body).replace(&**token, Text::SECRET).into_bytes();
        }
        Ok(Answered { status: response.status, index, is_filtered, body, arrived })
    }

    /// Returns a connection for one query, and whether it was there before. `begun`: since when the query waits.
    async fn connection(&self, begun: Moment) -> Result<(Connection, bool), String> {
        if let Some(known) = self.known() {
            return Ok((known, true));
        }
        let _opening = self.opening.lock().await;
        if let Some(known) = self.known() {
            return Ok((known, true));
        }
        // Another query has tried since then: it would fail again, after another time limit.
        if let Some((at, why)) = &*self.failed.borrow()
            && *at >= begun
        {
            return Err(why.clone());
        }
        let opened = self.open().await;
        if let Err(why) = &opened {
            *self.failed.borrow_mut() = Some((os::clock::now(), why.clone()));
        }
        opened.map(|connection| (connection, false))
    }

    async fn open(&self) -> Result<Connection, String> {
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let url = &self.peer.url;
        let stream = transport::client::connect(url, tls.as_ref(), CONNECT_MAX, ANSWER_MAX).await;
        let stream = stream.map_err(|error| error.to_string())?;
        if stream.tls().is_none_or(|tls| tls.alpn.as_deref() != Some(b"h2")) {
            self.permit(self.waiting_max);
            return Ok(Connection::over(stream));
        }
        let started = tokio::time::timeout(CONNECT_MAX, Http2Client::start(stream, HEAD_MAX_BYTES));
        let late = |_| format!("{}: HTTP/2 does not start", url.authority());
        let started = started.await.map_err(late)?;
        let (shared, driver) = started.map_err(|error| format!("{}: {error}", url.authority()))?;
        tokio::task::spawn_local(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection to Consul has ended");
            }
        });
        self.kept.borrow_mut().clear();
        self.permit(self.waiting_max.saturating_mul(shared.streams_max().max(1)));
        let connection = Connection::for_one(&shared);
        self.shared.borrow_mut().push(shared);
        Ok(connection)
    }

    /// Returns a connection that has room.
    fn known(&self) -> Option<Connection> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|one| one.is_open() || (!one.has_ended() && one.streams() > 0));
        let has_room = |one: &&Http2Client| one.is_open() && one.streams() < one.streams_max();
        if let Some(one) = shared.iter().find(has_room) {
            return Some(Connection::for_one(one));
        }
        drop(shared);
        let mut kept = self.kept.borrow_mut();
        std::iter::from_fn(|| kept.pop()).find(Connection::reusable)
    }

    /// Changes how many blocking queries may wait: as many as fit on the connections.
    fn permit(&self, count: usize) {
        let count = count.min(Semaphore::MAX_PERMITS / 2);
        let before = self.permits.replace(count);
        if count > before {
            let (more, excess) = (count - before, self.excess.get());
            self.excess.set(excess.saturating_sub(more));
            self.waiting.add_permits(more.saturating_sub(excess));
        } else {
            let fewer = before - count;
            let forgotten = self.waiting.forget_permits(fewer);
            self.excess.set(self.excess.get() + fewer - forgotten);
        }
    }
}

/// A permit for one query.
struct Held<'a> {
    /// Present until it is dropped.
    permit: Option<SemaphorePermit<'a>>,
    client: &'a Client,
    waits: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let excess = self.client.excess.get();
        if self.waits && excess > 0 {
            self.client.excess.set(excess - 1);
            if let Some(permit) = self.permit.take() {
                permit.forget();
            }
        }
    }
}
