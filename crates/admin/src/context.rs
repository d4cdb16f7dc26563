//! What the handlers of the API work with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use decide::{Published, Registry};

use crate::Sources;

/// What handlers need.
pub(crate) struct Context {
    pub(crate) registry: Arc<Registry>,
    pub(crate) counters: Arc<observe::Registry>,
    pub(crate) sources: Sources,
    pub(crate) ready: Arc<AtomicBool>,
    pub(crate) workers: usize,
    pub(crate) version: &'static str,
    /// Held while a configuration is being loaded.
    pub(crate) reloading: tokio::sync::Mutex<()>,
}

impl Context {
    /// The configuration in force.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.registry.load_full()
    }
}
