//! Simulated traffic of a service, second by second, as the balancer's history would have it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use diagnose::facts::{
    ClientsSpan, Durations, Facts, Known, ServerSpan, ServiceSpan, Traffic, TrafficChange,
    TrafficServer, TrafficService,
};
use diagnose::finding::Finding;
use diagnose::rules::diagnose_traffic;
use model::Address;
use model::histogram::{HistogramTotals, bucket_of};

/// Seconds between two snapshots of the history.
const SNAPSHOT_S: u64 = 5;

const CLIENTS: usize = 60;

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Times are multiplied by this.
    pub(crate) slower: f64,
    /// The share of the requests that fail at once.
    pub(crate) fails: f64,
    /// The share of the probes that fail.
    pub(crate) check_fails: f64,
    /// Whether it accepts requests and never responds.
    pub(crate) hangs: bool,
}

/// A server without a fault. One of a thousand requests fails, and one of two thousand probes.
pub(crate) const HEALTHY: Behaviour =
    Behaviour { slower: 1.0, fails: 0.001, check_fails: 0.0005, hangs: false };

#[derive(Clone, Debug, Default)]
struct Counts {
    sent: u64,
    failed: u64,
    checks_passed: u64,
    checks_failed: u64,
    first_byte: HistogramTotals,
}

#[derive(Debug)]
struct Server {
    behaviour: Behaviour,
    counts: Counts,
    snapshots: VecDeque<(u64, Counts)>,
    /// Until which millisecond its processor is busy with something else.
    paused_until_ms: f64,
    waiting: u64,
    silent_since: u64,
    version: &'static str,
    /// What it did before it got this version.
    before_version: ServerSpan,
}

/// A version that servers got, or a reload (without a name).
#[derive(Debug)]
struct Change {
    version: &'static str,
    second: u64,
    before: ServerSpan,
    just_before: ServerSpan,
    onset: Option<ServerSpan>,
    onset_sides: Option<[ServerSpan; 2]>,
}

/// A service and its clients.
#[derive(Debug)]
pub(crate) struct Service {
    name: &'static str,
    /// What its servers can finish a second, together.
    capacity_per_s: f64,
    servers: Vec<Server>,
    turn: usize,
    queue: f64,
    queue_lengths: VecDeque<u64>,
    requests: VecDeque<(u64, u64, u64)>,
    /// Requests by client in the last spans of five seconds, newest last.
    clients: VecDeque<[u64; CLIENTS]>,
    /// The same of the last ten seconds and of the minute before, without the newest span.
    client_spans: [ClientsSpan; 2],
    /// Newest first.
    changes: VecDeque<Change>,
}

impl Service {
    pub(crate) fn new(name: &'static str, servers: usize, capacity_per_s: f64) -> Service {
        let server = || Server {
            behaviour: HEALTHY,
            counts: Counts::default(),
            snapshots: VecDeque::from([(0, Counts::default())]),
            paused_until_ms: 0.0,
            waiting: 0,
            silent_since: 0,
            version: "2.8.0",
            before_version: ServerSpan::default(),
        };
        Service {
            name,
            capacity_per_s,
            servers: (0..servers).map(|_| server()).collect(),
            turn: 0,
            queue: 0.0,
            queue_lengths: VecDeque::new(),
            requests: VecDeque::new(),
            clients: VecDeque::from([[0; CLIENTS]]),
            client_spans: Default::default(),
            changes: VecDeque::new(),
        }
    }

    /// Gives a server another version, before this second begins.
    pub(crate) fn deploy(&mut self, server: usize, version: &'static str, second: u64) {
        let just_before = self.servers[server].span(second - 1, 5);
        let is_enough = just_before.first_byte.count() >= 50;
        let before =
            if is_enough { just_before } else { self.servers[server].span(second - 1, 60) };
        self.servers[server].before_version = before;
        self.servers[server].version = version;
        match self.changes.iter_mut().find(|change| change.version == version) {
            Some(change) => (change.second, change.onset) = (second, None),
            None => self.change(version, second),
        }
    }

    /// A reload changes its settings, before this second begins.
    pub(crate) fn reload(&mut self, second: u64) {
        self.change("", second);
    }

    fn change(&mut self, version: &'static str, second: u64) {
        let (before, just_before) =
            (self.all_servers(second - 1, 60), self.all_servers(second - 1, 5));
        self.changes.push_front(Change {
            version,
            second,
            before,
            just_before,
            onset: None,
            onset_sides: None,
        });
        self.changes.truncate(4);
    }

    fn all_servers(&self, second: u64, seconds: u64) -> ServerSpan {
        let mut all = ServerSpan::default();
        self.servers.iter().for_each(|server| all.add(&server.span(second, seconds)));
        all
    }

