//! What a task has to do: which entry, with which status, at which agent.

use std::rc::Rc;
use std::sync::Arc;

use discovery::consul::register::CheckStatus;
use model::{Consul, Registration};
use tokio::sync::watch;

use super::agent::Agent;

/// What a task has to do.
#[derive(Clone)]
pub(super) enum Wanted {
    /// The entry exists, with this status.
    Listed(Rc<Details>, CheckStatus),
    /// The entry does not exist. It stays until these are registered, which replace it, or for some seconds.
    Gone(Vec<watch::Receiver<bool>>),
    /// Another process keeps the entry: the task ends.
    HandedOver,
}

/// An entry, and how the agent is reached.
pub(super) struct Details {
    /// Different for each.
    pub(super) number: u64,
    pub(super) listener: Arc<str>,
    pub(super) entry: Arc<Registration>,
    pub(super) consul: Arc<Consul>,
    pub(super) agent: Agent,
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        match (self, other) {
            (Wanted::Listed(details, status), Wanted::Listed(others, other)) => {
                details.number == others.number && status == other
            }
            (Wanted::Gone(_), Wanted::Gone(_)) | (Wanted::HandedOver, Wanted::HandedOver) => true,
            _ => false,
        }
    }
}

impl Details {
    pub(super) fn new(
        number: u64,
        listener: &Arc<str>,
        entry: &Arc<Registration>,
        consul: &Arc<Consul>,
    ) -> Details {
        Details {
            number,
            listener: Arc::clone(listener),
            entry: Arc::clone(entry),
            consul: Arc::clone(consul),
            agent: Agent::new(consul),
        }
    }

    /// Returns whether the agent has to be sent nothing new: neither the entry nor the way to the agent differs. An
    /// agent keeps the token of a registration, and uses it later.
    pub(super) fn is_registered_as(&self, other: &Details) -> bool {
        self.entry == other.entry && self.consul == other.consul
    }
}
