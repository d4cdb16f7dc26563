//! The lifecycle of a request: route, admission, a server, the bytes both ways, the record. Read it
//! from top to bottom; the decisions of each step are pure functions elsewhere.
//!
//! ```text
//! run ─ resolve ─┬─ answer (deny, redirect, refusal, maintenance, a filter's answer)
//!                └─ Forwarding::run ─ read ahead ─ Servers::reach ─ mirror ─ respond ─┬─ settle (next request)
//!                                                    │       ^                        └─ tunnel (101)
//!                                      admit ─ attempt       │
//!                                                 └──────────┘ another server
//! ```

mod ahead;
mod attempt;
mod authenticate;
mod connecting;
mod filters;
mod forward;
mod forward_auth;
mod inquiry;
mod local;
mod mirror;
mod pace;
mod respond;
mod response_head;
mod upgrade;
mod upload;

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;

use decide::placement::{Placement, place};
use decide::rate::Left;
use decide::route::Arrival;
use model::path::has_dot_segments;
use model::{Action, Cause, Denial, Hosts, Maintained, Maintenance, RateLimit, Route, SplitTarget};
use wire::http1::{Known, RequestBody, RequestHead};

use crate::account::{self, Record};
use crate::answer::Answer;
use crate::authentication::Identity;
use crate::client::{After, Client};
use crate::isolate::isolated;
use crate::plane::Plane;
use crate::scratch::Scratch;
use crate::worker::Worker;

use forward::{Forwarding, Target};
use local::location;
pub use mirror::COPIES_MAX;

/// How often a request may have passed this instance before it is refused as a loop: it may
/// legitimately come back through an authenticating proxy, for instance.
const PASSES_MAX: usize = 5;

/// A request and its response, with everything that processing them needs.
pub(crate) struct Exchange<'a> {
    worker: &'a Rc<Worker>,
    plane: &'a Plane,
    client: &'a mut Client,
    /// The client's address: see [`Client::address`].
    address: SocketAddr,
    /// Whether this is the client's own address, not that of a proxy in front of it.
    address_is_known: bool,
    /// Who sends the request, if its route has asked.
    identity: Option<Rc<Identity>>,
    /// The index of its route, once found.
    route: Option<usize>,
    /// The version of HTTP in which it came.
    received: &'static str,
    /// What is left of the rates that responses announce.
    rates: Vec<(&'a RateLimit, Left)>,
    /// The request head, the response head once there is one, and reusable storage.
    scratch: &'a mut Scratch,
    record: Record,
}

/// Processes one request, whose head is in `scratch`, to its end.
pub(crate) async fn run(worker: &Rc<Worker>, client: &mut Client, scratch: &mut Scratch) -> After {
    let plane = Rc::clone(&client.via.plane);
    let mut exchange = Exchange::begin(worker, &plane, client, scratch);
    let walked = {
        let walk = pin!(exchange.walk());
        isolated(worker, walk).await
    };
    let after = match walked {
        Ok(after) => after,
        Err(cause) => exchange.cut_off(cause).await,
    };
    exchange.close();
    after
}

