//! Lines of the program's own log → log records.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};

use crate::attributes::{Attributes, text_value};
use crate::envelope::{Encoded, Resource};

model::words! {
    /// How severe an event is. The words are OpenTelemetry's severity texts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Every step.
        Trace = "TRACE",
        /// For developers.
        Debug = "DEBUG",
        /// Worth knowing.
        Info = "INFO",
        /// May need attention.
        Warn = "WARN",
        /// Needs attention.
        Error = "ERROR",
    }
}

/// A line of the program's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// When it was logged, in microseconds since 1970.
    pub unix_us: u64,
    /// How severe it is.
    pub severity: Severity,
    /// The part of the program that logged it.
    pub target: String,
    /// The message.
    pub message: String,
    /// Names and values of its fields. Of those of one name, the first counts.
    pub fields: Vec<(String, String)>,
}

/// Returns a log record for each event: its message as the body, its target as `weir.target`, its fields
/// under their names.
pub fn logs(resource: &Resource, events: &[LogEvent]) -> Encoded {
    encode(resource, events.iter().map(record).collect(), 0)
}

/// Encodes log records; `unreadable` others could not be made.
pub(crate) fn encode(resource: &Resource, log_records: Vec<LogRecord>, unreadable: u64) -> Encoded {
    let items = log_records.len();
    let scope_logs =
        vec![ScopeLogs { scope: Some(resource.scope()), log_records, schema_url: String::new() }];
    let resource_logs = vec![ResourceLogs {
        resource: Some(resource.message()),
        scope_logs,
        schema_url: String::new(),
    }];
    Encoded::new(&ExportLogsServiceRequest { resource_logs }, items, unreadable)
}

fn record(event: &LogEvent) -> LogRecord {
    let mut attributes = Attributes::default();
    attributes.text("weir.target", &event.target);
    for (name, value) in &event.fields {
        // A name must not occur twice.
        if !name.is_empty() && !attributes.has(name) {
            attributes.text(name, value);
        }
    }
    let number = match event.severity {
        Severity::Trace => SeverityNumber::Trace,
        Severity::Debug => SeverityNumber::Debug,
        Severity::Info => SeverityNumber::Info,
        Severity::Warn => SeverityNumber::Warn,
        Severity::Error => SeverityNumber::Error,
    };
    let time = event.unix_us.saturating_mul(1000);
    LogRecord {
        time_unix_nano: time,
        observed_time_unix_nano: time,
        severity_number: number.into(),
        severity_text: event.severity.as_str().to_owned(),
        body: Some(text_value(&event.message)),
        attributes: attributes.into_messages(),
        ..LogRecord::default()
    }
}
