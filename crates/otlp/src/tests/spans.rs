//! Spans of access lines.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message as _;
use serde_json::{Value, json};

use super::{END_US, expected, line, line_with, lines, map, resource};
use crate::traces;

const MS: u64 = 1_000_000;

pub(super) fn spans(lines: &[u8]) -> Vec<Span> {
    let encoded = traces(&resource(), lines);
    let mut request = ExportTraceServiceRequest::decode(&*encoded.body).unwrap();
    let spans = request.resource_spans.remove(0).scope_spans.remove(0).spans;
    assert_eq!(encoded.items, spans.len() as u64);
    spans
}

fn spans_of(line: &Value) -> Vec<Span> {
    spans(&lines(std::slice::from_ref(line)))
}

fn error(message: &str) -> Status {
    Status { message: message.to_owned(), code: StatusCode::Error.into() }
}

fn attempts(count: u64) -> Value {
    let attempt = |index: u64| {
        json!({"span": format!("00f067aa0ba902b{:x}", index + 8), "after_ms": index as f64 * 5.0,
               "took_ms": 4.5})
    };
    let mut trace = line()["trace"].clone();
    trace["attempts"] = (0..count).map(attempt).collect();
    trace
}

#[test]
fn a_request_is_a_server_span_with_the_conventions_names() {
    let spans = spans_of(&line());
    let server = &spans[0];
    assert_eq!(server.trace_id[..3], [0x4b, 0xf9, 0x2f]);
    assert_eq!(server.span_id, [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 2, 0xb7]);
    assert_eq!(server.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    assert_eq!((server.kind(), server.flags), (SpanKind::Server, 0x301));
    assert_eq!(server.name, "GET listings");
    assert_eq!(server.end_time_unix_nano, END_US * 1000);
    assert_eq!(server.start_time_unix_nano, END_US * 1000 - 30_500_000);
    assert_eq!(server.status, None);
    let wanted = expected(&[
        ("http.request.method", "GET"),
        ("url.path", "/listings/7"),
        ("url.scheme", "https"),
        ("http.response.status_code", "200"),
        ("http.request.body.size", "0"),
        ("http.response.body.size", "50000"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "2"),
        ("server.address", "www.example.com"),
        ("server.port", "8443"),
        ("client.address", "203.0.113.9"),
        ("client.port", "50000"),
        ("network.peer.address", "203.0.113.9"),
        ("network.peer.port", "50000"),
        ("tls.protocol.version", "1.3"),
        ("tls.cipher", "TLS13_AES_128_GCM_SHA256"),
        ("weir.listener", "public"),
        ("weir.service", "listings"),
        ("weir.server", "10.0.1.5:8080"),
        ("weir.zone", "eu-west-1a"),
        ("weir.cause", "completed"),
        ("weir.fault", "none"),
        ("weir.request_id", "4f1c"),
        ("weir.attempts", "1"),
        ("weir.connection.reused", "true"),
        ("weir.connect.duration", "0.00025"),
        ("weir.first_byte.duration", "0.020125"),
        ("weir.exported_for", "sampled"),
    ]);
    assert_eq!(map(&server.attributes), wanted);
}

#[test]
fn its_attempt_is_a_client_span_below_it() {
    let spans = spans_of(&line());
    let (server, client) = (&spans[0], &spans[1]);
    assert_eq!(spans.len(), 2);
    assert_eq!((&client.trace_id, &client.parent_span_id), (&server.trace_id, &server.span_id));
    assert_eq!((client.kind(), client.flags, &*client.name), (SpanKind::Client, 0x101, "GET"));
    assert_eq!(client.start_time_unix_nano, server.start_time_unix_nano + 125_000);
    assert_eq!(client.end_time_unix_nano, client.start_time_unix_nano + 30_250_000);
    assert_eq!(client.events[0].name, "first byte");
    assert_eq!(client.events[0].time_unix_nano, server.start_time_unix_nano + 20_125_000);
    assert_eq!(client.status, None);
    let wanted = expected(&[
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("server.address", "10.0.1.5"),
        ("server.port", "8080"),
        ("network.peer.address", "10.0.1.5"),
        ("network.peer.port", "8080"),
        ("weir.zone", "eu-west-1a"),
        ("weir.cause", "completed"),
    ]);
    assert_eq!(map(&client.attributes), wanted);
}

#[test]
fn the_resource_is_this_process() {
    let encoded = traces(&resource(), &lines(&[line()]));
    let request = ExportTraceServiceRequest::decode(&*encoded.body).unwrap();
    let wanted = expected(&[
        ("service.name", "weir"),
        ("service.version", "0.1.0"),
        ("service.instance.id", "b7e9"),
        ("host.name", "edge-1"),
        ("process.pid", "4711"),
    ]);
    let spans = &request.resource_spans[0];
    assert_eq!(map(&spans.resource.as_ref().unwrap().attributes), wanted);
    let scope = spans.scope_spans[0].scope.as_ref().unwrap();
    assert_eq!((&*scope.name, &*scope.version), (crate::SCOPE, "0.1.0"));
}

#[test]
fn a_retry_is_a_client_span_for_each_attempt() {
    let spans = spans_of(&line_with(json!({
        "attempts": 3,
        "failed_attempts": [
            {"server": "10.0.1.6:8080", "cause": "connection_refused"},
            {"server": "[2001:db8::7]:8080", "cause": "connection_timeout"},
        ],
        "server": "app.internal:8080",
        "first_byte_ms": 12.0,
        "trace": attempts(3),
    })));
    assert_eq!(spans.len(), 4);
    assert_eq!(spans[0].status, None, "the client got its response");
    let of = |index: usize| map(&spans[index].attributes);
    let wanted = expected(&[
        ("http.request.method", "GET"),
        ("server.address", "10.0.1.6"),
        ("server.port", "8080"),
        ("network.peer.address", "10.0.1.6"),
        ("network.peer.port", "8080"),
        ("error.type", "connection_refused"),
        ("weir.cause", "connection_refused"),
    ]);
    assert_eq!(of(1), wanted);
    assert_eq!(spans[1].status, Some(error("connection_refused")));
    assert_eq!(spans[2].status, Some(error("connection_timeout")));
    assert_eq!(
        (&*of(2)["server.address"], &*of(2)["http.request.resend_count"]),
        ("2001:db8::7", "1")
    );
    assert_eq!(
        (&*of(3)["server.address"], &*of(3)["http.request.resend_count"]),
        ("app.internal", "2")
    );
    assert!(!of(3).contains_key("network.peer.address"), "a name is no address");
    assert_eq!((&spans[3].status, spans[3].events.len()), (&None, 1));
    assert!(spans[1].events.is_empty() && spans[2].events.is_empty());
    let starts: Vec<u64> = spans.iter().map(|span| span.start_time_unix_nano).collect();
    assert_eq!(starts[1..], [starts[0], starts[0] + 5 * MS, starts[0] + 10 * MS]);
    assert!(spans[1..].iter().all(|span| span.parent_span_id == spans[0].span_id));
}

#[test]
fn a_client_that_leaves_is_no_error_of_the_server() {
    let spans = spans_of(&line_with(json!({
        "status": null, "cause": "client_closed", "fault": "client", "first_byte_ms": 0.0,
    })));
    for span in &spans {
        assert_eq!((&span.status, span.events.len()), (&None, 0));
        let attributes = map(&span.attributes);
        assert!(!attributes.contains_key("http.response.status_code"));
        assert!(!attributes.contains_key("error.type"));
    }
    assert_eq!(map(&spans[0].attributes)["weir.cause"], "client_closed");
}

#[test]
fn a_failure_has_its_cause_and_detail_as_status() {
    let spans = spans_of(&line_with(json!({
        "status": 502, "cause": "http_response_error", "fault": "server", "detail": "bad_status_line",
    })));
    for span in &spans {
        assert_eq!(span.status, Some(error("http_response_error: bad_status_line")));
        assert_eq!(map(&span.attributes)["error.type"], "http_response_error");
    }
    // 502 is Weir's answer, not the server's.
    assert!(!map(&spans[1].attributes).contains_key("http.response.status_code"));
    assert_eq!(map(&spans[0].attributes)["http.response.status_code"], "502");
}

#[test]
fn a_status_is_an_error_as_the_conventions_say() {
    for (status, server, client) in
        [(404, None, Some(error(""))), (503, Some(error("")), Some(error("")))]
    {
        let spans = spans_of(&line_with(json!({"status": status})));
        assert_eq!((&spans[0].status, &spans[1].status), (&server, &client), "{status}");
        assert_eq!(map(&spans[1].attributes)["error.type"], status.to_string());
        let of_server = map(&spans[0].attributes).get("error.type").cloned();
        assert_eq!(of_server, server.map(|_| status.to_string()));
    }
    let redirect = line_with(json!({"status": 308, "cause": "redirected", "trace": attempts(0)}));
    let spans = spans_of(&redirect);
    assert_eq!((spans.len(), &spans[0].status), (1, &None));
    assert!(!map(&spans[0].attributes).contains_key("error.type"));
}

#[test]
fn a_tcp_connection_is_named_by_its_listener() {
    let spans = spans_of(&line_with(json!({
        "listener": "raw", "method": null, "host": null, "path": null, "protocol": "TCP",
        "tls": null, "status": null, "request_bytes": 17, "first_byte_ms": 0.0,
        "server": "unix:/run/db.sock",
    })));
    let server = map(&spans[0].attributes);
    assert_eq!((&*spans[0].name, &*spans[1].name), ("TCP raw", "TCP"));
    assert_eq!((&*server["network.transport"], &*server["weir.tcp.client.bytes"]), ("tcp", "17"));
    assert!(!server.keys().any(|key| key.starts_with("http.") || key.starts_with("url.")));
    assert_eq!(map(&spans[1].attributes)["server.address"], "/run/db.sock");
}

#[test]
fn addresses_of_ipv6_have_no_brackets() {
    let spans = spans_of(&line_with(json!({
        "host": "[2001:db8::1]", "client": "[2001:db8::2]", "peer": "[2001:db8::3]:4000",
        "tls": null, "user": "ada",
    })));
    let server = map(&spans[0].attributes);
    for (key, value) in [
        ("server.address", "2001:db8::1"),
        ("client.address", "2001:db8::2"),
        ("network.peer.address", "2001:db8::3"),
        ("network.peer.port", "4000"),
        ("url.scheme", "http"),
        ("enduser.id", "ada"),
    ] {
        assert_eq!(server[key], value, "{key}");
    }
    assert!(!server.contains_key("server.port") && !server.contains_key("client.port"));
}

#[test]
fn an_unknown_method_is_no_name_of_a_span() {
    let with_route = json!({"method": "PURGE", "route": "assets"});
    let spans = spans_of(&line_with(with_route));
    let server = map(&spans[0].attributes);
    assert_eq!((&*spans[0].name, &*spans[1].name), ("HTTP assets", "HTTP"));
    assert_eq!(server["http.request.method"], "_OTHER");
    assert_eq!(server["http.request.method_original"], "PURGE");
    let unrouted = json!({"service": null, "server": null, "attempts": 0, "trace": attempts(0)});
    let spans = spans_of(&line_with(unrouted));
    assert_eq!((spans.len(), &*spans[0].name), (1, "GET"));
    assert!(!map(&spans[0].attributes).contains_key("weir.connection.reused"));
}

#[test]
fn a_trace_that_begins_here_has_no_parent() {
    let mut trace = line()["trace"].clone();
    (trace["parent"], trace["sampled"], trace["why"]) = (json!(null), json!(false), json!("cause"));
    let spans = spans_of(&line_with(json!({"trace": trace})));
    assert_eq!((spans[0].parent_span_id.len(), spans[0].flags), (0, 0x100));
    assert_eq!((spans[1].parent_span_id.len(), spans[1].flags), (8, 0x100));
    assert_eq!(map(&spans[0].attributes)["weir.exported_for"], "cause");
}

#[test]
fn rare_members_have_attributes_too() {
    let decision = json!([{"service": "listings", "by": "queue"}]);
    let spans = spans_of(&line_with(json!({
        "grpc_status": 14, "not_retried": "not_idempotent", "auth_ms": 2.0, "queue_ms": 1500.0,
        "decision": decision,
        "tcp": {"client_rtt_ms": 38.0, "client_retransmits": 3,
                "server_rtt_ms": 0.25, "server_retransmits": null},
    })));
    let server = map(&spans[0].attributes);
    for (key, value) in [
        ("rpc.grpc.status_code", "14"),
        ("weir.not_retried", "not_idempotent"),
        ("weir.auth.duration", "0.002"),
        ("weir.queue.duration", "1.5"),
        ("weir.decision", &*decision.to_string()),
        ("weir.tcp.client.rtt", "0.038"),
        ("weir.tcp.client.retransmits", "3"),
        ("weir.tcp.server.rtt", "0.00025"),
    ] {
        assert_eq!(server[key], value, "{key}");
    }
    assert!(!server.contains_key("weir.tcp.server.retransmits"));
}
