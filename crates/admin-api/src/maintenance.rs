//! Maintenance of services and routes: the change that an operator may make, and the state after it.

use model::Maintained;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

/// Switches maintenance of a service or a route on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// Whether it is switched on.
    pub on: bool,
    /// When clients should come back (Retry-After), in milliseconds, from one second to a week;
    /// null or absent: not stated. It has no effect with `"on": false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 604_800_000))]
    pub retry_after_ms: Option<u64>,
}

/// Whether a service or a route is in maintenance, and who said so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Maintenance {
    /// What it is.
    pub kind: Word<Maintained>,
    /// Its name.
    pub name: String,
    /// Whether it is in maintenance: according to the configuration file, to an operator, or both.
    pub on: bool,
    /// Whether the configuration file says so.
    pub in_file: bool,
    /// Whether an operator has switched it on, and not off again.
    pub by_operator: bool,
    /// When clients are asked to come back; null: not stated.
    pub retry_after_ms: Option<u64>,
}
