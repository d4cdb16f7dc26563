//! TCP mode: a connection, a server, bytes both ways.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use decide::Ask;
use decide::retry::counts_against_server;
use model::{Cause, ServiceId};

use crate::accept::Accepted;
use crate::account::{self, Record};
use crate::admission::{self, Place};
use crate::balance;
use crate::buffer::Buffer;
use crate::exchange::note_outcome;
use crate::head::RequestId;
use crate::in_flight::Flight;
use crate::roster::{Entry, Phase};
use crate::tries::{self, Tries};
use crate::tunnel::{self, End};
use crate::upstream;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Serves one connection of a tcp listener to its end.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted, id: ServiceId) {
    let random = worker.rng.borrow_mut().u128(..);
    let request_id = RequestId::new(random);
    let mut record = Record::new(os::clock::now(), request_id);
    record.asks_tcp = accepted.plane.sampling.asks_tcp(random);
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
        let mut carry = pin!(carry(worker, &accepted, id, &entry, &mut record));
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
    id: ServiceId,
    entry: &Entry,
    record: &mut Record,
) -> Cause {
    let plane = &accepted.plane;
    let service = plane.published.snapshot.service(id);
    let live = &plane.published.services[id.0 as usize];
    let mut watchdog = Watchdog::new();
    let mut buffer = Buffer::new(Rc::clone(&worker.buffers));
    let key = balance::client_key(service, accepted.peer.ip());
    let mut tries = Tries::new(service);
    let mut now = record.started;
    live.retries().note_request(worker.id, now);
    loop {
        let ask = Ask { key, affinity: None, avoid: &tries.failed };
        entry.set(Phase::Queued);
        record.considers(live, &ask, now);
        let place = Place {
            stream: &accepted.stream,
            buffer: &mut buffer,
            watchdog: &mut watchdog,
            record,
            half_close: true,
        };
        let elsewhere = tries.elsewhere(worker, live);
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
        let dial = upstream::dial(slot.endpoint(), &service.timeouts, &worker.buffers).await;
        now = os::clock::now();
        record.connected(now - dialled);
        match dial {
            Ok(mut server) => {
                note_outcome(live, service, &slot, false, now);
                entry.set(Phase::Tunnel);
                let client = End { stream: &accepted.stream, buffer: &mut buffer };
                let far = End { stream: &server.stream, buffer: &mut server.buffer };
                let ended = tunnel::run(client, far, service, &mut watchdog).await;
                record.ask_tcp(&mut server, slot.endpoint());
                record.body_in = ended.bytes_up;
                record.body_out = ended.bytes_down;
                if !ended.is_orderly() {
                    server.stream.reset();
                }
                return ended.cause;
            }
            Err(cause) => {
                note_outcome(live, service, &slot, counts_against_server(cause), now);
                // A connection without a byte in it can be made again whatever it is for.
                let failure = tries::Failure { cause, sent: false, idempotent: false, kept: true };
                if let Err(why) = tries.again(live, slot.endpoint(), &failure, now) {
                    record.not_retried = Some(why.name());
                    return cause;
                }
                record.failed_attempt(slot.endpoint().row.address, cause);
            }
        }
    }
}
