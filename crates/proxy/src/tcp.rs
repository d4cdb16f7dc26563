//! TCP mode: a connection, a server, bytes both ways.

use std::net::SocketAddr;
use std::rc::Rc;

use decide::Ask;
use model::{Cause, ServiceId};

use crate::accept::Accepted;
use crate::account::{self, Record};
use crate::admission::{self, Place};
use crate::balance;
use crate::buffer::Buffer;
use crate::exchange::note_outcome;
use crate::head::RequestId;
use crate::tunnel::{self, End};
use crate::upstream;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Serves one connection of a tcp listener to its end.
pub(crate) async fn serve(worker: &Rc<Worker>, accepted: Accepted, id: ServiceId) {
    let request_id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let mut record = Record::new(os::clock::now(), request_id);
    record.service = Some(id);
    let cause = carry(worker, &accepted, id, &mut record).await;
    record.end(cause);
    account::finish_tcp(worker, &worker.plane(), &accepted, &record);
    if !matches!(cause, Cause::Completed | Cause::TunnelIdleTimeout) {
        // A plain close would tell the client that all is said.
        accepted.stream.reset();
    }
}

async fn carry(
    worker: &Rc<Worker>,
    accepted: &Accepted,
    id: ServiceId,
    record: &mut Record,
) -> Cause {
    let plane = worker.plane();
    let service = plane.published.snapshot.service(id);
    let live = &plane.published.services[id.0 as usize];
    let mut watchdog = Watchdog::new();
    let mut buffer = Buffer::new(Rc::clone(&worker.buffers));
    let key = balance::client_key(service, accepted.peer.ip());
    let mut tried: Vec<SocketAddr> = Vec::new();
    let mut attempts_left = service.retries.attempts_max;
    loop {
        let ask = Ask { key, affinity: None, avoid: &tried };
        let now = os::clock::now();
        let place = Place {
            stream: &accepted.stream,
            buffer: &mut buffer,
            watchdog: &mut watchdog,
            record,
        };
        let admitted = admission::admit(worker, live, service, &ask, place, now).await;
        let slot = match admitted {
            Ok(slot) => slot,
            Err(refused) => return refused.cause,
        };
        record.server(&slot, now);
        let address = slot.endpoint().row.address;
        let dialled = os::clock::now();
        let dial = upstream::dial(address, &service.timeouts, &worker.buffers).await;
        record.connected(dialled);
        match dial {
            Ok(mut server) => {
                note_outcome(live, service, &slot, false);
                let client = End { stream: &accepted.stream, buffer: &mut buffer };
                let far = End { stream: &server.stream, buffer: &mut server.buffer };
                let ended = tunnel::run(client, far, service, &mut watchdog).await;
                record.body_in = ended.bytes_up;
                record.body_out = ended.bytes_down;
                return ended.cause;
            }
            Err(cause) => {
                note_outcome(live, service, &slot, true);
                if attempts_left == 0 {
                    return cause;
                }
                attempts_left -= 1;
                record.failed_attempt(address, cause);
                tried.push(address);
            }
        }
    }
}
