//! Forwards a request: the state shared by its attempts, and the target from the route to a response.

use std::sync::Arc;

use decide::Slot;
use decide::placement::Bound;
use health::blame::{Ended, Outcome, Sent};
use model::{
    Cause, Forward, HttpVersion, MessageChanges, ResponseFilter, Route, RouteRetries,
    RouteTimeouts, Service, ServiceId,
};
use rustls::ClientConfig;
use wire::http1::RequestBody;

use super::Exchange;
use super::connecting;
use super::upload::{Upload, is_conversation};
use crate::abandon::abandon;
use crate::answer::Answer;
use crate::balance;
use crate::budget::Charge;
use crate::client::{After, Client};
use crate::failure::Reason;
use crate::server_connection::{Introduced, Reach, ServerConnection};
use crate::servers::{Attempt, Chosen, Failure, NoServer, Place, Resend, Servers};
use crate::watchdog::{Direction, Limits};

/// Where a request goes, and how its messages are changed.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) route: &'a Route,
    pub(super) forward: &'a Forward,
    pub(super) fields: &'a MessageChanges,
    pub(super) timeouts: RouteTimeouts,
    pub(super) retries: &'a RouteRetries,
    pub(super) service: ServiceId,
    pub(super) bound: Bound,
}

/// A request being forwarded to a service.
pub(super) struct Forwarding<'x, 'a> {
    pub(super) exchange: &'x mut Exchange<'a>,
    pub(super) route: &'a Route,
    pub(super) forward: &'a Forward,
    /// The changes to the fields of both messages.
    pub(super) fields: &'a MessageChanges,
    /// Its time limits in place of the service's.
    pub(super) timeouts: RouteTimeouts,
    /// When it is retried, in place of what the service says.
    retries: &'a RouteRetries,
    /// The filters that the response passes through.
    pub(super) filters: &'a [ResponseFilter],
    /// How much of the response's body is forwarded; the rest is dropped with the connection.
    pub(super) response_max_bytes: u64,
    /// The indices of the mirrors that the request is copied to.
    pub(super) mirrors: Vec<usize>,
    pub(super) id: ServiceId,
    pub(super) service: &'a Service,
    pub(super) tls: Option<&'a Arc<ClientConfig>>,
    pub(super) limits: Limits,
    pub(super) upload: Upload,
    /// The server that the request's affinity cookie or session names.
    pub(super) bound: Bound,
    /// The body must arrive at a minimum rate while others wait for the slot.
    pub(super) has_rate: bool,
    /// Weir, instead of the server, has sent the client a 100 (Continue).
    pub(super) continued: bool,
    /// The client has received an informational response.
    pub(super) informed: bool,
    /// The memory for a body that was buffered before a slot was taken.
    pub(super) charge: Option<Charge>,
}

impl<'x, 'a> Forwarding<'x, 'a> {
    /// Draws the mirrors, and starts the request's total timeout.
    pub(super) fn new(exchange: &'x mut Exchange<'a>, target: Target<'a>) -> Forwarding<'x, 'a> {
        let mut forwarding = Forwarding::to(exchange, target);
        if !target.forward.mirrors.is_empty() {
            forwarding.draw_mirrors();
        }
        forwarding
    }

    /// As [`Forwarding::new`], without mirrors.
    pub(super) fn to(
        exchange: &'x mut Exchange<'a>,
        Target { route, forward, fields, timeouts, retries, service: id, bound }: Target<'a>,
    ) -> Forwarding<'x, 'a> {
        let Exchange { plane, client, scratch, record, .. } = &mut *exchange;
        let service = plane.published.snapshot.service(id);
        let tls = plane.tls.services[id.0 as usize].as_ref();
        record.service = Some(id);
        client.entry.note(|flight| flight.service = Some(id));
        let limits = Limits::default();
        if let Some((total, cause)) = decide::deadline::total(timeouts, service, &scratch.request) {
            let to_end = record.started + total;
            record.to_end = Some((to_end, cause));
            limits.set(Direction::Whole, to_end, cause);
        }
        let has_rate = !matches!(scratch.request.body(), RequestBody::None)
            && !is_conversation(&scratch.request, service, client);
        let upload = Upload::new(client, plane, scratch, service);
        Forwarding {
            exchange,
            route,
            forward,
            fields,
            timeouts,
            retries,
            filters: &forward.filters,
            response_max_bytes: u64::MAX,
            mirrors: Vec::new(),
            id,
            service,
            tls,
            limits,
            upload,
            bound,
            has_rate,
            continued: false,
            informed: false,
            charge: None,
        }
    }

