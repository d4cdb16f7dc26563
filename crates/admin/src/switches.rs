//! Blocks changes of servers and of maintenance during an upgrade: the new process receives this state
//! once, and would never learn of later changes.

use std::sync::{Arc, Mutex, PoisonError};

/// Whether changes are blocked; clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Switches(Arc<Mutex<bool>>);

impl Switches {
    /// Blocks changes. Waits for a change in progress, so that the servers' state read afterwards
    /// includes it.
    pub fn hold(&self) {
        self.set(true);
    }

    /// Allows changes again.
    pub fn release(&self) {
        self.set(false);
    }

    /// Makes a change, or returns `None` while changes are blocked. The change must be quick, and make no other one.
    pub fn turn<T>(&self, change: impl FnOnce() -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!*held).then(change)
    }

    fn set(&self, held: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }
}
