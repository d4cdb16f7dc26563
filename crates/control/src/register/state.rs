//! The entries of listeners in Consul, for status and metrics: written by the control loop, read by any thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use discovery::consul::register::CheckStatus;
use model::{Moment, Registration};

use super::wanted::Details;

/// The entry of a listener in Consul.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationState {
    /// The listener.
    pub listener: Arc<str>,
    /// What is registered.
    pub entry: Arc<Registration>,
    /// What the check said last, as the agent has accepted it; `None`: the agent has no such check.
    pub check: Option<CheckStatus>,
    /// Since when the agent has the entry; `None`: it has not accepted it yet, or has lost it.
    pub registered_since: Option<Moment>,
    /// Since when the agent refuses or does not answer; `None`: it answered well the last time.
    pub failing_since: Option<Moment>,
    /// What failed last. One line.
    pub error: Option<String>,
}

/// The entries of the configuration in force, by listener, with the numbers of their details.
#[derive(Debug, Default)]
pub(crate) struct Registrations(Mutex<BTreeMap<Arc<str>, (u64, RegistrationState)>>);

impl Registrations {
    /// Returns all, sorted by listener.
    pub(crate) fn all(&self) -> Vec<RegistrationState> {
        self.lock().values().map(|(_, state)| state.clone()).collect()
    }

    /// Adds an entry that has not been registered yet, in place of the listener's earlier one.
    pub(super) fn begin(&self, details: &Details) {
        let state = RegistrationState {
            listener: Arc::clone(&details.listener),
            entry: Arc::clone(&details.entry),
            check: None,
            registered_since: None,
            failing_since: None,
            error: None,
        };
        self.lock().insert(Arc::clone(&details.listener), (details.number, state));
    }

    /// Updates the entry with these details; does nothing if the listener has another one by now.
    pub(super) fn update(&self, details: &Details, state: RegistrationState) {
        if let Some((number, known)) = self.lock().get_mut(&details.listener)
            && *number == details.number
        {
            *known = state;
        }
    }

    /// Forgets the entries of other listeners.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.lock().retain(|listener, _| is_kept(listener));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, (u64, RegistrationState)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
