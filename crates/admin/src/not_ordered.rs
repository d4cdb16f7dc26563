//! Why states of servers were not set for the whole fleet.

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
