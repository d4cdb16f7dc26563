//! A service's servers as addresses: the result of service discovery and the input of balancing.

use std::sync::Arc;

use crate::{Address, ServerVersion};

/// One server of a service, resolved to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRow {
    /// Its configured name: `10.0.1.5:8080` or `listings.internal:8080`.
    pub name: Arc<str>,
    /// Its address.
    pub address: Address,
    /// Its zone, if known.
    pub zone: Option<Arc<str>>,
    /// Share of the traffic relative to the other servers; 0 receives no new requests.
    pub weight: u16,
    /// Used only when the primary servers are not enough.
    pub backup: bool,
    /// Its concurrency limit in place of the service's.
    pub in_flight_max: Option<u32>,
    /// The version that its label names.
    pub version: Option<ServerVersion>,
}

/// A service's servers at one moment, immutable. Published through a separate pointer, so that
/// discovery rebuilds nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet {
    /// In order of configuration, then of address; no address occurs twice.
    pub rows: Vec<EndpointRow>,
}
