//! The state shared by the API's handlers.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use admin_api::services::{ServiceSource, WantedServers};
use decide::Published;
use tokio::sync::watch;

use crate::Exposed;
use crate::feed::Feed;

/// The handlers' state.
pub(crate) struct Context {
    /// What it shows.
    pub(crate) exposed: Exposed,
    /// Locked while a configuration is being loaded.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    /// True when the listener is to stop.
    pub(crate) stopped: watch::Receiver<bool>,
    /// The answers that are sent again as they change.
    pub(crate) feed: Feed,
}

impl Context {
    /// Returns the sources of servers, by service.
    pub(crate) fn server_sources(&self) -> HashMap<Arc<str>, ServiceSource> {
        self.sources.server_sources.as_ref().map(|all| all()).unwrap_or_default()
    }

    /// Returns how many servers services should have, by service.
    pub(crate) fn wanted_servers(&self) -> HashMap<Arc<str>, WantedServers> {
        self.sources.wanted_servers.as_ref().map(|all| all()).unwrap_or_default()
    }

    /// Returns the configuration in force.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.registry.load_full()
    }
}

impl Deref for Context {
    type Target = Exposed;

    fn deref(&self) -> &Exposed {
        &self.exposed
    }
}
