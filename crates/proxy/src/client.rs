//! A client connection of any protocol: what its exchanges need of it, and how it ends.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use model::{Cause, CertificateNames, Listener, Moment};
use transport::Stream;
use transport::http2::StreamError;
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

/// How long Weir keeps reading from a refused client. Closing with unread bytes would reset the
/// connection and lose the answer (RFC 9112 section 9.6).
const LINGER_MAX: Duration = Duration::from_secs(30);
/// The same for a client that sends nothing.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// The same when all connections are ending: just long enough for a request already under way.
pub(crate) const LAST_QUIET_MAX: Duration = Duration::from_millis(500);

/// A client connection, between and during its exchanges.
pub(crate) struct Client {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    pub(crate) origin: Rc<Origin>,
    /// Its listener and the configuration in force for the current exchange.
    pub(crate) via: Via,
    pub(crate) entry: Entry,
    pub(crate) watchdog: Watchdog,
}

/// What happens to the connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// Keep it open for the next request.
    Keep,
    /// Close it: both sides are done.
    Close,
    /// Read for a while first: the client may still be sending what will not be used.
    Linger,
    /// Reset it, so that the client does not take a truncated response for a complete one.
    Reset,
}

/// Sends the TLS `close_notify` alert (RFC 8446 section 6.1) if it fits in the send buffer, so that
/// the client knows that nothing was truncated.
pub(crate) fn close(stream: &Stream) {
    if stream.tls().is_some() {
        let mut context = Context::from_waker(Waker::noop());
        drop(stream.poll_close_write(&mut context));
    }
}

/// Returns the client's certificate in DER. Clients present one only when asked, and it has been
/// verified then: otherwise the handshake has forgotten it.
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

    /// Presents an HTTP/2 stream as a connection that carries one exchange, from the client that
    /// `origin` describes, on a connection accepted by `via`.
    pub(crate) fn of_stream(
        worker: &Worker,
        stream: Stream,
        (origin, via): (Rc<Origin>, Via),
        entry: Entry,
        watchdog: Watchdog,
    ) -> Client {
        let buffer = Buffer::new(Rc::clone(&worker.buffers));
        let mut client = Client { stream, buffer, origin, via, entry, watchdog };
        client.follow(worker);
        client
    }

    /// Stands in for a client that does not wait for its response: see [`Stream::null`].
    pub(crate) fn absent(
        worker: &Worker,
        stream: Stream,
        (origin, via): (Rc<Origin>, Via),
        entry: Entry,
    ) -> Client {
        let buffer = Buffer::new(Rc::clone(&worker.buffers));
        let watchdog = Watchdog::new();
        Client { stream, buffer, origin, via, entry, watchdog }
    }

    /// Parks the connection: drops everything but what is needed to resume it, and gives up its
    /// place in the roster.
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

    /// Returns the address of the client of a request, and whether it is known: the other end of the
    /// connection, or what a trusted proxy says. The port is 0 if it is unknown.
    pub(crate) fn address(&self, request: &RequestHead) -> (SocketAddr, bool) {
        let peer = self.origin.peer;
        if !self.origin.trusted {
            return (peer, true);
        }
        let Listener { trusted, client_address, .. } = self.settings();
        let (address, found) = decide::client_address::find(peer, trusted, client_address, request);
        self.via.counters().client_addresses[found as usize].increment();
        (address, found.is_known())
    }

    /// Returns the names in the client's certificate, which are parsed once per connection.
    pub(crate) fn certificate_names(&self) -> Option<&CertificateNames> {
        let certificate = shown_certificate(&self.stream)?;
        let names = &self.origin.certificate_names;
        Some(names.get_or_init(|| Box::new(tls::certificate_names(certificate))))
    }

    /// Describes the current exchange for reports of requests in flight.
    pub(crate) fn flight(
        &self,
        request: &Rc<RequestHead>,
        client: SocketAddr,
        id: RequestId,
        since: Moment,
    ) -> Flight {
        Flight {
            since,
            id,
            client,
            trusted: self.origin.trusted,
            plane: Rc::clone(&self.via.plane),
            listener: self.via.listener,
            request: Some(Rc::clone(request)),
            service: None,
            server: None,
            attempts: 0,
        }
    }

    /// Switches to the configuration in force, as long as its listener is part of it.
    pub(crate) fn follow(&mut self, worker: &Worker) {
        follow(worker, &mut self.via, &mut self.origin, &self.stream);
    }

    /// Returns the listener's settings.
    pub(crate) fn settings(&self) -> &Listener {
        self.via.settings()
    }

    /// Returns whether the client uses HTTPS, to Weir or to the proxy that sent the PROXY header.
    pub(crate) fn uses_https(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }

    /// Returns the HSTS duration to announce to the client, if any.
    pub(crate) fn hsts(&self) -> Option<Duration> {
        self.stream.tls()?;
        self.settings().tls.as_ref()?.hsts
    }

    /// Returns whether the current exchange is the connection's last.
    pub(crate) fn is_last(&self, worker: &Worker) -> bool {
        worker.shared.leaving() || self.via.live.is_closing()
    }

    /// Decides how to end after an answer that announced the end, to a request that was read
    /// completely. Nothing unread is left then, so closing cannot cause a reset, unless the client
    /// has sent more or may be about to because it did not expect the end.
    pub(crate) fn after_last(&self, worker: &Worker) -> After {
        if self.buffer.is_empty() && !self.is_last(worker) { After::Close } else { After::Linger }
    }

    /// Writes all of `bytes` within the listener's timeout; fails with the cause.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        self.write(bytes, false).await
    }

    /// Writes the last bytes of an exchange.
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
            Some(written) => written.map_err(|error| client_failed(StreamError::of(&error))),
            None => Err(Cause::ClientWriteTimeout),
        }
    }
}

