//! Mirroring: copies of a request for other services.
//!
//! A copy is made when the request has a response, and is an exchange of its own, whose client is absent.
//! The request never waits for it, and how it ends is only counted.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use model::{Action, Cause, Forward, Mirror, Mirrored};
use wire::http1::{RequestBody, RequestHead};

use super::Exchange;
use super::forward::Forwarding;
use crate::account::{self, Record};
use crate::authentication::Identity;
use crate::budget::Charge;
use crate::client::Client;
use crate::head::{Origin, RequestId};
use crate::isolate::isolated;
use crate::via::Via;
use crate::watchdog::Direction;
use crate::worker::Worker;

/// Maximum number of copies in flight on a worker: what a service that does not answer can cost.
const IN_FLIGHT_MAX: usize = 256;
/// Maximum time of a copy until its response is complete. The service's `timeouts.total` may be shorter.
const TOTAL_MAX: Duration = Duration::from_secs(60);

/// A copy of a request, with everything that its exchange needs.
struct Copy {
    worker: Rc<Worker>,
    origin: Rc<Origin>,
    via: Via,
    address: (SocketAddr, bool),
    identity: Option<Rc<Identity>>,
    id: RequestId,
    request: Rc<RequestHead>,
    body: Vec<u8>,
    /// The index of the request's route, and that of the mirror in it.
    of: (usize, usize),
    /// The status of the response to the request itself.
    status: u16,
    /// Counts as one of [`IN_FLIGHT_MAX`].
    _place: Rc<()>,
    /// For the body.
    _charge: Charge,
}

/// Draws the mirrors that a request is copied to; returns their indices.
pub(super) fn draw(
    forward: &Forward,
    request: &RequestHead,
    rng: &mut fastrand::Rng,
) -> Vec<usize> {
    if forward.mirrors.is_empty() || request.upgrade().is_some() {
        return Vec::new();
    }
    let drawn = forward.mirrors.iter().enumerate().filter(|(_, mirror)| rng.f64() < mirror.share);
    drawn.map(|(index, _)| index).collect()
}

impl Forwarding<'_, '_> {
    /// Copies the request to the mirrors that were drawn for it, now that a response to it begins.
    pub(super) fn mirror(&mut self) {
        for index in std::mem::take(&mut self.mirrors) {
            let mirror = &self.forward.mirrors[index];
            match self.copy(index, mirror) {
                Ok(copy) => drop(tokio::task::spawn_local(copy.run())),
                Err(why_not) => self.exchange.count_mirrored(mirror, why_not),
            }
        }
    }

    /// Returns the copy for a mirror, or why there is none.
    fn copy(&self, index: usize, mirror: &Mirror) -> Result<Copy, Mirrored> {
        let Exchange { worker, plane, client, identity, scratch, record, .. } = &*self.exchange;
        let body = match scratch.request.body() {
            RequestBody::None => &[][..],
            RequestBody::Length(_) | RequestBody::Chunked => {
                let body = self.upload.pump.whole_body();
                let is_short = |body: &&[u8]| body.len() as u64 <= u64::from(mirror.body_max_bytes);
                body.filter(is_short).ok_or(Mirrored::NoBody)?
            }
        };
        if Rc::strong_count(&worker.copies) > IN_FLIGHT_MAX {
            return Err(Mirrored::Overloaded);
        }
        let max = plane.published.snapshot.request_buffers_max_bytes;
        let mut charge = Charge::new(&worker.shared.request_buffers, max);
        if !body.is_empty() && !charge.covers(body.len() as u64) {
            charge.note_exhausted();
            return Err(Mirrored::Overloaded);
        }
        Ok(Copy {
            worker: Rc::clone(worker),
            origin: Rc::clone(&client.origin),
            via: client.via.clone(),
            address: (self.exchange.address, self.exchange.address_is_known),
            identity: identity.clone(),
            id: record.id,
            request: Rc::clone(&scratch.request),
            body: body.to_vec(),
            of: (self.exchange.route.ok_or(Mirrored::NoBody)?, index),
            status: scratch.response.status(),
            _place: Rc::clone(&worker.copies),
            _charge: charge,
        })
    }
}

impl Copy {
    /// Sends the copy, discards the response, and counts how both agree.
    async fn run(self) {
        let Copy { worker, origin, via, address: (address, address_is_known), id, .. } = self;
        let plane = Rc::clone(&via.plane);
        let routes = &plane.published.snapshot.routes;
        let (route, index) = self.of;
        let Action::Forward(forward) = &routes[route].action else { return };
        let mirror = &forward.mirrors[index];
        let entry = worker.roster.enter().await;
        let mut client = Client::absent(&worker, (origin, via), entry);
        let mut scratch = worker.scratch.take();
        scratch.request = self.request;
        let record = Record::new(os::clock::now(), id);
        client.entry.begin(client.flight(&scratch.request, address, id, record.started));
        let mut exchange = Exchange {
            worker: &worker,
            plane: &plane,
            client: &mut client,
            address,
            address_is_known,
            identity: self.identity,
            route: Some(route),
            rates: Vec::new(),
            scratch: &mut scratch,
            record,
        };
        let walked = {
            let walk = pin!(exchange.send_copy(mirror, self.body));
            isolated(&worker, walk).await
        };
        if let Err(cause) = walked {
            exchange.record.end(cause);
        }
        exchange.client.entry.end();
        account::count_for_service(&worker, &plane, &exchange.record);
        let result = match &exchange.record {
            Record { cause: Cause::Completed, status, .. } if *status == self.status => {
                Mirrored::SameStatus
            }
            Record { cause: Cause::Completed, .. } => Mirrored::OtherStatus,
            _ => Mirrored::Failed,
        };
        exchange.count_mirrored(mirror, result);
        // Its head may still be shared with the request itself.
        scratch.request = Rc::default();
        worker.scratch.give(scratch);
    }
}

impl<'a> Exchange<'a> {
    async fn send_copy(&mut self, mirror: &'a Mirror, body: Vec<u8>) {
        let Some(route) = self.route() else { return };
        let Action::Forward(forward) = &route.action else { return };
        let mut copy = Forwarding::to(self, (route, forward), mirror.service, Vec::new());
        // Nothing reads the response, and the body is here.
        (copy.filters, copy.continued) = (&[], true);
        copy.upload.pump.hold(body);
        let record = &mut copy.exchange.record;
        let end = record.started + TOTAL_MAX;
        if record.to_end.is_none_or(|(before, _)| before > end) {
            record.to_end = Some((end, Cause::TotalTimeout));
            copy.limits.set(Direction::Whole, end, Cause::TotalTimeout);
        }
        let _ = copy.run().await;
    }

    fn count_mirrored(&self, mirror: &Mirror, result: Mirrored) {
        let counters = self.plane.service_counters(mirror.service, &self.worker.shard);
        counters.mirrored[result as usize].increment();
    }
}
