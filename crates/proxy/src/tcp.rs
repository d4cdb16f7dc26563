//! TCP mode: a connection, a server, bytes both ways.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use decide::{Ask, LiveService, Slot};
use health::blame::{Ended, Outcome, Sent, WaitingFor};
use model::{Cause, Fault, Health, Moment, Protocol, ServiceId};
use transport::Stream;
use wire::tls::client_hello::{self, Peeked};

use crate::accept::Accepted;
use crate::account::{self, Record};
use crate::admission::{self, Place, client_gone};
use crate::balance;
use crate::buffer::Buffer;
use crate::client;
use crate::greeting::{Greeted, greet};
use crate::head::RequestId;
use crate::in_flight::Flight;
use crate::judgement::Judgement;
use crate::roster::{Entry, Phase};
use crate::tries::{self, Tries};
use crate::tunnel::{self, End};
use crate::upstream::{self, Introduced, Reach, ServerConnection};
use crate::watchdog::{Direction, Limits, Watchdog};
use crate::worker::Worker;

/// Serves one connection of a tcp listener to its end.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted) {
    let mut watchdog = Watchdog::new();
    let mut accepted = match greet(worker, accepted, &mut watchdog).await {
        Greeted::Ready(accepted) => accepted,
        Greeted::ClearText(accepted) => {
            let detail = "clear text where TLS is spoken";
            return account::ungreeted(worker, &accepted, Cause::ClientTlsError, detail);
        }
        Greeted::Gone => return,
    };
    if accepted.live.is_replaced() {
        // It was greeted by rules that are no longer in force.
        return client::close(&accepted.stream);
    }
    match service(&mut accepted, &mut watchdog).await {
        Ok(id) => passed(worker, accepted, watchdog, id).await,
        Err((cause, detail)) => account::ungreeted(worker, &accepted, cause, detail),
    }
}

/// The service that a connection is for: the listener's, or that of the server name which the
/// client's first TLS message asks for.
async fn service(
    accepted: &mut Accepted,
    watchdog: &mut Watchdog,
) -> Result<ServiceId, (Cause, &'static str)> {
    let settings = accepted.settings();
    let (names, otherwise) = match &settings.protocol {
        Protocol::Tcp(id) => return Ok(*id),
        // Not served here.
        Protocol::Http => return Err((Cause::ProxyInternalError, "")),
        Protocol::TlsPassthrough { names, otherwise } => (names.clone(), *otherwise),
    };
    let until = os::clock::now() + settings.timeouts.head;
    let Accepted { stream, buffer, .. } = accepted;
    let reading = poll_fn(|cx| {
        loop {
            match client_hello::peek(buffer) {
                Ok(Peeked::Complete(hello)) => return Poll::Ready(Ok(hello)),
                Ok(Peeked::Partial) if buffer.has_room() || buffer.grow() => {}
                Ok(Peeked::Partial) => return Poll::Ready(Err("the ClientHello does not end")),
                Err(error) => return Poll::Ready(Err(error.detail())),
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(count) if count > 0 => {}
                _ => return Poll::Ready(Err("the connection ended before its ClientHello")),
            }
        }
    });
    let read = watchdog.until(until, reading).await;
    let hello = read
        .unwrap_or(Err("the ClientHello did not come in time"))
        .map_err(|detail| (Cause::ClientTlsError, detail))?;
    let asked = hello.server_name();
    let named = asked.and_then(|asked| names.iter().find(|(pattern, _)| pattern.covers(asked)));
    match named.map(|(_, id)| *id).or(otherwise) {
        Some(id) => Ok(id),
        None if asked.is_some() => {
            Err((Cause::DestinationNotFound, "no service has the server name asked for (SNI)"))
        }
        None => Err((Cause::DestinationNotFound, "the client asked for no server name (SNI)")),
    }
}

/// Passes a connection on to a service.
async fn passed(
    worker: &Rc<Worker>,
    mut accepted: Accepted,
    mut watchdog: Watchdog,
    id: ServiceId,
) {
    let mut buffer =
        std::mem::replace(&mut accepted.buffer, Buffer::new(Rc::clone(&worker.buffers)));
    let random = worker.rng.borrow_mut().u128(..);
    let request_id = RequestId::new(random);
    let mut record = Record::new(os::clock::now(), request_id);
    record.asks_tcp = accepted.plane.sampling.asks_tcp(random);
    record.raises_tcp = accepted.plane.sampling.is_raised();
    record.explanation = accepted.plane.explanation(random, None);
    record.service = Some(id);
    let entry = worker.roster.enter().await;
    entry.begin(Flight {
        since: record.started,
        id: request_id,
        client: accepted.peer,
        trusted: false,
        plane: Rc::clone(&accepted.plane),
        listener: accepted.listener,
        request: None,
        service: Some(id),
        server: None,
        attempts: 0,
    });
    let cause = {
        let place = (&mut buffer, &mut watchdog);
        let mut carry = pin!(carry(worker, &accepted, place, id, &entry, &mut record));
        poll_fn(|cx| {
            if worker.shared.stopped() {
                return Poll::Ready(Cause::ShuttingDown);
            }
            carry.as_mut().poll(cx)
        })
        .await
    };
    record.end(cause);
    account::finish_tcp(worker, &accepted, &record);
    if !matches!(cause, Cause::Completed | Cause::TunnelIdleTimeout) {
        // A plain close would tell the client that all is said.
        accepted.stream.reset();
    }
}

