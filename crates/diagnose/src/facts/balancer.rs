//! What the balancer knows of its own traffic. Counts are since its start; samples are taken at the
//! same moments as the host's.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::Address;
use serde::{Deserialize, Serialize};

use super::Known;

/// The balancer on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Balancer {
    /// The zone it runs in.
    pub zone: Option<String>,
    /// Inode of its network namespace: which of [`super::Facts::namespaces`] it lives in.
    pub namespace_inode: Known<u64>,
    /// Its listeners.
    pub listeners: Vec<BalancerListener>,
    /// The certificates of its listeners, and that of `[fleet.tls]`.
    pub certificates: Vec<Certificate>,
    /// Connections at once that its configuration allows.
    pub connections_max: Known<u64>,
    /// Oldest first.
    pub samples: Vec<BalancerSample>,
}

/// A listener of the balancer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalancerListener {
    /// Its name in the configuration.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// The backlog its configuration asks for; `None`: as much as the kernel grants.
    #[serde(default)]
    pub backlog_asked: Option<u32>,
}

/// A certificate of a listener, or that of `[fleet.tls]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    /// The listener's name; `None`: the certificate of `[fleet.tls]`.
    pub listener: Option<String>,
    /// The file of the chain.
    pub file: String,
    /// The names that it is for.
    pub names: Vec<String>,
    /// The day on which it ends: `2026-12-01`.
    pub not_after: String,
    /// Seconds until then; negative: since then.
    pub left_s: i64,
    /// Seconds from its beginning to its end.
    pub lifetime_s: i64,
    /// Whether it ends so soon that its renewal is overdue.
    pub ends_soon: bool,
    /// Whether the balancer obtains it by ACME.
    pub is_by_acme: bool,
    /// Whether it only stands in for one that has not been issued yet.
    pub is_placeholder: bool,
}

/// The balancer at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerSample {
    /// Milliseconds since the machine started.
    pub at_ms: u64,
    /// Each server of each service.
    pub servers: Vec<ServerCounts>,
    /// Exchanges ended by cause that no server stands for (`queue_full`, `client_closed`).
    pub causes: BTreeMap<String, u64>,
    /// Client connections accepted.
    pub connections_accepted: u64,
    /// Client connections open now.
    pub connections_open: u64,
}

/// One server of one service, since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// The service's name.
    pub service: String,
    /// The server's address.
    pub address: Address,
    /// Its zone.
    #[serde(default)]
    pub zone: Option<String>,
    /// Attempts that ended.
    #[serde(default)]
    pub attempts: u64,
    /// Of these, those that failed, by cause (`connect_syn_unanswered`, `connection_reset`), or
    /// `status_5xx` where the server itself answered so.
    #[serde(default)]
    pub failures: BTreeMap<String, u64>,
    /// Requests it works on now.
    #[serde(default)]
    pub in_flight: u64,
    /// Connections to it that were tried.
    #[serde(default)]
    pub connects: Known<u64>,
    /// Of these, those whose SYN was sent again.
    #[serde(default)]
    pub connects_repeated: Known<u64>,
    /// SYNs sent again before a connection came about, or was given up.
    #[serde(default)]
    pub syn_retries: u64,
    /// Data segments sent, over sampled connections.
    #[serde(default)]
    pub segments_sent: u64,
    /// Of these, those sent again.
    #[serde(default)]
    pub segments_sent_again: u64,
    /// Samples of a connection since whose last one segments had been sent again.
    #[serde(default)]
    pub loss_episodes: Known<u64>,
    /// Segments seen to have overtaken others, over sampled connections.
    #[serde(default)]
    pub reordered: u64,
    /// Moving average of round-trip times, in microseconds.
    #[serde(default)]
    pub rtt_us: Known<u64>,
}
