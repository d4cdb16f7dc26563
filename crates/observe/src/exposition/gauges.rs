//! What simply is at the moment of a scrape, as plain values; whoever knows them fills them in.

use std::net::SocketAddr;
use std::time::Duration;

use model::TcpPathTotals;

/// Everything that is not counted by workers. What is left empty is exposed without samples.
#[derive(Clone, Debug, Default)]
pub struct Gauges<'a> {
    /// Weir's version.
    pub version: &'a str,
    /// Number of the present configuration.
    pub generation: u64,
    /// Worker threads.
    pub workers: u64,
    /// Client connections that each of them serves, if somebody knows.
    pub worker_connections: Option<Vec<u64>>,
    /// The memory for request bodies that wait for a server, where it is known.
    pub request_buffers: Option<BudgetGauges>,
    /// The memory for compressing responses, where it is known.
    pub compression: Option<BudgetGauges>,
    /// The process, if its numbers could be read.
    pub process: Option<ProcessGauges>,
    /// How reloads ended, where there are any.
    pub reloads: Option<ReloadGauges>,
    /// One per listener.
    pub listeners: Vec<ListenerGauges<'a>>,
    /// One per certificate of each listener.
    pub certificates: Vec<CertificateGauges<'a>>,
    /// One per service.
    pub services: Vec<ServiceGauges<'a>>,
    /// One per server of each service; no two of the same service, name and address.
    pub servers: Vec<ServerGauges<'a>>,
    /// One per address that is probed.
    pub probes: Vec<ProbeGauges>,
}

/// The process as the kernel sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessGauges {
    /// Its start, since 1970-01-01 UTC.
    pub start_time: Duration,
    /// User and system time used.
    pub cpu: Duration,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Open descriptors.
    pub open_fds: u64,
    /// `RLIMIT_NOFILE`.
    pub fds_max: u64,
}

/// Memory that is bounded for all requests together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetGauges {
    /// What is in use, in bytes.
    pub used_bytes: u64,
    /// How many did without because the bound was reached.
    pub exhausted: u64,
}

/// How reloads of the configuration ended since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadGauges {
    /// Another configuration came into force.
    pub applied: u64,
    /// The file said what was in force already.
    pub unchanged: u64,
    /// The file was refused.
    pub refused: u64,
    /// Whether the last one was: what runs is not what the file says.
    pub last_refused: bool,
    /// When the last one was, since 1970-01-01 UTC.
    pub last_at: Option<Duration>,
}

/// A listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenerGauges<'a> {
    /// Its name.
    pub name: &'a str,
    /// Connections it may have at once.
    pub connections_max: u64,
}

/// A certificate that a listener shows.
#[derive(Clone, Copy, Debug)]
pub struct CertificateGauges<'a> {
    /// The listener's name.
    pub listener: &'a str,
    /// The file that it was read from.
    pub file: &'a str,
    /// The last second in which it is valid, since 1970-01-01 UTC.
    pub not_after: i64,
}

/// A service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceGauges<'a> {
    /// Its name.
    pub name: &'a str,
    /// Requests in its queue.
    pub queue_length: u64,
    /// Requests that may be in it.
    pub queue_length_max: u64,
}

/// One server of one service.
#[derive(Clone, Copy, Debug)]
pub struct ServerGauges<'a> {
    /// The service's name.
    pub service: &'a str,
    /// The server as configured.
    pub name: &'a str,
    /// Its address.
    pub address: SocketAddr,
    /// Its zone; empty if unknown.
    pub zone: &'a str,
    /// Not down by checks.
    pub up: bool,
    /// Out by passive health.
    pub ejected: bool,
    /// Whether new work may go to it.
    pub ready: bool,
    /// In flight at its address.
    pub in_flight: u32,
    /// The most that may be; 0: no limit.
    pub in_flight_max: u32,
    /// Its weight.
    pub weight: u16,
    /// Requests ever given to it.
    pub requests: u64,
    /// Those that it failed.
    pub failures: u64,
    /// Kept connections of all workers that wait for a request, if it is known.
    pub idle_connections: Option<u32>,
    /// What TCP says of the way to it.
    pub tcp: TcpPathTotals,
}

/// An address that is probed.
#[derive(Clone, Copy, Debug)]
pub struct ProbeGauges {
    /// The address.
    pub address: SocketAddr,
    /// Probes per second by plan.
    pub per_second: f64,
    /// What they would be if every service probed for itself.
    pub per_second_unshared: f64,
    /// Probes that ended, ever.
    pub ended: u64,
    /// Those that failed.
    pub failed: u64,
    /// How long those that ended took together.
    pub time: Duration,
    /// How long the last one took.
    pub last: Duration,
}
