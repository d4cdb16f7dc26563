//! A client connection, whatever it speaks: what its exchanges need of it, and how it ends.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use model::{Cause, Listener, ListenerId, Moment};
use transport::Stream;
use wire::http1::RequestHead;

use crate::accept::Accepted;
use crate::buffer::Buffer;
use crate::failure::client_failed;
use crate::head::{Origin, RequestId, Scheme};
use crate::in_flight::Flight;
use crate::linger::{Patience, linger};
use crate::listener::LiveListener;
use crate::roster::Entry;
use crate::watchdog::Watchdog;
use crate::worker::{Plane, Worker};

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
    pub(crate) origin: Rc<Origin>,
    pub(crate) live: Arc<LiveListener>,
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

/// What the exchanges of a connection have in common, where they are streams.
pub(crate) struct Common {
    origin: Rc<Origin>,
    live: Arc<LiveListener>,
    plane: Rc<Plane>,
    listener: ListenerId,
    /// The connection's own place, so that it is woken when it is to end.
    _entry: Entry,
}

impl Common {
    /// The listener as its configuration had it when the connection began.
    pub(crate) fn settings(&self) -> &Listener {
        &self.plane.published.snapshot.listeners[self.listener.0 as usize]
    }

    /// Whether the listener is gone.
    pub(crate) fn is_closing(&self) -> bool {
        self.live.is_closing()
    }

    /// What accounts are closed with.
    pub(crate) fn place(&self) -> (&Rc<Plane>, ListenerId, SocketAddr) {
        (&self.plane, self.listener, self.origin.peer)
    }

    /// A stream as a client connection.
    pub(crate) fn client(&self, worker: &Worker, stream: Stream, entry: Entry) -> Client {
        let mut client = Client {
            stream,
            buffer: Buffer::new(Rc::clone(&worker.buffers)),
            origin: Rc::clone(&self.origin),
            live: Arc::clone(&self.live),
            plane: Rc::clone(&self.plane),
            listener: self.listener,
            entry,
            watchdog: Watchdog::new(),
        };
        client.follow(worker);
        client
    }
}

/// What is said before a connection is closed: TLS says that this is the end and nothing was cut off
/// (RFC 8446 section 6.1), as far as there is room for it.
pub(crate) fn close(stream: &Stream) {
    if stream.tls().is_some() {
        let mut context = Context::from_waker(Waker::noop());
        drop(stream.poll_close_write(&mut context));
    }
}

/// The certificate that a client has shown, DER: shown only where it is asked for, and then
/// verified.
fn shown_certificate(stream: &Stream) -> Option<&[u8]> {
    stream.tls()?.peer_certificate.as_deref()
}

impl Client {
    pub(crate) async fn new(worker: &Rc<Worker>, accepted: Accepted, watchdog: Watchdog) -> Client {
        let settings = accepted.settings();
        let (trusted, fields) = (&settings.trusted, settings.forward_fields);
        let scheme = if accepted.tls_before { Scheme::Https } else { Scheme::of(&accepted.stream) };
        let origin = Origin::new(accepted.peer, trusted, fields, scheme);
        let origin = Rc::new(origin.with_certificate(shown_certificate(&accepted.stream)));
        let entry = worker.roster.enter().await;
        let Accepted { stream, buffer, live, plane, listener, .. } = accepted;
        Client { stream, buffer, origin, live, plane, listener, entry, watchdog }
    }

    /// The connection alone, with the client's address and whether the client spoke TLS to whoever
    /// sent the PROXY header; its place in the roster is given up.
    pub(crate) fn without_place(self) -> (Stream, SocketAddr, bool) {
        let Client { stream, origin, .. } = self;
        let tls_before = origin.scheme == Scheme::Https && stream.tls().is_none();
        (stream, origin.peer, tls_before)
    }

    /// The stream, and what its streams have in common.
    pub(crate) fn share(self) -> (Stream, Rc<Common>) {
        let Client { stream, origin, live, plane, listener, entry, .. } = self;
        (stream, Rc::new(Common { origin, live, plane, listener, _entry: entry }))
    }

    /// Ends the connection after its last exchange.
    pub(crate) async fn end(self, worker: &Worker, after: After) {
        match after {
            After::Keep | After::Close => close(&self.stream),
            After::Reset => self.stream.reset(),
            After::Linger => {
                let quiet_max = if self.is_last(worker) { LAST_QUIET_MAX } else { QUIET_MAX };
                let until = os::clock::now() + LINGER_MAX;
                let patience = Patience { until, quiet_max, bytes_max: u64::MAX };
                let Client { stream, mut buffer, mut watchdog, .. } = self;
                linger(&stream, &mut buffer, &mut watchdog, patience).await;
            }
        }
    }

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
    pub(crate) fn follow(&mut self, worker: &Worker) {
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
                let Origin { peer, scheme, .. } = *self.origin;
                let origin = Origin::new(peer, trusted, *forward_fields, scheme);
                let certificate = shown_certificate(&self.stream);
                self.origin = Rc::new(origin.with_certificate(certificate));
            }
        }
    }

    /// The listener as its configuration has it.
    pub(crate) fn settings(&self) -> &Listener {
        // `plane` and `listener` are only ever set together.
        &self.plane.published.snapshot.listeners[self.listener.0 as usize]
    }

    /// Whether the client uses HTTPS, towards Weir or towards whoever sent the PROXY header.
    pub(crate) fn uses_https(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }

    /// For how long the client is to be told to use TLS alone.
    pub(crate) fn hsts(&self) -> Option<Duration> {
        self.stream.tls()?;
        self.settings().tls.as_ref()?.hsts
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
        self.write(bytes, false).await
    }

    /// The same for the last of an exchange.
    pub(crate) async fn send_last(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        self.write(bytes, true).await
    }

    async fn write(&mut self, bytes: &[u8], last: bool) -> Result<(), Cause> {
        let patience = self.settings().timeouts.body;
        let mut left = bytes;
        let stream = &self.stream;
        let writing = poll_fn(|cx| {
            while !left.is_empty() {
                let sent = ready!(if last {
                    stream.poll_write_last(cx, left)
                } else {
                    stream.poll_write(cx, left)
                })?;
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

/// Ready when the client has gone while it waits, with what that is called. What it sends
/// meanwhile is kept for its turn, as long as there is room: beyond that nobody listens, and the
/// kernel holds the sender back.
pub(crate) fn client_gone(
    stream: &Stream,
    buffer: &mut Buffer,
    looks_again: bool,
    cx: &mut Context<'_>,
) -> Poll<Cause> {
    if let Poll::Ready(kind) = stream.poll_abandoned(cx) {
        return Poll::Ready(client_failed(kind));
    }
    // A response that comes soon makes it needless to have this connection watched; if it does not,
    // the watchdog looks again.
    if looks_again && stream.is_first_wait() {
        return Poll::Pending;
    }
    // The end of what a stream's client sends is no sign that it has left.
    while buffer.has_room() && !stream.is_exchange() {
        // Asked first, so that no memory is taken for a client that only waits.
        let filled = match ready!(stream.poll_read_ready(cx)) {
            Ok(()) => ready!(buffer.poll_fill(stream, cx)),
            Err(error) => Err(error),
        };
        match filled {
            Ok(0) => return Poll::Ready(Cause::ClientClosed),
            Ok(_) => {}
            Err(error) => return Poll::Ready(client_failed(error.kind())),
        }
    }
    Poll::Pending
}
