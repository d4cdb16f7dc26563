//! Runs the probes that are due according to the plan, and reports their results.
//!
//! One local task per probe. Each consumer decides what a result means (`health::verdict`, held by
//! `watch`); here a probe is started, watched until the last of its consumers' timeouts, and
//! abandoned then. Probes take no slot of their server's concurrency limit.

mod body;
mod grpc;
mod lane;
mod way;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use health::plan::{Consumer, ConsumerId, Plan, ProbeId};
use health::report::Report;
use health::shared::assignment::MemberIndex;
use health::shared::belief::{Duty, Event, Standing};
use health::shared::exchange::{Doubted, Exchange, Received};
use health::shared::result;
use health::shared::wire::Refused;
use health::verdict::{Failure, ProbeEvent};
use model::{Address, Moment, ProbeIdentity};
use tokio::sync::mpsc;

use lane::Lane;
use way::Configs;

/// Added to the longest timeout of a probe's consumers, so that the consumers' timeouts always come
/// first.
const GIVE_UP_MARGIN: Duration = Duration::from_secs(1);

/// A report of a running probe.
pub(crate) struct Message {
    id: ProbeId,
    started: Moment,
    event: ProbeEvent,
    /// Returned with the last message of a run.
    lane: Option<Lane>,
}

/// A message in the form that the probe's consumers read.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The probed address.
    pub(crate) address: Address,
    /// The consumers concerned.
    pub(crate) consumers: Vec<ConsumerId>,
    /// When the probe was started.
    pub(crate) started: Moment,
    /// What happened.
    pub(crate) what: What,
    /// Whose results of the probe count.
    pub(crate) standing: Standing,
}

/// What happened to a probe.
#[derive(Debug)]
pub(crate) enum What {
    /// An event of a run here.
    Own(ProbeEvent),
    /// The result of a run at another member of the fleet.
    Other(MemberIndex, result::Heard),
}

/// The plan, and the connections kept between runs.
#[derive(Debug)]
pub(crate) struct Prober {
    plan: Plan,
    lanes: HashMap<ProbeId, Lane>,
    tls: Configs,
    running: usize,
    probes_running_max: usize,
    messages: mpsc::Sender<Message>,
    /// What the fleet shares.
    shared: Option<Exchange>,
}

impl Prober {
    /// Returns a prober without probes. Messages are sent to `messages`; at most
    /// `probes_running_max` run at once, further ones start late.
    pub(crate) fn new(probes_running_max: usize, messages: mpsc::Sender<Message>) -> Prober {
        Prober {
            plan: Plan::new(Vec::new(), Moment::ZERO, fastrand::Rng::new()),
            lanes: HashMap::new(),
            tls: Configs::default(),
            running: 0,
            probes_running_max: probes_running_max.max(1),
            messages,
            shared: None,
        }
    }

    /// Shares the probes from now on, in place of what was shared before; `None`: all are run here.
    pub(crate) fn share(&mut self, shared: Option<Exchange>, now: Moment) {
        self.shared = shared;
        self.follow_shared(now);
    }

    /// Returns what the fleet shares.
    pub(crate) fn shared_mut(&mut self) -> Option<&mut Exchange> {
        self.shared.as_mut()
    }

    /// Returns when there are results to send.
    pub(crate) fn results_due(&self) -> Option<Moment> {
        self.shared.as_ref()?.next_due()
    }

    /// Applies a changed set of consumers.
    pub(crate) fn follow(&mut self, consumers: Vec<Consumer>, now: Moment) {
        self.plan.update(consumers, now);
        self.lanes.retain(|id, _| self.plan.probe(*id).is_some());
        self.tls.forget_unused();
        self.follow_shared(now);
    }

    fn follow_shared(&mut self, now: Moment) {
        if let Some(shared) = &mut self.shared {
            shared.follow(self.plan.probes(), now);
        }
    }

    /// Applies a change of some consumers: those in `gone` leave, those in `new` join.
    pub(crate) fn change(
        &mut self,
        gone: &[(Arc<ProbeIdentity>, ConsumerId)],
        new: Vec<Consumer>,
        now: Moment,
    ) {
        let mut probes: Vec<ProbeId> =
            gone.iter().filter_map(|(identity, _)| self.plan.id_of(identity)).collect();
        let new_probes: Vec<_> = new.iter().map(|consumer| Arc::clone(&consumer.probe)).collect();
        self.plan.change(gone, new, now);
        probes.extend(new_probes.iter().filter_map(|identity| self.plan.id_of(identity)));
        for id in probes {
            let probe = self.plan.probe(id);
            if probe.is_none() {
                self.lanes.remove(&id);
            }
            match (&mut self.shared, probe) {
                (Some(shared), Some(probe)) => shared.set(probe, now),
                (Some(shared), None) => shared.remove(id),
                (None, _) => {}
            }
        }
    }

