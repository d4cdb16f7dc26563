//! A client's connection, from its first byte to its last.
//!
//! ```text
//! Handed ─ another worker accepted it
//!    └─▶ Accepted ─ greeting ─┬─▶ Client (HTTP) ─ one request after another ─┬─▶ closed
//!                             │      │    ▲                                  └─▶ tunnel (101) ─▶ closed
//!                             │      │    └── it speaks ─────┐
//!                             │      └── silent ─▶ Parked ───┴─▶ closed
//!                             │      └── HTTP/2: a task of its own, a Client for each stream
//!                             └─▶ tunnel (TCP mode) ─▶ closed
//! ```

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};

use model::Moment;
use transport::http2::PREFACE;

use crate::buffer::Buffer;
use crate::client::{self, After, Client};
use crate::greeting::{Greeted, greet};
use crate::http2;
use crate::parking::{Held, PARKED_AFTER, Parked};
use crate::requests;
use crate::roster::Phase;
use crate::tcp;
use crate::via::{Accepted, Via};
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Serves a client connection until it ends, or until it has been idle for a while: then it is
/// returned to be parked.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted, held: Held) -> Option<Parked> {
    let mut watchdog = Watchdog::new();
    match greet(worker, accepted, &mut watchdog).await {
        // It was accepted under rules that are no longer in force.
        Greeted::Http(accepted) | Greeted::Tcp(accepted, _) if accepted.via.live.is_replaced() => {
            client::close(&accepted.stream);
        }
        Greeted::Http(accepted) => {
            let is_http2 =
                accepted.stream.tls().is_some_and(|tls| tls.alpn.as_deref() == Some(b"h2"));
            let client = Client::new(worker, accepted, watchdog).await;
            if !is_http2 {
                return serve_requests(worker, client, held, (false, None)).await;
            }
            http2::begin(worker, client, held);
        }
        // In a box: what most connections need not have room for.
        Greeted::Tcp(accepted, to) => Box::pin(tcp::serve(worker, accepted, watchdog, to)).await,
        Greeted::ClearText(accepted) => {
            let mut client = Client::new(worker, accepted, watchdog).await;
            let after = requests::refuse_clear_text(worker, &mut client).await;
            client.end(worker, after).await;
        }
        Greeted::Gone => {}
    }
    None
}

/// Resumes a connection that was parked.
pub(crate) async fn resume(worker: &Rc<Worker>, parked: Parked) -> Option<Parked> {
    let Parked { stream, peer, tls_before, begun, until, held } = parked;
    let via = Via::new(worker, Arc::clone(held.listener()));
    let buffer = Buffer::new(Rc::clone(&worker.buffers));
    let accepted = Accepted { stream, peer, tls_before, buffer, via };
    let client = Client::new(worker, accepted, Watchdog::new()).await;
    serve_requests(worker, client, held, (begun, Some(until))).await
}

/// Serves one request after another. The first is waited for until `until`, if that wait started
/// earlier.
async fn serve_requests(
    worker: &Rc<Worker>,
    mut client: Client,
    held: Held,
    (mut begun, mut until): (bool, Option<Moment>),
) -> Option<Parked> {
    loop {
        let now = os::clock::now();
        let until = until.take().unwrap_or_else(|| now + client.settings().timeouts.idle);
        match next(worker, &mut client, begun, (now, until)).await {
            Next::Request => {}
            Next::Silence => return Some(client.park(begun, until, held)),
            Next::End => {
                client.end(worker, After::Close).await;
                return None;
            }
        }
        if !begun && client.settings().http2.is_some() && begins_http2(&mut client).await {
            http2::begin(worker, client, held);
            return None;
        }
        begun = true;
        client.follow(worker);
        let after = {
            let mut serving = pin!(requests::serve_one(worker, &mut client));
            poll_fn(|cx| os::clock::held(|| serving.as_mut().poll(cx))).await
        };
        if after != After::Keep {
            client.end(worker, after).await;
            return None;
        }
    }
}

/// Returns whether the connection starts with the HTTP/2 preface, with prior knowledge (RFC 9113
/// section 3.3). Reads on until that is decided.
async fn begins_http2(client: &mut Client) -> bool {
    let until = os::clock::now() + client.settings().timeouts.head;
    let Client { stream, buffer, watchdog, .. } = client;
    let reading = poll_fn(|cx| {
        while buffer.len() < PREFACE.len() && PREFACE.starts_with(buffer) {
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(count) if count > 0 => {}
                // The next read sees the same end or error.
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
    /// Idle for so long that it is parked.
    Silence,
    /// There will be no further request.
    End,
}

/// Waits for the start of a request without holding memory.
///
/// When the worker drains or the listener closes, idle connections are closed. One that has had no
/// request yet stays open until [`PARKED_AFTER`] after it began to wait, since its client may have
/// sent one already; not if the listener's rules have been replaced.
async fn next(
    worker: &Rc<Worker>,
    client: &mut Client,
    begun: bool,
    (now, until): (Moment, Moment),
) -> Next {
    if !client.buffer.is_empty() {
        return Next::Request;
    }
    client.buffer.release();
    client.entry.set(Phase::Idle);
    let Client { stream, buffer, watchdog, via, .. } = client;
    let is_last = || worker.shared.draining() || via.live.is_closing();
    let readable = poll_fn(|cx| {
        // A request that has arrived is answered even while draining.
        if let Poll::Ready(filled) = buffer.poll_fill(stream, cx) {
            return Poll::Ready(filled);
        }
        if is_last() && (begun || via.live.is_replaced()) {
            Poll::Ready(Ok(0))
        } else {
            Poll::Pending
        }
    });
    let parked_at = now + PARKED_AFTER;
    let arrived = watchdog.until(until.min(parked_at), readable).await;
    client.entry.set(Phase::Busy);
    match arrived {
        Some(Ok(count)) if count > 0 => Next::Request,
        None if until > parked_at && !is_last() => Next::Silence,
        _ => Next::End,
    }
}
