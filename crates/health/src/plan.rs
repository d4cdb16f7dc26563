//! Which probe is due now: each distinct probe once, whoever needs it.
//!
//! A consumer is one server of one service whose health is wanted. Consumers whose checks have
//! the same [`ProbeIdentity`] share one probe, run at the shortest interval any of them asks for;
//! how its results are read is each consumer's own (`verdict`). This file knows nothing of
//! connections and never runs a probe: [`Plan::due`] says what to start, [`Plan::finished`] is
//! told what ended.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{Check, Moment, ProbeIdentity};

use crate::report::{self, Asked, Endpoint, Report};

/// Intervals shorter than this are run at this; protects against a zero.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Every interval but the first is drawn from 1 ± this share of it, so that balancers which
/// started together do not probe together for ever.
pub const JITTER_SHARE: f64 = 0.1;

/// Names a consumer; chosen by the caller, opaque here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerId(pub u64);

/// Names a probe for as long as it is in the plan. Never used again for another, so that a result
/// that arrives after its probe left the plan is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProbeId(u64);

/// One server of one service whose health is wanted.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The caller's name for it.
    pub id: ConsumerId,
    /// The service that asks.
    pub service: Arc<str>,
    /// What it asks for.
    pub check: Arc<Check>,
    /// The server's address (the check's port is not applied here).
    pub server: SocketAddr,
}

/// A distinct probe and those who need it.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its name.
    pub id: ProbeId,
    /// What is sent where.
    pub identity: Arc<ProbeIdentity>,
    /// The shortest interval asked for.
    pub interval: Duration,
    /// Never empty; sorted by id.
    pub consumers: Vec<Consumer>,
}

impl Probe {
    /// The longest that any consumer waits for a result: a probe may be given up after it.
    pub fn timeout_max(&self) -> Duration {
        self.consumers.iter().map(|consumer| consumer.check.timeout).max().unwrap_or_default()
    }

    /// The distinct timeouts of the consumers, shortest first: the times after the start at which
    /// a pending probe means something to someone.
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
    /// Every probe stands here once, at its next start.
    queue: BTreeSet<(Moment, ProbeId)>,
    ids_given: u64,
    rng: fastrand::Rng,
    /// Where first starts are laid, as shares of the interval; see [`Plan::next_share`].
    phase: f64,
}

#[derive(Debug)]
struct Planned {
    probe: Probe,
    due: Moment,
    running: bool,
}

impl Plan {
    /// A plan for `consumers`, the first starts spread evenly over each probe's interval from
    /// `now` on.
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

