//! What Weir knows as messages of the OpenTelemetry protocol: OTLP over HTTP, as binary protobuf.
//!
//! Access lines become [`traces`] and [`access_logs`], lines of the program's log become [`logs`], and the
//! families of `/metrics` become [`metrics`]. [`answer`] reads what a collector refused. Pure: a shell
//! sends the bodies to the collector's address followed by [`Signal::path`].

mod access_logs;
mod answer;
mod attributes;
mod conventions;
mod envelope;
mod line;
mod logs;
mod metrics;
mod peer;
mod traces;

pub use access_logs::access_logs;
pub use answer::{Rejected, Signal, answer};
pub use envelope::{Encoded, Resource, SCOPE};
pub use logs::{LogEvent, Severity, logs};
pub use metrics::metrics;
pub use traces::traces;

#[cfg(test)]
mod tests;
