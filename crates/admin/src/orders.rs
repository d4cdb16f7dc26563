//! States of servers for the whole fleet, as the API asks for them.

use std::net::SocketAddr;
use std::sync::Arc;

use model::Administrative;

/// The state that servers are to have at all members of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOrder {
    /// The service's name.
    pub service: Arc<str>,
    /// The servers' addresses.
    pub addresses: Vec<SocketAddr>,
    /// The state.
    pub state: Administrative,
}

/// Why the states are not in force. Nothing has changed, except with [`NotOrdered::Replaced`] and perhaps with
/// [`NotOrdered::Unavailable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOrdered {
    /// This process is not a member at present.
    NotMember,
    /// Another order about the server replaced it before all members had confirmed it.
    Replaced,
    /// The fleet cannot do it: why.
    Refused(String),
    /// A new process is taking over.
    Upgrading,
    /// No answer in time: it may be done later.
    Unavailable(String),
}
