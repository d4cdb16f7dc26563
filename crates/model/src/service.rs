//! A service: a named group of servers (upstream, backend) and the balancing rules.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Address, Affinity, Check, Discover, ErrorPage, HttpVersion, Maintenance, ProxyVersion, Scaling,
    ServerVersion, ServiceTls, StatusSet,
};

/// A named group of interchangeable servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Unique within a configuration.
    pub name: Arc<str>,
    /// The balancing algorithm.
    pub balance: Balance,
    /// Concurrency limit of each server that has none of its own (connections in TCP mode); `None`:
    /// no limit. The count belongs to the server's address and is shared by every service that names
    /// it.
    pub in_flight_max: Option<u32>,
    /// Whose requests the limits of its servers cover.
    pub in_flight_scope: LimitScope,
    /// The queue for requests when every server is at its limit.
    pub queue: QueueLimits,
    /// Status when the queue is full or the wait too long: 429 or 503.
    pub when_full: u16,
    /// What to do when no server is ready.
    pub when_all_down: WhenAllDown,
    /// Active health check, if any.
    pub check: Option<Check>,
    /// Passive health checking, if enabled.
    pub passive: Option<PassiveHealth>,
    /// When other zones are used.
    pub zones: ZonePolicy,
    /// Session affinity by cookie, if enabled.
    pub affinity: Option<Affinity>,
    /// Over how long a recovered server's share grows to the whole; `None`: at once.
    pub slow_start: Option<Duration>,
    /// Timeouts towards servers.
    pub timeouts: ServiceTimeouts,
    /// When a failed request is retried.
    pub retries: Retries,
    /// How the number of servers that it should have is computed; `None`: not at all.
    pub scaling: Option<Scaling>,
    /// Maximum idle connections per server and worker.
    pub idle_connections_max: u32,
    /// TLS towards the servers; `None`: clear text.
    pub tls: Option<Arc<ServiceTls>>,
    /// The HTTP version towards servers.
    pub http: HttpVersion,
    /// Whether each connection to them begins with a PROXY protocol header.
    pub send_proxy: Option<ProxyVersion>,
    /// The response field by which servers state their version; lower case.
    pub version_field: Option<Arc<str>>,
    /// Whether it is in maintenance according to the file.
    pub maintenance: Option<Maintenance>,
    /// Pages in place of the answers to errors that Weir generates; before the listener's.
    pub error_pages: Vec<ErrorPage>,
    /// The servers as configured, in order.
    pub servers: Vec<ServerSpec>,
    /// Where further servers come from, if they do.
    pub discover: Option<Arc<Discover>>,
}

impl Service {
    /// Returns the concurrency limit of one of its servers: the server's own, or the service's.
    pub fn in_flight_max_of(&self, server: &ServerSpec) -> Option<u32> {
        server.in_flight_max.or(self.in_flight_max)
    }

    /// Returns whether any of its servers has a concurrency limit, or may get one from a source, so that
    /// requests may wait.
    pub fn is_limited(&self) -> bool {
        self.in_flight_max.is_some()
            || self.discover.is_some()
            || self.servers.iter().any(|one| one.in_flight_max.is_some())
    }
}

/// A server as configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerSpec {
    /// Address or name.
    pub target: ServerTarget,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// Share of the traffic relative to the other servers, 0 to 1000; 0 receives no new requests.
    pub weight: u16,
    /// Used only when the primary servers are not enough.
    pub backup: bool,
    /// Its concurrency limit in place of the service's ([`Service::in_flight_max`]).
    pub in_flight_max: Option<u32>,
    /// The version that it runs, unless its responses state another.
    pub version: Option<ServerVersion>,
}

/// Where a server is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerTarget {
    /// A fixed address.
    Address(Address),
    /// A host name, resolved again when its TTL ends; every address of it is a server.
    Name {
        /// Host name, lower case.
        host: String,
        /// Port.
        port: u16,
    },
}

impl fmt::Display for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerTarget::Address(address) => address.fmt(f),
            ServerTarget::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The five balancing algorithms.
#[derive(Clone, Debug, PartialEq)]
pub enum Balance {
    /// Each in turn, by weight, smoothly interleaved.
    RoundRobin,
    /// The fewest requests in flight relative to its weight.
    LeastConnections,
    /// Of two drawn by weight, the lower product of latency (peak-sensitive moving average) and
    /// requests in flight.
    PeakEwma,
    /// Of two drawn by weight, the one with fewer requests in flight.
    Random,
    /// The same key goes to the same server as long as it is ready and not overloaded.
    Hash(HashKey),
}

