//! A service: a named group of servers and the rules by which work is given to them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Affinity, Check, HttpVersion, ProxyVersion, ServiceTls};

/// A named group of servers that answer for the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Unique within a configuration.
    pub name: Arc<str>,
    /// How a server is chosen.
    pub balance: Balance,
    /// Requests at once per server (connections in tcp mode); `None`: no limit. The count belongs
    /// to the server's address and is shared by every service that names it.
    pub in_flight_max: Option<u32>,
    /// Where requests wait when every server is at its limit.
    pub queue: QueueLimits,
    /// Status when the queue is full or the wait too long: 429 or 503.
    pub when_full: u16,
    /// What to do when no server is ready.
    pub when_all_down: WhenAllDown,
    /// Active check, if any.
    pub check: Option<Check>,
    /// Health from the outcomes of real requests, if wanted.
    pub passive: Option<PassiveHealth>,
    /// When another zone is used.
    pub zones: ZonePolicy,
    /// A cookie that keeps a client with its server, if wanted.
    pub affinity: Option<Affinity>,
    /// Over how long a server that came back grows to its full share; `None`: at once.
    pub slow_start: Option<Duration>,
    /// Time limits towards servers.
    pub timeouts: ServiceTimeouts,
    /// When a failed request is tried again.
    pub retries: Retries,
    /// Idle connections kept per server and worker.
    pub idle_connections_max: u32,
    /// TLS towards the servers; `None`: cleartext.
    pub tls: Option<Arc<ServiceTls>>,
    /// What is spoken to them.
    pub http: HttpVersion,
    /// Whether each connection to them begins with a PROXY protocol header.
    pub send_proxy: Option<ProxyVersion>,
    /// The servers as configured, in order.
    pub servers: Vec<ServerSpec>,
}

/// A server as configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerSpec {
    /// Address or name.
    pub target: ServerTarget,
    /// The zone it stands in.
    pub zone: Option<Arc<str>>,
    /// Share of the traffic relative to its peers, 0 to 1000; 0 takes no new work.
    pub weight: u16,
    /// Used only when the servers that are no backups are not enough.
    pub backup: bool,
}

/// Where a server is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerTarget {
    /// A fixed address.
    Address(SocketAddr),
    /// A host name, resolved again when its TTL ends; every address it yields is a server.
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

/// The five algorithms.
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
    /// The word for a [`Balance`].
    Balance as BalanceWord {
        RoundRobin = "round-robin",
        LeastConnections = "least-connections",
        PeakEwma = "peak-ewma",
        Random = "random",
        Hash(_) = "hash",
    }
}

/// What a hash is taken of, and how uneven the load may become.
#[derive(Clone, Debug, PartialEq)]
pub struct HashKey {
    /// The part of the request that is hashed.
    pub on: HashOn,
    /// A server takes at most this multiple of the mean load per weight (bounded-load consistent
    /// hashing, Mirrokni, Thorup, Zadimoghaddam 2016); at least 1.0. The rest goes to the next.
    pub load_factor: f64,
}

/// The part of a request that a hash is taken of. A request without it is placed at random.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashOn {
    /// The client's address.
    Client,
    /// A request field's value; the name in lower case.
    Field(String),
    /// A cookie's value.
    Cookie(String),
}

crate::word_of! {
    /// The word for a [`HashOn`], before the colon and the name.
    HashOn as HashOnWord {
        Client = "client",
        Field(_) = "header",
        Cookie(_) = "cookie",
    }
}

/// As a configuration has it: `client`, `header:NAME`, `cookie:NAME`.
impl fmt::Display for HashOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashOn::Client => f.write_str(self.as_str()),
            HashOn::Field(name) | HashOn::Cookie(name) => write!(f, "{}:{name}", self.as_str()),
        }
    }
}

/// The place where requests wait for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Requests that may wait; 0: none waits.
    pub length_max: u32,
    /// The longest wait.
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

/// Passive health: runs of failures of real requests eject a server for a growing time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassiveHealth {
    /// Failures in a row that eject.
    pub failures: u32,
    /// Whether answers of 500 and above count as failures beside failures to connect.
    pub count_5xx: bool,
    /// The first ejection's time; the n-th in a row lasts n times as long.
    pub eject: Duration,
    /// No ejection lasts longer.
    pub eject_max: Duration,
    /// The largest share of the service's servers ejected at once, 0.0 to 1.0. Never the last.
    pub share_max: f64,
}

/// When servers of other zones and backups are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZonePolicy {
    /// Other zones join when the ready share (by weight) of the own zone's servers is below this.
    pub ready_min: f64,
    /// They leave again when it is at least this; not below `ready_min`.
    pub ready_recovered: f64,
}

/// Time limits towards servers. Each has its own cause when it ends an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTimeouts {
    /// To establish a connection.
    pub connect: Duration,
    /// From the request's last byte sent (or the last progress) to the complete response head.
    pub response: Duration,
    /// Between two bytes of a body.
    pub idle: Duration,
    /// Between two bytes of a tunnel (a WebSocket, a connection in tcp mode), in either direction.
    pub tunnel: Duration,
    /// An idle kept connection is closed after this at the latest; sooner where its server has
    /// been seen to close sooner.
    pub keep_alive: Duration,
    /// From the complete request head to the end of the response; `None`: no limit.
    pub total: Option<Duration>,
}

/// When a request is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Further attempts after the first.
    pub attempts_max: u32,
    /// The largest request body that is kept for another attempt, in bytes.
    pub body_kept_max_bytes: u32,
}
