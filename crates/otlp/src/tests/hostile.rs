//! Lines that are broken, long, or extreme.

use serde_json::json;

use super::spans::spans;
use super::{line, line_with, lines, map, resource};
use crate::{access_logs, traces};

#[test]
fn lines_that_cannot_be_read_are_counted() {
    let with_trace = |key: &str, value: serde_json::Value| {
        let mut trace = line()["trace"].clone();
        trace[key] = value;
        line_with(json!({"trace": trace})).to_string()
    };
    let whole = line().to_string();
    let broken = [
        whole[..whole.len() / 2].to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "\u{0}".to_owned(),
        "[".repeat(100_000),
        line_with(json!({"status": -1})).to_string(),
        line_with(json!({"total_ms": "long"})).to_string(),
        with_trace("id", json!("4bf9")),
        with_trace("id", json!("4bf92f3577b34da6a3ce929d0e0e473g")),
        with_trace("id", json!("0".repeat(32))),
        with_trace("span", json!(7)),
        with_trace("span", json!(null)),
        with_trace("parent", json!("é".repeat(8))),
        with_trace("attempts", json!([{"span": "00f067aa0ba902b8"}])),
        with_trace("end_unix_us", json!(-1)),
    ];
    for line in &broken {
        let lines = format!("{whole}\n\n{line}\n{whole}");
        for encoded in
            [traces(&resource(), lines.as_bytes()), access_logs(&resource(), lines.as_bytes())]
        {
            assert_eq!(encoded.unreadable, 1, "{line:.200}");
        }
    }
    let bytes = [whole.as_bytes(), b"\n{\"path\":\"\xff\"}\n"].concat();
    assert_eq!(traces(&resource(), &bytes).unreadable, 1);
}

#[test]
fn a_line_without_a_trace_is_a_log_record_only() {
    let lines = lines(&[line_with(json!({"trace": null})), json!({})]);
    let encoded = traces(&resource(), &lines);
    assert_eq!((encoded.items, encoded.unreadable), (0, 2));
    let encoded = access_logs(&resource(), &lines);
    assert_eq!((encoded.items, encoded.unreadable), (2, 0));
}

#[test]
fn a_line_cut_anywhere_never_panics() {
    let line = format!("{}\n", line_with(json!({"path": "/\u{1f600}\n\"", "detail": "é"})));
    for at in 0..line.len() {
        let readable = u64::from(at + 1 == line.len());
        let encoded = traces(&resource(), &line.as_bytes()[..at]);
        assert_eq!(encoded.items, 2 * readable, "{at}");
        access_logs(&resource(), &line.as_bytes()[at..]);
    }
}

#[test]
fn texts_are_cut_at_a_bound() {
    let long = "é".repeat(500_000);
    let line = line_with(json!({
        "path": long, "method": long, "route": long, "host": long, "detail": long, "fault": "server",
        "cause": long, "decision": [long], "user": long, "client": long, "server": long,
    }));
    let lines = lines(&[line]);
    for span in spans(&lines) {
        for (key, value) in map(&span.attributes) {
            assert!(value.len() <= 4096, "{key}");
        }
        assert!(span.name.len() <= 4096 && span.status.unwrap().message.len() <= 4096);
    }
    assert!(access_logs(&resource(), &lines).body.len() < 100_000);
}

#[test]
fn times_of_any_size_saturate() {
    let mut trace = line()["trace"].clone();
    trace["end_unix_us"] = json!(u64::MAX);
    trace["attempts"] = json!([
        {"span": "00f067aa0ba902b8", "after_ms": 1e300, "took_ms": 1e300},
        {"span": "00f067aa0ba902b9", "after_ms": -1e300, "took_ms": -5.0},
    ]);
    let line = line_with(json!({"total_ms": 1e308, "first_byte_ms": 1e308, "trace": trace}));
    for span in spans(&lines(&[line])) {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    }
}
