//! `/api/v1/changes`: what has changed in the recent past.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

model::words! {
    /// What a change is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Changed {
        /// The process started, or took over from another one.
        Process = "process",
        /// Another configuration came into force.
        Configuration = "configuration",
        /// A server joined or left a service.
        Servers = "servers",
        /// The verdict of a server's health checks.
        Health = "health",
        /// The state of a server that an operator set.
        State = "state",
        /// The weight of a server that an operator set.
        Weight = "weight",
        /// The version that a server runs, as its responses or its label say.
        Version = "version",
        /// A server was ejected for its responses, or readmitted.
        Ejection = "ejection",
        /// An operator switched maintenance of a service or route.
        Maintenance = "maintenance",
        /// A finding of the doctor began or ended.
        Finding = "finding",
    }
}

model::words! {
    /// Whether a change is good.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Effect {
        /// Something got worse.
        Trouble = "trouble",
        /// Something got better.
        Recovery = "recovery",
        /// Neither is known.
        Neutral = "neutral",
    }
}

/// Changes, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Changes {
    /// Looked for once a second.
    pub changes: Vec<Change>,
    /// How many more there are.
    pub left_out: usize,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// When it was seen, in milliseconds since 1970 (UTC).
    pub at_unix_ms: u64,
    /// What it is about.
    pub kind: Word<Changed>,
    /// Whether it is good.
    #[serde(default)]
    pub effect: Word<Effect>,
    /// The service, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The server's address, if it is about one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The rule of a finding, and what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingName>,
    /// The change in one sentence.
    pub what: String,
}

/// Which finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingName {
    /// Its rule.
    pub rule: String,
    /// What it is about, such as a server.
    pub subject: String,
}