    /// What all servers did since a change, as the balancer's history has it.
    fn since(second: u64, change: u64) -> Option<u64> {
        let seconds = second.checked_sub(change.next_multiple_of(SNAPSHOT_S))?;
        Some(if seconds > 60 { 56 } else { seconds }).filter(|&seconds| seconds > 0)
    }

    fn changes(&self, second: u64) -> Vec<TrafficChange> {
        let facts = self.changes.iter().map(|change| TrafficChange {
            version: (!change.version.is_empty()).then(|| change.version.to_owned()),
            version_before: Some("2.8.0".to_owned()),
            generation: 2,
            since_s: second - change.second,
            before: change.before.clone(),
            just_before: change.just_before.clone(),
            onset: change.onset.clone(),
            onset_sides: change.onset_sides.clone(),
            since: Self::since(second, change.second)
                .map_or_else(ServerSpan::default, |seconds| self.all_servers(second, seconds)),
        });
        facts.collect()
    }

    /// Changes what a server does.
    pub(crate) fn set(&mut self, server: usize, behaviour: Behaviour) {
        self.servers[server].behaviour = behaviour;
    }

    /// One second in which `arrivals` requests come.
    pub(crate) fn second(&mut self, second: u64, arrivals: u64, rng: &mut fastrand::Rng) {
        let (mut retries, count) = (0, self.servers.len());
        if second.is_multiple_of(SNAPSHOT_S) {
            self.client_spans = self.client_spans();
            push_bounded(&mut self.clients, [0; CLIENTS], 14);
        }
        for at in 0..arrivals {
            // A few clients send most of the requests.
            let client = (rng.f64().powi(2) * CLIENTS as f64) as usize;
            if let Some(newest) = self.clients.back_mut() {
                newest[client] += 1;
            }
            let at_ms = second as f64 * 1_000.0 + at as f64 * 1_000.0 / arrivals as f64;
            let server = self.turn % count;
            self.turn += 1;
            if !self.servers[server].serve(second, at_ms, rng) {
                retries += 1;
                let other = (server + 1 + rng.usize(0..count - 1)) % count;
                self.servers[other].serve(second, at_ms, rng);
            }
        }
        let waited = self.queue + arrivals as f64;
        self.queue = (waited - self.capacity_per_s).max(0.0);
        let queued = if self.queue > 0.0 { arrivals } else { 0 };
        push_bounded(&mut self.queue_lengths, self.queue as u64, 15);
        push_bounded(&mut self.requests, (arrivals, retries, queued), 60);
        for server in &mut self.servers {
            server.end_second(second, rng);
        }
        let onset = self.all_servers(second, 60);
        for change in &mut self.changes {
            if change.onset.is_none() && second >= change.second + 60 {
                change.onset = Some(onset.clone());
                let mut sides = [ServerSpan::default(), ServerSpan::default()];
                for server in &self.servers {
                    let side = usize::from(server.version != change.version);
                    sides[side].add(&server.span(second, 60));
                }
                change.onset_sides = Some(sides).filter(|_| !change.version.is_empty());
            }
        }
        self.changes.retain(|change| second < change.second + 3_600);
    }

    fn client_spans(&self) -> [ClientsSpan; 2] {
        let ended: Vec<_> = self.clients.iter().rev().collect();
        let (recent, before) = ended.split_at(ended.len().min(2));
        [recent, before].map(|spans| {
            let of = (0..CLIENTS).map(|client| {
                let requests = spans.iter().map(|span| span[client]).sum();
                (format!("10.9.0.{client}"), requests)
            });
            let of: BTreeMap<String, u64> = of.collect();
            let seconds = spans.len() as u64 * SNAPSHOT_S;
            ClientsSpan { seconds, requests: of.values().sum(), of }
        })
    }

    fn span(&self, seconds: usize) -> ServiceSpan {
        let mut span = ServiceSpan { seconds: seconds as u64, ..ServiceSpan::default() };
        for (arrivals, retries, queued) in self.requests.iter().rev().take(seconds) {
            span.requests += arrivals;
            span.attempts += arrivals + retries;
            span.retries += retries;
            span.queued += queued;
        }
        span.causes = BTreeMap::from([("completed".to_owned(), span.requests)]);
        span
    }

