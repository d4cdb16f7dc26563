//! The retry loop, shared by requests and TCP connections: a slot, an attempt, and another server
//! if that is safe.

mod admission;
mod judgement;
mod tries;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use decide::retry::{Policy, WhyNot};
use decide::{Endpoint, LiveService, Slot};
use health::blame::{Ended, Outcome, Sent, WaitingFor, cause_to_report};
use model::{Cause, Health, Moment, RouteRetries, Service, ServiceId};
use observe::ServiceCounters;
use transport::Stream;

use crate::abandon::abandon;
use crate::account::Record;
use crate::buffer::Buffer;
use crate::carrier::Carrier;
use crate::failure::Reason;
use crate::plane::Plane;
use crate::roster::Entry;
use crate::server_connection::ServerConnection;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

use judgement::Judgement;
use tries::Tries;

/// What is sent to a server: a request, or a connection in TCP mode.
pub(crate) trait Attempt {
    /// Returns the client that waits for a slot, and where the wait is recorded.
    fn place(&mut self) -> Place<'_>;

    /// Tries the server of `to`.
    async fn attempt(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure>;

    /// Records that the server at `slot` has accepted it, and what that says about the server.
    fn accepted(&mut self, servers: &mut Servers<'_>, slot: &Slot, server: &ServerConnection);

    /// Returns the status of the response whose head has been received, if another attempt may take
    /// its place.
    fn status(&self) -> Option<u16> {
        None
    }

    /// Drops that response, and keeps the connection if possible.
    async fn discard(&mut self, slot: Slot, server: Box<ServerConnection>) {
        drop((slot, server));
    }

    /// Returns whether another attempt would be safe and possible.
    fn resend(&self) -> Resend;
}

/// A failed attempt: why a server gave no connection or no response head.
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    /// The connection on which the server may still be processing the request.
    pub(crate) server: Option<Box<ServerConnection>>,
    /// How much of the request had been sent.
    pub(crate) sent: Sent,
    /// Which side had to act next.
    pub(crate) waiting_for: WaitingFor,
    /// How long the client has kept the attempt waiting for the body.
    pub(crate) waited: Duration,
    /// The shared connection that ended with this stream.
    pub(crate) ended_shared: Option<Rc<Carrier>>,
    /// Another request waited for the same connection, and its failure has already been counted.
    pub(crate) judged: bool,
    /// The client's address was sent before the connection was ready (PROXY protocol), and the
    /// server may have refused it because of that.
    pub(crate) introduced: bool,
    /// Other requests use the same connection.
    pub(crate) shared: bool,
}

impl Failure {
    /// Returns a failure that happened while Weir waited for the server.
    pub(crate) fn new(reason: impl Into<Reason>, sent: Sent) -> Failure {
        Failure {
            reason: reason.into(),
            server: None,
            sent,
            waiting_for: WaitingFor::Server,
            waited: Duration::ZERO,
            ended_shared: None,
            judged: false,
            introduced: false,
            shared: false,
        }
    }

    /// Returns whether the server may have seen any of the request.
    pub(crate) fn may_have_been_seen(&self) -> bool {
        matches!(self.sent, Sent::Part | Sent::Whole)
    }

    /// Returns the failure in the terms of `health::blame`.
    pub(crate) fn ended(&self) -> Ended {
        Ended {
            outcome: Outcome::Failed(self.reason.cause),
            waiting_for: self.waiting_for,
            sent: if self.introduced { Sent::Part } else { self.sent },
            shared: self.shared,
            among_others: self.ended_shared.as_ref().is_some_and(|carrier| carrier.streams() > 1),
            judged: self.judged
                || self.ended_shared.as_ref().is_some_and(|carrier| carrier.is_judged()),
        }
    }
}

/// Whether a request can be sent again.
pub(crate) struct Resend {
    /// Sending it twice has the same effect as sending it once (RFC 9110 section 9.2.2).
    pub(crate) idempotent: bool,
    /// All of it can be sent again.
    pub(crate) kept: bool,
    /// The client has received part of an answer, an informational response: that of a second server
    /// would be a different one.
    pub(crate) informed: bool,
}

/// The server of an attempt.
pub(crate) struct Chosen<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) tries: &'a Tries<'a>,
    live: &'a LiveService,
    /// It was up, or not known to be down, when it was chosen: when all are down, all are tried.
    was_up: bool,
}

