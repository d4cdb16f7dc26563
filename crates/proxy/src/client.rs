//! A client connection, whatever it speaks: what its exchanges need of it, and how it ends.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use model::{Cause, Listener, Moment};
use transport::Stream;
use wire::http1::RequestHead;

use crate::buffer::Buffer;
use crate::failure::client_failed;
use crate::flight::Flight;
use crate::head::{Origin, RequestId, Scheme};
use crate::linger::{Patience, linger};
use crate::parking::{Held, Parked};
use crate::roster::Entry;
use crate::via::{Accepted, Via};
use crate::watchdog::Watchdog;
use crate::worker::Worker;

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
    /// Its listener, and the configuration that holds for the present exchange.
    pub(crate) via: Via,
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
        let Accepted { stream, peer, tls_before, buffer, via } = accepted;
        let Listener { trusted, forward_fields, .. } = via.settings();
        let scheme = if tls_before { Scheme::Https } else { Scheme::of(&stream) };
        let origin = Origin::new(peer, trusted, *forward_fields, scheme);
        let origin = Rc::new(origin.with_certificate(shown_certificate(&stream)));
        let entry = worker.roster.enter().await;
        Client { stream, buffer, origin, via, entry, watchdog }
    }

    /// A stream of HTTP/2 as a connection that carries one exchange: of the client that `origin`
    /// describes, on a connection that came by `via`.
    pub(crate) fn of_stream(
        worker: &Worker,
        stream: Stream,
        (origin, via): (&Rc<Origin>, &Via),
        entry: Entry,
    ) -> Client {
        let buffer = Buffer::new(Rc::clone(&worker.buffers));
        let (origin, via) = (Rc::clone(origin), via.clone());
        let mut client = Client { stream, buffer, origin, via, entry, watchdog: Watchdog::new() };
        client.follow(worker);
        client
    }

    /// The connection without what serves its requests; its place in the roster is given up.
    pub(crate) fn park(self, begun: bool, until: Moment, held: Held) -> Parked {
        let Client { stream, origin, .. } = self;
        let tls_before = origin.scheme == Scheme::Https && stream.tls().is_none();
        Parked { stream, peer: origin.peer, tls_before, begun, until, held }
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
            plane: Rc::clone(&self.via.plane),
            listener: self.via.listener,
            request: Some(Rc::clone(request)),
            service: None,
            server: None,
            attempts: 0,
        }
    }

    /// Goes over to the configuration in force, as long as its listener is part of it.
    pub(crate) fn follow(&mut self, worker: &Worker) {
        let Some(before) = self.via.follow(worker) else { return };
        let Listener { trusted, forward_fields, .. } = self.via.settings();
        if (trusted, forward_fields)
            != (&before.settings().trusted, &before.settings().forward_fields)
        {
            let Origin { peer, scheme, .. } = *self.origin;
            let origin = Origin::new(peer, trusted, *forward_fields, scheme);
            let certificate = shown_certificate(&self.stream);
            self.origin = Rc::new(origin.with_certificate(certificate));
        }
    }

    /// The listener as its configuration has it.
    pub(crate) fn settings(&self) -> &Listener {
        self.via.settings()
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
        worker.shared.leaving() || self.via.live.is_closing()
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
