//! `/api/v1/routes/published`: the routes that services publish in Consul's tags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::services::RefusedEntry;

/// The routes that services publish in Consul's tags.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PublishedRoutes {
    /// Where they come from; null: the configuration lets no service publish routes.
    pub source: Option<TagSource>,
    /// By service, host and path.
    pub routes: Vec<PublishedRoute>,
}

/// The source of published routes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TagSource {
    /// Routes in force whose service Consul lists.
    pub published: usize,
    /// Routes in force whose service Consul no longer lists; see `hold_max`.
    pub held: usize,
    /// Tags that publish no route, and routes that the file does not admit.
    pub refused: u64,
    /// Some of them, each with the reason.
    pub refused_examples: Vec<RefusedEntry>,
    /// Milliseconds since Consul last answered; null: not since this process started, and the routes are those of
    /// an earlier process.
    pub answered_ms_ago: Option<f64>,
    /// Milliseconds since the routes last changed; null: not since this process started.
    pub changed_ms_ago: Option<f64>,
    /// Milliseconds since Consul fails; null: the last answer was good.
    pub failing_for_ms: Option<f64>,
    /// Why it fails.
    pub error: Option<String>,
    /// The index of the last answer.
    pub index: Option<u64>,
}

/// A route that a service publishes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PublishedRoute {
    /// The service's name in Consul.
    pub service: String,
    /// The host: exact, or `*.` and a domain.
    pub host: String,
    /// The path.
    pub path: String,
    /// Whether it is the whole path; otherwise a prefix.
    pub exact: bool,
    /// The prefix that is removed before requests are forwarded, if any.
    pub strip: Option<String>,
    /// The tag as it was written.
    pub tag: String,
    /// The index of the answer in which it appeared; null: an earlier process had it.
    pub index: Option<u64>,
    /// Milliseconds since it appeared; null: an earlier process had it.
    pub published_ms_ago: Option<f64>,
    /// Milliseconds until it is dropped; null: Consul lists its service.
    pub held_for_ms: Option<f64>,
    /// Why it is not in force; null: it is.
    pub refused: Option<String>,
}