impl<'a> Exchange<'a> {
    fn begin(
        worker: &'a Rc<Worker>,
        plane: &'a Plane,
        client: &'a mut Client,
        scratch: &'a mut Scratch,
    ) -> Exchange<'a> {
        let random = worker.rng.borrow_mut().u128(..);
        let is_trusted = client.origin.trusted;
        let record = Record::begin(worker, plane, random, Some(&scratch.request), is_trusted);
        let (address, address_is_known) = client.address(&scratch.request);
        let is_exchange = client.stream.is_exchange();
        let received = if is_exchange { "2" } else { scratch.request.version().number() };
        client.entry.begin(client.flight(&scratch.request, address, record.id, record.started));
        Exchange {
            worker,
            plane,
            client,
            address,
            address_is_known,
            identity: None,
            route: None,
            received,
            rates: Vec::new(),
            scratch,
            record,
        }
    }

    async fn walk(&mut self) -> After {
        match self.resolve().await {
            Ok(target) => Forwarding::new(self, target).run().await,
            Err(answer) => self.answer_by_route(answer).await,
        }
    }

    /// Finds the route, runs its filters, and returns where the request goes or the answer that
    /// Weir gives itself.
    async fn resolve(&mut self) -> Result<Target<'a>, Answer> {
        // Before the routes: an authority comes from anywhere, without credentials, and expects no
        // redirect (RFC 8555 section 8.3).
        if let Some(answer) = self.challenge_answer() {
            return Err(answer);
        }
        let index = self.find_route()?;
        self.route = Some(index);
        let route = &self.plane.published.snapshot.routes[index];
        self.refuse_in_maintenance(route)?;
        self.run_filters(route).await?;
        self.act(route)
    }

    /// Returns the request's route, once found.
    fn route(&self) -> Option<&'a Route> {
        self.route.map(|index| &*self.plane.published.snapshot.routes[index])
    }

    /// Finds the request's route; returns its index.
    fn find_route(&self) -> Result<usize, Answer> {
        self.refusal()?;
        let published = &self.plane.published;
        let request = &*self.scratch.request;
        let arrival = Arrival {
            listener: self.client.via.listener,
            client: self.address_is_known.then(|| self.address.ip()),
            certificate: if published.router.reads_certificates() {
                self.client.certificate_names()
            } else {
                None
            },
        };
        let Some(index) = published.router.find(request, &arrival) else {
            // Servers normalise such paths differently; a path that one considers public may be
            // protected on another.
            return Err(if has_dot_segments(request.path()) {
                Answer { detail: "dot segments in the path", ..Answer::of(Cause::HttpRequestError) }
            } else {
                Answer::of(Cause::DestinationNotFound)
            });
        };
        Ok(index)
    }

    /// Refuses the request if its route is in maintenance.
    fn refuse_in_maintenance(&self, route: &Route) -> Result<(), Answer> {
        let switched = self.worker.shared.registry.maintenance();
        match switched.in_force(Maintained::Route, &route.name, route.maintenance) {
            None => Ok(()),
            Some(Maintenance { retry_after }) => {
                Err(Answer { retry_after, ..Answer::of(Cause::Maintenance) })
            }
        }
    }

    /// Performs the route's action; returns where the request goes if that is forwarding.
    fn act(&self, route: &'a Route) -> Result<Target<'a>, Answer> {
        let request = &*self.scratch.request;
        let denied = |denial: &Denial| {
            let Denial { status, cause } = *denial;
            Answer { status, ..Answer::of(cause.cause()) }
        };
        match &route.action {
            Action::Deny(denial) => Err(denied(denial)),
            Action::Respond(respond) => {
                Err(local::respond(respond, self.worker, &self.plane.published))
            }
            Action::Redirect(redirect) => {
                let location = location(redirect, route, request, self.client.origin.scheme);
                let location = Some(location);
                let status = redirect.status;
                Err(Answer { status, location, ..Answer::of(Cause::Redirected) })
            }
            Action::Forward(_) if route.refuses(request.method()) => {
                Err(Answer::of(Cause::HttpMethodNotAllowed))
            }
            Action::Forward(forward) => {
                let mut rng = self.worker.rng.borrow_mut();
                let Placement { branch, bound, .. } =
                    place(&self.plane.published, forward, request, os::clock::wall, &mut rng);
                match branch.to {
                    SplitTarget::Service(service) => {
                        let (fields, timeouts) = (forward.fields_of(branch), forward.timeouts);
                        let retries = &forward.retries;
                        Ok(Target { route, forward, fields, timeouts, retries, service, bound })
                    }
                    SplitTarget::Deny(denial) => {
                        let detail = "a branch of the split refuses its share";
                        Err(Answer { detail, ..denied(&denial) })
                    }
                }
            }
        }
    }

    /// Refuses requests that are refused regardless of the routes.
    fn refusal(&self) -> Result<(), Answer> {
        let (client, request): (&Client, &RequestHead) = (self.client, &self.scratch.request);
        if request.cdn_loop_passes(self.worker.shared.identity.id().as_bytes()) >= PASSES_MAX {
            return Err(Answer::of(Cause::ProxyLoopDetected));
        }
        // Over HTTP/1.1, Upgrade is a request that may be ignored. An extended CONNECT has no other
        // meaning.
        let is_refused_protocol = client.stream.is_exchange()
            && request.known(Known::Upgrade).is_some()
            && request.upgrade().is_none();
        if is_refused_protocol {
            let detail = "extended CONNECT for a protocol that is not in upgrade_protocols";
            return Err(Answer { detail, ..Answer::of(Cause::HttpRequestNotImplemented) });
        }
        if let Some(hosts) = &client.settings().hosts {
            refuse_host(hosts, client, request.host())?;
        }
        match request.body() {
            RequestBody::Length(length) if !client.settings().allows_body(length) => {
                Err(Answer::of(Cause::HttpRequestBodyTooLarge))
            }
            _ => Ok(()),
        }
    }

    /// Ends the exchange at any stage. If the client has not been answered yet, it is answered with
    /// the cause.
    async fn cut_off(&mut self, cause: Cause) -> After {
        if self.record.status == 0 {
            return self.answer(Answer::of(cause)).await;
        }
        self.record.end(cause);
        After::Reset
    }

    /// Counts and logs the exchange.
    fn close(self) {
        self.client.entry.end();
        let route = self.route();
        let Exchange { worker, plane, client, address, scratch, record, .. } = self;
        account::finish(worker, plane, (client, address), route, scratch, &record);
    }
}

/// Refuses a request for a host that the listener does not serve, or that belongs to another entry of `hosts`
/// than the connection's server name.
fn refuse_host(hosts: &Hosts, client: &Client, host: &str) -> Result<(), Answer> {
    if hosts.entry(host).is_none() {
        let detail = "a host that the listener does not serve";
        return Err(Answer { detail, ..Answer::of(Cause::DestinationNotFound) });
    }
    match client.stream.tls() {
        Some(tls) if !hosts.agree(tls.server_name.as_deref(), host) => {
            Err(Answer::of(Cause::MisdirectedRequest))
        }
        _ => Ok(()),
    }
}
