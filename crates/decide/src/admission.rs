//! Decides what happens to one request: a slot on a server, a place in the queue, or a refusal.
//!
//! `pick` chooses the server, `zones` decides who is eligible, `queue` keeps the waiting requests;
//! this file asks them in order.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use model::{Address, Moment};

use crate::drain::retry_after;
use crate::endpoint::Endpoint;
use crate::endpoints::{Endpoints, Order};
use crate::live::LiveService;
use crate::pick::Turn;
use crate::queue::Ticket;
use crate::slot::Slot;
use crate::sync::{Fence, fence};

/// What is known about a request when it asks for a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The [`crate::hash_key`] of the part of the request that the service's `hash` names.
    pub key: Option<u64>,
    /// The server's token from the affinity cookie or session.
    pub affinity: Option<u64>,
    /// Servers that this request has tried already. Chosen again only if no other server is
    /// eligible, or if all others are full and the queue has no place.
    pub avoid: &'a [Address],
}

/// The decision about a request.
#[derive(Debug)]
pub enum Admission {
    /// Send it to this server.
    Go(Slot),
    /// Wait in the queue.
    Wait(Waiter),
    /// Refuse it.
    Refused(Refusal),
}

/// Why a request gets no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No server takes new work.
    NoServerReady,
    /// Every eligible server is at its limit, and so is the queue.
    Full {
        /// When a retry may be worthwhile: 1 to 60 whole seconds.
        retry_after: Duration,
    },
}

/// A place in a service's queue. Dropping it leaves the queue; a slot granted meanwhile goes to the
/// next request. How long to wait is up to the holder. When all servers are down, waiting may still
/// succeed if one comes back in time.
#[derive(Debug)]
pub struct Waiter {
    service: Arc<LiveService>,
    ticket: Arc<Ticket>,
}

impl Waiter {
    #[cfg(test)]
    pub(crate) fn ticket_number(&self) -> u64 {
        self.ticket.number()
    }

    /// Returns the slot once it is this request's turn. After it was ready once, it stays pending.
    pub fn poll_slot(&mut self, cx: &mut Context<'_>) -> Poll<Slot> {
        self.ticket.poll(cx)
    }

    /// Returns the `Retry-After` for a client that does not wait any longer: the time to serve the
    /// queue as it is now, 1 to 60 whole seconds.
    pub fn retry_after(&self, now: Moment) -> Duration {
        self.service.retry_after(now)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.service.queue.leave(&self.ticket);
    }
}

impl LiveService {
    /// Decides what happens to a request.
    ///
    /// A server with room is chosen by the service's algorithm, unless others wait already: a new
    /// request queues behind them. A request whose affinity names a ready server goes there; if
    /// that server is full it waits for it, and only if the queue has no place does it go
    /// elsewhere, as with persistence and `maxqueue` in `HAProxy`.
    ///
    /// While there is room and nothing waits, this takes no lock and allocates nothing.
    pub fn admit(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) -> Admission {
        let endpoints = self.endpoints.load();
        let bound = ask.affinity.and_then(|token| endpoints.by_token(token));
        if let Some(endpoint) = bound
            && !ask.avoid.contains(&endpoint.row.address)
        {
            if self.queue.length() == 0
                && let Some(slot) = Slot::take(endpoint)
            {
                endpoint.state.bound.fetch_add(1, Relaxed);
                return Admission::Go(slot);
            }
            if let Some(admission) = self.join(Some(endpoint.row.address), &[], &endpoints, now) {
                return admission;
            }
        }
        if endpoints.eligible.is_empty() {
            return self.without_server(ask.avoid, &endpoints, now);
        }
        let none_untried = !ask.avoid.is_empty() && endpoints.are_all(ask.avoid);
        let avoid = if none_untried { &[] } else { ask.avoid };
        // Waiting requests come first.
        if !self.queue.has_unbound()
            && let Some(slot) = endpoints.take(avoid, self.order(ask.key, now), rng, now)
        {
            return Admission::Go(slot);
        }
        if let Some(admission) = self.join(None, avoid, &endpoints, now) {
            return admission;
        }
        if let Some(slot) = self.leftover(&endpoints, avoid) {
            return Admission::Go(slot);
        }
        self.refused.fetch_add(1, Relaxed);
        self.note_need(&self.settings.load().spec);
        Admission::Refused(Refusal::Full { retry_after: self.retry_after(now) })
    }

