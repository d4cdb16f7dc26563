//! An HTTP client connection: one request after another, until either side has had enough. What
//! speaks HTTP/2 goes over to `http2`, which comes back here with each of its streams.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use model::{Cause, Moment};
use transport::http2::PREFACE;
use wire::http1::{self, HeadLimits, Parsed};

use crate::accept::{Accepted, Held};
use crate::account;
use crate::answer::{Answer, Occasion};
use crate::buffer::Buffer;
use crate::client::{self, After, Client};
use crate::exchange;
use crate::greeting::{Greeted, greet};
use crate::head::RequestId;
use crate::http2;
use crate::parked::{PARKED_AFTER, Silent};
use crate::roster::Phase;
use crate::scratch::Scratch;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// The longest request target; what nginx and Apache accept by default.
const TARGET_MAX_BYTES: usize = 8 * 1024;
/// Fields in a head.
const FIELDS_MAX: usize = 128;

/// Serves a client connection to its end, or until it has been silent for a while: then it is given
/// back, to be parked.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted) -> Option<Silent> {
    let mut watchdog = Watchdog::new();
    match greet(worker, accepted, &mut watchdog).await {
        // It was greeted by rules that are no longer in force.
        Greeted::Ready(accepted) if accepted.live.is_replaced() => {
            client::close(&accepted.stream);
        }
        Greeted::Ready(accepted) => {
            let is_http2 =
                accepted.stream.tls().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
            let client = Client::new(worker, accepted, watchdog).await;
            if !is_http2 {
                return serve_requests(worker, client, false, None).await;
            }
            Box::pin(http2::serve(worker, client)).await;
        }
        Greeted::ClearText(accepted) => {
            let mut client = Client::new(worker, accepted, watchdog).await;
            let cause = Cause::HttpRequestError;
            let refused = Refused::new(cause, "clear text where TLS is spoken: use https");
            let mut scratch = worker.scratch.take();
            let after = refuse(worker, &mut client, &mut scratch, refused).await;
            worker.scratch.give(scratch);
            client.end(worker, after).await;
        }
        Greeted::Gone => {}
    }
    None
}

/// Goes on with one that was parked.
pub(crate) async fn resume(worker: &Rc<Worker>, silent: Silent, held: &Held) -> Option<Silent> {
    let Silent { stream, peer, tls_before, begun, until } = silent;
    let live = Arc::clone(held.listener());
    let (plane, listener) = worker.plane_of(&live);
    let buffer = Buffer::new(Rc::clone(&worker.buffers));
    let accepted = Accepted { stream, peer, tls_before, buffer, live, plane, listener };
    let client = Client::new(worker, accepted, Watchdog::new()).await;
    serve_requests(worker, client, begun, Some(until)).await
}

/// Serves one request after another. The first is waited for until `until`, if that has begun
/// before.
async fn serve_requests(
    worker: &Rc<Worker>,
    mut client: Client,
    mut begun: bool,
    mut until: Option<Moment>,
) -> Option<Silent> {
    loop {
        let timeout = client.settings().timeouts.idle;
        let until = until.take().unwrap_or_else(|| os::clock::now() + timeout);
        match next(worker, &mut client, until).await {
            Next::Request => {}
            Next::Silence => {
                let (stream, peer, tls_before) = client.without_place();
                return Some(Silent { stream, peer, tls_before, begun, until });
            }
            Next::End => {
                client.end(worker, After::Close).await;
                return None;
            }
        }
        if !begun && client.settings().http2.is_some() && begins_http2(&mut client).await {
            Box::pin(http2::serve(worker, client)).await;
            return None;
        }
        begun = true;
        client.follow(worker);
        let after = serve_one(worker, &mut client).await;
        if after != After::Keep {
            client.end(worker, after).await;
            return None;
        }
    }
}

/// Serves a stream of HTTP/2; yields whether the client has abandoned it.
pub(crate) async fn serve_exchange(worker: &Rc<Worker>, mut client: Client) -> bool {
    let after = serve_one(worker, &mut client).await;
    let mut context = Context::from_waker(Waker::noop());
    let abandoned = after != After::Keep && client.stream.poll_abandoned(&mut context).is_ready();
    if after == After::Reset {
        client.stream.reset();
    }
    abandoned
}