    /// What the rules see of it.
    pub(crate) fn facts(&self, second: u64) -> TrafficService {
        let is_full = self.queue > 0.0;
        let versions = self.changes.iter().filter(|change| !change.version.is_empty());
        let last = versions.map(|change| change.second).max();
        let since_version_s = last.and_then(|last| Self::since(second, last));
        let servers = self.servers.iter().enumerate().map(|(index, server)| {
            let address = format!("10.0.{index}.2:80").parse().expect("an address");
            TrafficServer {
                address: Address::Ip(address),
                zone: Some(["a", "b", "c"][index % 3].to_owned()),
                is_starting: false,
                is_eligible: true,
                weight: 1.0,
                weight_configured: 1.0,
                in_flight: if is_full { 16 } else { 5 },
                in_flight_max: Some(16),
                waiting: server.waiting,
                silent_s: if server.waiting > 0 { second - server.silent_since } else { 0 },
                fresh: server.span(second, 5),
                recent: server.span(second, 10),
                minute: server.span(second, 60),
                version: Some(server.version.to_owned()),
                before_version: server.before_version.clone(),
                since_version: since_version_s
                    .map_or_else(ServerSpan::default, |seconds| server.span(second, seconds)),
            }
        });
        let [clients, clients_before] = self.client_spans.clone();
        TrafficService {
            name: self.name.to_owned(),
            balance: "round-robin".to_owned(),
            settled_s: second,
            queue_length: self.queue as u64,
            queue_length_max: 500,
            queue_lengths: self.queue_lengths.iter().copied().collect(),
            clients,
            clients_before,
            recent: self.span(10),
            changes: self.changes(second),
            servers: servers.collect(),
            ..TrafficService::default()
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, value: T, length_max: usize) {
    queue.push_back(value);
    if queue.len() > length_max {
        queue.pop_front();
    }
}

impl Server {
    /// Returns whether the request did not fail.
    fn serve(&mut self, second: u64, at_ms: f64, rng: &mut fastrand::Rng) -> bool {
        self.counts.sent += 1;
        if self.behaviour.hangs {
            if self.waiting == 0 {
                self.silent_since = second;
            }
            self.waiting += 1;
            return true;
        }
        if rng.f64() < self.behaviour.fails {
            self.counts.failed += 1;
            return false;
        }
        let pause_ms = (self.paused_until_ms - at_ms).max(0.0);
        let ms = time_ms(rng) * self.behaviour.slower + pause_ms;
        self.counts.first_byte.add([(bucket_of((ms * 1_000.0) as u64), 1)], 0, u64::MAX);
        true
    }

    fn end_second(&mut self, second: u64, rng: &mut fastrand::Rng) {
        // Garbage collection, a compaction, a neighbour: once in two minutes for up to 400 ms.
        if rng.u32(0..120) == 0 {
            self.paused_until_ms = (second + 1) as f64 * 1_000.0 + rng.f64() * 400.0;
        }
        // A probe every two seconds.
        if second.is_multiple_of(2) {
            if rng.f64() < self.behaviour.check_fails {
                self.counts.checks_failed += 1;
            } else {
                self.counts.checks_passed += 1;
            }
        }
        if second.is_multiple_of(SNAPSHOT_S) {
            push_bounded(&mut self.snapshots, (second, self.counts.clone()), 15);
        }
    }

    fn span(&self, second: u64, seconds: u64) -> ServerSpan {
        let from = second.saturating_sub(seconds);
        let (at, before) =
            self.snapshots.iter().rev().find(|(at, _)| *at <= from).unwrap_or(&self.snapshots[0]);
        let failed = self.counts.failed - before.failed;
        let failures = (failed > 0).then(|| ("connection_reset".to_owned(), failed));
        ServerSpan {
            seconds: second - at,
            sent: self.counts.sent - before.sent,
            failures: failures.into_iter().collect(),
            first_byte: Durations::from(&self.counts.first_byte.since(&before.first_byte)),
            checks_passed: self.counts.checks_passed - before.checks_passed,
            checks_failed: self.counts.checks_failed - before.checks_failed,
            ..ServerSpan::default()
        }
    }
}

/// A median of 20 ms with a long tail, and one of fifty requests to something that takes 15 times as
/// long.
fn time_ms(rng: &mut fastrand::Rng) -> f64 {
    let normal = (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos();
    let median = if rng.u32(0..50) == 0 { 300.0 } else { 20.0 };
    median * (0.6 * normal).exp()
}

/// What the rules find in some services at a second.
pub(crate) fn findings(services: &[&Service], second: u64) -> Vec<Finding> {
    let services = services.iter().map(|one| one.facts(second)).collect();
    let traffic = Traffic { services, ..Traffic::default() };
    let facts = Facts { traffic: Known::Is(traffic), ..Facts::default() };
    diagnose_traffic(&facts).findings
}

/// A number of arrivals with this mean (Poisson).
pub(crate) fn arrivals(mean: f64, rng: &mut fastrand::Rng) -> u64 {
    let (mut time, mut count) = (0.0, 0);
    loop {
        time -= (1.0 - rng.f64()).ln();
        if time >= mean || Duration::from_secs_f64(time) > Duration::from_secs(1_000_000) {
            return count;
        }
        count += 1;
    }
}
