//! What services and their servers did in the last seconds, for the rules that run every second.

use std::collections::BTreeMap;
use std::time::Duration;

use model::histogram::{HistogramTotals, bounds, bucket_of};
use model::{Address, FleetProblemKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The traffic of the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// The services with traffic.
    pub services: Vec<TrafficService>,
    /// The sources that services take their servers from, those of services without traffic, too.
    pub sources: Vec<TrafficSource>,
    /// The fleet that the balancer belongs to; `None`: none.
    pub fleet: Option<TrafficFleet>,
    /// The connection to Kubernetes; `None`: there is none.
    pub kubernetes: Option<TrafficKubernetes>,
}

/// The connection to Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficKubernetes {
    /// Whether the thread has ended that reads the cluster.
    pub has_ended: bool,
    /// For how many seconds the API server has not answered, if it does not.
    pub disconnected_s: Option<u64>,
    /// For how many seconds something in `awaited` or `failing` has been there, the Lease excepted.
    pub not_followed_s: Option<u64>,
    /// What has not been read yet at the start.
    pub awaited: Vec<String>,
    /// What cannot be read, with the reason.
    pub failing: BTreeMap<String, String>,
    /// The last failure; empty: there was none.
    pub error: String,
}

/// The fleet of balancers, as this one sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficFleet {
    /// The live members, this one included.
    pub members: u64,
    /// Its problems.
    pub problems: Vec<FleetProblem>,
}

/// A problem of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetProblem {
    /// The kind of problem: the word of a [`model::FleetProblemKind`].
    pub kind: String,
    /// The name of the member concerned, or its address if no member answers there; empty: it concerns this balancer.
    pub subject: String,
    /// The reason; empty: unknown.
    pub why: String,
    /// For how many seconds it has lasted.
    pub for_s: u64,
}

impl TrafficFleet {
    /// Returns the problems of a kind that have lasted for at least `seconds_min`.
    pub(crate) fn lasting(
        &self,
        kind: FleetProblemKind,
        seconds_min: u64,
    ) -> impl Iterator<Item = &FleetProblem> {
        let problems = self.problems.iter();
        problems.filter(move |one| one.kind == kind.as_str() && one.for_s >= seconds_min)
    }

    /// Returns the members that these problems concern.
    pub(crate) fn subjects(&self, kind: FleetProblemKind, seconds_min: u64) -> Vec<String> {
        self.lasting(kind, seconds_min).map(|one| one.subject.clone()).collect()
    }
}

/// The source of a service's servers (service discovery).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficSource {
    /// The service.
    pub service: String,
    /// The source, as it is shown: `consul web`.
    pub source: String,
    /// Servers that it lists and that may receive requests.
    pub listed: u64,
    /// Servers that it reports as failing or in maintenance.
    pub not_ready: u64,
    /// Servers that it no longer lists, together with most others, and that are kept.
    pub held: u64,
    /// Servers that it lists and removes again and again.
    pub flapping: u64,
    /// All servers of the service, those in the file, too.
    pub servers: u64,
    /// For how many seconds it has failed, if it does.
    pub failing_s: Option<u64>,
    /// Why it fails; empty: it does not.
    pub error: String,
}

