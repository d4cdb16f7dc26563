//! What a request or TCP connection remembers from one attempt to the next.

use std::sync::Arc;

use decide::retry::{self, BudgetTerms, Evidence, Failed, Verdict, WhyNot};
use decide::{Endpoint, LiveService, Slot};
use model::{Address, Cause, Moment, Service};

use crate::worker::Worker;

/// The attempts made and those left.
pub(crate) struct Tries {
    /// Servers on which it has failed.
    pub(crate) failed: Vec<Address>,
    /// Attempts that may still be made.
    left: u32,
    /// Replays that did not count as attempts.
    replays: u32,
    /// The next attempt takes no pooled connection.
    fresh: bool,
    /// The next attempt shares its connection with no other request: this one may have ended the
    /// last one.
    pub(crate) private: bool,
    /// The last server could not be reached, and others of its zone may be unreachable too.
    unreachable: Option<Arc<Endpoint>>,
}

/// A failed attempt, as far as it matters for another.
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// Whether the server may have seen any of the request.
    pub(crate) sent: bool,
    /// Whether the request is idempotent.
    pub(crate) idempotent: bool,
    /// Whether all of it can be sent again.
    pub(crate) kept: bool,
    /// Whether a connection that other requests also used ended with it.
    pub(crate) shared_connection: bool,
}

impl Tries {
    pub(crate) fn new(service: &Service) -> Tries {
        let left = service.retries.attempts_max;
        Tries {
            failed: Vec::new(),
            left,
            replays: 0,
            fresh: false,
            private: false,
            unreachable: None,
        }
    }

    /// Returns whether the next attempt may use a pooled connection.
    pub(crate) fn takes_kept(&self) -> bool {
        !self.fresh && !self.private
    }

    /// Decides whether the request is sent again after failing on `endpoint`.
    pub(crate) fn again(
        &mut self,
        live: &LiveService,
        endpoint: &Arc<Endpoint>,
        failure: &Failure,
        now: Moment,
    ) -> Result<(), WhyNot> {
        let failed = Failed {
            evidence: if failure.sent { Evidence::Unknown } else { Evidence::NeverSent },
            cause: failure.cause,
            idempotent: failure.idempotent,
            body_kept: failure.kept,
            attempts_left: self.left,
            replays: self.replays,
            another_server: self.another_server(live, endpoint),
            shared_connection: failure.shared_connection,
        };
        match retry::decide(&failed, live.retries(), BudgetTerms::default(), now) {
            Verdict::Stop { why } => Err(why),
            Verdict::Retry { fresh_connection, avoid_server, counts } => {
                // A connection that refuses streams is left alone anyway; others may be used.
                self.fresh = fresh_connection && failure.cause != Cause::HttpStreamRefused;
                // Permanently: what has ended one connection may end the next.
                self.private |= failure.shared_connection;
                if avoid_server {
                    self.failed.push(endpoint.row.address);
                }
                if counts {
                    self.left -= 1;
                } else {
                    self.replays += 1;
                }
                let unreachable = retry::is_unreachable(failure.cause);
                self.unreachable = unreachable.then(|| Arc::clone(endpoint));
                Ok(())
            }
        }
    }

    /// Returns a slot that balancing would not choose, if one is free at once: outside the zone
    /// whose server could not be reached, or anywhere once every server that balancing would choose
    /// has failed. Under `balance = "hash"`, the first in the order of the request's `key`.
    pub(crate) fn elsewhere(
        &self,
        worker: &Worker,
        live: &LiveService,
        key: Option<u64>,
    ) -> Option<Slot> {
        let outside = match &self.unreachable {
            Some(endpoint) => endpoint.row.zone.as_deref(),
            None if self.failed.is_empty() || !live.has_only(&self.failed) => return None,
            None => None,
        };
        live.elsewhere(&self.failed, outside, key, &mut worker.rng.borrow_mut())
    }

    /// Returns whether it is worth leaving `endpoint`, which has been marked down, before it has
    /// answered.
    pub(crate) fn may_leave(&self, live: &LiveService, endpoint: &Endpoint) -> bool {
        self.left > 0 && self.another_server(live, endpoint)
    }

    /// Returns whether there is a server left on which this request has not failed.
    fn another_server(&self, live: &LiveService, last: &Endpoint) -> bool {
        live.endpoints().all.iter().any(|endpoint| {
            endpoint.row.address != last.row.address
                && endpoint.is_ready()
                && !self.failed.contains(&endpoint.row.address)
        })
    }
}