async fn carry(
    worker: &Rc<Worker>,
    accepted: &Accepted,
    (buffer, watchdog): (&mut Buffer, &mut Watchdog),
    id: ServiceId,
    entry: &Entry,
    record: &mut Record,
) -> Cause {
    let plane = &accepted.plane;
    let service = plane.published.snapshot.service(id);
    let live = &plane.published.services[id.0 as usize];
    let key = balance::client_key(service, accepted.peer.ip());
    let mut tries = Tries::new(service);
    let mut judgement = Judgement::new(live, service);
    let mut now = record.started;
    live.retries().note_request(worker.id, now);
    record.to_end = service.timeouts.total.map(|total| (now + total, Cause::TotalTimeout));
    loop {
        let ask = Ask { key, affinity: None, avoid: &tries.failed };
        entry.set(Phase::Queued);
        record.considers(live, &ask, now);
        let place = Place {
            stream: &accepted.stream,
            buffer: &mut *buffer,
            watchdog: &mut *watchdog,
            record,
            half_close: true,
        };
        let elsewhere = tries.elsewhere(worker, live, key);
        let is_elsewhere = elsewhere.is_some();
        let admitted = match elsewhere {
            Some(slot) => Ok((slot, now)),
            None => admission::admit(worker, live, service, &ask, place, now).await,
        };
        record.decided(admitted.as_ref().ok(), is_elsewhere, now);
        let (slot, dialled) = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => return refused.cause,
        };
        record.server(&slot, dialled);
        entry.attempt(slot.endpoint().row.address);
        entry.set(Phase::Connecting);
        let client = Introduced { peer: accepted.peer, stream: &accepted.stream };
        let reach = Reach { service, tls: plane.tls.services[id.0 as usize].as_ref(), client };
        let dialling = upstream::dial(&reach, slot.endpoint(), &worker.buffers);
        let place = (&accepted.stream, &mut *buffer, &mut *watchdog);
        let dial = awaited(dialling, place, (live, &tries, &slot), record.to_end).await;
        now = os::clock::now();
        record.dialled(now - dialled, dial.is_ok());
        match dial {
            Ok(mut server) => {
                judgement.ended(&slot, connected(None), false, (dialled, now));
                entry.set(Phase::Tunnel);
                let client = End { stream: &accepted.stream, buffer };
                let far = End { stream: &server.stream, buffer: &mut server.buffer };
                let ended = tunnel::run(client, far, service, &accepted.live, watchdog).await;
                record.ask_tcp(&mut server, slot.endpoint());
                record.body_in = ended.bytes_up;
                record.body_out = ended.bytes_down;
                if !ended.is_orderly() {
                    server.stream.reset();
                }
                return ended.cause;
            }
            Err(cause) if cause.fault() == Fault::Client || cause == Cause::TotalTimeout => {
                return cause;
            }
            Err(cause) => {
                judgement.ended(&slot, connected(Some(cause)), false, (dialled, now));
                // A connection without a byte in it can be made again whatever it is for.
                let failure = tries::Failure {
                    cause,
                    sent: false,
                    idempotent: false,
                    kept: true,
                    shared_connection: false,
                };
                if let Err(why) = tries.again(live, slot.endpoint(), &failure, now) {
                    record.not_retried = Some(why.name());
                    return cause;
                }
                record.failed_attempt(slot.endpoint().row.address, cause);
            }
        }
    }
}

/// How an attempt to connect ended, as blame sees it: with a connection, or why not.
fn connected(failed: Option<Cause>) -> Ended {
    Ended {
        // A connection is all that is asked of a server here.
        outcome: failed.map_or(Outcome::Answered(200), Outcome::Failed),
        waiting_for: WaitingFor::Server,
        sent: Sent::Connecting,
        shared: false,
        among_others: false,
        judged: false,
    }
}

/// Waits for a connection to a server, until the client has reset its own, the server is marked
/// down while there is another, or the service's `timeouts.total` has passed. A client that has
/// only said all it has to say is still there: each direction ends by itself.
async fn awaited(
    dialling: impl Future<Output = Result<ServerConnection, Cause>>,
    (stream, buffer, watchdog): (&Stream, &mut Buffer, &mut Watchdog),
    (live, tries, slot): (&LiveService, &Tries, &Slot),
    to_end: Option<(Moment, Cause)>,
) -> Result<ServerConnection, Cause> {
    let limits = Limits::default();
    if let Some((at, cause)) = to_end {
        limits.set(Direction::Whole, at, cause);
    }
    let endpoint = slot.endpoint();
    let is_down = || endpoint.state.health() == Health::Down;
    let was_down = is_down();
    let mut dialling = pin!(dialling);
    let dialled = poll_fn(|cx| {
        if let Poll::Ready(cause) = client_gone(stream, buffer, false, cx)
            && cause != Cause::ClientClosed
        {
            return Poll::Ready(Err(cause));
        }
        match dialling.as_mut().poll(cx) {
            Poll::Pending if !was_down && is_down() && tries.may_leave(live, endpoint) => {
                Poll::Ready(Err(Cause::ServerMarkedDown))
            }
            dialled => dialled,
        }
    });
    watchdog.guard(&limits, dialled).await
}
