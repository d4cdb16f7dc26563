//! A service's servers as addresses: the result of service discovery and the input of balancing.

use std::sync::Arc;

use crate::{Address, Listing, ServerSpec, ServerVersion, Standing};

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
    /// How a source lists it; `None`: only the file names it.
    pub listing: Option<Arc<Listing>>,
}

impl EndpointRow {
    /// Returns the row of a server at one of its addresses. `name`: its target as text.
    pub fn of(
        server: &ServerSpec,
        name: Arc<str>,
        address: Address,
        listing: Option<Arc<Listing>>,
    ) -> EndpointRow {
        let ServerSpec { target: _, zone, weight, backup, in_flight_max, version } = server;
        EndpointRow {
            name,
            address,
            zone: zone.clone(),
            weight: *weight,
            backup: *backup,
            in_flight_max: *in_flight_max,
            version: *version,
            listing,
        }
    }

    /// Returns whether new requests may go to it as far as its source is concerned.
    pub fn is_ready(&self) -> bool {
        self.listing.as_ref().is_none_or(|listing| listing.standing.is_ready())
    }

    /// Returns whether its source reports it as being in maintenance.
    pub fn is_in_maintenance(&self) -> bool {
        let listing = self.listing.as_ref();
        listing.is_some_and(|listing| listing.standing == Standing::Maintenance)
    }

    /// Returns whether its source makes it a server of last resort, which is used like a backup.
    pub fn is_last_resort(&self) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.standing.is_last_resort())
    }

    /// Returns whether the file does not name it: it exists because a source lists it.
    pub fn is_discovered(&self) -> bool {
        self.listing.as_ref().is_some_and(|listing| listing.standing != Standing::Overridden)
    }
}

/// A service's servers at one moment, immutable. Published through a separate pointer, so that
/// discovery rebuilds nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet {
    /// In order of configuration, then of address; no address occurs twice.
    pub rows: Vec<EndpointRow>,
}
