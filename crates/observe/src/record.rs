//! The access line: one per exchange, as JSON for machines or as text for people. The files beside
//! this one write chosen fields and the formats of other programs, and remove secrets of queries.
//!
//! Much of its content was sent by a client and is untrusted: whatever the bytes, a line stays one
//! line, JSON stays valid JSON, and no control character reaches a terminal. Appends to the
//! caller's buffer and allocates nothing else.

mod combined;
mod escape;
mod fields;
mod haproxy;
mod redact;

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use model::{Attempt, Cause, Timings};
use wire::http1::{RequestHead, ResponseHead};

use crate::digits::{push_millis, push_u64};
use crate::timestamp::Timestamp;

use escape::{push_address, push_json, push_text};
pub use haproxy::Concurrency;

/// The content of an access line. Empty byte strings mean unknown or, in TCP mode, not applicable.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// When the exchange ended.
    pub time: Timestamp,
    /// The value of X-Request-Id, as sent to the server.
    pub request_id: &'a [u8],
    /// The client's address; port 0 if its port is unknown.
    pub client: SocketAddr,
    /// The other end of the connection, if that is a proxy and not the client.
    pub peer: Option<SocketAddr>,
    /// The user that the request has proven to come from.
    pub user: Option<&'a str>,
    /// The listener that accepted it.
    pub listener: &'a str,
    /// Request method.
    pub method: &'a [u8],
    /// The requested host.
    pub host: &'a [u8],
    /// Path as sent, without the query, which may contain secrets.
    pub path: &'a [u8],
    /// The client's protocol, such as `HTTP/2`.
    pub protocol: &'a str,
    /// The client's TLS parameters, if it used TLS.
    pub tls: Option<TlsRecord<'a>>,
    /// The status of a gRPC response (`grpc-status`).
    pub grpc_status: Option<u8>,
    /// Status sent to the client.
    pub status: Option<u16>,
    /// Why it ended as it did.
    pub cause: Cause,
    /// Detail about the cause, such as the rule that a request violated.
    pub detail: Option<&'a str>,
    /// The service it was routed to.
    pub service: Option<&'a str>,
    /// The server of the last attempt, as configured.
    pub server: Option<&'a str>,
    /// That server's zone.
    pub zone: Option<&'a str>,
    /// How often it was sent to a server.
    pub attempts: u32,
    /// The attempts that failed and were followed by another, oldest first.
    pub failed_attempts: &'a [Attempt],
    /// Why a failed request was not retried, if that was a decision.
    pub not_retried: Option<&'a str>,
    /// Whether the last attempt reused a connection.
    pub reused: bool,
    /// The durations of the stages.
    pub timings: Timings,
    /// Bytes of the request body, or in TCP mode from the client.
    pub request_bytes: u64,
    /// Bytes of the response body, or in TCP mode to the client.
    pub response_bytes: u64,
    /// TCP statistics of the connections, if sampled.
    pub tcp: Option<TcpRecord>,
    /// The balancing decisions as JSON, if recorded.
    pub decision: Option<&'a str>,
    /// The route that matched.
    pub route: Option<&'a str>,
    /// The request's head, as the client sent it.
    pub request: Option<&'a RequestHead>,
    /// The response's head, as the server sent it.
    pub response: Option<&'a ResponseHead>,
    /// The share of such lines that is written, if not all are.
    pub sample_rate: Option<f64>,
    /// Its trace, if Weir records traces.
    pub trace: Option<TraceRecord<'a>>,
}

/// The trace of an exchange. IDs are hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct TraceRecord<'a> {
    /// The trace's ID.
    pub trace: &'a [u8; 32],
    /// The ID of the exchange's span.
    pub span: [u8; 16],
    /// That of its parent; `None`: the trace begins here.
    pub parent: Option<&'a [u8; 16]>,
    /// The sampled flag: those who see it are asked to record the trace.
    pub is_sampled: bool,
    /// Further facts for its spans; `None` in an access line.
    pub export: Option<TraceExport<'a>>,
}

/// What the line of an exchange that becomes a trace has in addition.
#[derive(Clone, Copy, Debug)]
pub struct TraceExport<'a> {
    /// Why it becomes one.
    pub why: &'static str,
    /// When it ended, since 1970.
    pub ended: Duration,
    /// The spans of its attempts, oldest first.
    pub attempts: &'a [AttemptSpan],
}

