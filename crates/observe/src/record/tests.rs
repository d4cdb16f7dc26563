//! Tests that every line stays one line, with the right content.

mod formats;

use serde_json::{Value, json};

use super::*;
use crate::TimestampCache;

fn record() -> AccessRecord<'static> {
    AccessRecord {
        time: TimestampCache::default().at(Duration::from_millis(1_763_619_180_123)),
        request_id: b"4f1c",
        client: "203.0.113.9:50000".parse().unwrap(),
        peer: None,
        user: None,
        listener: "public",
        method: b"GET",
        host: b"api.example.com",
        path: b"/listings/7",
        protocol: "HTTP/1.1",
        tls: None,
        grpc_status: None,
        status: Some(200),
        cause: Cause::Completed,
        detail: None,
        service: Some("listings"),
        server: Some("10.0.1.5:8080"),
        zone: Some("eu-west-1a"),
        attempts: 1,
        failed_attempts: &[],
        not_retried: None,
        reused: true,
        timings: Timings {
            authentication: Duration::ZERO,
            queue: Duration::ZERO,
            connect: Duration::from_micros(250),
            first_byte: Duration::from_micros(301_002),
            total: Duration::from_micros(301_234),
            worked: Duration::from_micros(301_234),
        },
        request_bytes: 0,
        response_bytes: 50_000,
        tcp: None,
        decision: None,
        route: None,
        request: None,
        response: None,
        sample_rate: None,
        trace: None,
    }
}

fn json_of(record: &AccessRecord<'_>) -> Value {
    let mut out = Vec::new();
    record.write_json(&mut out);
    assert_eq!(out.iter().filter(|&&b| b < b' ').count(), 1, "one line feed and no more");
    assert_eq!(out.pop(), Some(b'\n'));
    serde_json::from_slice(&out)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
}

