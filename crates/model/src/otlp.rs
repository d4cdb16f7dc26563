//! Where traces, metrics and logs are sent by the OpenTelemetry protocol (OTLP).

use std::time::Duration;

use crate::{HttpPeer, LogSample, SampleClass, Text};

/// A collector, and what it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The collector; its URL is the base for OTLP over HTTP.
    pub collector: HttpPeer,
    /// Further fields of each request to it.
    pub fields: Vec<(String, Text)>,
    /// The resource attribute `service.name`.
    pub service_name: String,
    /// Which exchanges become traces; `None`: none.
    pub traces: Option<TraceSample>,
    /// The time between two exports of metrics; `None`: they are not sent.
    pub metrics_interval: Option<Duration>,
    /// Whether the program's log is sent.
    pub logs: bool,
}

/// Which exchanges become traces.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSample {
    /// The share of each kind of result.
    pub shares: LogSample,
    /// The most in a second with one cause that are sent because of their share, over all workers.
    pub per_cause_max: u32,
}

impl TraceSample {
    /// Returns the share of requests without a trace of their own that are marked as sampled when they come:
    /// that of successes, which all of them may become.
    pub fn head_share(&self) -> f64 {
        let ok = self.shares.0.iter().find(|(class, _)| *class == SampleClass::Ok);
        ok.map_or(1.0, |(_, share)| *share)
    }
}
