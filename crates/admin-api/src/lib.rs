//! The JSON that one Weir process writes and another reads: answers and requests of the admin API, and
//! what an upgrade hands over to the next process.
//!
//! Writer and reader may be of different versions. A missing member reads as its default, and an
//! unknown member is ignored. The API's `OpenAPI` document is generated from these types (see `admin`),
//! and their comments are its descriptions.

pub mod causes;
pub mod changes;
pub mod checks;
pub mod findings;
pub mod fleet;
pub mod handover;
pub mod history;
pub mod maintenance;
pub mod published;
pub mod receipt;
pub mod requests;
pub mod routes;
pub mod services;
pub mod status;
pub mod traffic;
mod word;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use word::Word;

/// Why a request to the admin API failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A stable name, for programs.
    pub error: String,
    /// A sentence, for people.
    pub message: String,
}

/// The configuration in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Configuration {
    /// Number of configurations since the start, including the current one.
    pub generation: u64,
    /// The configuration with every default filled in, as `weir check --json` prints it. Its keys
    /// are those of the configuration reference.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub configuration: Value,
}

/// Rounds a figure to three decimals, which are enough for people and for charts.
pub fn rounded(number: f64) -> f64 {
    // An empty sum is -0.0; adding 0.0 makes it 0.0.
    (number * 1e3).round() / 1e3 + 0.0
}
