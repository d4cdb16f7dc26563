//! What people change about servers, held back while it could be lost: a new process that takes
//! over is told once what is known of the servers, and would never hear of what is said after that.

use std::sync::{Arc, Mutex, PoisonError};

/// Held back or not; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Switches(Arc<Mutex<bool>>);

impl Switches {
    /// From here on nothing is changed. A change under way is waited for, so that whoever looks at
    /// the servers now sees it.
    pub fn hold(&self) {
        self.set(true);
    }

    /// What people say counts again.
    pub fn release(&self) {
        self.set(false);
    }

    /// Makes a change, unless they are held back: then `None`. It must not take its time.
    pub(crate) fn turn<T>(&self, change: impl FnOnce() -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!*held).then(change)
    }

    fn set(&self, held: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }
}
