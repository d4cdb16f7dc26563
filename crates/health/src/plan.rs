//! Schedules probes: each distinct probe runs once, however many services need it.
//!
//! A consumer is one server of one service whose health is checked. Consumers whose checks have the
//! same [`ProbeIdentity`] share one probe, run at the shortest interval of any of them; each
//! consumer interprets the results itself (`verdict`). This file knows nothing about connections
//! and never runs a probe: [`Plan::due`] returns what to start, and [`Plan::finished`] is called
//! when one ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use model::{Check, Moment, ProbeIdentity};

use crate::report::{self, Asked, Endpoint, INTERVAL_MIN, Report};

/// Every interval but the first is drawn from 1 ± this share of it, so that balancers that started
/// together do not stay in step.
pub const JITTER_SHARE: f64 = 0.1;

/// Identifies a consumer; chosen by the caller, opaque here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub u64);

/// Identifies a probe while it is in the plan. Never reused, so that a result that arrives after
/// its probe left the plan is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProbeId(u64);

/// One server of one service whose health is checked.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The caller's ID for it.
    pub id: ConsumerId,
    /// The service that asks.
    pub service: Arc<str>,
    /// How it interprets the results, and how often it needs them.
    pub check: Arc<Check>,
    /// The probe of the server ([`model::Service::probe`]).
    pub probe: Arc<ProbeIdentity>,
}

/// A distinct probe and its consumers.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its ID.
    pub id: ProbeId,
    /// What is sent where.
    pub identity: Arc<ProbeIdentity>,
    /// The shortest interval of its consumers.
    pub interval: Duration,
    /// Never empty; sorted by id.
    pub consumers: Vec<Consumer>,
}

impl Probe {
    /// Returns the longest timeout of any consumer: a probe may be abandoned after it.
    pub fn timeout_max(&self) -> Duration {
        self.consumers.iter().map(|consumer| consumer.check.timeout).max().unwrap_or_default()
    }

