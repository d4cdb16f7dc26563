//! Tells passive health how the attempts of one request ended. What an outcome means is decided by
//! `health::blame`; what follows from it by `health::outlier`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use decide::{Endpoint, LiveService};
use health::blame::{Blame, Ended, Outcome, judge};
use health::outlier::{self, Attempt};
use model::{Moment, Service};

/// What the attempts of one request say about their servers. When it is dropped, the request is
/// over, and what was held back is told.
pub(crate) struct Judgement<'a> {
    live: &'a LiveService,
    service: &'a Service,
    /// A failure after sending, until it is known whether the request fails elsewhere too.
    held: Option<(Arc<Endpoint>, Moment)>,
    /// The request failed on two servers: it counts against none of them.
    acquitted: bool,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(live: &'a LiveService, service: &'a Service) -> Judgement<'a> {
        Judgement { live, service, held: None, acquitted: false }
    }

    /// An attempt has ended at a server that was chosen at `chosen_at`, by an affinity cookie if it
    /// is `bound`. Returns what that says about the server.
    pub(crate) fn ended(
        &mut self,
        endpoint: &Arc<Endpoint>,
        ended: Ended,
        bound: bool,
        (chosen_at, now): (Moment, Moment),
    ) -> Blame {
        let count_5xx = self.service.passive.is_some_and(|passive| passive.count_5xx);
        let blame = judge(ended, count_5xx);
        if blame.is_against() {
            endpoint.state.failures.fetch_add(1, Relaxed);
            if let Outcome::Failed(cause) = ended.outcome {
                endpoint.state.failed_by.count(cause);
            }
        }
        // A client that is bound to a server has chosen it: nothing to compare with.
        if blame != Blame::Compared || bound {
            let told = if blame == Blame::Compared { Blame::None } else { blame };
            self.tell(endpoint, told, chosen_at, now);
            return blame;
        }
        match self.held.take() {
            Some((first, first_chosen_at)) if first.row.address != endpoint.row.address => {
                self.acquitted = true;
                self.tell(&first, Blame::None, first_chosen_at, now);
                self.tell(endpoint, Blame::None, chosen_at, now);
            }
            None if !self.acquitted => self.held = Some((Arc::clone(endpoint), chosen_at)),
            held => {
                self.held = held;
                self.tell(endpoint, Blame::None, chosen_at, now);
            }
        }
        blame
    }

    fn tell(&self, endpoint: &Endpoint, blame: Blame, chosen_at: Moment, now: Moment) {
        let Some(policy) = &self.service.passive else { return };
        let attempt = Attempt {
            state: &endpoint.state,
            trial: self.live.trial(),
            blame,
            chosen_at,
            now,
            response_timeout: self.service.timeouts.response,
        };
        // Loaded only after a failure.
        let endpoints = blame.is_against().then(|| self.live.endpoints());
        let states = || endpoints.iter().flat_map(|known| known.all.iter().map(|one| &*one.state));
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

impl Drop for Judgement<'_> {
    fn drop(&mut self) {
        if let Some((endpoint, chosen_at)) = self.held.take() {
            self.tell(&endpoint, Blame::Compared, chosen_at, os::clock::now());
        }
    }
}
