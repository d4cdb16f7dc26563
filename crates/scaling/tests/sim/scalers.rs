//! Ways to scale: by [`scaling::wanted`], by the rate of 429s, and by utilization as the Kubernetes autoscaler does.

use std::collections::VecDeque;
use std::time::Duration;

use scaling::{Capacity, Load, Memory, Terms, Wanted, wanted, wire};

/// What a scaler sees at a sync.
pub(crate) struct Seen<'a> {
    /// Seconds.
    pub(crate) at: f64,
    /// The load of each instance.
    pub(crate) loads: &'a [Load],
    /// Servers that take requests.
    pub(crate) ready: u32,
    /// Those and the ones that start.
    pub(crate) replicas: u32,
}

/// Decides how many servers there should be.
pub(crate) trait Scaler {
    /// Sees the load, every 5 s that of the last 15 s.
    fn measure(&mut self, _: &Seen<'_>) {}

    /// Sees the load since the sync before.
    fn decide(&mut self, seen: &Seen<'_>) -> u32;
}

/// By the function under test. The loads of the instances travel as bytes.
pub(crate) struct ByWanted {
    terms: Terms,
    memory: Memory,
    pub(crate) answers: Vec<(f64, Wanted)>,
}

impl ByWanted {
    pub(crate) fn new(slots: u32, servers_min: u32) -> ByWanted {
        let terms = Terms::new(Capacity::Limit(slots), servers_min, 1_000);
        ByWanted { terms, memory: Memory::default(), answers: Vec::new() }
    }
}

impl Scaler for ByWanted {
    fn measure(&mut self, seen: &Seen<'_>) {
        let sent = seen.loads.iter().map(|load| {
            let messages = wire::write([("web", *load)]);
            wire::read(&messages[0]).unwrap()[0].1
        });
        let now = Duration::from_secs_f64(seen.at);
        let sum = sent.sum();
        let answer = wanted(&sum, seen.ready, &self.terms, &mut self.memory, now);
        self.answers.push((seen.at, answer));
    }

    fn decide(&mut self, seen: &Seen<'_>) -> u32 {
        let latest = self.answers.last().and_then(|(_, answer)| answer.servers);
        within_tolerance(latest.unwrap_or(seen.replicas), seen.replicas)
    }
}

/// The same load seen by several instances, and by one that sees all of it: the answers must not differ.
pub(crate) struct Compared {
    pub(crate) many: ByWanted,
    pub(crate) one: ByWanted,
}

impl Scaler for Compared {
    fn measure(&mut self, seen: &Seen<'_>) {
        let all = [seen.loads.iter().copied().sum()];
        self.one.measure(&Seen { loads: &all, ..*seen });
        self.many.measure(seen);
    }

    fn decide(&mut self, seen: &Seen<'_>) -> u32 {
        self.many.decide(seen)
    }
}

/// What an operator's script does: as many servers more as the refused requests need; a tenth fewer after five
/// minutes without refusals. It knows the true service time.
pub(crate) struct ByRefusals {
    pub(crate) slots: f64,
    pub(crate) service: f64,
    pub(crate) changed_at: f64,
}

impl Scaler for ByRefusals {
    fn decide(&mut self, seen: &Seen<'_>) -> u32 {
        let refusals: f64 = seen.loads.iter().map(|load| load.refusals).sum();
        if refusals > 0.0 {
            self.changed_at = seen.at;
            let more = (refusals * self.service / self.slots).ceil() as u32;
            return seen.replicas.max(seen.ready + more);
        }
        if seen.at - self.changed_at < 300.0 {
            return seen.replicas;
        }
        self.changed_at = seen.at;
        (seen.replicas - (seen.replicas / 10).max(1)).max(1)
    }
}

/// The Kubernetes autoscaler on the utilization of slots, with its defaults.
pub(crate) struct ByUtilization {
    pub(crate) slots: f64,
    pub(crate) target: f64,
    pub(crate) recent: VecDeque<(f64, u32)>,
}

impl Scaler for ByUtilization {
    fn decide(&mut self, seen: &Seen<'_>) -> u32 {
        let in_flight: f64 = seen.loads.iter().map(|load| load.in_flight).sum();
        // Servers that start count with a utilization of 0.
        let ratio = in_flight / (f64::from(seen.replicas) * self.slots * self.target);
        let near = (ratio - 1.0).abs() <= 0.1;
        let desired = (ratio * f64::from(seen.replicas) - 1e-9).ceil() as u32;
        let desired = if near { seen.replicas } else { desired.max(1) };
        self.recent.push_back((seen.at, desired));
        self.recent.retain(|(at, _)| seen.at - at <= 300.0);
        self.recent.iter().map(|(_, desired)| *desired).max().unwrap()
    }
}

/// The Kubernetes autoscaler changes nothing if an external metric differs from the replicas by a tenth or less.
fn within_tolerance(wanted: u32, replicas: u32) -> u32 {
    let ratio = f64::from(wanted) / f64::from(replicas.max(1));
    if replicas > 0 && wanted > 0 && (ratio - 1.0).abs() <= 0.1 { replicas } else { wanted }
}
