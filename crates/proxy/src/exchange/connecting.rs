//! What the attempts of requests, and of questions to authentication servers, have in common.

use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use decide::Slot;
use health::blame::{Ended, Sent};
use model::{Balance, Cause, Fault, Service};
use rustls::ClientConfig;
use transport::http2::Code;
use wire::http1::{RequestHead, ResponseHead};

use super::response_head::NoHead;
use crate::account::Record;
use crate::client::{Client, client_gone};
use crate::failure::{self, Reason, Sender};
use crate::roster::Phase;
use crate::server_connection::{Introduced, NoConnection, Reach, ServerConnection, Want};
use crate::servers::{Chosen, Failure, Servers};
use crate::watchdog::{Direction, Limits};
use crate::worker::Worker;

/// A connection to a server, as an attempt needs it.
pub(super) struct Connecting<'a> {
    pub(super) worker: &'a Rc<Worker>,
    pub(super) client: &'a mut Client,
    pub(super) address: SocketAddr,
    pub(super) service: &'a Service,
    pub(super) tls: Option<&'a Arc<ClientConfig>>,
    pub(super) want: Want<'a>,
    pub(super) limits: &'a Limits,
    pub(super) record: &'a mut Record,
}

impl Connecting<'_> {
    /// Takes a pooled connection to the server of `to`, or opens one.
    pub(super) async fn run(self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        let Connecting { worker, client, address, service, tls, want, limits, record } = self;
        let Client { stream, buffer, watchdog, entry, .. } = client;
        let looks_again = watchdog.will_look_again();
        let endpoint = to.slot.endpoint();
        let reach = Reach { service, tls, client: Introduced { address, stream } };
        if to.tries.takes_kept()
            && let Some(kept) =
                worker.pool.take(&reach, endpoint, want, &worker.buffers, record.begun_at())
        {
            return Ok(kept);
        }
        let dialled = os::clock::now();
        entry.set(Phase::Connecting);
        // Set by a previous attempt.
        limits.clear(Direction::Up);
        // Allocated, because most requests take a pooled connection.
        let opening = worker.pool.open(&reach, endpoint, want, &worker.buffers);
        let mut opening = to.connected(Box::pin(opening));
        let opening = poll_fn(|cx| match client_gone(stream, buffer, looks_again, cx) {
            Poll::Ready(cause) => Poll::Ready(Err(cause.into())),
            Poll::Pending => Pin::new(&mut opening).poll(cx),
        });
        let fresh = watchdog.guard(limits, opening).await;
        record.dialled(os::clock::now() - dialled, fresh.is_ok());
        fresh.map_err(|none| not_connected(&none, service))
    }
}

/// Describes the failure of an attempt that got no connection.
fn not_connected(none: &NoConnection, service: &Service) -> Failure {
    let unreachable = matches!(
        none.cause,
        Cause::ConnectionRefused
            | Cause::ListenQueueFull
            | Cause::ConnectSynUnanswered
            | Cause::DestinationIpUnroutable
    );
    let introduced = service.send_proxy.is_some() && !unreachable;
    let judged = none.judged;
    Failure { judged, introduced, ..Failure::new(none.cause, Sent::Connecting) }
}

/// Returns why no response head came on a connection, on which nothing had been received before for this
/// attempt if `is_first`.
pub(super) fn no_head(
    none: NoHead,
    sender: Sender,
    (slot, server): (&Slot, &ServerConnection),
    is_first: bool,
) -> Reason {
    let error = match none {
        NoHead::Refused(reason) => return reason,
        NoHead::Gone(error) => error,
    };
    let reason = failure::reason(&error, sender);
    let is_stale = is_first
        && server.buffer.is_empty()
        && reason.cause != Cause::ConnectionLost
        && slot.endpoint().slots.learner.could_be_stale(&server.busy, os::clock::now());
    if is_stale { Cause::ServerClosedIdleConnection.into() } else { reason }
}

/// Describes the failure of an attempt on a connection, on which so much of `request` had been `sent`.
pub(super) fn failed(
    reason: Reason,
    server: &ServerConnection,
    request: &RequestHead,
    sent: Sent,
) -> Failure {
    let Reason { cause, detail } = reason;
    // REFUSED_STREAM guarantees that the server processed nothing.
    let is_refused = cause == Cause::HttpStreamRefused;
    let sent = if is_refused { Sent::Nothing } else { sent };
    let calm = Code::ENHANCE_YOUR_CALM.name();
    if let Some(carrier) = &server.carrier
        && (is_refused || cause == Cause::HttpStreamReset && Some(detail) == calm)
    {
        carrier.refused(os::clock::now());
    }
    let shared = server.carrier.as_ref().filter(|carrier| !carrier.is_private());
    let ended_shared = shared.filter(|carrier| !carrier.is_open());
    let is_clients = cause.fault() == Fault::Client;
    if let Some(carrier) = ended_shared.filter(|_| !is_refused && !is_clients) {
        carrier.failed_with(request, os::clock::now());
    }
    Failure {
        ended_shared: ended_shared.cloned(),
        shared: shared.is_some(),
        ..Failure::new(reason, sent)
    }
}

/// Records that a final response head has arrived, and what it says about its server.
pub(super) fn note_head(
    (record, service): (&mut Record, &Service),
    (servers, slot, server): (&mut Servers<'_>, &Slot, &ServerConnection),
    response: &ResponseHead,
    ended: Ended,
) {
    let status = response.status();
    record.head_arrived(status);
    let (endpoint, now) = (slot.endpoint(), record.head_at());
    endpoint.state.note_response(now);
    slot.note_response();
    endpoint.state.latency.first_byte.record(record.server_time());
    if status >= 500 {
        endpoint.state.answered_5xx.fetch_add(1, Relaxed);
    }
    let version = service.version_field.as_deref().and_then(|name| response.field(name));
    if let Some(version) = version {
        endpoint.state.version.note(version);
    }
    endpoint.slots.learner.answered(&server.busy, now);
    if service.balance == Balance::PeakEwma {
        decide::observe_latency(&endpoint.state, record.server_time(), now);
    }
    servers.judge(slot, ended, (record.begun_at(), now));
}
