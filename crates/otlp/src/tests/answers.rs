//! Answers of collectors.

use opentelemetry_proto::tonic::collector::logs::v1 as logs;
use opentelemetry_proto::tonic::collector::metrics::v1 as metrics;
use opentelemetry_proto::tonic::collector::trace::v1 as trace;
use prost::Message as _;

use crate::{Rejected, Signal, answer};

fn traces_answer(rejected_spans: i64, error_message: &str) -> Vec<u8> {
    let error_message = error_message.to_owned();
    let partial = trace::ExportTracePartialSuccess { rejected_spans, error_message };
    trace::ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()
}

#[test]
fn a_partial_success_says_what_was_refused() {
    let wanted = |items| Some(Rejected { items, message: "too old".to_owned() });
    let error_message = "too old".to_owned();
    assert_eq!(answer(Signal::Traces, &traces_answer(3, "too old")), wanted(3));
    let partial = metrics::ExportMetricsPartialSuccess {
        rejected_data_points: 4,
        error_message: error_message.clone(),
    };
    let body = metrics::ExportMetricsServiceResponse { partial_success: Some(partial) };
    assert_eq!(answer(Signal::Metrics, &body.encode_to_vec()), wanted(4));
    let partial = logs::ExportLogsPartialSuccess { rejected_log_records: 5, error_message };
    let body = logs::ExportLogsServiceResponse { partial_success: Some(partial) };
    assert_eq!(answer(Signal::Logs, &body.encode_to_vec()), wanted(5));
}

#[test]
fn a_success_is_no_refusal_and_a_warning_refuses_nothing() {
    assert_eq!(answer(Signal::Logs, b""), None);
    assert_eq!(answer(Signal::Traces, &traces_answer(0, "")), None);
    let warning = answer(Signal::Traces, &traces_answer(-7, "old version")).unwrap();
    assert_eq!((warning.items, &*warning.message), (0, "old version"));
}

#[test]
fn a_message_is_bounded_and_visible() {
    let answered = answer(Signal::Traces, &traces_answer(1, "a\n\u{1b}[31m\u{9b}b")).unwrap();
    assert_eq!(answered.message, "a\\x0a\\x1b[31m\\x9bb");
    for text in ["é", "\n", "x"] {
        let answered = answer(Signal::Traces, &traces_answer(1, &text.repeat(100_000))).unwrap();
        assert_eq!(answered.message.len(), 300, "{text:?}");
    }
}

#[test]
fn a_body_that_is_no_message_is_no_refusal() {
    let body = traces_answer(3, "too old");
    for signal in Signal::ALL {
        for at in 0..body.len() {
            let mut body = body.clone();
            answer(*signal, &body[..at]);
            for bits in [0x01, 0x80, 0xff] {
                body[at] ^= bits;
                answer(*signal, &body);
            }
        }
        assert_eq!(answer(*signal, b"<html>busy</html>"), None);
        assert_eq!(answer(*signal, &vec![0x0a; 100_000]), None);
    }
}

#[test]
fn each_signal_has_its_path() {
    for signal in Signal::ALL {
        assert_eq!(signal.path(), format!("/v1/{}", signal.as_str()));
    }
}
