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

/// Why the states were not set. Nothing has changed, except as [`NotOrdered::Unavailable`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOrdered {
    /// This process is not a member at present.
    NotMember,
    /// An order of another member counts in its place.
    Replaced,
    /// The fleet cannot do it: why.
    Refused(String),
    /// A new process is taking over.
    Upgrading,
    /// No answer in time: it may be done later.
    Unavailable(String),
}
