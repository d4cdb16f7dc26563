//! `/api/v1/requests`: requests and connections in flight, and examples of ended ones.

use observe::{KeptFor, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Word;

/// Requests in flight, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Requests {
    /// Number of all requests in flight.
    pub in_flight: usize,
    /// Number of those that match the query.
    pub matching: usize,
    /// Workers that did not answer within a second; their requests are missing.
    pub workers_silent: usize,
    /// The oldest matching requests, oldest first; at most 2048 of each worker.
    pub requests: Vec<Request>,
}

/// A request in flight, or a connection in TCP mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Request {
    /// Milliseconds since its head was complete (in TCP mode: since it was accepted).
    #[schemars(range(min = 0))]
    pub age_ms: f64,
    /// Its progress: waiting for a slot, connecting to the server, waiting for the response head,
    /// forwarding the response body, or forwarding bytes in both directions.
    pub stage: Word<Stage>,
    /// X-Request-Id.
    pub request_id: Option<String>,
    /// The client's address and port.
    pub client: String,
    /// The listener that received it.
    pub listener: String,
    /// null in TCP mode.
    pub method: Option<String>,
    /// null in TCP mode.
    pub host: Option<String>,
    /// Without the query; null in TCP mode.
    pub path: Option<String>,
    /// The service to which it was routed.
    pub service: Option<String>,
    /// The server of the current attempt.
    pub server: Option<String>,
    /// Number of attempts, including the current one.
    pub attempts: u32,
}

/// Ended requests that are kept as examples, the latest first: of every ten seconds the first three with each
/// cause, the first failed one and the slowest one of each service, and four whose choice of server was recorded.
/// Each worker chooses its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndedRequests {
    /// How long one is kept, in milliseconds, unless others need the memory (1 MB for each worker). An upgrade
    /// drops them.
    pub kept_ms: u64,
    /// How many more match the query.
    pub left_out: usize,
    /// The examples.
    pub requests: Vec<EndedRequest>,
}

/// An ended request, or a connection in TCP mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedRequest {
    /// When it ended, in milliseconds since 1970 (UTC).
    pub ended_unix_ms: u64,
    /// Why it is kept. cause: it is among the first with its cause, or with a 5xx of its server. slowest: its
    /// response head took the longest, with the time in the queue. decision: its choice of server was recorded.
    pub kept_for: Word<KeptFor>,
    /// The members of its line in the access log (docs/access-log.md); texts of the client are cut to 512 bytes.
    #[serde(flatten)]
    pub line: Map<String, Value>,
}