    /// Returns whether requests wait while no server takes new work.
    pub(crate) fn waits_for_servers(&self) -> bool {
        let settings = self.settings.load();
        settings.spec.scaling.as_ref().is_some_and(|scaling| scaling.servers_min == 0)
    }

    /// Decides what happens to a request while no server takes new work. A service that may be scaled to
    /// zero lets it wait: it is what makes the autoscaler start a server.
    fn without_server(
        self: &Arc<Self>,
        avoid: &[Address],
        endpoints: &Arc<Endpoints>,
        now: Moment,
    ) -> Admission {
        if !self.waits_for_servers() {
            return Admission::Refused(Refusal::NoServerReady);
        }
        self.join(None, avoid, endpoints, now).unwrap_or_else(|| {
            self.refused.fetch_add(1, Relaxed);
            Admission::Refused(Refusal::Full { retry_after: self.retry_after(now) })
        })
    }

    /// Returns how the server is chosen: by the service's algorithm, or at random during a trial. A
    /// key keeps its server even then.
    fn order(&self, key: Option<u64>, now: Moment) -> Order<'_> {
        self.order_with(&self.turn, key, now)
    }

    /// As [`LiveService::order`], with another counter of turns.
    pub(crate) fn order_with<'a>(
        &self,
        turn: &'a Turn,
        key: Option<u64>,
        now: Moment,
    ) -> Order<'a> {
        let random = key.is_none() && self.trial().is_on(now);
        if random { Order::Random } else { Order::Algorithm(turn, key) }
    }

    /// Joins the queue and checks once more for a free slot; `None` if there is no place.
    fn join(
        self: &Arc<Self>,
        bound: Option<Address>,
        avoid: &[Address],
        seen: &Arc<Endpoints>,
        now: Moment,
    ) -> Option<Admission> {
        let settings = self.settings.load();
        let ticket = self.queue.join(bound, avoid, settings.spec.queue.length_max)?;
        let waiter = Waiter { service: Arc::clone(self), ticket };
        fence(Fence::Joined);
        let endpoints = self.endpoints.load();
        if Arc::ptr_eq(&endpoints, seen) {
            match bound.and_then(|address| endpoints.by_address(address)) {
                Some(endpoint) => endpoint.slots.serve_waiters(),
                None => endpoints.eligible().for_each(|one| one.slots.serve_waiters()),
            }
        } else {
            self.serve_waiters();
        }
        self.observe_drain(now);
        if let Some(slot) = waiter.ticket.collect() {
            return Some(Admission::Go(slot));
        }
        self.note_need(&settings.spec);
        Some(Admission::Wait(waiter))
    }

    /// When there is no place to wait: a slot that no waiting request can use, since all of them
    /// avoid that server, or else one on a server that this request would avoid.
    fn leftover(&self, endpoints: &Endpoints, avoid: &[Address]) -> Option<Slot> {
        let among =
            |avoided: bool| self.usable_leftover(endpoints, avoid, avoided).find_map(Slot::take);
        among(false).or_else(|| among(true))
    }

    /// Returns the servers with a free slot that no waiting request can use, of those that are in
    /// `avoid` or those that are not.
    pub(crate) fn usable_leftover<'a>(
        &self,
        endpoints: &'a Endpoints,
        avoid: &[Address],
        avoided: bool,
    ) -> impl Iterator<Item = &'a Arc<Endpoint>> {
        endpoints.eligible().filter(move |one| {
            let address = one.row.address;
            avoid.contains(&address) == avoided
                && one.slots.has_room()
                && self.queue.waiting_since(address, true).is_none()
        })
    }

    fn retry_after(&self, now: Moment) -> Duration {
        retry_after(self.queue.length(), self.observe_drain(now))
    }
}
