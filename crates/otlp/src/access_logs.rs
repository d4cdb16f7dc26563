//! Access lines → log records, one each.

use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};

use crate::attributes::text_value;
use crate::conventions::{attributes, method_name};
use crate::envelope::{Encoded, Resource};
use crate::line::{Line, read};
use crate::logs::encode;
use model::visible;

/// The event name of all access lines.
const EVENT: &str = "weir.access";

/// The maximum length of host and path in a sentence; their attributes have more.
const TARGET_BYTES_MAX: usize = 1024;

/// Returns a log record for each access line: `lines` are JSON, separated by line feeds. A line with a
/// member `trace` belongs to that span. Those that cannot be read count as unreadable.
///
/// The severity is ERROR if a server, the network, the balancer or the configuration failed or the status
/// is 500 or more, WARN for the other statuses from 400 on, and INFO for all others, among them clients
/// that left.
pub fn access_logs(resource: &Resource, lines: &[u8]) -> Encoded {
    let (mut log_records, mut unreadable) = (Vec::new(), 0);
    for line in read(lines) {
        match line {
            Some(line) => log_records.push(record(&line)),
            None => unreadable += 1,
        }
    }
    encode(resource, log_records, unreadable)
}

fn record(line: &Line<'_>) -> LogRecord {
    let (severity, severity_text) = severity(line);
    let time = line.end_unix_ns();
    let mut record = LogRecord {
        time_unix_nano: time,
        // Weir is where the event is observed.
        observed_time_unix_nano: time,
        severity_number: severity.into(),
        severity_text: severity_text.to_owned(),
        body: Some(text_value(&sentence(line))),
        attributes: attributes(line).into_messages(),
        event_name: EVENT.to_owned(),
        ..LogRecord::default()
    };
    if let Some(trace) = &line.trace {
        record.trace_id = trace.id.0.to_vec();
        record.span_id = trace.span.0.to_vec();
        record.flags = u32::from(trace.sampled);
    }
    record
}

fn severity(line: &Line<'_>) -> (SeverityNumber, &'static str) {
    if line.failed() {
        (SeverityNumber::Error, "ERROR")
    } else if line.status.is_some_and(|status| status >= 400) {
        (SeverityNumber::Warn, "WARN")
    } else {
        (SeverityNumber::Info, "INFO")
    }
}

/// Returns the line for people: `GET example.com/path 200 completed in 12.3 ms`.
fn sentence(line: &Line<'_>) -> String {
    let whose = if line.is_tcp() {
        line.listener.as_str().to_owned()
    } else {
        format!("{}{}", line.host.as_str(), line.path.as_str())
    };
    // What follows has room behind a long path.
    let whose = visible(&whose, TARGET_BYTES_MAX);
    let mut words = vec![method_name(line).to_owned(), whose];
    words.extend(line.status.map(|status| status.to_string()));
    words.push(line.cause.as_str().to_owned());
    if let Some(ms) = line.total_ms {
        words.push(format!("in {ms:.1} ms"));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}