/// The span of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct AttemptSpan {
    /// Its ID.
    pub span: [u8; 16],
    /// From the beginning of the exchange to that of the attempt.
    pub after: Duration,
    /// From there to its end.
    pub took: Duration,
}

impl TraceRecord<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":\"");
        out.extend_from_slice(self.trace);
        out.extend_from_slice(b"\",\"span\":\"");
        out.extend_from_slice(&self.span);
        match self.parent {
            Some(parent) => {
                out.extend_from_slice(b"\",\"parent\":\"");
                out.extend_from_slice(parent);
                out.extend_from_slice(b"\",\"sampled\":");
            }
            None => out.extend_from_slice(b"\",\"parent\":null,\"sampled\":"),
        }
        out.extend_from_slice(if self.is_sampled { b"true" } else { b"false" });
        if let Some(export) = &self.export {
            export.write_json(out);
        }
        out.push(b'}');
    }
}

impl TraceExport<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"why\":");
        push_json(out, self.why.as_bytes());
        out.extend_from_slice(b",\"end_unix_us\":");
        push_u64(out, u64::try_from(self.ended.as_micros()).unwrap_or(u64::MAX));
        out.extend_from_slice(b",\"attempts\":[");
        for (index, attempt) in self.attempts.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"{\"span\":\"" } else { b",{\"span\":\"" });
            out.extend_from_slice(&attempt.span);
            out.extend_from_slice(b"\",\"after_ms\":");
            push_millis(out, attempt.after);
            out.extend_from_slice(b",\"took_ms\":");
            push_millis(out, attempt.took);
            out.push(b'}');
        }
        out.push(b']');
    }
}

/// The TLS parameters negotiated with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsRecord<'a> {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'a str,
    /// The cipher suite.
    pub cipher: &'a str,
    /// The server name that the client sent (SNI).
    pub server_name: Option<&'a str>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

impl TlsRecord<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        for (key, value) in [
            (&b"{\"version\":"[..], self.version),
            (b",\"cipher\":", self.cipher),
            (b",\"server_name\":", self.server_name.unwrap_or_default()),
        ] {
            out.extend_from_slice(key);
            push_json(out, value.as_bytes());
        }
        out.extend_from_slice(if self.resumed {
            b",\"resumed\":true}"
        } else {
            b",\"resumed\":false}"
        });
    }
}

/// TCP statistics of both connections of an exchange at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpRecord {
    /// Of the client's connection, if it still existed.
    pub client: Option<TcpSide>,
    /// To the server of the last attempt, if there was one.
    pub server: Option<TcpSide>,
}

impl TcpRecord {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"client_rtt_ms\":");
        push_side_json(out, self.client, b",\"client_retransmits\":");
        out.extend_from_slice(b",\"server_rtt_ms\":");
        push_side_json(out, self.server, b",\"server_retransmits\":");
        out.push(b'}');
    }
}

/// TCP statistics of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSide {
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// Retransmitted segments over the connection's life, not only in this exchange.
    pub retransmits: u32,
}

