//! `/api/v1/history`: the recent past, as rows of equal length.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows of the recent past.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct History {
    /// Whether a history is kept: `history_memory_max` in the configuration.
    pub enabled: bool,
    /// The length of a row.
    pub step_ms: u64,
    /// When each row ended, in milliseconds since 1970 (UTC), the oldest first. Rows of times that
    /// were not measured are missing.
    pub ended_unix_ms: Vec<u64>,
    /// How long each row is. It differs from the step if a measurement was late, and at the start.
    pub covered_ms: Vec<u32>,
    /// What was asked for, in order of kind, service and address.
    pub series: Vec<Series>,
    /// Number of series that match the query, but are not in the answer.
    pub left_out: usize,
}

/// The rows of a listener, a service, a server, or the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Series {
    /// `process`, `listener`, `service` or `server`.
    pub kind: String,
    /// The listener's name.
    pub listener: Option<String>,
    /// The service's name.
    pub service: Option<String>,
    /// The server's address.
    pub server: Option<String>,
    /// By name, a value for each row: null if nothing was measured. Counts are those of the row;
    /// levels (`in_flight`, `queue_length`, …) are the largest of its samples, one a second;
    /// names of durations end in `_us`.
    pub columns: BTreeMap<String, Vec<Option<u64>>>,
    /// How requests ended, for listeners and services: the six most frequent causes of each row.
    pub causes: Vec<CauseCount>,
}

/// How often requests ended with a cause in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CauseCount {
    /// Position of the row.
    pub row: usize,
    /// The cause; null for all that are less frequent than the six others.
    pub cause: Option<String>,
    /// How often.
    pub count: u64,
}