impl Chosen<'_> {
    /// Returns whether the server has been marked down since, and another may do better.
    pub(crate) fn is_to_leave(&self) -> bool {
        let endpoint = self.slot.endpoint();
        self.was_up
            && endpoint.state.health() == Health::Down
            && self.tries.may_leave(self.live, endpoint)
    }

    /// Waits for `connecting`, as long as the server is worth waiting for.
    pub(crate) fn connected<E: From<Cause>>(
        &self,
        mut connecting: impl Future<Output = Result<Box<ServerConnection>, E>> + Unpin,
    ) -> impl Future<Output = Result<Box<ServerConnection>, E>> + Unpin {
        poll_fn(move |cx| match Pin::new(&mut connecting).poll(cx) {
            Poll::Pending if self.is_to_leave() => Poll::Ready(Err(Cause::ServerMarkedDown.into())),
            connected => connected,
        })
    }
}

/// A client that waits for a slot, and may leave while it waits.
pub(crate) struct Place<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) watchdog: &'a mut Watchdog,
    pub(crate) entry: &'a Entry,
    pub(crate) record: &'a mut Record,
    /// A client that has closed its sending side still waits for an answer: in TCP mode, each
    /// direction ends separately.
    pub(crate) half_close: bool,
}

/// Why no server serves the request, or no further one.
pub(crate) struct NoServer {
    pub(crate) reason: Reason,
    /// When a retry by the client would be worthwhile, as far as that can be predicted.
    pub(crate) retry_after: Option<Duration>,
}

impl<R: Into<Reason>> From<R> for NoServer {
    fn from(reason: R) -> NoServer {
        NoServer { reason: reason.into(), retry_after: None }
    }
}

