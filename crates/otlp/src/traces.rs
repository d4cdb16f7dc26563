//! Access lines → spans: for each line a server span, and a client span for each attempt.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status};

use crate::attributes::{Attributes, cut};
use crate::conventions::{add_method, add_server, attributes, method_name, server_name};
use crate::envelope::{Encoded, Resource};
use crate::line::{Attempt, Line, Trace, nanoseconds, read};

/// Returns the spans of access lines: of each a server span, whose parent is the client's, and below it a
/// client span for each attempt. `lines` are JSON, separated by line feeds, each with a member `trace`;
/// those that cannot be read or have none count as unreadable.
pub fn traces(resource: &Resource, lines: &[u8]) -> Encoded {
    let (mut spans, mut unreadable) = (Vec::new(), 0);
    for line in read(lines) {
        match line.as_ref().and_then(|line| Some((line, line.trace.as_ref()?))) {
            Some((line, trace)) => push_spans(line, trace, &mut spans),
            None => unreadable += 1,
        }
    }
    let items = spans.len();
    let scope_spans =
        vec![ScopeSpans { scope: Some(resource.scope()), spans, schema_url: String::new() }];
    let resource_spans = vec![ResourceSpans {
        resource: Some(resource.message()),
        scope_spans,
        schema_url: String::new(),
    }];
    Encoded::new(&ExportTraceServiceRequest { resource_spans }, items, unreadable)
}

fn push_spans(line: &Line<'_>, trace: &Trace<'_>, spans: &mut Vec<Span>) {
    let end = line.end_unix_ns();
    let start = end.saturating_sub(nanoseconds(line.total_ms.unwrap_or(0.0)));
    spans.push(Span {
        parent_span_id: trace.parent.map(|id| id.0.to_vec()).unwrap_or_default(),
        flags: flags(trace, trace.parent.is_some()),
        name: cut(&server_name(line)).to_owned(),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: attributes(line).into_messages(),
        status: line.failed().then(|| error(line)),
        ..span(trace, trace.span.0)
    });
    for (index, attempt) in trace.attempts.iter().enumerate() {
        spans.push(attempt_span(line, trace, (index, attempt), start));
    }
}

/// Returns a span with the IDs that it has from `trace`.
fn span(trace: &Trace<'_>, id: [u8; 8]) -> Span {
    Span { trace_id: trace.id.0.to_vec(), span_id: id.to_vec(), ..Span::default() }
}

/// Returns a span's flags: W3C's byte, and that it is known whether its parent is on another host.
fn flags(trace: &Trace<'_>, parent_is_remote: bool) -> u32 {
    let remote = if parent_is_remote { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };
    u32::from(trace.sampled) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
}

/// Returns the status of a failed exchange: its cause and detail. If a server sent an error, its status,
/// which is an attribute, says all.
fn error(line: &Line<'_>) -> Status {
    let message = match (line.cause.as_str(), line.detail.as_str()) {
        ("completed", _) => String::new(),
        (cause, "") => cause.to_owned(),
        (cause, detail) => format!("{cause}: {detail}"),
    };
    failed(&message)
}

fn failed(message: &str) -> Status {
    Status { message: cut(message).to_owned(), code: StatusCode::Error.into() }
}

/// Returns an attempt's span; `start` is the server span's, in nanoseconds since 1970.
fn attempt_span(
    line: &Line<'_>,
    trace: &Trace<'_>,
    (index, attempt): (usize, &Attempt),
    start: u64,
) -> Span {
    let attempt_start = start.saturating_add(nanoseconds(attempt.after_ms));
    let mut out = Attributes::default();
    if !line.is_tcp() {
        add_method(line, &mut out);
        out.whole("http.request.resend_count", Some(index as u64).filter(|count| *count > 0));
    }
    let is_last = index + 1 == trace.attempts.len();
    let (status, events) = match line.failed_attempts.get(index) {
        Some(failed_attempt) => {
            let cause = failed_attempt.cause.as_str();
            add_server(failed_attempt.server.as_str(), &mut out);
            let status = failed_attempt.status.map(|status| status.to_string());
            out.text("error.type", status.as_deref().unwrap_or(cause));
            out.text("weir.cause", cause);
            out.whole("http.response.status_code", failed_attempt.status);
            (Some(failed(cause)), Vec::new())
        }
        None if is_last => {
            (add_last(line, &mut out), first_byte(line, start).into_iter().collect())
        }
        // The line does not say what became of it.
        None => (None, Vec::new()),
    };
    Span {
        parent_span_id: trace.span.0.to_vec(),
        flags: flags(trace, false),
        name: method_name(line).to_owned(),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: attempt_start,
        end_time_unix_nano: attempt_start.saturating_add(nanoseconds(attempt.took_ms)),
        attributes: out.into_messages(),
        events,
        status,
        ..span(trace, attempt.span.0)
    }
}

/// Adds the attributes of the attempt with which the exchange ended, and returns its status. An error of
/// the client, such as leaving, is not an error of the attempt; a 4xx is one, by the convention for client spans.
fn add_last(line: &Line<'_>, out: &mut Attributes) -> Option<Status> {
    add_server(line.server.as_str(), out);
    out.text("weir.zone", line.zone.as_str());
    let cause = line.cause.as_str();
    out.text("weir.cause", cause);
    let completed = matches!(cause, "completed" | "tunnel_idle_timeout");
    // An error status beside another cause is usually Weir's own answer, not the server's.
    let sent = line.status.filter(|status| completed || *status < 400);
    let sent = sent.filter(|_| has_first_byte(line) && !line.is_tcp());
    out.whole("http.response.status_code", sent);
    if !completed {
        if !line.failed() {
            return None;
        }
        out.text("error.type", cause);
        return Some(error(line));
    }
    let status = sent.filter(|status| *status >= 400)?;
    out.text("error.type", &status.to_string());
    Some(failed(""))
}

fn has_first_byte(line: &Line<'_>) -> bool {
    line.first_byte_ms.is_some_and(|ms| ms > 0.0)
}

/// Returns the arrival of the response's first byte; `start` is the server span's.
fn first_byte(line: &Line<'_>, start: u64) -> Option<Event> {
    let after = line.first_byte_ms.filter(|ms| *ms > 0.0)?;
    Some(Event {
        time_unix_nano: start.saturating_add(nanoseconds(after)),
        name: "first byte".to_owned(),
        ..Event::default()
    })
}
