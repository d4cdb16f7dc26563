//! Says which server a request would get now, without taking anything: no slot, no place in the queue
//! and no turn. For people who ask; [`LiveService::admit`] decides about requests, in the same order.

use std::sync::Arc;

use model::{Cause, Moment};

use crate::admission::Ask;
use crate::endpoint::Endpoint;
use crate::explain::{Decision, Way};
use crate::live::LiveService;
use crate::pick::Turn;

/// What would happen to a request.
#[derive(Clone, Debug)]
pub enum Foreseen {
    /// It would go to this server.
    Server(Arc<Endpoint>),
    /// It would wait in the queue: for this server, which its affinity names, or for the first
    /// with a free slot.
    Waits(Option<Arc<Endpoint>>),
    /// It would get no server, and end with this cause.
    Refused(Cause),
}

impl LiveService {
    /// Returns what would happen to a request, and the record of that choice. `ask.avoid` is ignored:
    /// the request has not been tried.
    pub fn foresee(
        &self,
        ask: &Ask<'_>,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) -> (Foreseen, Decision) {
        let ask = Ask { avoid: &[], ..*ask };
        let mut decision = self.explain(&ask, now);
        let (foreseen, way) = self.would_admit(&ask, rng, now);
        let winner = match &foreseen {
            Foreseen::Server(endpoint) => Some(&**endpoint),
            Foreseen::Waits(_) | Foreseen::Refused(_) => None,
        };
        decision.settle(winner, way, now);
        (foreseen, decision)
    }

    fn would_admit(&self, ask: &Ask<'_>, rng: &mut fastrand::Rng, now: Moment) -> (Foreseen, Way) {
        let endpoints = self.endpoints();
        let has_place = self.queue.length() < self.settings.load().spec.queue.length_max;
        let at_once = |foreseen| (foreseen, Way::AtOnce);
        if let Some(bound) = ask.affinity.and_then(|token| endpoints.by_token(token)) {
            // One that joins the queue gets a slot at once if no other that waits can use it.
            let is_first = || self.queue.waiting_since(bound.row.address, true).is_none();
            let may_take = self.queue.length() == 0 || (has_place && is_first());
            if bound.slots.has_room() && may_take {
                return at_once(Foreseen::Server(Arc::clone(bound)));
            }
            if has_place {
                return at_once(Foreseen::Waits(Some(Arc::clone(bound))));
            }
        }
        if endpoints.eligible.is_empty() {
            let foreseen = match self.waits_for_servers() {
                false => Foreseen::Refused(self.cause_without_server()),
                true if has_place => Foreseen::Waits(None),
                true => Foreseen::Refused(Cause::QueueFull),
            };
            return at_once(foreseen);
        }
        let turn: Turn = self.turn.copy();
        if !self.queue.has_unbound()
            && let Some(chosen) =
                endpoints.would_take(self.order_with(&turn, ask.key, now), rng, now)
        {
            return at_once(Foreseen::Server(Arc::clone(chosen)));
        }
        // With a place in the queue or without: a slot that none of those that wait can use is taken.
        let left = self.usable_leftover(&endpoints, &[], false).next();
        match left {
            Some(left) => (Foreseen::Server(Arc::clone(left)), Way::Queue),
            None if has_place => at_once(Foreseen::Waits(None)),
            None => at_once(Foreseen::Refused(Cause::QueueFull)),
        }
    }
}