fn text_of(record: &AccessRecord<'_>) -> String {
    let mut out = Vec::new();
    record.write_text(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn failed_attempts_are_logged_with_their_causes() {
    let failed = [
        Attempt {
            server: "10.0.1.5:80".parse().unwrap(),
            cause: Cause::ConnectionRefused,
            status: None,
            after: Duration::ZERO,
            took: Duration::ZERO,
        },
        Attempt {
            server: "[::1]:80".parse().unwrap(),
            cause: Cause::ConnectionTimeout,
            status: None,
            after: Duration::ZERO,
            took: Duration::ZERO,
        },
        Attempt {
            server: "10.0.1.6:80".parse().unwrap(),
            cause: Cause::HttpResponseStatus,
            status: Some(503),
            after: Duration::ZERO,
            took: Duration::ZERO,
        },
    ];
    let record = AccessRecord {
        attempts: 4,
        failed_attempts: &failed,
        not_retried: Some("no attempts left"),
        ..record()
    };
    let json = json_of(&record);
    assert_eq!(
        json["failed_attempts"],
        json!([
            { "server": "10.0.1.5:80", "cause": "connection_refused" },
            { "server": "[::1]:80", "cause": "connection_timeout" },
            { "server": "10.0.1.6:80", "cause": "http_response_status", "status": 503 },
        ])
    );
    assert_eq!(json["not_retried"], "no attempts left");
    let text = text_of(&record);
    assert!(
        text.contains(
            " attempts=4 failed=10.0.1.5:80:connection_refused \
             failed=[::1]:80:connection_timeout \
             failed=10.0.1.6:80:http_response_status:503 not_retried=\"no attempts left\" "
        ),
        "{text}"
    );
}

#[test]
fn a_client_behind_a_proxy_may_have_no_port() {
    for (client, expected) in [("203.0.113.9:0", "203.0.113.9"), ("[2001:db8::9]:0", "2001:db8::9")]
    {
        let client = client.parse().unwrap();
        let peer = Some("10.0.0.1:1234".parse().unwrap());
        let record = AccessRecord { client, peer, ..record() };
        let json = json_of(&record);
        assert_eq!((&json["client"], &json["peer"]), (&json!(expected), &json!("10.0.0.1:1234")));
        let text = text_of(&record);
        assert!(text.contains(&format!(" client={expected} peer=10.0.0.1:1234 ")), "{text}");
    }
}

#[test]
fn json_contains_every_field() {
    let expected = json!({
        "time": "2025-11-20T06:13:00.123Z", "request_id": "4f1c",
        "client": "203.0.113.9:50000", "peer": null, "user": null, "listener": "public",
        "method": "GET", "host": "api.example.com", "path": "/listings/7",
        "protocol": "HTTP/1.1", "tls": null, "status": 200, "grpc_status": null,
        "cause": "completed", "fault": "none", "detail": null,
        "service": "listings", "server": "10.0.1.5:8080", "zone": "eu-west-1a",
        "attempts": 1, "failed_attempts": [], "not_retried": null, "reused": true, "queue_ms": 0.0, "connect_ms": 0.25,
        "first_byte_ms": 301.002, "total_ms": 301.234,
        "request_bytes": 0, "response_bytes": 50_000, "tcp": null, "decision": null,
    });
    assert_eq!(json_of(&record()), expected);
}

#[test]
fn tcp_statistics_and_decisions_are_logged_where_known() {
    let side = TcpSide { round_trip: Duration::from_micros(1_234), retransmits: 2 };
    let decision = Some(r#"[{"chosen":"10.0.1.5:8080"}]"#);
    let tcp = Some(TcpRecord { client: Some(side), server: None });
    let record = AccessRecord { tcp, decision, ..record() };
    let json = json_of(&record);
    assert_eq!(
        json["tcp"],
        json!({ "client_rtt_ms": 1.234, "client_retransmits": 2,
                "server_rtt_ms": null, "server_retransmits": null })
    );
    assert_eq!(json["decision"], json!([{ "chosen": "10.0.1.5:8080" }]));
    let text = text_of(&record);
    assert!(text.contains(" out=50000 client_rtt=1.234ms client_retransmits=2 id=4f1c "));
    assert!(text.ends_with(" decision=\"[{\\\"chosen\\\":\\\"10.0.1.5:8080\\\"}]\"\n"), "{text}");
}

#[test]
fn tls_parameters_and_grpc_status_are_logged() {
    let tls = TlsRecord {
        version: "TLSv1.3",
        cipher: "TLS13_AES_128_GCM_SHA256",
        server_name: Some("api.example.com"),
        resumed: true,
    };
    let record =
        AccessRecord { protocol: "HTTP/2", tls: Some(tls), grpc_status: Some(5), ..record() };
    let json = json_of(&record);
    assert_eq!(
        json["tls"],
        json!({ "version": "TLSv1.3", "cipher": "TLS13_AES_128_GCM_SHA256",
                "server_name": "api.example.com", "resumed": true })
    );
    assert_eq!((&json["protocol"], &json["grpc_status"]), (&json!("HTTP/2"), &json!(5)));
    let text = text_of(&record);
    assert!(text.contains(" protocol=HTTP/2 tls=TLSv1.3 "), "{text}");
    assert!(text.contains(" grpc_status=5 in=0 "), "{text}");
}

#[test]
fn text_contains_every_field() {
    assert_eq!(
        text_of(&record()),
        "2025-11-20T06:13:00.123Z 200 completed 301.234ms GET api.example.com /listings/7 \
         client=203.0.113.9:50000 user=- listener=public protocol=HTTP/1.1 tls=- service=listings server=10.0.1.5:8080 \
         zone=eu-west-1a attempts=1 reused=yes queue=0.000ms connect=0.250ms \
         first_byte=301.002ms in=0 out=50000 id=4f1c\n"
    );
}

#[test]
fn what_is_not_known_is_null_or_a_dash() {
    let record = AccessRecord {
        request_id: b"",
        client: "[2001:db8::1]:50000".parse().unwrap(),
        method: b"",
        host: b"",
        path: b"",
        status: None,
        cause: Cause::HttpRequestError,
        detail: Some("bare line feed"),
        service: None,
        server: None,
        zone: None,
        ..record()
    };
    let json = json_of(&record);
    for member in ["request_id", "method", "host", "path", "status", "service", "server", "zone"] {
        assert_eq!(json[member], Value::Null, "{member}");
    }
    assert_eq!(json.as_object().unwrap().len(), 31, "a line's shape does not change");
    assert_eq!((&json["fault"], &json["detail"]), (&json!("client"), &json!("bare line feed")));
    let text = text_of(&record);
    assert!(text.contains(" - http_request_error 301.234ms - - - client=[2001:db8::1]:50000 "));
    assert!(text.ends_with(" id=- detail=\"bare line feed\"\n"), "{text}");
}

#[test]
fn hostile_bytes_are_escaped_and_nothing_else() {
    for (bytes, json, text) in [
        (&b"/a\"b\\c"[..], "/a\"b\\c", "\"/a\\\"b\\\\c\""),
        (b"/\r\n{\"x\":1}", "/\r\n{\"x\":1}", "\"/\\x0d\\x0a{\\\"x\\\":1}\""),
        (b"/\x1b[31m\0\x7f", "/\u{1b}[31m\0\u{7f}", "\"/\\x1b[31m\\x00\\x7f\""),
        (b"/caf\xc3\xa9", "/caf\u{e9}", "\"/caf\u{e9}\""),
        (b"/\xff\xfe!", "/\u{fffd}\u{fffd}!", "\"/\\xff\\xfe!\""),
        (b"/\xc2\x9b2J", "/\u{9b}2J", "\"/\\xc2\\x9b2J\""),
        (b"\xe2\x82", "\u{fffd}", "\"\\xe2\\x82\""),
        (b"\xf0\x9f\x98\x80 x", "\u{1f600} x", "\"\u{1f600} x\""),
        (b"-", "-", "\"-\""),
        (b"a=b", "a=b", "a=b"),
    ] {
        let record = AccessRecord { path: bytes, ..record() };
        assert_eq!(json_of(&record)["path"], json, "{bytes:?}");
        let line = text_of(&record);
        let path = line.split(" api.example.com ").nth(1).unwrap();
        assert_eq!(path.split(" client=").next(), Some(text), "{bytes:?}");
    }
}

#[test]
fn random_bytes_leave_valid_json_and_one_line() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..5_000 {
        let mut bytes = vec![0; rng.usize(1..40)];
        // Half of them from the bytes that matter most.
        let some = b"\"\\\n\x00\x1b\x7f\x80\xbf\xc2\xe2\xf0\xffa /";
        let chosen = rng.bool();
        for byte in &mut bytes {
            *byte = if chosen { some[rng.usize(..some.len())] } else { rng.u8(..) };
        }
        let record = AccessRecord { path: &bytes, host: &bytes, request_id: &bytes, ..record() };
        let expected = String::from_utf8_lossy(&bytes);
        let json = json_of(&record);
        assert_eq!(json["path"], *expected, "seed {seed}");
        assert_eq!(json["request_id"], json["path"]);
        let text = text_of(&record);
        assert!(text.ends_with('\n'));
        assert_eq!(text.chars().filter(|c| c.is_control()).count(), 1, "seed {seed}: {text:?}");
    }
}

#[test]
fn a_buffer_with_room_is_not_moved() {
    let mut out = Vec::with_capacity(4_096);
    let before = out.as_ptr();
    record().write_json(&mut out);
    record().write_text(&mut out);
    assert_eq!(out.as_ptr(), before);
}

#[test]
fn the_user_is_logged_where_known() {
    let record = AccessRecord { user: Some("a \"b\"\n"), ..record() };
    assert_eq!(json_of(&record)["user"], json!("a \"b\"\n"));
    let mut text = Vec::new();
    record.write_text(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(" user=\"a \\\"b\\\"\\x0a\" listener="), "{text}");
}
