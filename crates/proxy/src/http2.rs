//! An HTTP/2 client connection. Each stream carries one request and is served like a connection
//! that carries one exchange.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use model::{Cause, Moment};
use transport::Stream;
use transport::http2::{
    FLOODED, Http2Server, Incoming, PROTOCOL_VIOLATED, Refusal, ServerSettings,
};

use crate::account;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::failure::Reason;
use crate::head::Origin;
use crate::linger::{Patience, linger};
use crate::requests;
use crate::roster::Phase;
use crate::via::Via;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// How many requests a client may cancel on a connection; beyond this, at most half of all (rapid
/// reset: RFC 9113 section 10.5, CVE-2023-44487).
const ABANDONED_FREE: u32 = 100;
/// How long Weir keeps reading after the last stream: closing with unread bytes would reset the
/// connection and lose the last frames sent.
const LINGER_MAX: Duration = Duration::from_secs(2);

/// What the streams of a connection share.
#[derive(Clone)]
struct Common {
    origin: Rc<Origin>,
    via: Via,
}

/// State shared by the connection's task and those of its streams.
struct Tally {
    open: Cell<u32>,
    begun: Cell<u32>,
    abandoned: Cell<u32>,
    /// When the last stream ended.
    idle_since: Cell<Moment>,
}

impl Tally {
    fn new(now: Moment) -> Tally {
        let zero = || Cell::new(0);
        Tally { open: zero(), begun: zero(), abandoned: zero(), idle_since: Cell::new(now) }
    }

    fn begins(&self) {
        self.open.set(self.open.get() + 1);
        self.begun.set(self.begun.get().saturating_add(1));
    }

    fn ends(&self, abandoned: bool, now: Moment) {
        self.open.set(self.open.get() - 1);
        self.abandoned.set(self.abandoned.get().saturating_add(u32::from(abandoned)));
        self.idle_since.set(now);
    }

    fn is_flooded(&self) -> bool {
        let abandoned = self.abandoned.get();
        abandoned > ABANDONED_FREE && abandoned > self.begun.get() / 2
    }
}

/// Serves the connection to its end, including the bytes that `client` has already read.
pub(crate) async fn serve(worker: &Rc<Worker>, mut client: Client) {
    let listener = client.settings();
    let Some(http2) = listener.http2 else { return };
    let (patience, head_max_bytes) = (listener.timeouts.head, listener.head_max_bytes);
    let settings = ServerSettings { streams_max: http2.streams_max, head_max_bytes };
    let before = client.buffer.to_vec();
    client.buffer.release();
    client.entry.set(Phase::Idle);
    let Client { stream, origin, via, entry: _entry, .. } = client;
    let stream = Rc::new(stream);
    let common = Common { origin, via };
    let mut watchdog = Watchdog::new();
    let accepting = Box::pin(Http2Server::accept(Rc::clone(&stream), &before, settings));
    let accepted = watchdog.until(os::clock::now() + patience, accepting).await;
    match accepted {
        Some(Ok(connection)) => streams(worker, connection, &common, &mut watchdog).await,
        Some(Err(error)) => record_error(worker, &common, &error),
        // The preface did not arrive in time: there was no request.
        None => {}
    }
    let until = os::clock::now() + LINGER_MAX;
    let patience = Patience { until, quiet_max: LINGER_MAX, bytes_max: u64::MAX };
    let mut buffer = Buffer::new(Rc::clone(&worker.buffers));
    linger(&stream, &mut buffer, &mut watchdog, patience).await;
}

