//! `/api/v1/findings`: what the built-in doctor sees.

use diagnose::finding::{CouldNotCheck, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The current findings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Findings {
    /// Whether the doctor runs: [doctor] in the configuration.
    pub enabled: bool,
    /// Interval between two runs.
    pub interval_ms: Option<u64>,
    /// Number of runs.
    pub looks: u64,
    /// Time of the last run, in milliseconds since 1970 (UTC).
    pub looked_at_unix_ms: Option<u64>,
    /// Findings of the last minute: present ones first, then by severity.
    pub findings: Vec<SeenFinding>,
    /// What could not be checked, and is therefore neither good nor bad.
    pub could_not_check: Vec<CouldNotCheck>,
}

/// A finding, and when it was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct SeenFinding {
    #[allow(missing_docs)]
    #[serde(flatten)]
    pub finding: Finding,
    /// Whether the last run saw it.
    #[serde(default)]
    pub is_present: bool,
    /// When it was first seen, in milliseconds since 1970 (UTC).
    #[serde(default)]
    pub first_seen_unix_ms: u64,
    /// When it was last seen, in milliseconds since 1970 (UTC).
    #[serde(default)]
    pub last_seen_unix_ms: u64,
}
