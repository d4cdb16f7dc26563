//! `/api/v1/checks`: the probe plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which probes run, how often, and for which services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Plan {
    /// Distinct probes.
    pub probes: usize,
    /// Probes per second to all endpoints.
    #[schemars(range(min = 0))]
    pub probes_per_s: f64,
    /// Probes per second if services did not share their probes.
    #[schemars(range(min = 0))]
    pub unshared_per_s: f64,
    /// Sorted by address.
    pub endpoints: Vec<Endpoint>,
}

/// A probed address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Endpoint {
    /// The address, or a name that is not resolved yet.
    pub endpoint: String,
    /// Probes per second that it receives.
    #[schemars(range(min = 0))]
    pub probes_per_s: f64,
    /// Probes per second if services did not share their probes.
    #[schemars(range(min = 0))]
    pub unshared_per_s: f64,
    /// Its distinct probes, the most frequent first.
    pub probes: Vec<Probe>,
    /// Pairs of probes that differ only in a detail.
    pub near_duplicates: Vec<NearDuplicate>,
    /// Number of further pairs that are not listed.
    pub near_duplicates_more: usize,
    /// Results so far. Absent in a plan that is not running.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub results: Option<ProbeResults>,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Probe {
    /// What it does.
    pub what: String,
    /// Interval between two probes.
    pub interval_ms: u64,
    /// The services that use its result.
    pub services: Vec<String>,
}

/// Two probes that differ only in a detail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NearDuplicate {
    /// The services of the first, and the services of the second.
    pub services: [Vec<String>; 2],
    /// How they differ.
    pub why: String,
}

/// Results of an endpoint's probes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResults {
    /// Finished probes.
    pub ended: u64,
    /// How many of these failed.
    pub failed: u64,
    /// Duration of the last one; null: none has finished.
    #[schemars(range(min = 0))]
    pub last_ms: Option<f64>,
}
