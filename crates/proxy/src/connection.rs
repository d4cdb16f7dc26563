//! An HTTP/1.1 client connection: one request after another, until either side has had enough.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use model::{Cause, Listener, ListenerId};
use transport::Stream;
use wire::http1::{self, HeadLimits, Parsed};

use crate::accept::Accepted;
use crate::account;
use crate::answer::{Answer, Occasion};
use crate::buffer::Buffer;
use crate::exchange;
use crate::head::{Origin, RequestId};
use crate::linger::linger;
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
const LINGER_MAX: Duration = Duration::from_secs(2);

/// A client connection, between and during its exchanges.
pub(crate) struct Client {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    pub(crate) origin: Origin,
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
    let mut client = {
        let plane = worker.plane();
        let listener = settings(&plane, accepted.listener);
        Client {
            buffer: Buffer::new(Rc::clone(&worker.buffers)),
            origin: Origin::new(accepted.peer, &listener.trusted, listener.forward_fields),
            stream: accepted.stream,
            listener: accepted.listener,
            entry: worker.roster.enter().await,
            watchdog: Watchdog::new(),
        }
    };
    loop {
        if !first_byte(worker, &mut client).await {
            return;
        }
        let mut scratch = worker.scratch.take();
        let after = match head(worker, &mut client, &mut scratch).await {
            Ok(()) => exchange::run(worker, &mut client, &mut scratch).await,
            Err(Some(refusal)) => refuse(worker, &mut client, &mut scratch, refusal).await,
            Err(None) => After::Close,
        };
        worker.scratch.give(scratch);
        match after {
            After::Keep => {}
            After::Close => return,
            After::Linger => {
                let Client { stream, buffer, watchdog, .. } = &mut client;
                return linger(stream, buffer, watchdog, os::clock::now() + LINGER_MAX).await;
            }
            After::Reset => return client.stream.reset(),
        }
    }
}

/// The listener as the configuration in force has it.
pub(crate) fn settings(plane: &Plane, listener: ListenerId) -> &Listener {
    &plane.published.snapshot.listeners[listener.0 as usize]
}

/// Waits, without holding memory, until a request begins. False: there will be none.
async fn first_byte(worker: &Rc<Worker>, client: &mut Client) -> bool {
    if !client.buffer.is_empty() {
        return true;
    }
    client.buffer.release();
    let idle = settings(&worker.plane(), client.listener).timeouts.idle;
    client.entry.set(Phase::Idle);
    let Client { stream, buffer, watchdog, .. } = client;
    let readable = poll_fn(|cx| {
        // A request that has arrived is still answered while draining.
        if stream.poll_read_ready(cx)?.is_ready() {
            return buffer.poll_fill(stream, cx);
        }
        if worker.shared.draining() { Poll::Ready(Ok(0)) } else { Poll::Pending }
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

/// Reads and parses a whole request head. `Err(None)`: the client left.
async fn head(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
) -> Result<(), Option<Refused>> {
    let (limits, patience) = {
        let plane = worker.plane();
        let listener = settings(&plane, client.listener);
        let limits = HeadLimits {
            head_max_bytes: listener.head_max_bytes as usize,
            target_max_bytes: TARGET_MAX_BYTES,
            fields_max: FIELDS_MAX,
        };
        (limits, listener.timeouts.head)
    };
    match http1::parse_request(&client.buffer, &limits, &mut scratch.request) {
        Ok(Parsed::Complete { consumed }) => {
            client.buffer.consume(consumed);
            return Ok(());
        }
        Ok(Parsed::Partial) => {}
        Err(error) => return Err(Some(refusal_of(error))),
    }
    let Client { stream, buffer, watchdog, .. } = client;
    let reading = poll_fn(|cx| {
        loop {
            if !buffer.has_room() {
                // Larger than any head that the limits let through, and still no end.
                return Poll::Ready(Err(Some(Refused {
                    cause: Cause::HttpRequestHeadTooLarge,
                    detail: "the request head does not end",
                })));
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(None)),
                Ok(_) => {}
            }
            match http1::parse_request(buffer, &limits, &mut scratch.request) {
                Ok(Parsed::Complete { consumed }) => {
                    buffer.consume(consumed);
                    return Poll::Ready(Ok(()));
                }
                Ok(Parsed::Partial) => {}
                Err(error) => return Poll::Ready(Err(Some(refusal_of(error)))),
            }
        }
    });
    match watchdog.until(os::clock::now() + patience, reading).await {
        Some(result) => result,
        None => Err(Some(Refused {
            cause: Cause::HttpRequestTimeout,
            detail: "the request head was not complete in time",
        })),
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
        proxy_status: settings(&worker.plane(), client.listener).proxy_status,
        close: true,
    };
    scratch.request.clear();
    scratch.down.clear();
    answer.write(&occasion, &mut scratch.down);
    let sent = client.send(worker, &scratch.down).await;
    account::refused(worker, client, &answer, id, started);
    if sent.is_ok() { After::Linger } else { After::Close }
}

impl Client {
    /// How to end after an answer that said so to a request read to its end. Nothing unread is
    /// left then, so that a close cannot turn into a reset, unless the client has sent more, or
    /// may be about to since it did not expect the end.
    pub(crate) fn after_last(&self, worker: &Worker) -> After {
        if self.buffer.is_empty() && !worker.shared.draining() {
            After::Close
        } else {
            After::Linger
        }
    }

    /// Writes all of `bytes`, as patiently as the listener says.
    pub(crate) async fn send(&mut self, worker: &Rc<Worker>, bytes: &[u8]) -> io::Result<()> {
        let patience = settings(&worker.plane(), self.listener).timeouts.body;
        let mut left = bytes;
        let stream = &self.stream;
        let writing = poll_fn(|cx| {
            while !left.is_empty() {
                let sent = ready!(stream.poll_write(cx, left))?;
                if sent == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                left = &left[sent..];
            }
            Poll::Ready(Ok(()))
        });
        let until = os::clock::now() + patience;
        self.watchdog.until(until, writing).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}
