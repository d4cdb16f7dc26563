//! One server of one service.

use std::sync::Arc;

use model::{AffinityKey, EndpointRow, ServerState, ServerVersion, Service};

use crate::limits::Slots;
use crate::token::{affinity_token, server_token};

/// One server of one service.
#[derive(Debug)]
pub struct Endpoint {
    /// The configured or discovered server.
    pub row: EndpointRow,
    /// Its state; kept across configurations, for this service only.
    pub state: Arc<ServerState>,
    /// The slots of its address, shared by all services.
    pub slots: Arc<Slots>,
    /// Its position under `hash`.
    pub token: u64,
    /// Its token in affinity cookies.
    pub affinity_token: u64,
}

impl Endpoint {
    pub(crate) fn new(
        row: EndpointRow,
        state: Arc<ServerState>,
        slots: Arc<Slots>,
        key: &AffinityKey,
    ) -> Endpoint {
        let affinity_token = affinity_token(key, row.address);
        Endpoint { token: server_token(row.address), affinity_token, row, state, slots }
    }

    /// Returns whether an affinity cookie with this token names it, written by this release or the
    /// previous one.
    pub fn is_named_by(&self, token: Option<u64>) -> bool {
        token == Some(self.affinity_token) || token == Some(self.token)
    }

    /// Returns its weight: as set at run time, else as configured. A change takes effect at the
    /// next [`crate::LiveService::refresh`].
    pub fn weight(&self) -> u16 {
        self.state.weight_set().unwrap_or(self.row.weight)
    }

    /// Returns the version that it runs: as its responses state, if the service names a field for that, else
    /// as its label says.
    pub fn version(&self, service: &Service) -> Option<ServerVersion> {
        let stated = service.version_field.as_ref().and_then(|_| self.state.version.get());
        stated.or(self.row.version)
    }
}
