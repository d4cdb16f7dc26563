//! An HTTP/1.1 client connection: one request after another, until either side has had enough.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use model::{Cause, Listener, ListenerId, Moment};
use transport::Stream;
use wire::http1::{self, HeadLimits, Parsed, RequestHead};

use crate::accept::Accepted;
use crate::account;
use crate::answer::{Answer, Occasion};
use crate::blame::client_failed;
use crate::buffer::Buffer;
use crate::exchange;
use crate::head::{Origin, RequestId};
use crate::in_flight::Flight;
use crate::linger::{Patience, linger};
use crate::listener::LiveListener;
use crate::roster::{Entry, Phase};
use crate::scratch::Scratch;
use crate::watchdog::Watchdog;
use crate::worker::{Plane, Worker};

/// The longest request target; what nginx and Apache accept by default.
const TARGET_MAX_BYTES: usize = 8 * 1024;
/// Fields in a head.
const FIELDS_MAX: usize = 128;
/// How long a client that was refused is still listened to: closing with bytes unread would reset
/// the connection and take our answer with it (RFC 9112 section 9.6).
const LINGER_MAX: Duration = Duration::from_secs(30);
/// The same for one that sends nothing.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// The same when all connections are ending: just long enough for a request that was on its way.
const LAST_QUIET_MAX: Duration = Duration::from_millis(500);

/// A client connection, between and during its exchanges.
pub(crate) struct Client {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    pub(crate) origin: Origin,
    live: Arc<LiveListener>,
    /// The configuration that holds for the present exchange, and the listener's place there.
    pub(crate) plane: Rc<Plane>,
    pub(crate) listener: ListenerId,
    pub(crate) entry: Entry,
    pub(crate) watchdog: Watchdog,
}

/// What becomes of the connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The next request may come.
    Keep,
    /// Both sides are done.
    Close,
    /// The client may still be sending what nobody will read.
    Linger,
    /// The client must not take what it got for whole.
    Reset,
}

/// Serves a client connection to its end.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted) {
    let Accepted { stream, peer, live, plane, listener } = accepted;
    let settings = &plane.published.snapshot.listeners[listener.0 as usize];
    let mut client = Client {
        buffer: Buffer::new(Rc::clone(&worker.buffers)),
        origin: Origin::new(peer, &settings.trusted, settings.forward_fields),
        stream,
        live,
        plane,
        listener,
        entry: worker.roster.enter().await,
        watchdog: Watchdog::new(),
    };
    loop {
        if !first_byte(worker, &mut client).await {
            return;
        }
        client.follow(worker);
        let mut scratch = worker.scratch.take();
        let after = match head(&mut client, &mut scratch).await {
            Ok(()) => exchange::run(worker, &mut client, &mut scratch).await,
            Err(refusal) => refuse(worker, &mut client, &mut scratch, refusal).await,
        };
        worker.scratch.give(scratch);
        match after {
            After::Keep => {}
            After::Close => return,
            After::Linger => {
                let quiet_max = if client.is_last(worker) { LAST_QUIET_MAX } else { QUIET_MAX };
                let until = os::clock::now() + LINGER_MAX;
                let patience = Patience { until, quiet_max, bytes_max: u64::MAX };
                let Client { stream, buffer, watchdog, .. } = &mut client;
                return linger(stream, buffer, watchdog, patience).await;
            }
            After::Reset => return client.stream.reset(),
        }
    }
}

/// Waits, without holding memory, until a request begins. False: there will be none.
async fn first_byte(worker: &Rc<Worker>, client: &mut Client) -> bool {
    if !client.buffer.is_empty() {
        return true;
    }
    client.buffer.release();
    let idle = client.settings().timeouts.idle;
    client.entry.set(Phase::Idle);
    let Client { stream, buffer, watchdog, live, .. } = client;
    let readable = poll_fn(|cx| {
        // A request that has arrived is still answered while draining.
        if stream.poll_read_ready(cx)?.is_ready() {
            return buffer.poll_fill(stream, cx);
        }
        let last = worker.shared.draining() || live.is_closing();
        if last { Poll::Ready(Ok(0)) } else { Poll::Pending }
    });
    let begun = watchdog.until(os::clock::now() + idle, readable).await;
    client.entry.set(Phase::Busy);
    matches!(begun, Some(Ok(count)) if count > 0)
}

/// A request that is refused before it could be routed.
struct Refused {
    cause: Cause,
    detail: &'static str,
}

