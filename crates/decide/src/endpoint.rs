//! One server of one service.

use std::sync::Arc;

use model::{AffinityKey, EndpointRow, ServerState};

use crate::limits::Slots;
use crate::token::{affinity_token, server_token};

/// One server of one service.
#[derive(Debug)]
pub struct Endpoint {
    /// What was configured or discovered.
    pub row: EndpointRow,
    /// What is known of it; kept across configurations, for this service only.
    pub state: Arc<ServerState>,
    /// What is in flight at its address, of all services.
    pub slots: Arc<Slots>,
    /// Where it stands under `hash`.
    pub token: u64,
    /// What an affinity cookie calls it.
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

    /// Whether an affinity cookie with this token names it, one of this release or of the last.
    pub fn is_named_by(&self, token: Option<u64>) -> bool {
        token == Some(self.affinity_token) || token == Some(self.token)
    }

    /// Its weight: what a person set at run time, else what was configured. A change counts from
    /// the next [`crate::LiveService::refresh`].
    pub fn weight(&self) -> u16 {
        self.state.weight_set().unwrap_or(self.row.weight)
    }
}
