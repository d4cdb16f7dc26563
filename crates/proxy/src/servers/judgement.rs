//! Reports to passive health checking how the attempts of one request ended. `health::blame`
//! decides what an outcome means, `health::outlier` what follows from it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use decide::{Endpoint, LiveService, Slot};
use health::attempt::Attempt;
use health::blame::{Blame, Ended, Outcome, judge};
use health::outlier;
use model::{Moment, Service};

/// What the attempts of one request say about their servers. Dropping it ends the request and
/// reports what was held back.
pub(crate) struct Judgement<'a> {
    live: &'a LiveService,
    service: &'a Service,
    /// A failure after sending, held back until it is known whether the request fails elsewhere
    /// too.
    held: Option<Held>,
    /// The request failed on two servers: it counts against neither.
    acquitted: bool,
}

/// An attempt: its server, and how and when that was chosen.
#[derive(Clone, Copy)]
struct Pick<'a> {
    endpoint: &'a Endpoint,
    drawn: bool,
    chosen_at: Moment,
}

/// The same, kept beyond the attempt.
struct Held {
    endpoint: Arc<Endpoint>,
    drawn: bool,
    chosen_at: Moment,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(live: &'a LiveService, service: &'a Service) -> Judgement<'a> {
        Judgement { live, service, held: None, acquitted: false }
    }

    /// Reports the end of an attempt at the slot's server, which was chosen at `chosen_at`, by an
    /// affinity if it is `bound`.
    pub(crate) fn ended(
        &mut self,
        slot: &Slot,
        ended: Ended,
        bound: bool,
        (chosen_at, now): (Moment, Moment),
    ) {
        let endpoint = slot.endpoint();
        let count_5xx = self.service.passive.is_some_and(|passive| passive.count_5xx);
        let blame = judge(ended, count_5xx);
        if blame.is_against() {
            endpoint.state.failures.fetch_add(1, Relaxed);
            if let Outcome::Failed(cause) = ended.outcome {
                endpoint.state.failed_by.count(cause);
            }
        }
        let drawn = slot.is_drawn() && !bound;
        let here = Pick { endpoint, drawn, chosen_at };
        match self.held.take() {
            // The same server has answered the same request: it was not at fault, or only briefly.
            Some(held) if blame == Blame::Good && held.is_at(endpoint) => {
                self.report(held.at(), Blame::None, now);
                self.report(here, blame, now);
            }
            // The request fails on another server too.
            Some(held) if blame == Blame::Compared && !held.is_at(endpoint) => {
                self.acquitted = true;
                self.report(held.at(), Blame::None, now);
                self.report(here, Blame::None, now);
            }
            // A request bound to a server by its cookie has no other server to compare with: nor does
            // it count against one where it fails next.
            None if blame == Blame::Compared && bound => {
                self.acquitted = true;
                self.report(here, Blame::None, now);
            }
            None if blame == Blame::Compared && !self.acquitted => {
                self.held = Some(Held { endpoint: Arc::clone(endpoint), drawn, chosen_at });
            }
            held => {
                self.held = held;
                let reported = if blame == Blame::Compared { Blame::None } else { blame };
                self.report(here, reported, now);
            }
        }
    }

    fn report(&self, at: Pick<'_>, blame: Blame, now: Moment) {
        let Some(policy) = &self.service.passive else { return };
        let Pick { endpoint, drawn, chosen_at } = at;
        let attempt = Attempt {
            state: &endpoint.state,
            trial: self.live.trial(),
            blame,
            drawn,
            chosen_at,
            now,
            response_timeout: self.service.timeouts.response,
        };
        // Loaded only after a failure.
        let endpoints = blame.is_against().then(|| self.live.endpoints());
        // Those that their source has taken out are no peers, and none of the ready ones that must be left.
        let states = || {
            let all = endpoints.iter().flat_map(|known| &known.all);
            all.filter(|one| one.is_usable()).map(|one| &*one.state)
        };
        let Some(ejected) = outlier::on_outcome(&attempt, policy, states) else {
            return;
        };
        self.live.refresh(now);
        tracing::warn!(
            service = %self.service.name,
            server = %endpoint.row.name,
            seconds = ejected.time.as_secs_f64(),
            "ejected: {} (ejection {} in a row)",
            ejected.why,
            ejected.ejections,
        );
    }
}

impl Held {
    fn at(&self) -> Pick<'_> {
        let Held { endpoint, drawn, chosen_at } = self;
        Pick { endpoint, drawn: *drawn, chosen_at: *chosen_at }
    }

    fn is_at(&self, endpoint: &Endpoint) -> bool {
        self.endpoint.row.address == endpoint.row.address
    }
}

impl Drop for Judgement<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.report(held.at(), Blame::Compared, os::clock::now());
        }
    }
}
