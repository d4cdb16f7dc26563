//! HTTP/2 connections to servers: one carries many exchanges, so a worker keeps few per server.
//!
//! Non-idempotent requests may also use a connection that has been idle: before it closes, an
//! HTTP/2 server states which requests it has not processed (GOAWAY, RFC 9113 section 6.8), and
//! those are retried whatever their method.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use decide::Endpoint;
use decide::reuse::Busy;
use model::{Cause, Moment};
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use transport::http2::{Http2Client, StreamError};
use wire::http1::RequestBody;

use crate::buffer::{Buffer, BufferPool};
use crate::carrier::{Carrier, LongFields};
use crate::failure::server_failed;
use crate::server_connection::{Key, NoConnection, Reach, ServerConnection, Want, dial};
use crate::tcp_sample::Counts;
use crate::watchdog::Watchdog;

/// The largest response head accepted, in bytes as RFC 9113 section 6.5.2 counts them.
const HEAD_MAX_BYTES: u32 = 64 * 1024;

/// A connection without streams for this long gives up memory that it would need for the next.
const SHRINKS_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of connections per server and worker that carry a single request each.
const PRIVATE_MAX: usize = 2;

/// Maximum number of a server's connections that are left alone because it refuses streams on them. If it
/// refuses them on more, the connection is not the reason, and further connections would not help.
const REFUSING_MAX: usize = 4;

/// A worker's HTTP/2 connections.
#[derive(Default)]
pub(crate) struct Multiplexed {
    servers: RefCell<FxHashMap<Key, Rc<Server>>>,
}

/// The connections to one server.
struct Server {
    connections: RefCell<Vec<Connection>>,
    /// Held while dialling: other requests wait for that connection instead of opening one each.
    dialling: Semaphore,
    /// When dialling last failed, and why.
    failed: Cell<Option<(Moment, Cause)>>,
    /// Permits for connections that carry one request each.
    private: Arc<Semaphore>,
    long_fields: Rc<LongFields>,
}

struct Connection {
    carrier: Rc<Carrier>,
    busy: Busy,
    used: Cell<Moment>,
    keep_alive: Duration,
}

impl Connection {
    fn has_room_for(&self, body: RequestBody) -> bool {
        let client = &self.carrier.client;
        client.is_open() && client.streams() < client.streams_max() && client.has_room_for(body)
    }

    fn begin(
        &self,
        body: RequestBody,
        buffers: &Rc<BufferPool>,
        reused: bool,
        now: Moment,
    ) -> Box<ServerConnection> {
        self.used.set(now);
        Box::new(ServerConnection {
            stream: self.carrier.client.open(body),
            buffer: Buffer::new(Rc::clone(buffers)),
            busy: self.busy,
            reused,
            brought_bulk: false,
            counted: Counts::default(),
            carrier: Some(Rc::clone(&self.carrier)),
        })
    }
}

impl Server {
    fn new() -> Server {
        Server {
            connections: RefCell::default(),
            dialling: Semaphore::new(1),
            failed: Cell::new(None),
            private: Arc::new(Semaphore::new(PRIVATE_MAX)),
            long_fields: Rc::default(),
        }
    }

    /// Opens a stream on an existing connection that has room.
    fn take(
        &self,
        body: RequestBody,
        buffers: &Rc<BufferPool>,
        now: Moment,
    ) -> Option<Box<ServerConnection>> {
        let connections = self.connections.borrow();
        let mut refusing = 0;
        let mut is_left_alone = |connection: &Connection| {
            let refuses = connection.carrier.refuses(now);
            refusing += usize::from(refuses);
            refuses && refusing <= REFUSING_MAX
        };
        let mut with_room = connections.iter().filter(|connection| connection.has_room_for(body));
        let open = with_room.find(|connection| !is_left_alone(connection))?;
        Some(open.begin(body, buffers, true, now))
    }
}

impl Multiplexed {
    fn server(&self, key: Key) -> Rc<Server> {
        Rc::clone(self.servers.borrow_mut().entry(key).or_insert_with(|| Rc::new(Server::new())))
    }

    /// Opens a stream on an existing connection that has room for such a request.
    pub(crate) fn take(
        &self,
        key: &Key,
        want: Want<'_>,
        buffers: &Rc<BufferPool>,
        now: Moment,
    ) -> Option<Box<ServerConnection>> {
        let servers = self.servers.borrow();
        let server = servers.get(key)?;
        let body = want.request.body();
        if server.long_fields.keep_apart(want.request, now) {
            return servers.get(&key.clone().for_long_fields())?.take(body, buffers, now);
        }
        server.take(body, buffers, now)
    }

    /// Opens a stream on a connection that is opened for it, or was just opened by another request.
    pub(crate) async fn open(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        want: Want<'_>,
        buffers: &Rc<BufferPool>,
    ) -> Result<Box<ServerConnection>, NoConnection> {
        let key = reach.key(endpoint);
        let mut server = self.server(key.clone());
        if server.long_fields.keep_apart(want.request, os::clock::now()) {
            server = self.server(key.for_long_fields());
        }
        let body = want.request.body();
        if want.private {
            open_private(&server, reach, endpoint, body, buffers).await
        } else {
            open_shared(&server, reach, endpoint, body, buffers).await
        }
    }

