//! An attempt at a server, as reported to passive health checking.

use std::time::Duration;

use model::{Moment, ServerState, Trial};

use crate::blame::Blame;

/// An attempt at a server that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The server.
    pub state: &'a ServerState,
    /// Its service's trial.
    pub trial: &'a Trial,
    /// What the outcome says about the server.
    pub blame: Blame,
    /// Whether the server was drawn at random, so that it can be compared with its peers.
    pub drawn: bool,
    /// When the server was chosen.
    pub chosen_at: Moment,
    /// When the attempt ended.
    pub now: Moment,
    /// The service's response timeout.
    pub response_timeout: Duration,
}
