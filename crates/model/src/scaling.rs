//! How many servers a service should have: the settings of the function in the crate `scaling`, and what Weir calls so
//! that there are as many.

use std::sync::Arc;
use std::time::Duration;

use crate::{HttpPeer, Text};

/// How the number of servers that a service should have is computed, and who sees to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The least number.
    pub servers_min: u32,
    /// The highest number, not below `servers_min`.
    pub servers_max: u32,
    /// The share of the slots that the mean load should occupy, above 0 and at most 1.
    pub utilization: f64,
    /// The requests in flight that each server should have on average, above 0, in place of its
    /// concurrency limit.
    pub in_flight_target: Option<f64>,
    /// How long a lower number must have held before it counts.
    pub scale_in_after: Duration,
    /// How long there must have been no request before `servers_min` may be 0.
    pub idle_after: Duration,
    /// What Weir calls so that there are as many; `None`: others read the number.
    pub action: Option<Arc<ScalingAction>>,
}

/// How Weir has servers started and stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingAction {
    /// What is called.
    pub call: ScalingCall,
    /// The least time between a change and a call for more servers.
    pub out_cooldown: Duration,
    /// The least time between a change and one to fewer servers.
    pub in_cooldown: Duration,
    /// How long a server that is to be removed may have requests in flight. Zero: the program that is called chooses
    /// the servers.
    pub drain_max: Duration,
    /// How long a call may take.
    pub timeout: Duration,
}

/// What is called to start and stop servers.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalingCall {
    /// An HTTP server.
    Webhook(ScalingWebhook),
    /// A program and its arguments, which may have placeholders.
    Command(Vec<String>),
}

/// An HTTP server that starts and stops servers.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingWebhook {
    /// Where requests are sent.
    pub peer: HttpPeer,
    /// Further fields of each request.
    pub fields: Vec<(String, Text)>,
    /// The body, with placeholders; `None`: Weir's own object.
    pub body: Option<String>,
}