async fn serve_one(worker: &Rc<Worker>, client: &mut Client) -> After {
    let mut scratch = worker.scratch.take();
    let after = match head(client, &mut scratch).await {
        Ok(()) => {
            // Nobody else holds it between exchanges.
            let request = Rc::make_mut(&mut scratch.request);
            request.keep_upgrade(&client.settings().upgrade_protocols);
            exchange::run(worker, client, &mut scratch).await
        }
        Err(refusal) => refuse(worker, client, &mut scratch, refusal).await,
    };
    worker.scratch.give(scratch);
    after
}

/// Whether the connection begins as one of HTTP/2 does, with prior knowledge (RFC 9113 section
/// 3.3). Reads on as long as that is open.
async fn begins_http2(client: &mut Client) -> bool {
    let until = os::clock::now() + client.settings().timeouts.head;
    let Client { stream, buffer, watchdog, .. } = client;
    let reading = poll_fn(|cx| {
        while buffer.len() < PREFACE.len() && PREFACE.starts_with(buffer) {
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(count) if count > 0 => {}
                // Whoever reads on finds the same.
                _ => break,
            }
        }
        Poll::Ready(buffer.starts_with(PREFACE))
    });
    watchdog.until(until, reading).await.unwrap_or(false)
}

/// What a connection does between its requests.
enum Next {
    Request,
    /// Nothing, for so long that it need not hold what an exchange works with.
    Silence,
    /// There will be no request.
    End,
}

/// Waits, without holding memory, until a request begins.
async fn next(worker: &Rc<Worker>, client: &mut Client, until: Moment) -> Next {
    if !client.buffer.is_empty() {
        return Next::Request;
    }
    client.buffer.release();
    client.entry.set(Phase::Idle);
    let Client { stream, buffer, watchdog, live, .. } = client;
    let readable = poll_fn(|cx| {
        // A request that has arrived is still answered while draining.
        if let Poll::Ready(filled) = buffer.poll_fill(stream, cx) {
            return Poll::Ready(filled);
        }
        let last = worker.shared.draining() || live.is_closing();
        if last { Poll::Ready(Ok(0)) } else { Poll::Pending }
    });
    let parked_at = os::clock::now() + PARKED_AFTER;
    let begun = watchdog.until(until.min(parked_at), readable).await;
    client.entry.set(Phase::Busy);
    match begun {
        Some(Ok(count)) if count > 0 => Next::Request,
        None if until > parked_at => Next::Silence,
        _ => Next::End,
    }
}

/// A request that is refused before it could be routed.
struct Refused {
    cause: Cause,
    detail: &'static str,
    /// Since when the client has been waiting, where that is not now: its head began then.
    since: Option<Moment>,
}

impl Refused {
    fn new(cause: Cause, detail: &'static str) -> Refused {
        Refused { cause, detail, since: None }
    }
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
    // Its first byte is there: the head is waited for from here on.
    let began = os::clock::now();
    let reading = poll_fn(|cx| {
        loop {
            if !buffer.has_room() && !buffer.grow() {
                // Larger than any head that the limits let through, and still no end.
                let cause = Cause::HttpRequestHeadTooLarge;
                return Poll::Ready(Err(Refused::new(cause, "the request head does not end")));
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                // It had begun to ask for something.
                Ok(0) | Err(_) => {
                    let cause = Cause::HttpRequestIncomplete;
                    return Poll::Ready(Err(Refused::new(cause, "")));
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
    match watchdog.until(began + patience, reading).await {
        Some(result) => result,
        None => Err(Refused {
            since: Some(began),
            ..Refused::new(Cause::HttpRequestTimeout, "the request head was not complete in time")
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
    Refused::new(cause, error.detail())
}

async fn refuse(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    refused: Refused,
) -> After {
    let started = refused.since.unwrap_or_else(os::clock::now);
    let answer = Answer { detail: refused.detail, ..Answer::of(refused.cause) };
    let id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let occasion = Occasion {
        request: None,
        request_id: id.as_bytes(),
        proxy_status: client.settings().proxy_status,
        hsts: client.hsts(),
        close: true,
    };
    Rc::make_mut(&mut scratch.request).clear();
    scratch.down.clear();
    let mut after = After::Close;
    if answer.status > 0 {
        answer.write(&occasion, &mut scratch.down);
        if client.send_last(&scratch.down).await.is_ok() {
            after = After::Linger;
        }
    }
    account::refused(worker, client, &answer, id, started);
    after
}
