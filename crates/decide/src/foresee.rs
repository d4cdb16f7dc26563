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
    /// It would wait in the queue.
    Waits,
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
        let foreseen = self.would_admit(&ask, rng, now);
        let winner = match &foreseen {
            Foreseen::Server(endpoint) => Some(&**endpoint),
            Foreseen::Waits | Foreseen::Refused(_) => None,
        };
        decision.settle(winner, Way::AtOnce, now);
        (foreseen, decision)
    }

    fn would_admit(&self, ask: &Ask<'_>, rng: &mut fastrand::Rng, now: Moment) -> Foreseen {
        let endpoints = self.endpoints();
        let has_place = self.queue.length() < self.settings.load().spec.queue.length_max;
        if let Some(bound) = ask.affinity.and_then(|token| endpoints.by_token(token)) {
            if self.queue.length() == 0 && bound.slots.has_room() {
                return Foreseen::Server(Arc::clone(bound));
            }
            if has_place {
                return Foreseen::Waits;
            }
        }
        if endpoints.eligible.is_empty() {
            return Foreseen::Refused(self.cause_without_server());
        }
        let turn: Turn = self.turn.copy();
        if !self.queue.has_unbound()
            && let Some(chosen) =
                endpoints.would_take(self.order_with(&turn, ask.key, now), rng, now)
        {
            return Foreseen::Server(Arc::clone(chosen));
        }
        if has_place {
            return Foreseen::Waits;
        }
        match self.usable_leftover(&endpoints, &[], false).next() {
            Some(left) => Foreseen::Server(Arc::clone(left)),
            None => Foreseen::Refused(Cause::QueueFull),
        }
    }
}
