//! Gauges: the values at the moment of a scrape, as plain data filled in by the caller.

use std::sync::Arc;
use std::time::Duration;

use model::histogram::HistogramTotals;
use model::{Address, ServerLatency, TcpPathTotals};

/// Everything that workers do not count. Empty values are exposed without samples.
#[derive(Clone, Debug, Default)]
pub struct Gauges<'a> {
    /// Weir's version.
    pub version: &'a str,
    /// Generation number of the configuration in force.
    pub generation: u64,
    /// Worker threads.
    pub workers: u64,
    /// Client connections of each worker, if known.
    pub worker_connections: Option<Vec<u64>>,
    /// The budget for request bodies that wait for a server, if known.
    pub request_buffers: Option<BudgetGauges>,
    /// The budget for compressing responses, if known.
    pub compression: Option<BudgetGauges>,
    /// Memory for the bodies of copies of requests.
    pub mirrors: Option<BudgetGauges>,
    /// The process, if its values could be read.
    pub process: Option<ProcessGauges>,
    /// Results of reloads, if there are any.
    pub reloads: Option<ReloadGauges>,
    /// One per listener.
    pub listeners: Vec<ListenerGauges<'a>>,
    /// One per certificate of each listener.
    pub certificates: Vec<CertificateGauges<'a>>,
    /// One per authentication whose keys are fetched.
    pub key_sets: Vec<KeySetGauges>,
    /// Findings of the doctor that are present: one per rule and severity.
    pub findings: Vec<FindingGauges>,
    /// One per service.
    pub services: Vec<ServiceGauges<'a>>,
    /// Names of the routes in maintenance, each once.
    pub routes_in_maintenance: Vec<&'a str>,
    /// One per server of each service; no two of the same service, name and address.
    pub servers: Vec<ServerGauges<'a>>,
    /// Whether each server has classic histograms, too.
    pub server_histograms: bool,
    /// One per address that is probed.
    pub probes: Vec<ProbeGauges>,
    /// One per kind of telemetry for a collector, if one is configured.
    pub telemetry: Vec<TelemetryGauges>,
    /// The sources of servers.
    pub sources: SourcesGauges,
    /// The fleet of balancers; `None`: this one belongs to none.
    pub fleet: Option<FleetGauges>,
    /// The connection to Kubernetes; `None`: there is none.
    pub kubernetes: Option<KubernetesGauges>,
}

/// The connection to Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KubernetesGauges {
    /// Whether the API server answers, and the thread runs that asks it.
    pub is_connected: bool,
    /// Whether this instance writes.
    pub is_leading: bool,
    /// How many kinds of objects cannot be read.
    pub failing: usize,
    /// How many objects cannot be read.
    pub unreadable: usize,
    /// Writes that wait or are under way.
    pub writes_waiting: usize,
}

/// The fleet of balancers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetGauges {
    /// Members that live, this one included.
    pub members: usize,
    /// Distinct probes, by who runs them.
    pub probes: [(&'static str, usize); 3],
    /// Members whose results are ignored.
    pub ignored: usize,
    /// This member's slots of the servers whose limits the fleet shares; `None`: there are no such servers.
    pub slots: Option<FleetSlotGauges>,
    /// The rate limits that hold over the fleet; `None`: there are none.
    pub rates: Option<FleetRateGauges>,
    /// Servers whose state is set for the whole fleet, by state.
    pub orders: [(&'static str, usize); 2],
    /// The session ticket keys that members share; `None`: they are not shared.
    pub tickets: Option<FleetTicketGauges>,
    /// Problems that this member sees, by kind.
    pub problems: Vec<(&'static str, usize)>,
    /// Datagrams, by result.
    pub datagrams: Vec<(String, u64)>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// A member's slots of the servers whose concurrency limits the fleet shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetSlotGauges {
    /// These servers.
    pub servers: usize,
    /// Whether the members agree on their shares.
    pub is_settled: bool,
    /// Slots, by state.
    pub slots: [(&'static str, u64); 3],
}

/// The rate limits that hold over the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetRateGauges {
    /// These limits.
    pub limits: usize,
    /// Keys with requests at other members.
    pub keys: usize,
    /// The part of each limit that the members have that answer.
    pub part: f64,
    /// Requests that were counted by this balancer alone.
    pub untracked: u64,
}

/// The session ticket keys that members share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetTicketGauges {
    /// These keys.
    pub keys: usize,
    /// The age of the key that encrypts new tickets, in seconds.
    pub sealing_age_s: Option<u64>,
    /// Members that share keys and do not have the newest one.
    pub behind: usize,
    /// Members that do not share keys.
    pub not_sharing: usize,
    /// Fetches that failed.
    pub failed: u64,
    /// Connections to the fleet's TCP port that ended without an answer.
    pub refused: u64,
}

/// The sources that services take their servers from, and what registers itself there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourcesGauges {
    /// One for each service with a source.
    pub services: Vec<SourceGauges>,
    /// The entries of listeners in Consul.
    pub registrations: Vec<RegistrationGauges>,
    /// The routes that services publish in Consul's tags; `None`: they publish none.
    pub tags: Option<TagGauges>,
    /// From the arrival of an answer until all workers use it, for those that changed servers.
    pub propagation: HistogramTotals,
}

/// The routes that services publish in Consul's tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagGauges {
    /// Routes in force whose service is listed.
    pub published: usize,
    /// Routes in force whose service is no longer listed.
    pub held: usize,
    /// Tags and routes that are refused.
    pub refused: u64,
    /// Whether Consul cannot be read at present.
    pub is_failing: bool,
}

/// The entry of one listener in Consul.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationGauges {
    /// The listener.
    pub listener: Arc<str>,
    /// Whether the agent refuses or does not answer at present.
    pub is_failing: bool,
}

/// The source of one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceGauges {
    /// The service.
    pub service: Arc<str>,
    /// Its servers by standing.
    pub servers: [(&'static str, usize); 4],
    /// Time since the last answer; `None`: there was none.
    pub age: Option<Duration>,
    /// Whether it cannot be read at present.
    pub is_failing: bool,
    /// Entries of the last answer that are no valid servers.
    pub refused: u64,
}

/// What a collector was sent of one kind of telemetry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryGauges {
    /// Which kind.
    pub signal: &'static str,
    /// Spans, data points or log records that the collector has accepted.
    pub sent: u64,
    /// Those that were dropped, by reason.
    pub dropped: Vec<(&'static str, u64)>,
}

/// The process according to the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessGauges {
    /// Its start, since 1970-01-01 UTC.
    pub start_time: Duration,
    /// User and system CPU time.
    pub cpu: Duration,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Open descriptors.
    pub open_fds: u64,
    /// `RLIMIT_NOFILE`.
    pub fds_max: u64,
}

/// A memory budget shared by all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetGauges {
    /// Bytes in use.
    pub used_bytes: u64,
    /// How many requests went without because the bound was reached.
    pub exhausted: u64,
}