/// Reads and parses a whole request head.
async fn head(client: &mut Client, scratch: &mut Scratch) -> Result<(), Refused> {
    let patience = client.settings().timeouts.head;
    let limits = HeadLimits {
        head_max_bytes: client.settings().head_max_bytes as usize,
        target_max_bytes: TARGET_MAX_BYTES,
        fields_max: FIELDS_MAX,
    };
    // Nobody else holds it between exchanges.
    let request = Rc::make_mut(&mut scratch.request);
    match http1::parse_request(&client.buffer, &limits, request) {
        Ok(Parsed::Complete { consumed }) => {
            client.buffer.consume(consumed);
            return Ok(());
        }
        Ok(Parsed::Partial) => {}
        Err(error) => return Err(refusal_of(error)),
    }
    let Client { stream, buffer, watchdog, .. } = client;
    let reading = poll_fn(|cx| {
        loop {
            if !buffer.has_room() && !buffer.grow() {
                // Larger than any head that the limits let through, and still no end.
                return Poll::Ready(Err(Refused {
                    cause: Cause::HttpRequestHeadTooLarge,
                    detail: "the request head does not end",
                }));
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                // It had begun to ask for something.
                Ok(0) | Err(_) => {
                    let cause = Cause::HttpRequestIncomplete;
                    return Poll::Ready(Err(Refused { cause, detail: "" }));
                }
                Ok(_) => {}
            }
            match http1::parse_request(buffer, &limits, request) {
                Ok(Parsed::Complete { consumed }) => {
                    buffer.consume(consumed);
                    return Poll::Ready(Ok(()));
                }
                Ok(Parsed::Partial) => {}
                Err(error) => return Poll::Ready(Err(refusal_of(error))),
            }
        }
    });
    match watchdog.until(os::clock::now() + patience, reading).await {
        Some(result) => result,
        None => Err(Refused {
            cause: Cause::HttpRequestTimeout,
            detail: "the request head was not complete in time",
        }),
    }
}

fn refusal_of(error: http1::RequestError) -> Refused {
    let cause = match error.status() {
        413 => Cause::HttpRequestBodyTooLarge,
        414 => Cause::UriTooLong,
        417 => Cause::HttpExpectationFailed,
        431 => Cause::HttpRequestHeadTooLarge,
        501 => Cause::HttpRequestNotImplemented,
        505 => Cause::HttpVersionNotSupported,
        _ => Cause::HttpRequestError,
    };
    Refused { cause, detail: error.detail() }
}

async fn refuse(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    refused: Refused,
) -> After {
    let started = os::clock::now();
    let answer = Answer { detail: refused.detail, ..Answer::of(refused.cause) };
    let id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let occasion = Occasion {
        request: None,
        request_id: id.as_bytes(),
        proxy_status: client.settings().proxy_status,
        close: true,
    };
    Rc::make_mut(&mut scratch.request).clear();
    scratch.down.clear();
    let mut after = After::Close;
    if answer.status > 0 {
        answer.write(&occasion, &mut scratch.down);
        if client.send(&scratch.down).await.is_ok() {
            after = After::Linger;
        }
    }
    account::refused(worker, client, &answer, id, started);
    after
}

impl Client {
    /// What an exchange is about, for whoever asks what is in flight.
    pub(crate) fn flight(&self, request: &Rc<RequestHead>, id: RequestId, since: Moment) -> Flight {
        Flight {
            since,
            id,
            client: self.origin.peer,
            trusted: self.origin.trusted,
            plane: Rc::clone(&self.plane),
            listener: self.listener,
            request: Some(Rc::clone(request)),
            service: None,
            server: None,
            attempts: 0,
        }
    }

    /// Goes over to the configuration in force, as long as its listener is part of it.
    fn follow(&mut self, worker: &Worker) {
        let plane = worker.plane();
        if !Rc::ptr_eq(&plane, &self.plane)
            && !self.live.is_closing()
            && let Some(listener) = self.live.place_in(&plane.published.snapshot)
        {
            let before = std::mem::replace(&mut self.plane, plane);
            let before = &before.published.snapshot.listeners[self.listener.0 as usize];
            self.listener = listener;
            let Listener { trusted, forward_fields, .. } = self.settings();
            if (trusted, forward_fields) != (&before.trusted, &before.forward_fields) {
                self.origin = Origin::new(self.origin.peer, trusted, *forward_fields);
            }
        }
    }

    /// The listener as its configuration has it.
    pub(crate) fn settings(&self) -> &Listener {
        // `plane` and `listener` are only ever set together.
        &self.plane.published.snapshot.listeners[self.listener.0 as usize]
    }

    /// Whether the present exchange is to be the connection's last.
    pub(crate) fn is_last(&self, worker: &Worker) -> bool {
        worker.shared.leaving() || self.live.is_closing()
    }

    /// How to end after an answer that said so to a request read to its end. Nothing unread is
    /// left then, so that a close cannot turn into a reset, unless the client has sent more, or
    /// may be about to since it did not expect the end.
    pub(crate) fn after_last(&self, worker: &Worker) -> After {
        if self.buffer.is_empty() && !self.is_last(worker) { After::Close } else { After::Linger }
    }

    /// Writes all of `bytes`, as patiently as the listener says; fails with the cause.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        let patience = self.settings().timeouts.body;
        let mut left = bytes;
        let stream = &self.stream;
        let writing = poll_fn(|cx| {
            while !left.is_empty() {
                let sent = ready!(stream.poll_write(cx, left))?;
                left = &left[sent..];
            }
            Poll::Ready(io::Result::Ok(()))
        });
        let until = os::clock::now() + patience;
        match self.watchdog.until(until, writing).await {
            Some(written) => written.map_err(|error| client_failed(error.kind())),
            None => Err(Cause::ClientWriteTimeout),
        }
    }
}
