//! `/api/v1/causes`: what each cause means, and how many requests ended with it.

use std::collections::BTreeMap;

use model::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

/// All causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Causes {
    /// Requests (in TCP mode: connections) that have ended.
    pub requests: u64,
    /// Every cause, including those that have not occurred.
    pub causes: Vec<Cause>,
}

/// A cause with which requests end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cause {
    /// The name in the access log, in metrics and in Proxy-Status.
    pub name: String,
    /// Who could have prevented it.
    pub fault: Word<Fault>,
    /// Status of the response that Weir generates; null: it generates none, or the status is
    /// configured.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<u16>,
    /// What happened, in one sentence.
    pub summary: String,
    /// What happened.
    pub what: String,
    /// The usual reasons.
    pub why: String,
    /// What to do.
    pub remedy: String,
    /// Number of requests, including those that did not reach a service.
    pub count: u64,
    /// Number of requests by service, without the services that have none.
    pub services: BTreeMap<String, u64>,
}
