//! The access line of an exchange: whether it is written, what it contains, and in which format.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Fault, ListenerId, LogFormat};
use observe::kept::Ended;
use observe::{
    AccessRecord, Concurrency, KeptExchange, KeptFor, TcpRecord, TcpSide, Timestamp, TlsRecord,
    TraceRecord, truncate,
};
use wire::http1::{RequestHead, ResponseHead};

use super::Record;
use crate::listener::LiveListener;
use crate::plane::Plane;
use crate::via::Via;
use crate::worker::Worker;

/// Bytes of a text of the client that are kept with an example.
pub(super) const KEPT_TEXT_MAX: usize = 512;

/// The request fields of an access line.
pub(super) struct Line<'a> {
    pub(super) client: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) listener: ListenerId,
    pub(super) live: &'a LiveListener,
    pub(super) request_id: &'a [u8],
    pub(super) method: &'a [u8],
    pub(super) host: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) protocol: &'static str,
    pub(super) tls: Option<TlsRecord<'a>>,
    pub(super) tcp_client: Option<TcpSide>,
    pub(super) route: Option<&'a str>,
    pub(super) request: Option<&'a RequestHead>,
    pub(super) response: Option<&'a ResponseHead>,
}

impl<'a> Line<'a> {
    /// Returns those of a connection without a request.
    pub(super) fn bare(client: SocketAddr, via: &'a Via, request_id: &'a [u8]) -> Line<'a> {
        Line {
            client,
            peer: None,
            listener: via.listener,
            live: &via.live,
            request_id,
            method: b"",
            host: b"",
            path: b"",
            protocol: "",
            tls: None,
            tcp_client: None,
            route: None,
            request: None,
            response: None,
        }
    }
}

/// Writes the access line, if it is among those to be written.
pub(super) fn write(
    worker: &Worker,
    plane: &Plane,
    seen: &Line<'_>,
    record: &Record,
    status: Option<u16>,
) {
    let snapshot = &plane.published.snapshot;
    let log = &snapshot.log;
    let sample_rate = if log.sample.0.is_empty() {
        None
    } else {
        // Before anything is formatted.
        let share = if record.is_asked {
            1.0
        } else {
            log.sample.share(record.cause, status, record.grpc_status)
        };
        if !record.id.is_within(share) {
            return;
        }
        Some(share)
    };
    let (decision, wall) = (decision(record), os::clock::wall());
    let time = worker.timestamps.borrow_mut().at(wall);
    let line = access_record(time, plane, seen, record, decision.as_deref());
    let line = AccessRecord { status, sample_rate, ..line };
    let redact = &log.redact_query;
    worker.access.line(|spare, out| match (log.format, &log.fields) {
        (LogFormat::Json, None) => line.write_json(out),
        (LogFormat::Json, Some(fields)) => line.write_fields(fields, redact, spare, out),
        (LogFormat::Text, _) => line.write_text(out),
        (LogFormat::Combined, _) => line.write_combined(redact, spare, out),
        (LogFormat::Haproxy, _) => {
            let began = wall.saturating_sub(record.timings.total);
            let started = worker.timestamps.borrow_mut().at(began);
            let concurrency = concurrency(worker, seen.live, record);
            line.write_haproxy(&started, &concurrency, redact, spare, out);
        }
    });
}

/// Keeps the exchange as an example, if it is one; returns why.
pub(super) fn keep(
    worker: &Worker,
    plane: &Plane,
    seen: &Line<'_>,
    record: &Record,
    status: Option<u16>,
) -> Option<KeptFor> {
    let counters = record.service.map(|id| plane.service_counters(id, &worker.shard));
    // Without reading a small body ahead: that is the client's time.
    let has_head = !record.timings.first_byte.is_zero();
    let took = if has_head { record.timings.queue + record.server_time() } else { Duration::ZERO };
    let ended = Ended {
        at: record.ended,
        cause: record.cause,
        status,
        took,
        has_decision: record.explanation.is_some(),
        service: counters.map(|counters| &counters.kept),
    };
    let kept = &worker.shard.kept;
    let kept_for = kept.wants(&ended)?;
    let decision = decision(record);
    let time = worker.timestamps.borrow_mut().at(os::clock::wall());
    let line = access_record(time, plane, seen, record, decision.as_deref());
    let cut = |text| truncate::cut(text, KEPT_TEXT_MAX);
    let (host, path, request_id) = (cut(line.host), cut(line.path), cut(line.request_id));
    let mut json = Vec::new();
    AccessRecord { status, host, path, request_id, ..line }.write_json(&mut json);
    let service = record.service.map(|id| Arc::clone(&plane.published.snapshot.service(id).name));
    kept.keep(KeptExchange {
        ended: record.ended,
        kept_for,
        is_of_client: record.cause.fault() == Fault::Client,
        service,
        line: json.into(),
    });
    Some(kept_for)
}

/// Returns the record's balancing decisions as JSON.
pub(super) fn decision(record: &Record) -> Option<String> {
    record.explanation.as_ref().map(|explanation| explanation.to_json())
}

/// Returns the content of the access line, without the status.
pub(super) fn access_record<'a>(
    time: Timestamp,
    plane: &'a Plane,
    seen: &'a Line<'_>,
    record: &'a Record,
    decision: Option<&'a str>,
) -> AccessRecord<'a> {
    let snapshot = &plane.published.snapshot;
    let row = record.endpoint.as_ref().map(|endpoint| &endpoint.row);
    AccessRecord {
        time,
        request_id: seen.request_id,
        client: seen.client,
        peer: seen.peer,
        user: record.user.as_deref(),
        listener: &snapshot.listeners[seen.listener.0 as usize].name,
        method: seen.method,
        host: seen.host,
        path: seen.path,
        protocol: seen.protocol,
        tls: seen.tls,
        grpc_status: record.grpc_status,
        status: None,
        cause: record.cause,
        detail: record.exceeded.as_deref().or(Some(record.detail)).filter(|text| !text.is_empty()),
        service: record.service.map(|id| &*snapshot.service(id).name),
        server: row.map(|row| &*row.name),
        zone: row.and_then(|row| row.zone.as_deref()),
        attempts: record.attempts(),
        failed_attempts: &record.failed,
        not_retried: record.not_retried,
        reused: record.reused,
        timings: record.timings,
        request_bytes: record.body_in,
        response_bytes: record.body_out,
        tcp: record
            .asks_tcp
            .then_some(TcpRecord { client: seen.tcp_client, server: record.tcp_server }),
        decision,
        route: seen.route,
        request: seen.request,
        response: seen.response,
        sample_rate: None,
        trace: record.trace.as_ref().map(|context| TraceRecord {
            trace: &context.trace,
            span: record.id.span(0),
            parent: context.parent.as_ref(),
            is_sampled: context.is_sampled(),
            export: None,
        }),
    }
}

/// Returns what HAProxy's formats say about how busy everything is.
fn concurrency(worker: &Worker, listener: &LiveListener, record: &Record) -> Concurrency {
    let endpoint = record.endpoint.as_ref();
    Concurrency {
        process: worker.shared.connections.load(Relaxed) as u64,
        listener: listener.connections.load(Relaxed) as u64,
        server: endpoint.map_or(0, |endpoint| u64::from(endpoint.slots.in_flight())),
    }
}
