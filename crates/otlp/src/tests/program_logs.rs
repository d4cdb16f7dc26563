//! Log records of the program's log.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::SeverityNumber;
use prost::Message as _;

use super::{expected, map, resource};
use crate::attributes::text_value;
use crate::{LogEvent, Severity, logs};

#[test]
fn an_event_is_a_record_with_its_fields() {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let event = LogEvent {
        unix_us: 1_764_000_000_123_456,
        severity: Severity::Warn,
        target: "balancer::reload".to_owned(),
        message: "reload failed".to_owned(),
        fields: vec![
            pair("file", "weir.toml"),
            pair("file", "other.toml"),
            pair("weir.target", "x"),
            pair("empty", ""),
            pair("", "nameless"),
        ],
    };
    let encoded = logs(&resource(), &[event.clone(), event]);
    assert_eq!((encoded.items, encoded.unreadable), (2, 0));
    let request = ExportLogsServiceRequest::decode(&*encoded.body).unwrap();
    let record = &request.resource_logs[0].scope_logs[0].log_records[1];
    assert_eq!(record.time_unix_nano, 1_764_000_000_123_456_000);
    assert_eq!((record.severity_number(), &*record.severity_text), (SeverityNumber::Warn, "WARN"));
    assert_eq!(record.body, Some(text_value("reload failed")));
    let wanted = expected(&[("weir.target", "balancer::reload"), ("file", "weir.toml")]);
    assert_eq!(map(&record.attributes), wanted);
}