/// Switches a connection to the configuration in force, as long as its listener is part of it.
pub(crate) fn follow(worker: &Worker, via: &mut Via, origin: &mut Rc<Origin>, stream: &Stream) {
    let Some(before) = via.follow(worker) else { return };
    let Listener { trusted, forward_fields, .. } = via.settings();
    if (trusted, forward_fields) != (&before.settings().trusted, &before.settings().forward_fields)
    {
        let Origin { peer, scheme, .. } = **origin;
        let changed = Origin::new(peer, trusted, *forward_fields, scheme);
        *origin = Rc::new(changed.with_certificate(shown_certificate(stream)));
    }
}

/// Completes when the client has gone while it waits, with the cause. What it sends meanwhile is
/// buffered as long as there is room; beyond that nothing is read, and the kernel's flow control
/// holds the client back.
pub(crate) fn client_gone(
    stream: &Stream,
    buffer: &mut Buffer,
    looks_again: bool,
    cx: &mut Context<'_>,
) -> Poll<Cause> {
    if let Poll::Ready(why) = stream.poll_abandoned(cx) {
        return Poll::Ready(client_failed(why));
    }
    // A fast response makes it unnecessary to watch this connection; if none comes, the watchdog
    // polls again.
    if looks_again && stream.is_first_wait() {
        return Poll::Pending;
    }
    // On a stream, the end of the request does not mean that the client has gone.
    while buffer.has_room() && !stream.is_exchange() {
        // Checked first, so that a client that only waits holds no memory.
        let filled = match ready!(stream.poll_read_ready(cx)) {
            Ok(()) => ready!(buffer.poll_fill(stream, cx)),
            Err(error) => Err(error),
        };
        match filled {
            Ok(0) => return Poll::Ready(Cause::ClientClosed),
            Ok(_) => {}
            Err(error) => return Poll::Ready(client_failed(StreamError::of(&error))),
        }
    }
    Poll::Pending
}
