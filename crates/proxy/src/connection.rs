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
use std::task::{Context, Poll, Waker, ready};

use model::Moment;
use transport::Stream;
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
/// sent one already; not if the listener's rules have been replaced. A request that has arrived by
/// the end is still served.
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
    let Client { stream, buffer, watchdog, via, entry, .. } = client;
    let is_last = || worker.shared.draining() || via.live.is_closing();
    let readable = poll_fn(|cx| {
        // A request that has arrived is answered even while draining.
        if let Poll::Ready(filled) = buffer.poll_fill(stream, cx) {
            return Poll::Ready(Some(filled));
        }
        if is_last() && (begun || via.live.is_replaced()) {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    });
    let parked_at = now + PARKED_AFTER;
    let arrived = watchdog.until(until.min(parked_at), readable).await.flatten();
    entry.set(Phase::Busy);
    match arrived {
        Some(Ok(count)) if count > 0 => Next::Request,
        None if until > parked_at && !is_last() => Next::Silence,
        None if !via.live.is_replaced() && fill_unseen(stream, buffer) => Next::Request,
        _ => Next::End,
    }
}

/// Reads what has arrived since the runtime last polled, which on a busy machine may be long ago:
/// closing a connection with unread bytes would reset it. Returns whether there was something.
fn fill_unseen(stream: &Stream, buffer: &mut Buffer) -> bool {
    // Once it is not watched, reading does not depend on what the runtime has seen.
    if stream.is_silent() || stream.unwatch().is_err() {
        return false;
    }
    let filled = buffer.poll_fill(stream, &mut Context::from_waker(Waker::noop()));
    matches!(filled, Poll::Ready(Ok(count)) if count > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;
    use crate::listener::LiveListener;
    use crate::worker::testing;

    #[tokio::test(flavor = "local")]
    async fn a_request_that_the_runtime_has_not_seen_is_read_before_its_connection_ends() {
        let (shared, _inboxes) = testing::shared(1);
        let worker = Rc::new(Worker::new(testing::start(0, &shared)).unwrap());
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        // The second has waited for its first request for as long as it may.
        for begun in [true, false] {
            let listener = LiveListener::new("front".into(), shared.registry.load_full());
            let via = Via::new(&worker, Arc::new(listener));
            let mut far = TcpStream::connect(front.local_addr().unwrap()).unwrap();
            let (near, peer) = front.accept().unwrap();
            near.set_nonblocking(true).unwrap();
            let stream = Stream::with_peer(near, peer).unwrap();
            let buffer = Buffer::new(Rc::clone(&worker.buffers));
            let accepted = Accepted { stream, peer, tls_before: false, buffer, via };
            let mut client = Client::new(&worker, accepted, Watchdog::new()).await;
            let live = Arc::clone(&client.via.live);

            let now = os::clock::now();
            let until = now + Duration::from_mins(1);
            let mut waiting = pin!(next(&worker, &mut client, begun, (now, until)));
            let mut look = async || poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
            assert!(look().await.is_pending());
            tokio::time::sleep(PARKED_AFTER).await;
            // From here on the runtime does not poll.
            far.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            live.close();
            assert!(matches!(look().await, Poll::Ready(Next::Request)), "begun: {begun}");
        }
    }
}
