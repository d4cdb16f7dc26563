//! Mirroring: copies of a request for other services.
//!
//! A copy is made when the request has a response, and is an exchange of its own, whose client is absent.
//! The request never waits for it, and how it ends is only counted.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use decide::placement::Bound;
use model::{Action, Cause, Mirror, Mirrored, RouteRetries, RouteTimeouts};
use transport::Stream;
use wire::http1::{RequestBody, RequestHead};

use super::Exchange;
use super::forward::{Forwarding, Target};
use crate::account::{self, Record};
use crate::authentication::Identity;
use crate::budget::Charge;
use crate::client::Client;
use crate::head::{Origin, RequestId, TraceContext};
use crate::isolate::isolated;
use crate::plane::Plane;
use crate::pump::Copied;
use crate::via::Via;
use crate::watchdog::Direction;
use crate::worker::Worker;

/// Maximum number of copies in flight on a worker: what a service that does not answer can cost.
pub const COPIES_MAX: usize = 256;
/// Maximum time of a copy beyond `timeouts.response` of its service. `timeouts.total` may be shorter.
const REST_MAX: Duration = Duration::from_secs(60);

/// How much of the body of a response to a copy is read, so that a server which sends without end does not use
/// a worker's time. The connection is closed then.
const RESPONSE_MAX_BYTES: u64 = 1024 * 1024;

/// A copy of a request, with everything that its exchange needs.
struct RequestCopy {
    worker: Rc<Worker>,
    origin: Rc<Origin>,
    via: Via,
    address: (SocketAddr, bool),
    /// Weir's address, if the service's servers are introduced to the client.
    local: Option<SocketAddr>,
    identity: Option<Rc<Identity>>,
    id: RequestId,
    /// The request's trace.
    trace: Option<TraceContext>,
    received: &'static str,
    request: Rc<RequestHead>,
    body: Vec<u8>,
    /// The index of the request's route, and that of the mirror in it.
    of: (usize, usize),
    /// The status of the response to the request itself.
    status: u16,
    /// Counts as one of [`COPIES_MAX`].
    _place: Rc<()>,
    /// For the body.
    _charge: Option<Charge>,
}

impl Forwarding<'_, '_> {
    /// Draws the mirrors that the request is copied to, and begins to copy its body.
    pub(super) fn draw_mirrors(&mut self) {
        let Exchange { worker, plane, scratch, .. } = &*self.exchange;
        let request = &*scratch.request;
        // A copy that comes back must not make further copies.
        let id = worker.shared.identity.id().as_bytes();
        if request.upgrade().is_some() || request.cdn_loop_passes(id) > 0 {
            return;
        }
        let mut rng = worker.rng.borrow_mut();
        let mut is_drawn = |mirror: &Mirror| rng.f64() < mirror.share;
        let mirrors = self.forward.mirrors.iter().enumerate();
        self.mirrors.extend(mirrors.filter(|(_, mirror)| is_drawn(mirror)).map(|(index, _)| index));
        let max =
            self.mirrors.iter().map(|&index| self.forward.mirrors[index].body_max_bytes).max();
        let max = match request.body() {
            RequestBody::None => None,
            RequestBody::Length(length) => {
                max.map(u64::from).filter(|max| length <= *max).and(Some(length))
            }
            RequestBody::Chunked => max.map(u64::from),
        };
        let Some(max) = max else { return };
        let charge = charge(worker, plane);
        self.upload.pump.copy(Copied::new(max, charge));
    }

    /// Copies the request to the mirrors that were drawn, now that a response to it begins.
    pub(super) fn mirror(&mut self) {
        let mut mirrors = std::mem::take(&mut self.mirrors);
        let mut copied = self.upload.pump.take_copied();
        while let Some(index) = mirrors.pop() {
            let Exchange { worker, plane, .. } = &*self.exchange;
            let copied = match &copied {
                // Another mirror needs it, too.
                Some(copied) if !mirrors.is_empty() => Some(copied.again(charge(worker, plane))),
                _ => copied.take(),
            };
            let mirror = &self.forward.mirrors[index];
            match self.copy(index, mirror, copied) {
                Ok(copy) => drop(tokio::task::spawn_local(copy.run())),
                Err(why_not) => self.exchange.count_mirrored(mirror, why_not),
            }
        }
    }

