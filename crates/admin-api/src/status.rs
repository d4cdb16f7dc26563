//! `/api/v1/status`: one process.

use model::ProtocolWord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;
use crate::maintenance::Maintenance;

/// The state of a balancer's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// Whether the balancer accepts new work; false during startup and while draining.
    pub ready: bool,
    /// Weir's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the process started.
    pub uptime_s: u64,
    /// Number of configurations since the start, including the current one.
    pub generation: u64,
    /// The zone in which the balancer runs, if configured.
    pub zone: Option<String>,
    /// Worker threads.
    pub workers: usize,
    /// Client connections of all listeners.
    pub connections: Connections,
    /// In order of the configuration.
    pub listeners: Vec<Listener>,
    /// The services and routes that are in maintenance, in order of kind and name.
    pub maintenance: Vec<Maintenance>,
}

/// Client connections and their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// Open connections.
    pub open: u64,
    /// Maximum number of open connections.
    pub open_max: u64,
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// The address on which it listens.
    pub address: String,
    /// Its protocol.
    pub protocol: Word<ProtocolWord>,
    /// Its client connections.
    pub connections: Connections,
}