crate::word_of! {
    /// The configuration word of a [`Balance`].
    Balance as BalanceWord {
        RoundRobin = "round-robin",
        LeastConnections = "least-connections",
        PeakEwma = "peak-ewma",
        Random = "random",
        Hash(_) = "hash",
    }
}

/// The hash key, and how uneven the load may become.
#[derive(Clone, Debug, PartialEq)]
pub struct HashKey {
    /// The part of the request that is hashed.
    pub on: HashOn,
    /// A server receives at most this multiple of the mean load per weight (bounded-load consistent
    /// hashing, Mirrokni, Thorup, Zadimoghaddam 2016); at least 1.0. The rest goes to the next.
    pub load_factor: f64,
}

/// The part of a request that is hashed. A request without it is placed at random.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashOn {
    /// The client's address.
    Client,
    /// A request field's value; the name in lower case.
    Field(String),
    /// A cookie's value.
    Cookie(String),
    /// The path as the client sent it, in canonical form ([`crate::path`]).
    Path,
    /// The decoded value of the first query parameter of this name; the name decoded.
    Parameter(String),
}

crate::word_of! {
    /// The configuration word of a [`HashOn`], before the colon and the name.
    HashOn as HashOnWord {
        Client = "client",
        Field(_) = "header",
        Cookie(_) = "cookie",
        Path = "path",
        Parameter(_) = "query",
    }
}

/// Displays it as configured: `client`, `header:NAME`, `cookie:NAME`, `path`, `query:NAME`.
impl fmt::Display for HashOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashOn::Client | HashOn::Path => f.write_str(self.as_str()),
            HashOn::Field(name) | HashOn::Cookie(name) | HashOn::Parameter(name) => {
                write!(f, "{}:{name}", self.as_str())
            }
        }
    }
}

crate::words! {
    /// Whose requests a limit covers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LimitScope {
        /// Those of this balancer.
        Balancer = "balancer",
        /// Those of all balancers of the fleet together. The concurrency limit of an address that means another
        /// server elsewhere ([`Address::is_of_one_machine`]) covers this balancer's all the same.
        Fleet = "fleet",
    }
}

/// Limits of the queue for requests that wait for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of waiting requests; 0: no queue.
    pub length_max: u32,
    /// Maximum wait.
    pub wait_max: Duration,
}

crate::words! {
    /// What to do when no server is ready.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WhenAllDown {
        /// Answer 503 at once.
        Refuse = "refuse",
        /// Use every server as if it were ready.
        TryAll = "try-all",
    }
}

/// Passive health checking (outlier detection): runs of failures of real requests eject a server
/// for a growing time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassiveHealth {
    /// Failures in a row that eject a server.
    pub failures: u32,
    /// Whether responses of 500 and above count as failures, besides failures to connect.
    pub count_5xx: bool,
    /// Duration of the first ejection; the n-th in a row lasts n times as long.
    pub eject: Duration,
    /// Maximum duration of an ejection.
    pub eject_max: Duration,
    /// Maximum share of the service's servers ejected at once, 0.0 to 1.0. Never the last one.
    pub share_max: f64,
}

/// When servers of other zones and backups are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZonePolicy {
    /// Other zones are added when the ready share (by weight) of the local zone's servers is below
    /// this.
    pub ready_min: f64,
    /// They are removed again when it is at least this; not below `ready_min`.
    pub ready_recovered: f64,
}

/// Timeouts towards servers. Each has its own cause when it ends an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTimeouts {
    /// To establish a connection.
    pub connect: Duration,
    /// From the request's last byte sent (or the last progress) to the complete response head.
    pub response: Duration,
    /// Between two bytes of a body.
    pub idle: Duration,
    /// Between two bytes of a tunnel (a WebSocket, a connection in TCP mode), in either direction.
    pub tunnel: Duration,
    /// An idle connection is closed after this at the latest; sooner if its server has been seen to
    /// close sooner.
    pub keep_alive: Duration,
    /// From the complete request head to the end of the response; `None`: no limit.
    pub total: Option<Duration>,
}

/// When a request is retried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Further attempts after the first.
    pub attempts_max: u32,
    /// The largest request body that is buffered for another attempt, in bytes.
    pub body_kept_max_bytes: u32,
    /// Statuses of responses that fail an attempt, as a connection that ends does.
    pub statuses: StatusSet,
    /// Shortest pause before another attempt; zero: none.
    pub backoff: Duration,
}

impl Retries {
    /// The largest [`Retries::attempts_max`] of a configuration. A request that has failed so often
    /// is not helped by more.
    pub const ATTEMPTS_MAX: u32 = 10;
    /// The longest [`Retries::backoff`] of a configuration.
    pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
}