    /// Starts the probes that are due. A probe none of whose consumers is `wanted` at present is
    /// skipped this time, and so is one whose results come from other members, unless one of its consumers
    /// `needs_own` results.
    pub(crate) fn start_due(
        &mut self,
        now: Moment,
        wanted: impl Fn(ConsumerId) -> bool,
        needs_own: impl Fn(ConsumerId) -> bool,
    ) {
        let room = self.probes_running_max - self.running.min(self.probes_running_max);
        for id in self.plan.due(now, room) {
            let Some(probe) = self.plan.probe(id) else {
                continue;
            };
            let duty = self.shared.as_mut().map_or(Duty::Probe, |shared| {
                if probe.consumers.iter().any(|one| needs_own(one.id)) {
                    shared.probe_for_itself(id, now);
                }
                shared.duty(id, now)
            });
            if duty == Duty::Rely || !probe.consumers.iter().any(|one| wanted(one.id)) {
                self.plan.finished(id);
                continue;
            }
            let lane = self.lanes.remove(&id);
            let run = Run {
                id,
                identity: probe.identity.clone(),
                timeouts: probe.timeouts(),
                lane: lane.unwrap_or_else(|| Lane::new(&probe.identity, &mut self.tls)),
                messages: self.messages.clone(),
            };
            self.running += 1;
            tokio::task::spawn_local(run.run());
        }
    }

    /// Returns when [`Prober::start_due`] next has work to do.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.running >= self.probes_running_max {
            return None;
        }
        self.plan.next_due()
    }

    /// Processes a message. Returns `None` if its probe is no longer in the plan.
    pub(crate) fn on_message(&mut self, message: Message, now: Moment) -> Option<Heard> {
        let Message { id, started, event, lane } = message;
        let standing = self.shared.as_mut().map(|shared| {
            if let ProbeEvent::Done { elapsed, result } = event {
                let doubted = shared.on_own(id, elapsed, result, now);
                for one in &doubted {
                    log_doubted(&self.plan, one);
                }
            }
            shared.standing(id, now)
        });
        let probe = self.plan.probe(id);
        let heard = probe.map(|probe| Heard {
            address: probe.identity.address,
            consumers: probe.consumers.iter().map(|consumer| consumer.id).collect(),
            started,
            what: What::Own(event),
            standing: standing.unwrap_or_else(Standing::alone),
        });
        if let Some(lane) = lane {
            self.running -= 1;
            self.plan.finished(id);
            if heard.is_some() {
                self.lanes.insert(id, lane);
            }
        }
        heard
    }

    /// Reads results that start `start` of the member `from` has sent. Returns those that count.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(crate) fn on_shared(
        &mut self,
        from: &str,
        start: u64,
        bytes: &[u8],
        now: Moment,
    ) -> Result<Vec<Heard>, Refused> {
        let Some(shared) = &mut self.shared else { return Ok(Vec::new()) };
        let received = shared.on_batch(from, start, bytes, now)?.into_iter();
        let heard = received.filter_map(|Received { probe, from, heard, standing }| {
            let probe = self.plan.probe(probe)?;
            let ago = heard.age_at_sending.saturating_add(heard.elapsed);
            Some(Heard {
                address: probe.identity.address,
                consumers: probe.consumers.iter().map(|consumer| consumer.id).collect(),
                started: now.before(ago),
                what: What::Other(from, heard),
                standing,
            })
        });
        Ok(heard.collect())
    }

    /// Returns the number of distinct probes.
    pub(crate) fn probes(&self) -> u32 {
        u32::try_from(self.plan.len()).unwrap_or(u32::MAX)
    }

    /// Returns the plan for display.
    pub(crate) fn report(&self) -> Report {
        self.plan.report()
    }
}

fn log_doubted(plan: &Plan, doubted: &Doubted) {
    let Doubted { member, probe, event } = doubted;
    let server = plan.probe(*probe).map(|probe| tracing::field::display(probe.identity.address));
    match event {
        Event::Ignored { contradictions, .. } => {
            tracing::warn!(%member, server, contradictions, "this balancer's own probes contradict what a member of the fleet says about a server; its results are ignored");
        }
        Event::Believed { .. } => {
            tracing::info!(%member, server, "results of a member of the fleet agree with this balancer's own again");
        }
    }
}

/// One run of one probe.
struct Run {
    id: ProbeId,
    identity: Arc<ProbeIdentity>,
    /// Distinct, shortest first; never empty.
    timeouts: Vec<Duration>,
    lane: Lane,
    messages: mpsc::Sender<Message>,
}

impl Run {
    async fn run(mut self) {
        let started = os::clock::now();
        let result = self.wait(started).await;
        let event = ProbeEvent::Done { elapsed: result.0, result: result.1 };
        self.send(started, event, true).await;
    }

    /// Waits for the result, reporting at each consumer's timeout that there is none yet. A result
    /// that is there when a timeout is noticed counts as in time: this thread may have been late.
    async fn wait(&mut self, started: Moment) -> (Duration, Result<(), Failure>) {
        let last = self.timeouts.last().copied().unwrap_or_default();
        let begun = tokio::time::Instant::now();
        let Run { id, identity, timeouts, lane, messages } = self;
        let mut result = pin!(lane.run(identity, last + GIVE_UP_MARGIN));
        for timeout in timeouts.iter().copied() {
            tokio::select! {
                biased;
                result = &mut result => {
                    return (os::clock::now().since(started).min(timeout), result);
                }
                () = tokio::time::sleep_until(begun + timeout) => {}
            }
            if timeout < last {
                let event = ProbeEvent::Pending { elapsed: timeout };
                let message = Message { id: *id, started, event, lane: None };
                // The loop is gone only when the process stops.
                let _ = messages.send(message).await;
            }
        }
        (last, Err(Failure::Timeout))
    }

    async fn send(self, started: Moment, event: ProbeEvent, last: bool) {
        let lane = last.then_some(self.lane);
        let _ = self.messages.send(Message { id: self.id, started, event, lane }).await;
    }
}

#[cfg(test)]
mod tests;