/// Results of configuration reloads since startup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadGauges {
    /// Another configuration came into force.
    pub applied: u64,
    /// The file was the same as the configuration in force.
    pub unchanged: u64,
    /// The file was rejected.
    pub refused: u64,
    /// Whether the last one was rejected: the running configuration differs from the file.
    pub last_refused: bool,
    /// When the last one happened, since 1970-01-01 UTC.
    pub last_at: Option<Duration>,
}

/// A listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenerGauges<'a> {
    /// Its name.
    pub name: &'a str,
    /// Maximum number of connections.
    pub connections_max: u64,
}

/// A certificate of a listener, or that of `[fleet.tls]`.
#[derive(Clone, Copy, Debug)]
pub struct CertificateGauges<'a> {
    /// The listener's name; `None`: the certificate of `[fleet.tls]`.
    pub listener: Option<&'a str>,
    /// The file that it was read from.
    pub file: &'a str,
    /// The last second in which it is valid, since 1970-01-01 UTC.
    pub not_after: i64,
}

/// The key set of an authentication (`keys_url`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySetGauges {
    /// The authentication's name.
    pub authentication: String,
    /// Usable keys in the set in use.
    pub keys: u64,
    /// Fetches that brought a usable set.
    pub fetched: u64,
    /// Fetches that did not.
    pub failed: u64,
    /// The last fetch that did, since 1970-01-01 UTC.
    pub fetched_at: Option<Duration>,
}

/// The doctor's findings of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingGauges {
    /// The rule's name.
    pub rule: String,
    /// How much they matter.
    pub severity: &'static str,
    /// How many are present.
    pub present: u64,
}

/// A service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceGauges<'a> {
    /// Its name.
    pub name: &'a str,
    /// Requests in its queue.
    pub queue_length: u64,
    /// Maximum number of requests in it.
    pub queue_length_max: u64,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// How many servers it should have, if that is computed.
    pub wanted_servers: Option<u32>,
    /// Calls to the program that starts and stops its servers: those that succeeded, and those that failed.
    pub scaling_calls: Option<[u64; 2]>,
}

/// One server of one service.
#[derive(Clone, Copy, Debug)]
pub struct ServerGauges<'a> {
    /// The service's name.
    pub service: &'a str,
    /// Its configured name.
    pub name: &'a str,
    /// Its address.
    pub address: Address,
    /// Its zone; empty if unknown.
    pub zone: &'a str,
    /// Not down according to checks.
    pub up: bool,
    /// Ejected by passive health checking.
    pub ejected: bool,
    /// Whether new requests may go to it.
    pub ready: bool,
    /// Requests in flight at its address.
    pub in_flight: u32,
    /// Its concurrency limit; 0: no limit.
    pub in_flight_max: u32,
    /// Its weight.
    pub weight: u16,
    /// Total requests sent to it.
    pub requests: u64,
    /// How many of these failed because of it.
    pub failures: u64,
    /// Idle connections of all workers, if known.
    pub idle_connections: Option<u32>,
    /// TCP statistics of the path to it.
    pub tcp: TcpPathTotals,
    /// How long its requests took. Not copied, since it is large.
    pub latency: &'a ServerLatency,
}

/// An address that is probed.
#[derive(Clone, Copy, Debug)]
pub struct ProbeGauges {
    /// The address.
    pub address: Address,
    /// Scheduled probes per second.
    pub per_second: f64,
    /// Probes per second if every service probed separately.
    pub per_second_unshared: f64,
    /// Total finished probes.
    pub ended: u64,
    /// How many of these failed.
    pub failed: u64,
    /// Total duration of finished probes.
    pub time: Duration,
    /// Duration of the last one.
    pub last: Duration,
}