    /// Returns the copy for a mirror, or why there is none.
    fn copy(
        &self,
        index: usize,
        mirror: &Mirror,
        copied: Option<Copied>,
    ) -> Result<RequestCopy, Mirrored> {
        let Exchange { worker, plane, client, identity, received, scratch, record, .. } =
            &*self.exchange;
        let (body, charge) = match (scratch.request.body(), copied) {
            (RequestBody::None, _) => (Vec::new(), None),
            (_, None) => return Err(Mirrored::NoBody),
            (_, Some(copied)) => {
                let (body, charge) = copied.into_bytes(mirror.body_max_bytes as usize)?;
                (body, Some(charge))
            }
        };
        let route = self.exchange.route.filter(|_| Rc::strong_count(&worker.copies) <= COPIES_MAX);
        let introduces = plane.published.snapshot.service(mirror.service).send_proxy.is_some();
        Ok(RequestCopy {
            worker: Rc::clone(worker),
            origin: Rc::clone(&client.origin),
            via: client.via.clone(),
            address: (self.exchange.address, self.exchange.address_is_known),
            local: introduces.then(|| client.stream.local().ok()).flatten(),
            identity: identity.clone(),
            id: record.id,
            trace: record.trace,
            received,
            request: Rc::clone(&scratch.request),
            body,
            of: (route.ok_or(Mirrored::Overloaded)?, index),
            status: scratch.response.status(),
            _place: Rc::clone(&worker.copies),
            _charge: charge,
        })
    }
}

/// Returns an empty share of the memory for copies.
fn charge(worker: &Worker, plane: &Plane) -> Charge {
    Charge::new(&worker.shared.mirrors, plane.published.snapshot.mirror_memory_max_bytes)
}

impl RequestCopy {
    /// Sends the copy, discards the response, and counts whether its status is that of the request's.
    async fn run(self) {
        let RequestCopy { worker, origin, via, address: (address, address_is_known), id, .. } =
            self;
        let plane = Rc::clone(&via.plane);
        let routes = &plane.published.snapshot.routes;
        let (route, index) = self.of;
        let mirror = &routes[route].mirrors()[index];
        let entry = worker.roster.enter().await;
        let stream = Stream::null(origin.peer, self.local);
        let mut client = Client::absent(&worker, stream, (origin, via), entry);
        let mut scratch = worker.scratch.take();
        scratch.request = self.request;
        let mut record = Record::new(os::clock::now(), id);
        record.trace = self.trace;
        let mut exchange = Exchange {
            worker: &worker,
            plane: &plane,
            client: &mut client,
            address,
            address_is_known,
            identity: self.identity,
            route: Some(route),
            received: self.received,
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
        account::count_for_service(&worker, &plane, &exchange.record);
        let result = match &exchange.record {
            Record { cause: Cause::Completed, status, .. } if *status == self.status => {
                Mirrored::SameStatus
            }
            Record { cause: Cause::Completed, .. } => Mirrored::OtherStatus,
            _ => Mirrored::Failed,
        };
        exchange.count_mirrored(mirror, result);
        worker.scratch.give(scratch);
    }
}

impl<'a> Exchange<'a> {
    async fn send_copy(&mut self, mirror: &'a Mirror, body: Vec<u8>) {
        let Some(route) = self.route() else { return };
        let Action::Forward(forward) = &route.action else { return };
        let fields = &forward.fields;
        // Those of the route are for the service that answers.
        let (timeouts, retries) = (RouteTimeouts::default(), &RouteRetries::OF_SERVICE);
        let service = mirror.service;
        let bound = Bound::of_service(
            self.plane.published.snapshot.service(service),
            &self.scratch.request,
        );
        let target = Target { route, forward, fields, timeouts, retries, service, bound };
        let mut copy = Forwarding::to(self, target);
        // Nothing reads the response, and the body is here.
        (copy.filters, copy.continued) = (&[], true);
        copy.response_max_bytes = RESPONSE_MAX_BYTES;
        copy.upload.pump.hold(body);
        let record = &mut copy.exchange.record;
        let end = record.started + copy.service.timeouts.response + REST_MAX;
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
