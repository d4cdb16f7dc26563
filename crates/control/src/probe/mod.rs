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
    pub(crate) event: ProbeEvent,
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
        }
    }

    /// Applies a changed set of consumers.
    pub(crate) fn follow(&mut self, consumers: Vec<Consumer>, now: Moment) {
        self.plan.update(consumers, now);
        self.lanes.retain(|id, _| self.plan.probe(*id).is_some());
        self.tls.forget_unused();
    }

    /// Applies a change of some consumers: those in `gone` leave, those in `new` join.
    pub(crate) fn change(
        &mut self,
        gone: &[(Arc<ProbeIdentity>, ConsumerId)],
        new: Vec<Consumer>,
        now: Moment,
    ) {
        let probes: Vec<ProbeId> =
            gone.iter().filter_map(|(identity, _)| self.plan.id_of(identity)).collect();
        self.plan.change(gone, new, now);
        for id in probes {
            if self.plan.probe(id).is_none() {
                self.lanes.remove(&id);
            }
        }
    }

    /// Starts the probes that are due. A probe none of whose consumers is `wanted` at present is
    /// skipped this time.
    pub(crate) fn start_due(&mut self, now: Moment, wanted: impl Fn(ConsumerId) -> bool) {
        let room = self.probes_running_max - self.running.min(self.probes_running_max);
        for id in self.plan.due(now, room) {
            let Some(probe) = self.plan.probe(id) else {
                continue;
            };
            if !probe.consumers.iter().any(|consumer| wanted(consumer.id)) {
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
    pub(crate) fn on_message(&mut self, message: Message) -> Option<Heard> {
        let Message { id, started, event, lane } = message;
        let probe = self.plan.probe(id);
        let heard = probe.map(|probe| Heard {
            address: probe.identity.address,
            consumers: probe.consumers.iter().map(|consumer| consumer.id).collect(),
            started,
            event,
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

    /// Returns the number of distinct probes.
    pub(crate) fn probes(&self) -> u32 {
        u32::try_from(self.plan.len()).unwrap_or(u32::MAX)
    }

    /// Returns the plan for display.
    pub(crate) fn report(&self) -> Report {
        self.plan.report()
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
