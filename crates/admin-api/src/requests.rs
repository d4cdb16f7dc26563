//! `/api/v1/requests`: requests and connections in flight.

use observe::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
