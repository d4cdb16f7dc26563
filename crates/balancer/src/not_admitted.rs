//! The routes that services publish and that are not in force.

use std::sync::{Arc, Mutex, PoisonError};

use model::PublishedRoute;

/// Published routes that the file does not admit, each with the reason in one line.
pub(crate) type NotAdmitted = Vec<(PublishedRoute, String)>;

/// What is known of them.
#[derive(Default)]
pub(crate) struct Rejected {
    pub(crate) not_admitted: NotAdmitted,
    /// Why the routes could not be applied at all; those before are in force then.
    pub(crate) problem: Option<String>,
}

/// Those of the configuration in force, for other threads.
#[derive(Clone, Default)]
pub(crate) struct SharedNotAdmitted(Arc<Mutex<Arc<Rejected>>>);

impl SharedNotAdmitted {
    pub(crate) fn get(&self) -> Arc<Rejected> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, not_admitted: NotAdmitted, problem: Option<String>) {
        let rejected = Rejected { not_admitted, problem };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(rejected);
    }
}
