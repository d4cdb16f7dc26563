//! Blocking queries over HTTP, as Consul and Nomad have them: each watch asks for one thing, and is answered when
//! that changes.
//!
//! Over TLS with an agent that speaks HTTP/2, many queries share each connection. Over HTTP/1.1 each needs one
//! while it waits; if there are more watches than `connections_max`, they take turns.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use discovery::Blocking;
use model::{BlockingQueries, HttpPeer, Moment, Text};
use tls::rustls::ClientConfig;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use transport::client::{ClientError, Connection, ExchangeLimits, Request, Response};
use transport::http2::Http2Client;
use wire::http1::ResponseHead;

use super::backoff::Backoff;

/// Maximum time for resolving the agent's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// An agent adds up to a sixteenth of the wait to it (Consul's documentation of blocking queries), and needs some
/// time to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Maximum size of an answer: some 10,000 instances.
const BODY_MAX_BYTES: usize = 16 << 20;
/// How long a blocking query may wait while watches take turns.
const TURN: Duration = Duration::from_secs(1);
/// Maximum number of queries at the same time that do not wait.
const QUICK_MAX: usize = 8;
/// The largest response head accepted over HTTP/2.
const HEAD_MAX_BYTES: u32 = 64 * 1024;

/// [`Question::asked_every_min`] for the servers of one service.
pub(super) const SERVERS_EVERY_MIN: Duration = Duration::from_millis(50);

/// What is asked, and how.
pub(super) struct Api<'a> {
    pub(super) peer: &'a HttpPeer,
    /// The field that has the token, and the token.
    pub(super) token: Option<(&'static str, &'a Text)>,
    /// The field that has an answer's index.
    pub(super) index: &'static str,
    pub(super) queries: BlockingQueries,
    /// What may answer on its own: datacenters. At least one.
    pub(super) parts: Vec<Option<Box<str>>>,
}

/// A question that a watch repeats.
pub(super) struct Question {
    /// A path with a query that ends in `?` or `&`.
    pub(super) path: String,
    /// Which part is asked.
    pub(super) part: Option<Box<str>>,
    /// Shortest time between two queries, so that something that changes all the time costs a bounded number of
    /// answers. Changes in between come together.
    pub(super) asked_every_min: Duration,
}

/// An answer of the agent.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    head: ResponseHead,
    arrived: Moment,
}

/// The agent, and the connections to it, which all watches share.
pub(super) struct Client {
    peer: HttpPeer,
    /// Why TLS cannot be set up, if so.
    tls: Result<Option<Arc<ClientConfig>>, String>,
    fields: Vec<(String, String)>,
    token: Option<Text>,
    index: &'static str,
    wait: Duration,
    /// A blocking query needs one of these permits while it waits; other queries have permits of their own, so that
    /// a new watch does not wait for the others.
    waiting: Semaphore,
    waiting_max: usize,
    /// By part, so that one that does not answer holds up no other.
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

/// Reports with `tell` what `read` makes of the answers to `question`, and their indexes, now and when they change. The
/// moment is when the answer had arrived.
pub(super) async fn watch<T>(
    client: Rc<Client>,
    question: Question,
    read: impl AsyncFn(Answered) -> Result<T, String>,
    tell: impl AsyncFn(Moment, Result<(T, Option<u64>), String>),
) {
    let _counted = Counted::new(&client);
    let mut blocking = Blocking::new(client.index);
    let mut backoff = Backoff::new();
    loop {
        let begun = os::clock::now();
        let answered = client.ask(&question, &blocking).await;
        let arrived = answered.as_ref().map_or_else(|_| os::clock::now(), |one| one.arrived);
        let found = match answered {
            Ok(answered) => {
                let index = answered.field(&client.index.to_ascii_lowercase()).map(<[u8]>::to_vec);
                match read(answered).await {
                    Ok(answer) => {
                        let seen = blocking.on_index(index.as_deref());
                        seen.map(|_| (answer, blocking.index()))
                    }
                    Err(why) => Err(why),
                }
            }
            Err(why) => Err(why),
        };
        let failed = found.is_err();
        tell(arrived, found).await;
        if failed {
            // A new leader, or a catalogue that was restored, may have a smaller index.
            blocking.reset();
            tokio::time::sleep(backoff.next()).await;
        } else {
            backoff.reset();
            let pause = question.asked_every_min.saturating_sub(os::clock::now().since(begun));
            tokio::time::sleep(pause).await;
        }
    }
}

impl Answered {
    /// Returns a field of the answer by its name in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        self.head.field(name)
    }

