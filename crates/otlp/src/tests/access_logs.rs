//! Log records of access lines.

use std::time::Duration;

use model::{Attempt, Cause, Timings};
use observe::{AccessRecord, TimestampCache, TlsRecord};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use prost::Message as _;
use serde_json::json;

use super::spans::spans;
use super::{END_US, line, line_with, lines, map, resource};
use crate::access_logs;

fn records(lines: &[u8]) -> Vec<LogRecord> {
    let encoded = access_logs(&resource(), lines);
    let mut request = ExportLogsServiceRequest::decode(&*encoded.body).unwrap();
    let records = request.resource_logs.remove(0).scope_logs.remove(0).log_records;
    assert_eq!((encoded.items, encoded.unreadable), (records.len() as u64, 0));
    records
}

fn body(record: &LogRecord) -> &str {
    match record.body.as_ref().and_then(|body| body.value.as_ref()) {
        Some(Any::StringValue(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_is_a_record_of_its_span() {
    let lines = lines(&[line()]);
    let (records, spans) = (records(&lines), spans(&lines));
    let (record, server) = (&records[0], &spans[0]);
    assert_eq!((&record.trace_id, &record.span_id), (&server.trace_id, &server.span_id));
    assert_eq!((record.flags, &*record.event_name), (1, "weir.access"));
    assert_eq!(map(&record.attributes), map(&server.attributes));
    assert_eq!(record.time_unix_nano, END_US * 1000);
    assert_eq!((record.severity_number(), &*record.severity_text), (SeverityNumber::Info, "INFO"));
    assert_eq!(body(record), "GET www.example.com:8443/listings/7 200 completed in 30.5 ms");
}

#[test]
fn the_severity_says_whether_weir_or_what_is_behind_it_failed() {
    for (status, cause, fault, severity) in [
        (json!(200), "completed", "none", SeverityNumber::Info),
        (json!(404), "completed", "none", SeverityNumber::Warn),
        (json!(503), "completed", "none", SeverityNumber::Error),
        (json!(null), "client_closed", "client", SeverityNumber::Info),
        (json!(400), "http_request_error", "client", SeverityNumber::Warn),
        (json!(200), "http_response_incomplete", "server", SeverityNumber::Error),
        (json!(404), "destination_not_found", "configuration", SeverityNumber::Error),
        (json!(200), "connection_refused", "unheard_of", SeverityNumber::Error),
    ] {
        let line = line_with(json!({"status": status, "cause": cause, "fault": fault}));
        assert_eq!(records(&lines(&[line]))[0].severity_number(), severity, "{status} {cause}");
    }
}

#[test]
fn a_tcp_connection_and_a_chosen_field_are_sentences_too() {
    let tcp = line_with(json!({
        "protocol": "TCP", "listener": "raw", "status": null, "total_ms": 90_311.0,
    }));
    let records = records(&lines(&[tcp, json!({"status": 200})]));
    assert_eq!(body(&records[0]), "TCP raw completed in 90311.0 ms");
    assert_eq!(body(&records[1]), "HTTP 200");
}

#[test]
fn a_line_as_it_is_written_can_be_read() {
    let attempt = Attempt {
        server: "10.0.1.6:8080".parse().unwrap(),
        cause: Cause::ConnectionRefused,
        status: None,
        after: Duration::ZERO,
        took: Duration::ZERO,
    };
    let record = AccessRecord {
        time: TimestampCache::default().at(Duration::from_millis(1_763_619_180_123)),
        request_id: b"4f1c",
        client: "[2001:db8::2]:0".parse().unwrap(),
        peer: Some("10.0.0.1:4000".parse().unwrap()),
        user: Some("ada"),
        listener: "public",
        method: b"GET",
        host: b"api.example.com",
        path: b"/listings/\xff\n\"",
        protocol: "HTTP/1.1",
        tls: Some(TlsRecord { version: "TLSv1.2", cipher: "x", server_name: None, resumed: true }),
        grpc_status: Some(0),
        status: Some(200),
        cause: Cause::Completed,
        detail: None,
        service: Some("listings"),
        server: Some("10.0.1.5:8080"),
        zone: None,
        attempts: 2,
        failed_attempts: &[attempt],
        not_retried: None,
        reused: false,
        timings: Timings { total: Duration::from_micros(301_234), ..Timings::default() },
        request_bytes: 0,
        response_bytes: 50_000,
        tcp: None,
        decision: None,
        route: None,
        request: None,
        response: None,
        sample_rate: Some(0.5),
        trace: None,
    };
    let mut lines = Vec::new();
    record.write_json(&mut lines);
    let records = records(&lines);
    assert_eq!(records[0].time_unix_nano, 1_763_619_180_123_000_000);
    assert!(records[0].trace_id.is_empty() && records[0].span_id.is_empty());
    let sentence = "GET api.example.com/listings/\u{fffd}\\x0a\" 200 completed in 301.2 ms";
    assert_eq!(body(&records[0]), sentence);
    let attributes = map(&records[0].attributes);
    for (key, value) in [
        ("url.path", "/listings/\u{fffd}\n\""),
        ("client.address", "2001:db8::2"),
        ("network.peer.port", "4000"),
        ("tls.protocol.version", "1.2"),
        ("rpc.grpc.status_code", "0"),
        ("weir.attempts", "2"),
        ("weir.sample_rate", "0.5"),
    ] {
        assert_eq!(attributes[key], value, "{key}");
    }
}