    /// Follows a changed set of consumers. A probe that is still needed keeps its name, its phase
    /// and whether it runs; if it is now wanted more often, its next start comes no later than one
    /// new interval from `now`. New probes are spread over their interval as at start-up.
    pub fn update(&mut self, consumers: Vec<Consumer>, now: Moment) {
        let mut wanted: HashMap<Arc<ProbeIdentity>, Vec<Consumer>> = HashMap::new();
        for consumer in consumers {
            let identity = Arc::new(consumer.check.identity(consumer.server));
            wanted.entry(identity).or_default().push(consumer);
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
        // probes lie side by side in the sequence and are spread evenly too.
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        for (_, consumers) in &mut wanted {
            consumers.sort_by_key(|consumer| consumer.id);
        }
        wanted.sort_by_key(|(identity, consumers)| (identity.address, consumers[0].id));
        for (identity, consumers) in wanted {
            self.place(identity, consumers, now);
        }
    }

    /// The probes to start at `now`, at most `room` of them, earliest first; they count as running
    /// until [`Plan::finished`]. One that still runs is passed over until its next turn. What finds
    /// no room stays due.
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
            // From the planned start, so that lateness does not lower the rate; from now, when a
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

    /// When [`Plan::due`] will next have something to say; `None` for an empty plan.
    pub fn next_due(&self) -> Option<Moment> {
        self.queue.first().map(|&(due, _)| due)
    }

    /// Notes that a probe ended. A name that is no longer in the plan is ignored.
    pub fn finished(&mut self, id: ProbeId) {
        if let Some(planned) = self.probes.get_mut(&id) {
            planned.running = false;
        }
    }

    /// A probe by name; `None` once it left the plan.
    pub fn probe(&self, id: ProbeId) -> Option<&Probe> {
        self.probes.get(&id).map(|planned| &planned.probe)
    }

    /// Number of distinct probes.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether nothing is probed.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// The plan for people: probes per second per endpoint, and what sharing saves.
    pub fn report(&self) -> Report {
        let asked = self.probes.values().flat_map(|planned| {
            let identity = &planned.probe.identity;
            planned.probe.consumers.iter().map(|consumer| Asked {
                endpoint: Endpoint::Address(identity.address),
                kind: identity.kind.clone(),
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

    /// The next point of the golden-ratio sequence in 0.0..1.0: any run of its points lies evenly,
    /// so probes that join later fall into the gaps of those already there.
    fn next_share(&mut self) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        self.phase = (self.phase + GOLDEN).fract();
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CheckKind, ExpectStatus};

    fn http(host: Option<&str>, interval_ms: u64) -> Arc<Check> {
        Arc::new(Check {
            kind: CheckKind::Http {
                method: "GET".into(),
                path: "/status".into(),
                host: host.map(Into::into),
                fields: vec![],
                expect: ExpectStatus(vec![(200, 200)]),
                reuse: true,
            },
            port: None,
            interval: Duration::from_millis(interval_ms),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 3,
        })
    }

    fn address(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, n, 5], 8080))
    }

    fn consumer(id: u64, server: SocketAddr, check: Arc<Check>) -> Consumer {
        Consumer { id: ConsumerId(id), service: format!("service-{id}").into(), check, server }
    }

    /// Runs the plan for `seconds`, each probe ending after `probe_ms`; returns the starts.
    fn simulate(plan: &mut Plan, seconds: u64, probe_ms: u64) -> Vec<(Moment, ProbeId)> {
        let end = Moment::from_millis(seconds * 1000);
        let mut ends: BTreeSet<(Moment, ProbeId)> = BTreeSet::new();
        let mut starts = Vec::new();
        while let Some(now) = plan.next_due().filter(|&due| due < end) {
            while let Some(&(at, id)) = ends.first().filter(|(at, _)| *at <= now) {
                ends.remove(&(at, id));
                plan.finished(id);
            }
            for id in plan.due(now, usize::MAX) {
                starts.push((now, id));
                ends.insert((now + Duration::from_millis(probe_ms), id));
            }
        }
        starts
    }

    fn seventy_over_four(interval_ms: u64) -> Vec<Consumer> {
        (0..280)
            .map(|n| consumer(n, address((n % 4) as u8), http(Some("mesh"), interval_ms)))
            .collect()
    }

    #[test]
    fn seventy_services_over_four_endpoints_are_two_probes_a_second() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut plan =
            Plan::new(seventy_over_four(2000), Moment::ZERO, fastrand::Rng::with_seed(seed));
        assert_eq!(plan.len(), 4);
        let report = plan.report();
        assert!((report.probes_per_s() - 2.0).abs() < 1e-9);
        assert!((report.unshared_per_s() - 140.0).abs() < 1e-9);
        assert_eq!(report.rows.len(), 4);
        assert!(report.rows.iter().all(|row| (row.probes_per_s - 0.5).abs() < 1e-9));

        let starts = simulate(&mut plan, 1000, 5);
        assert!((1960..=2040).contains(&starts.len()), "{} starts in 1000 s", starts.len());
    }

    #[test]
    fn first_starts_are_spread_evenly_and_later_ones_jittered_by_a_tenth() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let consumers = (0..100).map(|n| consumer(n, address(n as u8), http(None, 2000))).collect();
        let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(seed));
        let starts = simulate(&mut plan, 60, 1);
        // Of 100 probes, each tenth of the first interval gets its tenth, give or take one.
        let mut first: HashMap<ProbeId, Moment> = HashMap::new();
        for &(at, id) in &starts {
            first.entry(id).or_insert(at);
        }
        let mut tenths = [0; 10];
        for at in first.values() {
            tenths[(at.as_micros() / 200_000) as usize] += 1;
        }
        assert_eq!(tenths.iter().sum::<i32>(), 100);
        assert!(tenths.iter().all(|n| (8..=12).contains(n)), "{tenths:?}");