    /// Closes connections idle for too long, and forgets closed ones.
    pub(crate) fn sweep(&self, now: Moment) {
        self.servers.borrow_mut().retain(|_, server| {
            let mut connections = server.connections.borrow_mut();
            connections.retain(|connection| {
                let Connection { carrier, used, keep_alive, .. } = connection;
                let client = &carrier.client;
                if client.streams() > 0 {
                    used.set(now);
                    return true;
                }
                if now.since(used.get()) >= SHRINKS_AFTER {
                    client.shrink();
                }
                client.is_open() && now.since(used.get()) < *keep_alive
            });
            let private = PRIVATE_MAX - server.private.available_permits();
            // A connection may be in the process of opening.
            !connections.is_empty()
                || private > 0
                || Rc::strong_count(server) > 1
                || server.long_fields.is_active(now)
        });
    }
}

/// Opens a stream on a shared connection, which is opened for it or was just opened by another
/// request.
async fn open_shared(
    server: &Server,
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    body: RequestBody,
    buffers: &Rc<BufferPool>,
) -> Result<Box<ServerConnection>, NoConnection> {
    let begun = os::clock::now();
    let turn = pin!(server.dialling.acquire());
    let turn = Watchdog::new().until(begun + reach.service.timeouts.connect, turn).await;
    let now = os::clock::now();
    // Another request has tried meanwhile, and failed.
    if let Some((_, cause)) = server.failed.get().filter(|(at, _)| *at > begun) {
        return Err(NoConnection { cause, judged: true });
    }
    // The semaphore is never closed: this is a timeout. The request that dials is judged for it.
    let Some(Ok(_turn)) = turn else {
        return Err(NoConnection { cause: Cause::ConnectionTimeout, judged: true });
    };
    if now > begun
        && let Some(taken) = server.take(body, buffers, now)
    {
        return Ok(taken);
    }
    let made = Box::pin(start(server, reach, endpoint, None, buffers)).await;
    let now = os::clock::now();
    let connection = made.inspect_err(|cause| server.failed.set(Some((now, *cause))))?;
    let stream = connection.begin(body, buffers, false, now);
    server.connections.borrow_mut().push(connection);
    Ok(stream)
}

/// Opens the only stream of a dedicated connection, for a request whose last shared connection ended:
/// the request itself may be the cause. At most [`PRIVATE_MAX`] such connections are open to a server;
/// if no permit is available within the connect timeout, the request shares a connection after all.
async fn open_private(
    server: &Server,
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    body: RequestBody,
    buffers: &Rc<BufferPool>,
) -> Result<Box<ServerConnection>, NoConnection> {
    let until = os::clock::now() + reach.service.timeouts.connect;
    let turn = pin!(Arc::clone(&server.private).acquire_owned());
    // Never closed, so it does not fail.
    let Some(Ok(permit)) = Watchdog::new().until(until, turn).await else {
        let there = server.take(body, buffers, os::clock::now());
        return match there {
            Some(taken) => Ok(taken),
            None => open_shared(server, reach, endpoint, body, buffers).await,
        };
    };
    let connection = Box::pin(start(server, reach, endpoint, Some(permit), buffers)).await?;
    Ok(connection.begin(body, buffers, false, os::clock::now()))
}

/// Opens a connection.
async fn start(
    server: &Server,
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    private: Option<OwnedSemaphorePermit>,
    buffers: &Rc<BufferPool>,
) -> Result<Connection, Cause> {
    let ServerConnection { stream, busy, .. } = *dial(reach, endpoint, buffers).await?;
    if stream.tls().is_some_and(|tls| tls.alpn.as_deref() != Some(b"h2")) {
        return Err(Cause::TlsProtocolError);
    }
    let until = os::clock::now() + reach.service.timeouts.connect;
    let starting = Box::pin(Http2Client::start(stream, HEAD_MAX_BYTES));
    let started = Watchdog::new().until(until, starting).await;
    let started = started.ok_or(Cause::ConnectionTimeout)?;
    let (client, driver) = started.map_err(|error| match StreamError::of(&error) {
        StreamError::Connection(ErrorKind::UnexpectedEof) => Cause::ConnectionTerminated,
        error => server_failed(error).cause,
    })?;
    let address = endpoint.row.address;
    tokio::task::spawn_local(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%address, %error, "an HTTP/2 connection to a server has ended");
        }
    });
    let used = Cell::new(os::clock::now());
    let keep_alive = reach.service.timeouts.keep_alive;
    let carrier = Rc::new(Carrier::new(client, private, Rc::clone(&server.long_fields)));
    Ok(Connection { carrier, busy, used, keep_alive })
}
