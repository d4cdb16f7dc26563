//! Tests: what was encoded is decoded with the same messages and compared.

mod access_logs;
mod answers;
mod hostile;
mod metrics;
mod program_logs;
mod spans;

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use serde_json::Value;

use crate::Resource;

/// When the exchanges ended, in microseconds since 1970.
const END_US: u64 = 1_764_000_000_123_456;

fn resource() -> Resource {
    Resource {
        service_name: "weir".to_owned(),
        version: "0.1.0".to_owned(),
        instance: "b7e9".to_owned(),
        host: "edge-1".to_owned(),
        pid: 4711,
    }
}

/// An access line as Weir writes it, of a request that went well.
const LINE: &str = r#"{
        "time": "2025-11-24T16:00:00.123Z", "request_id": "4f1c",
        "client": "203.0.113.9:50000", "peer": null, "user": null, "listener": "public",
        "method": "GET", "host": "www.example.com:8443", "path": "/listings/7",
        "protocol": "HTTP/2",
        "tls": {"version": "TLSv1.3", "cipher": "TLS13_AES_128_GCM_SHA256",
                "server_name": "www.example.com", "resumed": false},
        "status": 200, "grpc_status": null,
        "cause": "completed", "fault": "none", "detail": null,
        "service": "listings", "server": "10.0.1.5:8080", "zone": "eu-west-1a",
        "attempts": 1, "failed_attempts": [], "not_retried": null, "reused": true,
        "queue_ms": 0.000, "connect_ms": 0.250, "first_byte_ms": 20.125, "total_ms": 30.500,
        "request_bytes": 0, "response_bytes": 50000, "tcp": null, "decision": null,
        "trace": {
            "id": "4bf92f3577b34da6a3ce929d0e0e4736", "span": "00f067aa0ba902b7",
            "parent": "b7ad6b7169203331", "sampled": true, "why": "sampled",
            "end_unix_us": 1764000000123456,
            "attempts": [{"span": "00f067aa0ba902b8", "after_ms": 0.125, "took_ms": 30.25}]
        }
    }"#;

fn line() -> Value {
    serde_json::from_str(LINE).unwrap()
}

/// Returns [`line()`] with other values of some members.
fn line_with(changes: Value) -> Value {
    let mut line = line();
    for (key, value) in changes.as_object().unwrap() {
        line[key] = value.clone();
    }
    line
}

fn lines(values: &[Value]) -> Vec<u8> {
    values.iter().flat_map(|value| format!("{value}\n").into_bytes()).collect()
}

/// Returns attributes by name, each as text.
fn map(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let text = |attribute: &KeyValue| match attribute.value.clone().unwrap().value.unwrap() {
        Any::StringValue(text) => text,
        Any::BoolValue(truth) => truth.to_string(),
        Any::IntValue(number) => number.to_string(),
        Any::DoubleValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let map: BTreeMap<_, _> = attributes.iter().map(|a| (&*a.key, text(a))).collect();
    assert_eq!(map.len(), attributes.len(), "no name occurs twice");
    map
}

/// Returns the pairs that [`map`] would return.
fn expected<'a>(pairs: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    pairs.iter().map(|&(name, value)| (name, value.to_owned())).collect()
}