        let mut last: HashMap<ProbeId, Moment> = HashMap::new();
        let mut gaps = Vec::new();
        for &(at, id) in &starts {
            if let Some(before) = last.insert(id, at) {
                gaps.push(at.since(before).as_secs_f64());
            }
        }
        assert!(gaps.iter().all(|gap| (1.8..=2.2).contains(gap)));
        assert!(gaps.iter().any(|gap| *gap < 1.85) && gaps.iter().any(|gap| *gap > 2.15));
    }

    #[test]
    fn anything_that_could_change_the_answer_keeps_two_checks_apart() {
        let now = Moment::ZERO;
        let rng = fastrand::Rng::with_seed(1);
        let hosts = vec![
            consumer(1, address(1), http(Some("a"), 2000)),
            consumer(2, address(1), http(Some("b"), 2000)),
        ];
        assert_eq!(Plan::new(hosts, now, rng.clone()).len(), 2);

        let mut on_port = (*http(Some("a"), 2000)).clone();
        on_port.port = Some(8080);
        let same_after_port = vec![
            consumer(1, address(1), http(Some("a"), 2000)),
            consumer(2, SocketAddr::from(([10, 0, 1, 5], 9999)), Arc::new(on_port)),
        ];
        assert_eq!(Plan::new(same_after_port, now, rng).len(), 1);
    }

    #[test]
    fn the_shortest_interval_asked_for_is_kept() {
        let consumers = vec![
            consumer(1, address(1), http(Some("a"), 10_000)),
            consumer(2, address(1), http(Some("a"), 1000)),
            consumer(3, address(1), http(Some("a"), 5000)),
        ];
        let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(7));
        let report = plan.report();
        assert!((report.probes_per_s() - 1.0).abs() < 1e-9);
        assert!((report.unshared_per_s() - 1.3).abs() < 1e-9);
        let starts = simulate(&mut plan, 100, 1);
        assert!((97..=103).contains(&starts.len()), "{}", starts.len());
    }

    #[test]
    fn a_probe_that_still_runs_is_not_started_again() {
        let consumers = vec![consumer(1, address(1), http(None, 1000))];
        let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
        let starts = simulate(&mut plan, 100, 2500);
        // Each run spans two or three turns, and the next start is a turn of its own.
        assert!((28..=36).contains(&starts.len()), "{}", starts.len());
        assert!(starts.windows(2).all(|w| w[1].0.since(w[0].0) >= Duration::from_millis(2500)));
    }

    #[test]
    fn without_room_a_probe_stays_due_and_starts_when_there_is() {
        let consumers = (0..10).map(|n| consumer(n, address(n as u8), http(None, 1000))).collect();
        let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
        let now = Moment::from_millis(1000);
        assert_eq!(plan.due(now, 4).len(), 4);
        assert!(plan.next_due().is_some_and(|due| due <= now));
        assert_eq!(plan.due(now, 0).len(), 0);
        assert_eq!(plan.due(now, 100).len(), 6);
        assert!(plan.next_due().is_some_and(|due| due > now));
    }

    #[test]
    fn after_a_long_stop_each_probe_starts_once_not_once_per_missed_turn() {
        let consumers = (0..5).map(|n| consumer(n, address(n as u8), http(None, 1000))).collect();
        let mut plan = Plan::new(consumers, Moment::ZERO, fastrand::Rng::with_seed(3));
        let late = Moment::from_millis(3_600_000);
        let started = plan.due(late, usize::MAX);
        assert_eq!(started.len(), 5);
        for id in started {
            plan.finished(id);
        }
        assert_eq!(plan.due(late, usize::MAX).len(), 0);
    }

    #[test]
    fn an_update_keeps_names_phases_and_running_probes() {
        let start: Vec<_> =
            (0..4).map(|n| consumer(n, address(n as u8), http(None, 10_000))).collect();
        let mut plan = Plan::new(start.clone(), Moment::ZERO, fastrand::Rng::with_seed(11));
        let due_before: Vec<_> = plan.queue.iter().copied().collect();
        let (first_due, first) = due_before[0];
        assert_eq!(plan.due(first_due, 1), vec![first]);
        let queue_before: HashMap<_, _> = plan.queue.iter().map(|&(at, id)| (id, at)).collect();

        let gone = due_before[3].1;
        let gone_server = plan.probe(gone).expect("in the plan").consumers[0].server;
        let mut next: Vec<_> = start.into_iter().filter(|c| c.server != gone_server).collect();
        next.push(consumer(9, address(9), http(None, 10_000)));
        let now = first_due + Duration::from_millis(1);
        plan.update(next, now);

        assert!(plan.probe(gone).is_none());
        plan.finished(gone);
        assert_eq!(plan.len(), 4);
        for &(at, id) in &plan.queue {
            match queue_before.get(&id) {
                Some(before) => assert_eq!(at, *before, "the phase moved"),
                None => assert!(at > now && at <= now + Duration::from_secs(10)),
            }
        }
        // The running one is still running: its next turn starts nothing.
        let far = queue_before[&first];
        assert!(!plan.due(far, usize::MAX).contains(&first));
        plan.finished(first);
    }

    #[test]
    fn a_shorter_interval_takes_effect_within_itself() {
        let mut plan = Plan::new(
            vec![consumer(1, address(1), http(None, 3_600_000))],
            Moment::ZERO,
            fastrand::Rng::with_seed(2),
        );
        let now = Moment::from_millis(10);
        plan.update(vec![consumer(1, address(1), http(None, 500))], now);
        assert!(plan.next_due().is_some_and(|due| due <= now + Duration::from_millis(500)));
        plan.update(vec![], now);
        assert!(plan.is_empty() && plan.next_due().is_none());
    }
}
