//! A JSON line of the members that a configuration has chosen, headers among them.

use std::io::Write as _;

use model::{LogField, LogMember, RedactQuery};
use wire::http1::Fields;

use super::AccessRecord;
use super::escape::{push_address, push_json};
use super::redact::{HEADER_MAX_BYTES, bound, push_query, push_url};
use crate::digits::{push_millis, push_u64};

impl AccessRecord<'_> {
    /// Appends the record as one JSON object of `fields`, in their order, and a line feed. A record
    /// with a sample rate always has that member. `spare` is overwritten.
    pub fn write_fields(
        &self,
        fields: &[LogField],
        redact: &RedactQuery,
        spare: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let mut says_rate = self.sample_rate.is_none();
        let mut before: &[u8] = b"{\"";
        for field in fields {
            out.extend_from_slice(before);
            before = b",\"";
            match field {
                LogField::Member(member) => {
                    says_rate |= *member == LogMember::SampleRate;
                    out.extend_from_slice(member.as_str().as_bytes());
                    out.extend_from_slice(b"\":");
                    self.push_member(*member, redact, spare, out);
                }
                LogField::RequestHeader(name) => {
                    push_header_key(LogField::REQUEST_HEADER, name, out);
                    self.take_request_header(name, redact, spare);
                    push_json(out, spare);
                }
                LogField::ResponseHeader(name) => {
                    push_header_key(LogField::RESPONSE_HEADER, name, out);
                    take_header(self.response.map(|head| head.fields()), name, redact, spare);
                    push_json(out, spare);
                }
            }
        }
        if !says_rate {
            out.extend_from_slice(before);
            out.extend_from_slice(b"sample_rate\":");
            self.push_member(LogMember::SampleRate, redact, spare, out);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Overwrites `value` with that of a header of the request; empty if there is none.
    pub(super) fn take_request_header(
        &self,
        name: &str,
        redact: &RedactQuery,
        value: &mut Vec<u8>,
    ) {
        take_header(self.request.map(|head| head.fields()), name, redact, value);
    }

    /// Appends a member's value.
    fn push_member(
        &self,
        member: LogMember,
        redact: &RedactQuery,
        spare: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let text = |out: &mut Vec<u8>, value: Option<&str>| {
            push_json(out, value.unwrap_or_default().as_bytes());
        };
        match member {
            LogMember::Time => push_json(out, self.time.as_bytes()),
            LogMember::RequestId => push_json(out, self.request_id),
            LogMember::Client => push_quoted_address(out, Some(self.client)),
            LogMember::Peer => push_quoted_address(out, self.peer),
            LogMember::User => text(out, self.user),
            LogMember::Listener => text(out, Some(self.listener)),
            LogMember::Method => push_json(out, self.method),
            LogMember::Host => push_json(out, self.host),
            LogMember::Path => push_json(out, self.path),
            LogMember::Protocol => text(out, Some(self.protocol)),
            LogMember::Tls => match &self.tls {
                Some(tls) => tls.write_json(out),
                None => out.extend_from_slice(b"null"),
            },
            LogMember::Status => push_number(out, self.status.map(u64::from)),
            LogMember::GrpcStatus => push_number(out, self.grpc_status.map(u64::from)),
            LogMember::Cause => text(out, Some(self.cause.name())),
            LogMember::Fault => text(out, Some(self.cause.fault().as_str())),
            LogMember::Detail => text(out, self.detail),
            LogMember::Service => text(out, self.service),
            LogMember::Server => text(out, self.server),
            LogMember::Zone => text(out, self.zone),
            LogMember::Attempts => push_u64(out, u64::from(self.attempts)),
            LogMember::FailedAttempts => {
                out.push(b'[');
                self.push_failed_attempts(out);
                out.push(b']');
            }
            LogMember::NotRetried => text(out, self.not_retried),
            LogMember::Reused => {
                out.extend_from_slice(if self.reused { b"true" } else { b"false" });
            }
            LogMember::QueueMs => push_millis(out, self.timings.queue),
            LogMember::ConnectMs => push_millis(out, self.timings.connect),
            LogMember::FirstByteMs => push_millis(out, self.timings.first_byte),
            LogMember::TotalMs => push_millis(out, self.timings.total),
            LogMember::RequestBytes => push_u64(out, self.request_bytes),
            LogMember::ResponseBytes => push_u64(out, self.response_bytes),
            LogMember::Tcp => match &self.tcp {
                Some(tcp) => tcp.write_json(out),
                None => out.extend_from_slice(b"null"),
            },
            LogMember::Decision => {
                out.extend_from_slice(self.decision.unwrap_or("null").as_bytes());
            }
            LogMember::Route => text(out, self.route),
            LogMember::Query => {
                spare.clear();
                let query = self.request.and_then(|head| head.query()).unwrap_or_default();
                push_query(query.as_bytes(), redact, spare);
                push_json(out, spare);
            }
            LogMember::UserAgent => {
                self.take_request_header("user-agent", redact, spare);
                push_json(out, spare);
            }
            // Writing to a Vec cannot fail.
            LogMember::SampleRate => drop(write!(out, "{}", self.sample_rate.unwrap_or(1.0))),
        }
    }
}

/// Overwrites `value` with that of a header, without what is secret of it: all lines of that name,
/// as one list (RFC 9110 section 5.3), cut at a bound.
fn take_header(fields: Option<Fields<'_>>, name: &str, redact: &RedactQuery, value: &mut Vec<u8>) {
    value.clear();
    // It is no URL, and often has a `;`.
    let redact = if name == "user-agent" { &RedactQuery::Nothing } else { redact };
    let wanted = |field: &[u8]| field.eq_ignore_ascii_case(name.as_bytes());
    for field in fields.into_iter().flatten().filter(|field| wanted(field.name)) {
        if !value.is_empty() {
            value.extend_from_slice(b", ");
        }
        push_url(field.value, redact, value);
        if value.len() > HEADER_MAX_BYTES {
            break;
        }
    }
    bound(value);
}

fn push_header_key(kind: &str, name: &str, out: &mut Vec<u8>) {
    // A field's name is a token, which contains nothing that JSON escapes.
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_quoted_address(out: &mut Vec<u8>, address: Option<std::net::SocketAddr>) {
    let Some(address) = address else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'"');
    push_address(out, address);
    out.push(b'"');
}

fn push_number(out: &mut Vec<u8>, number: Option<u64>) {
    match number {
        Some(number) => push_u64(out, number),
        None => out.extend_from_slice(b"null"),
    }
}