    /// Finds a server that answers, and forwards its response.
    pub(super) async fn run(&mut self) -> After {
        if let Err(reason) = self.encodable() {
            return self.give_up(reason.into()).await;
        }
        let mut now = self.exchange.record.started;
        match self.read_ahead().await {
            Ok(false) => {}
            Ok(true) => now = os::clock::now(),
            Err(reason) => return self.give_up(reason.into()).await,
        }
        let Exchange { worker, plane, address, ref identity, ref scratch, .. } = *self.exchange;
        let key = balance::key(self.service, &scratch.request, identity.as_deref(), address.ip());
        let placed = (key, self.bound.server);
        let mut servers = Servers::new(worker, plane, self.id, placed, self.retries);
        match servers.reach(self, now).await {
            Ok((slot, server)) => {
                drop(servers);
                // The request will not be sent again. If the server has answered early, some of it is
                // still buffered.
                self.upload.pump.keep_no_more();
                if self.upload.pump.is_done() {
                    self.charge = None;
                }
                self.mirror();
                self.respond(slot, server).await
            }
            Err(none) => self.give_up(none).await,
        }
    }

    /// Refuses a request that servers of HTTP/2 are known to reset, before a server is chosen: it
    /// would count as their failure. RFC 3986 section 3.2.2 allows a percent-encoded host, but no
    /// real host has one, and hyper refuses it.
    fn encodable(&self) -> Result<(), Reason> {
        let authority = self.exchange.scratch.request.authority();
        if self.service.http != HttpVersion::Http2
            || self.forward.rewrite.host.is_some()
            || !authority.contains('%')
        {
            return Ok(());
        }
        let detail = "a percent-encoded host, which servers of HTTP/2 do not accept";
        Err(Reason { cause: Cause::HttpRequestError, detail })
    }

    /// Drops a connection on which the server may still be working: see [`abandon`].
    pub(super) fn abandon(&self, slot: Slot, server: Box<ServerConnection>) {
        let Exchange { worker, plane, .. } = &*self.exchange;
        abandon(self.service, plane.service_counters(self.id, &worker.shard), slot, server);
    }

    /// Returns how the service's servers are reached for this client.
    pub(super) fn reach(&self) -> Reach<'_> {
        let Exchange { client, address, .. } = &*self.exchange;
        let introduced = Introduced { address: *address, stream: &client.stream };
        Reach { service: self.service, tls: self.tls, client: introduced }
    }

    /// Answers a request that no server takes, or no further one.
    async fn give_up(&mut self, none: NoServer) -> After {
        let NoServer { reason: Reason { cause, detail }, retry_after } = none;
        let mut answer = Answer { detail, retry_after, ..Answer::of(cause) };
        if matches!(cause, Cause::QueueFull | Cause::QueueWaitExceeded) {
            answer.status = self.service.when_full;
        }
        self.exchange.record.body_read = self.upload.pump.has_read_all();
        self.refuse(answer).await
    }

    /// Answers instead of the server; no more of the request is sent.
    pub(super) async fn refuse(&mut self, answer: Answer) -> After {
        self.exchange.scratch.up = self.upload.pump.take_pending();
        self.exchange.answer(answer).await
    }
}

impl Attempt for Forwarding<'_, '_> {
    fn place(&mut self) -> Place<'_> {
        let Exchange { client, record, .. } = &mut *self.exchange;
        let Client { stream, buffer, watchdog, entry, .. } = &mut **client;
        Place { stream, buffer, watchdog, entry, record, half_close: false }
    }

    async fn attempt(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        self.send(to).await
    }

    fn accepted(&mut self, servers: &mut Servers<'_>, slot: &Slot, server: &ServerConnection) {
        let status = self.exchange.scratch.response.status();
        let outcome = if self.is_unexpected_upgrade() {
            Outcome::Failed(Cause::HttpUpgradeFailed)
        } else {
            Outcome::Answered(status)
        };
        let sent = if self.upload.pump.is_done() { Sent::Whole } else { Sent::Part };
        let ended = Ended::alone(outcome, self.upload.waiting_for(), sent);
        let of = (&mut self.exchange.record, self.service);
        let response = &self.exchange.scratch.response;
        connecting::note_head(of, (servers, slot, server), response, ended);
    }

    fn status(&self) -> Option<u16> {
        Some(self.exchange.scratch.response.status())
    }

    async fn discard(&mut self, slot: Slot, server: Box<ServerConnection>) {
        self.drop_response(slot, server).await;
    }

    fn resend(&self) -> Resend {
        let idempotent = self.exchange.scratch.request.is_idempotent();
        Resend { idempotent, kept: self.upload.pump.can_rewind(), informed: self.informed }
    }
}
