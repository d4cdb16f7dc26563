//! One server of one service.

use std::sync::Arc;

use model::{
    Administrative, AffinityKey, EndpointRow, Health, ServerState, ServerVersion, Service,
};

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
    /// Whether its service checks its servers.
    pub(crate) is_checked: bool,
    /// Its token in affinity cookies.
    pub affinity_token: u64,
}

impl Endpoint {
    pub(crate) fn new(
        row: EndpointRow,
        state: Arc<ServerState>,
        slots: Arc<Slots>,
        key: &AffinityKey,
        is_checked: bool,
    ) -> Endpoint {
        let affinity_token = affinity_token(key, row.address);
        Endpoint { token: server_token(row.address), affinity_token, row, state, slots, is_checked }
    }

    /// Returns whether an affinity cookie or a session with this token names it.
    pub fn is_named_by(&self, token: Option<u64>) -> bool {
        token == Some(self.affinity_token) || token == Some(self.token)
    }

    /// Returns whether new requests may go to it: neither its state nor its source forbids it. A server of
    /// last resort needs a passing check, if its service has one.
    pub fn is_ready(&self) -> bool {
        self.state.is_ready() && self.is_usable()
    }

    /// Returns whether its source, and the check that a server of last resort needs, allow new requests to it.
    pub fn is_usable(&self) -> bool {
        let needs_check = self.is_checked && self.row.is_last_resort();
        self.row.is_ready() && !(needs_check && self.state.health() != Health::Up)
    }

    /// Returns whether it is used only when the other servers are not enough.
    pub fn is_backup(&self) -> bool {
        self.row.backup || self.row.is_last_resort()
    }

    /// Returns whether an operator, here or at its source, has taken it out.
    pub(crate) fn is_set_aside(&self) -> bool {
        self.state.administrative() != Administrative::Ready || self.row.is_in_maintenance()
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