    /// Returns the distinct timeouts of the consumers, shortest first: the times after the start at
    /// which a pending probe counts as failed for one of them.
    pub fn timeouts(&self) -> Vec<Duration> {
        let mut all: Vec<_> = self.consumers.iter().map(|c| c.check.timeout).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Every distinct probe and when it is due.
#[derive(Debug)]
pub struct Plan {
    probes: HashMap<ProbeId, Planned>,
    by_identity: HashMap<Arc<ProbeIdentity>, ProbeId>,
    /// Contains every probe once, at its next start.
    queue: BTreeSet<(Moment, ProbeId)>,
    ids_given: u64,
    rng: fastrand::Rng,
    /// Where first starts are placed, as shares of the interval; see [`Plan::next_share`].
    phase: f64,
}

#[derive(Debug)]
struct Planned {
    probe: Probe,
    due: Moment,
    running: bool,
}

impl Plan {
    /// Returns a plan for `consumers`, the first starts spread evenly over each probe's interval
    /// from `now` on.
    pub fn new(consumers: Vec<Consumer>, now: Moment, mut rng: fastrand::Rng) -> Plan {
        let phase = rng.f64();
        let mut plan = Plan {
            probes: HashMap::new(),
            by_identity: HashMap::new(),
            queue: BTreeSet::new(),
            ids_given: 0,
            rng,
            phase,
        };
        plan.update(consumers, now);
        plan
    }

    /// Applies a changed set of consumers. A probe that is still needed keeps its ID, its phase and
    /// whether it is running; if its interval is now shorter, its next start comes no later than
    /// one new interval from `now`. New probes are spread over their interval as at startup.
    pub fn update(&mut self, consumers: Vec<Consumer>, now: Moment) {
        let mut wanted: HashMap<Arc<ProbeIdentity>, Vec<Consumer>> = HashMap::new();
        for consumer in consumers {
            wanted.entry(Arc::clone(&consumer.probe)).or_default().push(consumer);
        }
        let gone: Vec<ProbeId> = self
            .by_identity
            .iter()
            .filter(|(identity, _)| !wanted.contains_key(*identity))
            .map(|(_, id)| *id)
            .collect();
        for id in gone {
            self.remove(id);
        }
        // A fixed order, so that one seed gives one plan; by address, so that each endpoint's own
        // probes are adjacent in the sequence and evenly spread too.
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        for (_, consumers) in &mut wanted {
            consumers.sort_by_key(|consumer| consumer.id);
        }
        wanted.sort_by_key(|(identity, consumers)| (identity.address, consumers[0].id));
        for (identity, consumers) in wanted {
            self.place(identity, consumers, now);
        }
    }

    /// As [`Plan::update`], for a part of the consumers: those in `gone` leave, each given by its probe,
    /// and those in `new` join. The others stay, in a time that does not depend on their number.
    pub fn change(
        &mut self,
        gone: &[(Arc<ProbeIdentity>, ConsumerId)],
        new: Vec<Consumer>,
        now: Moment,
    ) {
        let mut affected: HashMap<Arc<ProbeIdentity>, Vec<Consumer>> = HashMap::new();
        for (identity, _) in gone {
            affected.entry(Arc::clone(identity)).or_insert_with(|| self.consumers(identity));
        }
        for (identity, id) in gone {
            if let Some(consumers) = affected.get_mut(identity) {
                consumers.retain(|consumer| consumer.id != *id);
            }
        }
        for consumer in new {
            let identity = Arc::clone(&consumer.probe);
            let known = affected.entry(identity);
            known.or_insert_with_key(|identity| self.consumers(identity)).push(consumer);
        }
        let mut affected: Vec<_> = affected.into_iter().collect();
        affected.sort_by_key(|(identity, consumers)| {
            (identity.address, consumers.iter().map(|consumer| consumer.id).min())
        });
        for (identity, mut consumers) in affected {
            consumers.sort_by_key(|consumer| consumer.id);
            match (consumers.is_empty(), self.by_identity.get(&identity)) {
                (true, Some(&id)) => self.remove(id),
                (true, None) => {}
                (false, _) => self.place(identity, consumers, now),
            }
        }
    }

    /// Returns the consumers of a probe; none if it is not in the plan.
    fn consumers(&self, identity: &Arc<ProbeIdentity>) -> Vec<Consumer> {
        let planned = self.by_identity.get(identity).and_then(|id| self.probes.get(id));
        planned.map(|planned| planned.probe.consumers.clone()).unwrap_or_default()
    }

    /// Returns the probes to start at `now`, at most `room` of them, earliest first; they count as
    /// running until [`Plan::finished`]. One that is still running is skipped until its next turn.
    /// Those beyond `room` stay due.
    pub fn due(&mut self, now: Moment, room: usize) -> Vec<ProbeId> {
        let mut start = Vec::new();
        while let Some(&(due, id)) = self.queue.first() {
            if due > now || start.len() >= room {
                break;
            }
            self.queue.pop_first();
            let factor = 1.0 + JITTER_SHARE * (2.0 * self.rng.f64() - 1.0);
            // Every queue entry has its probe: both are added and removed together.
            let Some(planned) = self.probes.get_mut(&id) else {
                continue;
            };
            let step = planned.probe.interval.mul_f64(factor);
            // From the planned start, so that lateness does not lower the rate; from now, if a
            // whole turn was missed (the process was stopped, or there was no room).
            let next = due + step;
            planned.due = if next > now { next } else { now + step };
            self.queue.insert((planned.due, id));
            if !planned.running {
                planned.running = true;
                start.push(id);
            }
        }
        start
    }

    /// Returns when [`Plan::due`] will next return a probe; `None` for an empty plan.
    pub fn next_due(&self) -> Option<Moment> {
        self.queue.first().map(|&(due, _)| due)
    }

    /// Records that a probe ended. An ID that is no longer in the plan is ignored.
    pub fn finished(&mut self, id: ProbeId) {
        if let Some(planned) = self.probes.get_mut(&id) {
            planned.running = false;
        }
    }

    /// Returns the ID of the probe with this identity, if it is in the plan.
    pub fn id_of(&self, identity: &ProbeIdentity) -> Option<ProbeId> {
        self.by_identity.get(identity).copied()
    }

    /// Returns a probe by ID; `None` once it left the plan.
    pub fn probe(&self, id: ProbeId) -> Option<&Probe> {
        self.probes.get(&id).map(|planned| &planned.probe)
    }

    /// Returns all probes, in no order.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.probes.values().map(|planned| &planned.probe)
    }

    /// Returns the number of distinct probes.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Returns whether nothing is probed.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// Returns the plan for display: probes per second per endpoint, and what sharing saves.
    pub fn report(&self) -> Report {
        let asked = self.probes.values().flat_map(|planned| {
            let identity = &planned.probe.identity;
            planned.probe.consumers.iter().map(|consumer| Asked {
                endpoint: Endpoint::Address(identity.address),
                spec: identity.spec.clone(),
                interval: consumer.check.interval.max(INTERVAL_MIN),
                service: consumer.service.clone(),
            })
        });
        report::build(asked.collect())
    }

    fn place(&mut self, identity: Arc<ProbeIdentity>, consumers: Vec<Consumer>, now: Moment) {
        let asked = consumers.iter().map(|consumer| consumer.check.interval).min();
        let interval = asked.unwrap_or_default().max(INTERVAL_MIN);
        if let Some(&id) = self.by_identity.get(&identity) {
            let Some(planned) = self.probes.get_mut(&id) else {
                return;
            };
            planned.probe.consumers = consumers;
            planned.probe.interval = interval;
            let latest = now + interval;
            if planned.due > latest {
                self.queue.remove(&(planned.due, id));
                planned.due = latest;
                self.queue.insert((latest, id));
            }
            return;
        }
        self.ids_given += 1;
        let id = ProbeId(self.ids_given);
        let due = now + interval.mul_f64(self.next_share());
        let probe = Probe { id, identity: identity.clone(), interval, consumers };
        self.by_identity.insert(identity, id);
        self.queue.insert((due, id));
        self.probes.insert(id, Planned { probe, due, running: false });
    }

    fn remove(&mut self, id: ProbeId) {
        if let Some(planned) = self.probes.remove(&id) {
            self.queue.remove(&(planned.due, id));
            self.by_identity.remove(&planned.probe.identity);
        }
    }

    /// Returns the next point of the golden-ratio sequence in 0.0..1.0: any run of its points is
    /// evenly spread, so probes that join later fall into the gaps between existing ones.
    fn next_share(&mut self) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        self.phase = (self.phase + GOLDEN).fract();
        self.phase
    }
}

#[cfg(test)]
mod tests;
