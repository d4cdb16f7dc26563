//! A service's servers as addresses: what discovery yields and what balancing works on.

use std::net::SocketAddr;
use std::sync::Arc;

/// One server of a service, resolved to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRow {
    /// As a person named it: `10.0.1.5:8080` or `listings.internal:8080`.
    pub name: Arc<str>,
    /// Where it listens.
    pub address: SocketAddr,
    /// The zone it stands in, if known.
    pub zone: Option<Arc<str>>,
    /// Share of the traffic relative to its peers; 0 takes no new work.
    pub weight: u16,
    /// Used only when the servers that are no backups are not enough.
    pub backup: bool,
}

/// A service's servers at one moment, immutable. Published through a pointer of its own, so that
/// discovery rebuilds nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet {
    /// In order of configuration, then of address; no address stands twice.
    pub rows: Vec<EndpointRow>,
}
