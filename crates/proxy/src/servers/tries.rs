//! What a request or TCP connection remembers from one attempt to the next.

use std::sync::Arc;
use std::time::Duration;

use decide::retry::{self, Evidence, Failed, Policy, Verdict, WhyNot};
use decide::{Endpoint, LiveService, Slot};
use model::{Address, Cause, Moment};

use super::Resend;
use crate::worker::Worker;

/// The attempts made and those left.
pub(crate) struct Tries<'a> {
    policy: Policy<'a>,
    /// Servers on which it has failed.
    pub(crate) failed: Vec<Address>,
    /// Attempts after the first, without the replays.
    retried: u32,
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
    /// The status of its response.
    pub(crate) status: Option<u16>,
    /// Whether the server may have seen any of the request.
    pub(crate) sent: bool,
    /// Whether a connection that other requests also used ended with it.
    pub(crate) shared_connection: bool,
    /// Whether the server still is the only one for the request: it has the client's session.
    pub(crate) keeps_server: bool,
}

impl<'a> Tries<'a> {
    pub(crate) fn new(policy: Policy<'a>) -> Tries<'a> {
        Tries {
            policy,
            failed: Vec::new(),
            retried: 0,
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

    /// Returns whether a response with this status fails its attempt.
    pub(crate) fn fails(&self, status: u16) -> bool {
        self.policy.statuses.contains(status)
    }

    /// Decides whether the request, whose total time passes at `ends`, is sent again after failing on
    /// `endpoint`, and after what pause.
    pub(crate) fn again(
        &mut self,
        (worker, live): (&Worker, &LiveService),
        endpoint: &Arc<Endpoint>,
        (failure, resend): (&Failure, Resend),
        (now, ends): (Moment, Option<Moment>),
    ) -> Result<Duration, WhyNot> {
        let another_server = !failure.keeps_server && self.another_server(live, endpoint);
        let mut pause = self.policy.pause(self.retried, &mut worker.rng.borrow_mut());
        if failure.status.is_some() && !another_server {
            pause = pause.max(retry::SAME_SERVER_PAUSE_MIN);
        }
        let failed = Failed {
            evidence: if failure.sent { Evidence::Unknown } else { Evidence::NeverSent },
            cause: failure.cause,
            idempotent: resend.idempotent,
            body_kept: resend.kept,
            attempts_left: self.left(),
            replays: self.replays,
            another_server,
            shared_connection: failure.shared_connection,
            in_time: pause.is_zero() || ends.is_none_or(|ends| now + pause < ends),
        };
        match retry::decide(&failed, live.retries(), now) {
            Verdict::Stop { why } => Err(why),
            Verdict::Retry { fresh_connection, avoid_server, counts } => {
                // A connection that refuses streams is left alone anyway; others may be used.
                self.fresh = fresh_connection && failure.cause != Cause::HttpStreamRefused;
                // Permanently: what has ended one connection may end the next.
                self.private |= failure.shared_connection;
                if avoid_server {
                    self.failed.push(endpoint.row.address);
                }
                let unreachable = retry::is_unreachable(failure.cause);
                self.unreachable = unreachable.then(|| Arc::clone(endpoint));
                if counts {
                    self.retried += 1;
                    Ok(pause)
                } else {
                    self.replays += 1;
                    Ok(Duration::ZERO)
                }
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
        self.left() > 0 && self.another_server(live, endpoint)
    }

    fn left(&self) -> u32 {
        self.policy.attempts_max.saturating_sub(self.retried)
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
