//! The signals, where a collector takes each, and what its answer says about items that it refused.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

use model::visible;

model::words! {
    /// A kind of telemetry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Signal {
        /// Spans.
        Traces = "traces",
        /// Data points.
        Metrics = "metrics",
        /// Log records.
        Logs = "logs",
    }
}

impl Signal {
    /// Returns the path to which its messages are sent, below the collector's address.
    pub fn path(self) -> &'static str {
        match self {
            Signal::Traces => "/v1/traces",
            Signal::Metrics => "/v1/metrics",
            Signal::Logs => "/v1/logs",
        }
    }
}

/// What a collector refused of a message that it otherwise took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Number of items, as in [`Encoded`](crate::Encoded); 0 if the message is a warning only.
    pub items: i64,
    /// The collector's reason: at most 300 bytes, control characters escaped.
    pub message: String,
}

/// The maximum length of a collector's reason.
const MESSAGE_BYTES_MAX: usize = 300;

/// Reads the body of a collector's 2xx response, and returns what it refused; `None` if it took all, or if
/// the body is no such message. Items that were refused must not be sent again (OTLP, "Partial Success").
pub fn answer(signal: Signal, body: &[u8]) -> Option<Rejected> {
    let (items, message) = match signal {
        Signal::Traces => {
            let partial = ExportTraceServiceResponse::decode(body).ok()?.partial_success?;
            (partial.rejected_spans, partial.error_message)
        }
        Signal::Metrics => {
            let partial = ExportMetricsServiceResponse::decode(body).ok()?.partial_success?;
            (partial.rejected_data_points, partial.error_message)
        }
        Signal::Logs => {
            let partial = ExportLogsServiceResponse::decode(body).ok()?.partial_success?;
            (partial.rejected_log_records, partial.error_message)
        }
    };
    let items = items.max(0);
    (items > 0 || !message.is_empty())
        .then(|| Rejected { items, message: visible(&message, MESSAGE_BYTES_MAX) })
}
