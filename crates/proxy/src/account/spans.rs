//! The lines of exchanges that become traces: which ones do, and their contents.
//!
//! Decided when an exchange has ended, by its result; whether its trace was marked as sampled at its beginning
//! is one reason among others.

use model::{Cause, Moment, TraceSample};
use observe::{AccessRecord, AttemptSpan, KeptFor, TraceExport, TraceRecord, truncate};

use super::Record;
use super::line::{self, KEPT_TEXT_MAX, Line};
use crate::plane::Plane;
use crate::worker::Worker;

/// Returns whether a trace that begins here is marked as sampled, before its result is known: as often as one
/// that will not fail.
pub(super) fn begins_sampled(worker: &Worker, sample: &TraceSample, record: &Record) -> bool {
    record.id.is_within(sample.head_share())
        && takes(worker, sample, Cause::Completed, record.started)
}

/// Counts one more of a cause, unless the worker has sent as many as it may in this second. Each worker may send its
/// part of all, and at least one.
fn takes(worker: &Worker, sample: &TraceSample, cause: Cause, now: Moment) -> bool {
    let max = sample.per_cause_max.div_ceil(worker.shared.peers.len() as u32);
    worker.spans.takes(cause, max, now)
}

/// Writes the line of an exchange that becomes a trace. `kept_for`: why it is kept as an example, if it is.
pub(super) fn write(
    worker: &Worker,
    plane: &Plane,
    sample: &TraceSample,
    (seen, record): (&Line<'_>, &Record),
    status: Option<u16>,
    kept_for: Option<KeptFor>,
) {
    let Some(context) = &record.trace else { return };
    // If the trace begins here, only a server can have seen the flag.
    let is_awaited = context.is_sampled() && (context.parent.is_some() || record.attempts() > 0);
    let why = match kept_for {
        _ if is_awaited => "sampled",
        Some(kept_for) => kept_for.as_str(),
        None => {
            let share = sample.shares.share(record.cause, status, record.grpc_status);
            if !record.id.is_within(share) || !takes(worker, sample, record.cause, record.ended) {
                return;
            }
            "share"
        }
    };
    let decision = line::decision(record);
    let wall = os::clock::wall();
    let time = worker.timestamps.borrow_mut().at(wall);
    let access = line::access_record(time, plane, seen, record, decision.as_deref());
    let cut = |text| truncate::cut(text, KEPT_TEXT_MAX);
    let (host, path, request_id) = (cut(access.host), cut(access.path), cut(access.request_id));
    let attempts = attempts(record);
    let export = TraceExport { why, ended: wall, attempts: &attempts };
    let trace = access.trace.map(|trace| TraceRecord { export: Some(export), ..trace });
    let access = AccessRecord { status, host, path, request_id, trace, ..access };
    worker.spans.batch.line(|_, out| access.write_json(out));
}

/// Returns when each attempt took place.
fn attempts(record: &Record) -> Vec<AttemptSpan> {
    let failed = record.failed.iter().map(|attempt| (attempt.after, attempt.took));
    let last = record.endpoint.as_ref().map(|_| {
        let after = record.begun_at() - record.started;
        (after, record.timings.total.saturating_sub(after))
    });
    let times = failed.chain(last).zip(1..);
    times.map(|((after, took), n)| AttemptSpan { span: record.id.span(n), after, took }).collect()
}