impl AccessRecord<'_> {
    /// Appends the record as one JSON object (RFC 8259) and a line feed. Every member is always
    /// present, `null` if unknown; times are in milliseconds.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"time\":\"");
        out.extend_from_slice(self.time.as_bytes());
        out.extend_from_slice(b"\",\"request_id\":");
        push_json(out, self.request_id);
        out.extend_from_slice(b",\"client\":\"");
        push_address(out, self.client);
        match self.peer {
            Some(peer) => {
                out.extend_from_slice(b"\",\"peer\":\"");
                push_address(out, peer);
                out.extend_from_slice(b"\",\"user\":");
            }
            None => out.extend_from_slice(b"\",\"peer\":null,\"user\":"),
        }
        push_json(out, self.user.unwrap_or_default().as_bytes());
        out.extend_from_slice(b",\"listener\":");
        push_json(out, self.listener.as_bytes());
        for (key, value) in [
            (&b",\"method\":"[..], self.method),
            (b",\"host\":", self.host),
            (b",\"path\":", self.path),
        ] {
            out.extend_from_slice(key);
            push_json(out, value);
        }
        out.extend_from_slice(b",\"protocol\":");
        push_json(out, self.protocol.as_bytes());
        out.extend_from_slice(b",\"tls\":");
        match &self.tls {
            Some(tls) => tls.write_json(out),
            None => out.extend_from_slice(b"null"),
        }
        for (key, number) in [
            (&b",\"status\":"[..], self.status),
            (b",\"grpc_status\":", self.grpc_status.map(u16::from)),
        ] {
            out.extend_from_slice(key);
            match number {
                Some(number) => push_u64(out, u64::from(number)),
                None => out.extend_from_slice(b"null"),
            }
        }
        for (key, value) in [
            (&b",\"cause\":"[..], Some(self.cause.name())),
            (b",\"fault\":", Some(self.cause.fault().as_str())),
            (b",\"detail\":", self.detail),
            (b",\"service\":", self.service),
            (b",\"server\":", self.server),
            (b",\"zone\":", self.zone),
        ] {
            out.extend_from_slice(key);
            push_json(out, value.unwrap_or_default().as_bytes());
        }
        self.write_json_attempts(out);
        for (key, duration) in [
            (&b",\"queue_ms\":"[..], self.timings.queue),
            (b",\"connect_ms\":", self.timings.connect),
            (b",\"first_byte_ms\":", self.timings.first_byte),
            (b",\"total_ms\":", self.timings.total),
        ] {
            out.extend_from_slice(key);
            push_millis(out, duration);
        }
        out.extend_from_slice(b",\"request_bytes\":");
        push_u64(out, self.request_bytes);
        out.extend_from_slice(b",\"response_bytes\":");
        push_u64(out, self.response_bytes);
        self.write_json_rare(out);
        out.extend_from_slice(b"}\n");
    }

    /// Appends how often it was sent to a server, and the results.
    fn write_json_attempts(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"attempts\":");
        push_u64(out, u64::from(self.attempts));
        out.extend_from_slice(b",\"failed_attempts\":[");
        self.push_failed_attempts(out);
        out.extend_from_slice(b"],\"not_retried\":");
        push_json(out, self.not_retried.unwrap_or_default().as_bytes());
        out.extend_from_slice(if self.reused { b",\"reused\":true" } else { b",\"reused\":false" });
    }

    fn push_failed_attempts(&self, out: &mut Vec<u8>) {
        for (index, attempt) in self.failed_attempts.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"{\"server\":" } else { b",{\"server\":" });
            push_json(out, attempt.server.to_string().as_bytes());
            out.extend_from_slice(b",\"cause\":\"");
            out.extend_from_slice(attempt.cause.name().as_bytes());
            out.push(b'"');
            if let Some(status) = attempt.status {
                out.extend_from_slice(b",\"status\":");
                push_u64(out, u64::from(status));
            }
            out.push(b'}');
        }
    }

    /// Appends rarely used members: one object each, so that lines without them need few bytes.
    fn write_json_rare(&self, out: &mut Vec<u8>) {
        match &self.tcp {
            None => out.extend_from_slice(b",\"tcp\":null,\"decision\":"),
            Some(tcp) => {
                out.extend_from_slice(b",\"tcp\":");
                tcp.write_json(out);
                out.extend_from_slice(b",\"decision\":");
            }
        }
        out.extend_from_slice(self.decision.unwrap_or("null").as_bytes());
        if let Some(rate) = self.sample_rate {
            // Writing to a Vec cannot fail.
            let _ = write!(out, ",\"sample_rate\":{rate}");
        }
        if !self.timings.authentication.is_zero() {
            out.extend_from_slice(b",\"auth_ms\":");
            push_millis(out, self.timings.authentication);
        }
        if let Some(trace) = &self.trace {
            out.extend_from_slice(b",\"route\":");
            push_json(out, self.route.unwrap_or_default().as_bytes());
            out.extend_from_slice(b",\"trace\":");
            trace.write_json(out);
        }
    }

    /// Appends the record as one line: time, status, cause, total milliseconds, method, host and
    /// path, then `name=value` for the rest. `-` means unknown; a value that contains anything but
    /// visible ASCII, or quotes, is quoted, with bytes written as `\xNN`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.time.as_bytes());
        out.push(b' ');
        match self.status {
            Some(status) => push_u64(out, u64::from(status)),
            None => out.push(b'-'),
        }
        out.push(b' ');
        out.extend_from_slice(self.cause.name().as_bytes());
        out.push(b' ');
        push_millis(out, self.timings.total);
        out.extend_from_slice(b"ms");
        for value in [self.method, self.host, self.path] {
            out.push(b' ');
            push_text(out, value);
        }
        out.extend_from_slice(b" client=");
        push_address(out, self.client);
        if let Some(peer) = self.peer {
            out.extend_from_slice(b" peer=");
            push_address(out, peer);
        }
        for (key, value) in [
            (&b" user="[..], self.user.unwrap_or_default().as_bytes()),
            (b" listener=", self.listener.as_bytes()),
            (b" protocol=", self.protocol.as_bytes()),
            (b" tls=", self.tls.map_or("", |tls| tls.version).as_bytes()),
            (b" service=", self.service.unwrap_or_default().as_bytes()),
            (b" server=", self.server.unwrap_or_default().as_bytes()),
            (b" zone=", self.zone.unwrap_or_default().as_bytes()),
        ] {
            out.extend_from_slice(key);
            push_text(out, value);
        }
        out.extend_from_slice(b" attempts=");
        push_u64(out, u64::from(self.attempts));
        for attempt in self.failed_attempts {
            out.extend_from_slice(b" failed=");
            let mut text = format!("{}:{}", attempt.server, attempt.cause.name()).into_bytes();
            if let Some(status) = attempt.status {
                text.push(b':');
                push_u64(&mut text, u64::from(status));
            }
            push_text(out, &text);
        }
        if let Some(why) = self.not_retried {
            out.extend_from_slice(b" not_retried=");
            push_text(out, why.as_bytes());
        }
        out.extend_from_slice(if self.reused { b" reused=yes" } else { b" reused=no" });
        for (key, duration) in [
            (&b" queue="[..], self.timings.queue),
            (b" connect=", self.timings.connect),
            (b" first_byte=", self.timings.first_byte),
        ] {
            out.extend_from_slice(key);
            push_millis(out, duration);
            out.extend_from_slice(b"ms");
        }
        self.write_text_rest(out);
        out.push(b'\n');
    }

    /// Appends what follows the times.
    fn write_text_rest(&self, out: &mut Vec<u8>) {
        if !self.timings.authentication.is_zero() {
            out.extend_from_slice(b" auth=");
            push_millis(out, self.timings.authentication);
            out.extend_from_slice(b"ms");
        }
        if let Some(status) = self.grpc_status {
            out.extend_from_slice(b" grpc_status=");
            push_u64(out, u64::from(status));
        }
        out.extend_from_slice(b" in=");
        push_u64(out, self.request_bytes);
        out.extend_from_slice(b" out=");
        push_u64(out, self.response_bytes);
        for (key, again, side) in [
            (&b" client_rtt="[..], &b" client_retransmits="[..], self.tcp.and_then(|t| t.client)),
            (b" server_rtt=", b" server_retransmits=", self.tcp.and_then(|t| t.server)),
        ] {
            if let Some(side) = side {
                out.extend_from_slice(key);
                push_millis(out, side.round_trip);
                out.extend_from_slice(b"ms");
                out.extend_from_slice(again);
                push_u64(out, u64::from(side.retransmits));
            }
        }
        out.extend_from_slice(b" id=");
        push_text(out, self.request_id);
        if let Some(trace) = &self.trace {
            out.extend_from_slice(b" trace=");
            out.extend_from_slice(trace.trace);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b" detail=");
            push_text(out, detail.as_bytes());
        }
        if let Some(decision) = self.decision {
            out.extend_from_slice(b" decision=");
            push_text(out, decision.as_bytes());
        }
        if let Some(rate) = self.sample_rate {
            // Writing to a Vec cannot fail.
            let _ = write!(out, " sample_rate={rate}");
        }
    }
}

/// Appends a connection's round-trip time in milliseconds, `key`, and its retransmissions.
fn push_side_json(out: &mut Vec<u8>, side: Option<TcpSide>, key: &[u8]) {
    match side {
        Some(side) => push_millis(out, side.round_trip),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(key);
    match side {
        Some(side) => push_u64(out, u64::from(side.retransmits)),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests;