impl Traffic {
    /// Returns how many servers and zones may be judged at a look: at most twice the number of servers.
    pub(crate) fn judged(&self) -> usize {
        2 * self.services.iter().map(|service| service.servers.len()).sum::<usize>()
    }
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficService {
    /// Its name.
    pub name: String,
    /// How it balances, as configured: `round-robin`.
    pub balance: String,
    /// Whether a request decides which server it gets: `balance = "hash"`, or affinity. Then
    /// servers may get requests of different kinds.
    pub is_bound: bool,
    /// Whether it forwards connections (TCP mode): then requests are connections.
    pub is_tcp: bool,
    /// Whether every server is tried because none is ready.
    pub tries_all: bool,
    /// For how many seconds neither the set of servers that receive new requests nor their weights have
    /// changed.
    pub settled_s: u64,
    /// Requests that wait for a server.
    pub queue_length: u64,
    /// How many may wait.
    pub queue_length_max: u64,
    /// The largest number of waiting requests in each of the last seconds, oldest first.
    pub queue_lengths: Vec<u64>,
    /// The clients with the most requests in the last ten seconds.
    pub clients: ClientsSpan,
    /// The same in the minute before these.
    pub clients_before: ClientsSpan,
    /// The last ten seconds.
    pub recent: ServiceSpan,
    /// What has changed in the last hour and was not undone, newest first.
    pub changes: Vec<TrafficChange>,
    /// Its servers.
    pub servers: Vec<TrafficServer>,
}

/// What a service did in some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpan {
    /// How many seconds these are.
    pub seconds: u64,
    /// Exchanges that ended.
    pub requests: u64,
    /// Attempts at servers.
    pub attempts: u64,
    /// Attempts after the first of an exchange.
    pub retries: u64,
    /// Requests that waited for a server.
    pub queued: u64,
    /// How exchanges ended, by cause.
    pub causes: BTreeMap<String, u64>,
    /// Durations of exchanges that a server responded to.
    pub total: Durations,
}

/// The clients with the most requests in some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientsSpan {
    /// How many seconds these are.
    pub seconds: u64,
    /// Requests of all clients.
    pub requests: u64,
    /// Requests by client: its address, or its network (IPv6). Each is too large by at most a sixteenth of
    /// all; a client that is missing had less than that.
    pub of: BTreeMap<String, u64>,
}

/// Servers got another version, or a reload changed the settings or servers of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficChange {
    /// The version that servers got; `None`: it is a reload.
    pub version: Option<String>,
    /// The version of the first of them before.
    pub version_before: Option<String>,
    /// The configuration that came into force with the reload.
    pub generation: u64,
    /// How long ago that was; of a version, how long ago the last server got it.
    pub since_s: u64,
    /// All servers together in the minute before.
    pub before: ServerSpan,
    /// The same in the last five seconds before.
    pub just_before: ServerSpan,
    /// The same in the minute after, if that has passed.
    pub onset: Option<ServerSpan>,
    /// The servers with the version in that minute, and the others; `None` for a reload.
    #[serde(default)]
    pub onset_sides: Option<[ServerSpan; 2]>,
    /// The same since then, at most in the last minute.
    pub since: ServerSpan,
}

impl TrafficChange {
    /// Returns its name: `version 2.8.1`, `configuration 3`.
    pub(crate) fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("version {version}"),
            None => format!("configuration {}", self.generation),
        }
    }
}

/// A server of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficServer {
    /// Its address.
    pub address: Address,
    /// Its zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whether it has just come back, and gets a smaller share for a while (slow start).
    #[serde(default)]
    pub is_starting: bool,
    /// Whether it receives new requests.
    #[serde(default)]
    pub is_eligible: bool,
    /// Its weight in effect, relative to the other servers'.
    #[serde(default)]
    pub weight: f64,
    /// Its configured weight.
    #[serde(default)]
    pub weight_configured: f64,
    /// Requests in flight at its address.
    #[serde(default)]
    pub in_flight: u64,
    /// Its concurrency limit; `None`: no limit.
    #[serde(default)]
    pub in_flight_max: Option<u64>,
    /// Requests that wait for their response (in TCP mode: open connections).
    #[serde(default)]
    pub waiting: u64,
    /// For how many seconds requests have waited while no response came.
    #[serde(default)]
    pub silent_s: u64,
    /// The last five seconds.
    #[serde(default)]
    pub fresh: ServerSpan,
    /// The last ten seconds.
    #[serde(default)]
    pub recent: ServerSpan,
    /// The last minute.
    #[serde(default)]
    pub minute: ServerSpan,
    /// The version that it runs.
    #[serde(default)]
    pub version: Option<String>,
    /// The last five seconds before its own version changed, or the minute before if these say too little; if
    /// that is among its service's changes.
    #[serde(default)]
    pub before_version: ServerSpan,
    /// Since the last change of a version in its service, at most the last minute.
    #[serde(default)]
    pub since_version: ServerSpan,
}