    /// Checks an answer that lists nothing.
    ///
    /// # Errors
    /// The field `known_leader` says that `agent` has no leader: after a start, it has perhaps not read its own data
    /// yet.
    pub(super) fn check_empty(&self, known_leader: &str, agent: &str) -> Result<(), String> {
        if self.field(known_leader) == Some(b"false") {
            return Err(format!("{agent} lists nothing, and knows no leader at present"));
        }
        Ok(())
    }

    /// Returns why an answer is no list: what `agent` says, bounded and escaped, and `help`.
    pub(super) fn refusal(&self, agent: &str, help: &str) -> String {
        const SAID_MAX_CHARS: usize = 200;
        let said = String::from_utf8_lossy(&self.body);
        let said: String = said.trim().escape_debug().take(SAID_MAX_CHARS).collect();
        format!("{agent} answers {}: {said}{help}", self.status)
    }
}

/// Appends `name=VALUE&` to a query, unless there is no value.
pub(super) fn put_parameter(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push_str(name);
        out.push('=');
        put_encoded(out, value);
        out.push('&');
    }
}

/// Appends a text to a path or a query, percent-encoded where it is not unreserved (RFC 3986 section 2.3).
pub(super) fn put_encoded(out: &mut String, text: &str) {
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

impl Client {
    pub(super) fn new(api: Api<'_>) -> Client {
        let mut fields = vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        fields.extend(api.token.map(|(name, token)| (name.to_owned(), token.to_string())));
        let BlockingQueries { connections_max, wait, .. } = api.queries;
        let (connections_max, parts) = (connections_max as usize, api.parts.len().max(1));
        let quick_max = (connections_max / 10 / parts).clamp(1, QUICK_MAX);
        let waiting_max = connections_max.saturating_sub(quick_max * parts).max(1);
        let quick = api.parts.into_iter().map(|name| (name, Semaphore::new(quick_max)));
        Client {
            peer: api.peer.clone(),
            tls: tls::to_peer(api.peer, &[b"h2", b"http/1.1"])
                .map_err(|mistake| mistake.to_string()),
            fields,
            token: api.token.map(|(_, token)| token.clone()),
            index: api.index,
            wait,
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
    async fn ask(&self, question: &Question, blocking: &Blocking) -> Result<Answered, String> {
        let begun = os::clock::now();
        let quick = || self.quick.iter().find(|(name, _)| *name == question.part);
        let permits = match quick().filter(|_| !blocking.waits()) {
            Some((_, quick)) => quick,
            None => &self.waiting,
        };
        // The semaphores are never closed.
        let Ok(permit) = permits.acquire().await else { return Err(String::new()) };
        let _permit = Held { permit: Some(permit), client: self, waits: blocking.waits() };
        let wait = self.wait();
        let path = format!("{}{}", question.path, blocking.query(wait));
        let path = path.trim_end_matches(['?', '&']);
        let waits = if blocking.waits() { wait + wait / 16 } else { Duration::ZERO };
        let limits = ExchangeLimits { timeout: waits + ANSWER_MAX, body_max_bytes: BODY_MAX_BYTES };
        let host = self.peer.url.authority();
        let request = Request { method: "GET", path, host, fields: &self.fields, body: &[] };
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
        let head = connection.head().clone();
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
            body = token.redacted_in(&body);
        }
        Ok(Answered { status: response.status, body, head, arrived })
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
                tracing::debug!(%error, "a connection for blocking queries has ended");
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