/// Accepts streams until there will be no more: the client is done or idle for too long, or the
/// listener is closing.
async fn streams(
    worker: &Rc<Worker>,
    mut connection: Http2Server,
    common: &Common,
    watchdog: &mut Watchdog,
) {
    let idle_max = common.via.settings().timeouts.idle;
    let tally = Rc::new(Tally::new(os::clock::now()));
    let mut gone = false;
    // Set once the connection is to end for being idle. Requests that cross with GOAWAY are still
    // served.
    let mut ends = None;
    let mut acknowledged = 0;
    loop {
        let next = poll_fn(|cx| {
            if !gone && (worker.shared.leaving() || common.via.live.is_closing()) {
                gone = true;
                connection.go_away();
            }
            if tally.is_flooded() { Poll::Ready(None) } else { connection.poll_request(cx) }
        });
        let now = os::clock::now();
        let since = if tally.open.get() == 0 { tally.idle_since.get() } else { now };
        match watchdog.until(ends.unwrap_or(since + idle_max), next).await {
            Some(Some(Ok(Incoming::Refused(refusal)))) => record_refusal(worker, common, refusal),
            Some(Some(Ok(Incoming::Request(stream)))) => {
                tally.begins();
                begin(worker, stream, common, &tally);
            }
            Some(None) if tally.is_flooded() => {
                record_refusals(worker, common, &mut connection);
                record_end(worker, common, Cause::EnhanceYourCalm);
                connection.refuse();
                break;
            }
            Some(Some(Err(error))) => {
                record_refusals(worker, common, &mut connection);
                record_error(worker, common, &error);
                return;
            }
            Some(None) => {
                record_refusals(worker, common, &mut connection);
                return;
            }
            None if tally.open.get() > 0 => ends = ends.map(|_| os::clock::now() + LINGER_MAX),
            None if ends.is_some() => return,
            None if os::clock::now() < tally.idle_since.get() + idle_max => {}
            // All streams are answered but not fully sent: wait as long as the client acknowledges
            // data.
            None if connection.has_streams() && progresses(&connection, &mut acknowledged) => {
                tally.idle_since.set(os::clock::now());
            }
            None => {
                gone = true;
                connection.go_away();
                ends = Some(os::clock::now() + LINGER_MAX);
            }
        }
    }
    let last_words =
        pin!(async { while let Some(Ok(_)) = poll_fn(|cx| connection.poll_request(cx)).await {} });
    let _ = watchdog.until(os::clock::now() + LINGER_MAX, last_words).await;
}

/// Records refusals that have not been recorded yet.
fn record_refusals(worker: &Worker, common: &Common, connection: &mut Http2Server) {
    while let Some(refusal) = connection.take_refusal() {
        record_refusal(worker, common, refusal);
    }
}

/// Records a request that was refused before it was complete.
fn record_refusal(worker: &Worker, common: &Common, refusal: Refusal) {
    let (cause, status, detail) = match refusal {
        Refusal::Malformed => (Cause::Http2ProtocolError, 0, "malformed request head"),
        Refusal::HeadTooLarge => {
            (Cause::HttpRequestHeadTooLarge, Cause::HttpRequestHeadTooLarge.status(), "")
        }
        Refusal::TooManyStreams => (Cause::Http2StreamsExceeded, 0, ""),
        Refusal::Flood => (Cause::EnhanceYourCalm, 0, ""),
    };
    let peer = common.origin.peer;
    account::refused_stream(worker, &common.via, peer, (Reason { cause, detail }, status));
}

/// Records the end of a connection by `error`, if Weir ended it.
fn record_error(worker: &Worker, common: &Common, error: &io::Error) {
    match error.kind() {
        FLOODED => record_end(worker, common, Cause::EnhanceYourCalm),
        PROTOCOL_VIOLATED => record_end(worker, common, Cause::Http2ProtocolError),
        _ => {}
    }
}

/// Records the end of a connection that Weir ended.
fn record_end(worker: &Worker, common: &Common, cause: Cause) {
    account::ended_before_exchange(worker, &common.via, common.origin.peer, cause.into());
}

/// Returns whether the client has acknowledged more since the last call.
fn progresses(connection: &Http2Server, acknowledged: &mut u64) -> bool {
    let Ok(info) = connection.connection().tcp_info() else { return false };
    info.bytes_acked > std::mem::replace(acknowledged, info.bytes_acked)
}

/// Starts serving a stream concurrently with the others.
fn begin(worker: &Rc<Worker>, stream: Stream, common: &Common, tally: &Rc<Tally>) {
    let (worker, common, tally) = (Rc::clone(worker), common.clone(), Rc::clone(tally));
    tokio::task::spawn_local(async move {
        let entry = worker.roster.enter().await;
        let of = (&common.origin, &common.via);
        let client = Client::of_stream(&worker, stream, of, entry);
        let abandoned = requests::serve_exchange(&worker, client).await;
        tally.ends(abandoned, os::clock::now());
    });
}
