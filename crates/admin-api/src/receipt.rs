//! Receipts: what a reload or an upgrade has done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

model::words! {
    /// How a reload ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReloadResult {
        /// Another configuration is in force.
        Applied = "applied",
        /// The file describes the configuration that is already in force.
        Unchanged = "unchanged",
        /// The file has errors; the previous configuration stays in force.
        Refused = "refused",
    }
}

model::words! {
    /// How an upgrade ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UpgradeResult {
        /// The new process serves.
        Upgraded = "upgraded",
    }
}

model::words! {
    /// What asked for a reload.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Trigger {
        /// The signal.
        Signal = "SIGHUP",
        /// The admin API, for instance through `weir reload`.
        Api = "admin API",
        /// A change of the file, or of a file that it names.
        File = "file",
    }
}

/// The result of one reload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reload {
    /// How it ended; unchanged: the file describes the configuration that is already in force.
    pub result: Word<ReloadResult>,
    /// What asked for it.
    pub trigger: Word<Trigger>,
    /// When it ended: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// How long it took, in milliseconds.
    pub took_ms: f64,
    /// Number of the configuration in force afterwards.
    pub generation: u64,
    /// Warnings about the file, as text for people; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<String>,
    /// What differs from the configuration before. Only in `applied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// What was kept. Only in `applied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// What is in the file but needs a new process, as `key: before → after`. Only in `applied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for_upgrade: Option<Vec<String>>,
    /// Why the file was refused. Only in `refused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// From the request to the first connection or request served by the new configuration, in
    /// milliseconds. Only in the history, once there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_used_after_ms: Option<f64>,
}

/// The last 50 reloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reloads {
    /// The latest first.
    pub reloads: Vec<Reload>,
}

/// The difference between two configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Changes {
    /// Settings of the balancer itself, as `key: before → after`.
    pub settings: Vec<String>,
    /// Listeners, by name.
    pub listeners: KindChanges,
    /// Routes, by name.
    pub routes: KindChanges,
    /// Services, by name, without their servers.
    pub services: KindChanges,
    /// Servers of services that stay, as `service: address`.
    pub servers: KindChanges,
}

/// The difference among things of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KindChanges {
    /// Names of the new ones.
    pub added: Vec<String>,
    /// Names of those that are gone.
    pub removed: Vec<String>,
    /// Those that stay, with other settings.
    pub changed: Vec<Changed>,
    /// How many stay as they were.
    pub unchanged: usize,
}

/// Something that stays, with other settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// Its settings that changed, as `key: before → after`.
    pub what: Vec<String>,
}

/// What a reload kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Carried {
    /// Open client connections.
    pub connections: usize,
    /// Requests in flight at servers that stay.
    pub in_flight: u64,
    /// Requests that wait for one of these servers.
    pub waiting: u64,
    /// Servers that stay, counted once for each service that names them.
    pub servers: usize,
    /// Those of them with a result of health checks.
    pub verdicts: usize,
    /// Those of them that passive health has ejected.
    pub ejected: usize,
    /// Those of them whose state or weight was set through the admin API.
    pub set_by_hand: usize,
}

/// The result of one upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Upgrade {
    /// Upgrades that fail have no receipt, but an error.
    pub result: Word<UpgradeResult>,
    /// Id of the process that serves now.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The process that drains and ends.
    pub predecessor: Process,
    /// From the start of the new process until it served, in milliseconds.
    pub took_ms: u64,
    /// What the new process took over.
    pub handed_over: HandedOver,
}

/// A process of Weir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its version.
    pub version: String,
}

/// What one process handed to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HandedOver {
    /// Names of listeners.
    pub listeners: Vec<String>,
    /// How many sockets these have together.
    pub sockets: usize,
    /// How many servers' state.
    pub servers: usize,
}