/// What a server did in some seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSpan {
    /// How many seconds these are.
    pub seconds: u64,
    /// Requests sent to it.
    pub sent: u64,
    /// Of these, those that affinity had bound to it.
    pub bound: u64,
    /// Those that failed because of it or the network, by cause; `status_5xx`: its response.
    pub failures: BTreeMap<String, u64>,
    /// Times from the choice of the server to its response head.
    pub first_byte: Durations,
    /// The average TCP round-trip time, in microseconds, if it was sampled.
    pub round_trip_us: Option<u64>,
    /// Probes that passed.
    pub checks_passed: u64,
    /// Probes that failed.
    pub checks_failed: u64,
}

impl ServerSpan {
    /// Returns the number of requests that failed.
    pub fn failed(&self) -> u64 {
        crate::words::sum(self.failures.values().copied())
    }

    /// Adds what another server did in the same seconds, but not its average round trip.
    pub fn add(&mut self, other: &ServerSpan) {
        self.seconds = self.seconds.max(other.seconds);
        let counts = [
            (&mut self.sent, other.sent),
            (&mut self.bound, other.bound),
            (&mut self.checks_passed, other.checks_passed),
            (&mut self.checks_failed, other.checks_failed),
        ];
        for (all, more) in counts {
            *all = all.saturating_add(more);
        }
        for (cause, more) in &other.failures {
            let all = self.failures.entry(cause.clone()).or_default();
            *all = all.saturating_add(*more);
        }
        let mut totals = HistogramTotals::default();
        self.first_byte.add_to(&mut totals);
        other.first_byte.add_to(&mut totals);
        self.first_byte = Durations::from(&totals);
    }

    /// Returns what was counted in the seconds of `self` that are not among those of `newer`, its last
    /// ones. Averages and durations are those of all seconds.
    #[must_use]
    pub fn before(&self, newer: &ServerSpan) -> ServerSpan {
        let mut older = self.clone();
        let counts = [
            (&mut older.seconds, newer.seconds),
            (&mut older.sent, newer.sent),
            (&mut older.bound, newer.bound),
            (&mut older.checks_passed, newer.checks_passed),
            (&mut older.checks_failed, newer.checks_failed),
        ];
        for (all, newer) in counts {
            *all = all.saturating_sub(newer);
        }
        for (cause, count) in &mut older.failures {
            *count = count.saturating_sub(newer.failures.get(cause).copied().unwrap_or(0));
        }
        older
    }
}

/// A distribution of durations: the buckets that are not empty, ascending, each with its count. As text
/// `{"20000": 30}`: 30 of 20 ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations(Vec<(u8, u64)>);

impl Durations {
    /// Returns their number.
    pub fn count(&self) -> u64 {
        crate::words::sum(self.0.iter().map(|(_, count)| *count))
    }

    /// Returns the duration that is not exceeded by the share `q` of all; `None` if there is none.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let mut totals = HistogramTotals::default();
        self.add_to(&mut totals);
        totals.quantile(q)
    }

    /// Adds them to a histogram, whose longest duration is unknown then.
    pub fn add_to(&self, totals: &mut HistogramTotals) {
        let counts = self.0.iter().map(|&(bucket, count)| (usize::from(bucket), count));
        totals.add(counts, 0, u64::MAX);
    }
}

impl From<&HistogramTotals> for Durations {
    fn from(totals: &HistogramTotals) -> Durations {
        let counts = totals.counts().iter().enumerate().filter(|(_, count)| **count > 0);
        Durations(counts.map(|(bucket, &count)| (bucket as u8, count)).collect())
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A bucket's upper bound is in the bucket.
        let counts = self.0.iter().map(|&(bucket, count)| (bounds(bucket.into()).1, count));
        serializer.collect_map(counts)
    }
}

impl<'de> Deserialize<'de> for Durations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Durations, D::Error> {
        // More than any test or file has a use for, and sums of them cannot overflow.
        const COUNT_MAX: u64 = 1_000_000_000_000;
        let counts = BTreeMap::<u64, u64>::deserialize(deserializer)?;
        let counts = counts.iter().map(|(&us, &count)| (bucket_of(us), count.min(COUNT_MAX)));
        let mut totals = HistogramTotals::default();
        totals.add(counts, 0, u64::MAX);
        Ok(Durations::from(&totals))
    }
}
