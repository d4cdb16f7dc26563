//! The state shared by the API's handlers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use decide::{Published, Registry};
use tokio::sync::watch;

use crate::Sources;
use crate::feed::Feed;

/// The handlers' state.
pub(crate) struct Context {
    pub(crate) registry: Arc<Registry>,
    pub(crate) counters: Arc<observe::Registry>,
    pub(crate) sources: Sources,
    pub(crate) ready: Arc<AtomicBool>,
    pub(crate) workers: usize,
    pub(crate) version: &'static str,
    /// Locked while a configuration is being loaded.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    /// True when the listener is to stop.
    pub(crate) stopped: watch::Receiver<bool>,
    /// The answers that are sent again as they change.
    pub(crate) feed: Feed,
}

impl Context {
    /// Returns the configuration in force.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.registry.load_full()
    }
}