/// A service's servers, as one request or connection tries them.
pub(crate) struct Servers<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) service: &'a Service,
    pub(crate) live: &'a Arc<LiveService>,
    /// This worker's.
    counters: &'a Arc<ServiceCounters>,
    /// The key under `balance = "hash"`.
    pub(crate) key: Option<u64>,
    /// The server that affinity names.
    pub(crate) affinity: Option<u64>,
    pub(crate) tries: Tries<'a>,
    judgement: Judgement<'a>,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(
        worker: &'a Rc<Worker>,
        plane: &'a Plane,
        id: ServiceId,
        (key, affinity): (Option<u64>, Option<u64>),
        retries: &'a RouteRetries,
    ) -> Servers<'a> {
        let service = plane.published.snapshot.service(id);
        let live = &plane.published.services[id.0 as usize];
        let tries = Tries::new(Policy::new(&service.retries, retries));
        let judgement = Judgement::new(live, service);
        let counters = plane.service_counters(id, &worker.shard);
        Servers { worker, service, live, counters, key, affinity, tries, judgement }
    }

    /// Tries `call` on servers until one has accepted it: has sent a response head, or in TCP mode
    /// has accepted the connection.
    pub(crate) async fn reach(
        &mut self,
        call: &mut impl Attempt,
        mut now: Moment,
    ) -> Result<(Slot, Box<ServerConnection>), NoServer> {
        self.refuse_in_maintenance(self.service.maintenance)?;
        self.live.retries().note_request(self.worker.id, now);
        self.counters.asked.increment();
        loop {
            let admitted = self.admit(call.place(), now).await;
            if admitted.is_err() && call.place().record.attempts() == 0 {
                self.counters.unserved.increment();
            }
            let (slot, chosen_at) = admitted?;
            let was_up = slot.endpoint().state.health() != Health::Down;
            let to = Chosen { slot: &slot, tries: &self.tries, live: self.live, was_up };
            let attempted = call.attempt(&to).await;
            let pause = match attempted {
                Ok(server) => {
                    call.place().record.is_seen = true;
                    call.accepted(self, &slot, &server);
                    let Some(pause) = self.answered(call, &slot) else { return Ok((slot, server)) };
                    call.discard(slot, server).await;
                    pause
                }
                Err(failure) => self.failed(call, slot, failure, (chosen_at, os::clock::now()))?,
            };
            now = os::clock::now();
            if !pause.is_zero() {
                now = admission::pause(call.place(), now + pause).await?;
                // It may have begun meanwhile, also by a reload.
                self.refuse_in_maintenance(self.live.spec().maintenance)?;
            }
        }
    }

    /// Handles a response. Returns the pause before another attempt if its status is to be retried
    /// and may be.
    fn answered(&mut self, call: &mut impl Attempt, slot: &Slot) -> Option<Duration> {
        let status = call.status().filter(|status| self.tries.fails(*status))?;
        let failed = tries::Failure {
            cause: Cause::HttpResponseStatus,
            status: Some(status),
            sent: true,
            shared_connection: false,
            // The server works, and has the state of the client's session.
            keeps_server: slot.endpoint().is_named_by(self.affinity),
        };
        self.again(call, slot.endpoint(), &failed, os::clock::now())
    }

    /// Handles a failed attempt. Returns the pause before another; fails if there must be no other.
    fn failed(
        &mut self,
        call: &mut impl Attempt,
        slot: Slot,
        failure: Failure,
        (chosen_at, now): (Moment, Moment),
    ) -> Result<Duration, NoServer> {
        let endpoint = Arc::clone(slot.endpoint());
        let ended = failure.ended();
        self.judge(&slot, ended, (chosen_at, now));
        if let Some(carrier) = &failure.ended_shared {
            carrier.judge();
        }
        let cause = cause_to_report(ended, failure.reason.cause, failure.waited);
        let sent = failure.may_have_been_seen();
        call.place().record.is_seen |= sent;
        let failed = tries::Failure {
            cause,
            status: None,
            sent,
            shared_connection: failure.ended_shared.is_some() && cause != Cause::HttpStreamRefused,
            keeps_server: false,
        };
        match failure.server {
            Some(server) => abandon(self.service, self.counters, slot, server),
            None => drop(slot),
        }
        self.again(call, &endpoint, &failed, now)
            .ok_or_else(|| Reason { cause, ..failure.reason }.into())
    }

    /// Decides whether there is another attempt after one that failed on `endpoint`, and records it.
    /// Returns the pause before it; `None`: there must be no other.
    fn again(
        &mut self,
        call: &mut impl Attempt,
        endpoint: &Arc<Endpoint>,
        failure: &tries::Failure,
        now: Moment,
    ) -> Option<Duration> {
        let resend = call.resend();
        let record = call.place().record;
        let again = if resend.informed {
            Err(WhyNot::NoUse)
        } else {
            let ends = record.to_end.map(|(ends, _)| ends);
            self.tries.again((self.worker, self.live), endpoint, (failure, resend), (now, ends))
        };
        match again {
            Ok(pause) => {
                let address = endpoint.row.address;
                record.failed_attempt(address, (failure.cause, failure.status), now);
                Some(pause)
            }
            Err(why) => {
                record.not_retried = Some(why.as_str());
                None
            }
        }
    }

    /// Reports to passive health checking how an attempt at the slot's server ended. `times`: when
    /// the server was chosen, and when the attempt ended.
    pub(crate) fn judge(&mut self, slot: &Slot, ended: Ended, times: (Moment, Moment)) {
        let bound = slot.endpoint().is_named_by(self.affinity);
        self.judgement.ended(slot, ended, bound, times);
    }
}
