//! What an operator may change of a server at run time.

use model::Administrative;

use crate::endpoint::Endpoint;
use crate::zones::Member;

/// A change of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// Its administrative state.
    State(Administrative),
    /// Its weight; `None`: the configured one.
    Weight(Option<u16>),
}

impl ServerChange {
    /// Makes it. It takes effect at the service's next [`crate::LiveService::refresh`].
    pub fn make(self, endpoint: &Endpoint) {
        match self {
            ServerChange::State(state) => endpoint.state.set_administrative(state),
            ServerChange::Weight(weight) => endpoint.state.set_weight(weight),
        }
    }

    /// Returns what the server would be afterwards.
    pub(crate) fn of(self, member: Member, endpoint: &Endpoint) -> Member {
        match self {
            ServerChange::State(state) => {
                let by_source = endpoint.row.is_in_maintenance();
                let set_aside = state != Administrative::Ready || by_source;
                let ready = endpoint.state.is_healthy() && endpoint.is_usable() && !set_aside;
                Member { ready, set_aside, ..member }
            }
            // One that is about to be removed gets nothing, whatever its weight.
            ServerChange::Weight(_) if endpoint.state.is_leaving() => member,
            ServerChange::Weight(weight) => {
                Member { weight: weight.unwrap_or(endpoint.row.weight), ..member }
            }
        }
    }
}
