//! How many servers a service should have: the settings of the function in the crate `scaling`.

use std::time::Duration;

/// How the number of servers that a service should have is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}
