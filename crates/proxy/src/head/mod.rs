//! Writes message heads for the next hop: removes hop-by-hop fields, applies the configured
//! changes, and adds the forwarding fields.

mod compression;
mod inquiry;
mod origin;
mod own;
mod trace_context;

use std::fmt::Write as _;
use std::net::IpAddr;

use decide::compression::Effect;
use model::path::behind_prefix;
use model::{
    Address, FieldChanges, ForwardFields, HttpVersion, PathChange, PathMatch, Rewrite,
    SessionCarrier,
};
use wire::http1::{
    Known, RequestBody, RequestHead, ResponseBody, ResponseHead, Version, encode, is_same_field,
};

use crate::authentication::Identity;
use crate::balance;

pub(crate) use inquiry::{Inquiry, write_inquiry};
pub(crate) use origin::{Origin, Scheme};
pub(crate) use own::OwnFields;
use trace_context::SpanId;
pub(crate) use trace_context::TraceContext;

/// A request ID, shared by client, Weir, server and log: 32 hexadecimal digits, also the trace ID
/// of a `traceparent` that Weir starts.
#[derive(Clone, Copy)]
pub(crate) struct RequestId([u8; 32]);

impl RequestId {
    /// Returns an ID made of 128 random bits.
    pub(crate) fn new(random: u128) -> RequestId {
        RequestId(hex(random))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether an exchange with this ID belongs to a share of all, 0.0 to 1.0. Its first 32
    /// bits decide; `tcp_sample` draws from others.
    pub(crate) fn is_within(&self, share: f64) -> bool {
        let drawn =
            self.0[..8].iter().fold(0, |number, next| number << 4 | u32::from(digit(*next)));
        f64::from(drawn) < share * 4_294_967_296.0
    }

    /// Returns the ID of a span of this exchange: its own with 0, that of an attempt with its number. It is computed
    /// when it is sent to the server and again when the span is recorded, so nothing has to keep it.
    pub(crate) fn span(&self, number: u32) -> SpanId {
        let half =
            self.0[16..].iter().fold(0, |number, next| number << 4 | u64::from(digit(*next)));
        // The finaliser of SplitMix64: each input has an output of its own that looks random.
        let mut mixed =
            half.wrapping_add(u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // Zero is no ID (W3C Trace Context 3.2.2.4).
        let digits = hex(u128::from(mixed.max(1)));
        std::array::from_fn(|at| digits[16 + at])
    }
}

/// Returns the value of a hexadecimal digit; 0 for anything else.
fn digit(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap_or_default() as u8
}

fn hex(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (digit, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        digit[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        digit[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    digits
}

/// What a route changes in a request for the server.
pub(crate) struct RequestChanges<'a> {
    pub(crate) matched: &'a PathMatch,
    pub(crate) rewrite: &'a Rewrite,
    pub(crate) fields: &'a FieldChanges,
    /// Replaces a host that the client did not name.
    pub(crate) server: Address,
    /// The HTTP version spoken to the server.
    pub(crate) http: HttpVersion,
    /// The field line by which this instance recognises its own requests.
    pub(crate) loop_mark: &'a [u8],
    /// Weir has already sent the 100 (Continue) (RFC 9110 section 10.1.1).
    pub(crate) continued: bool,
    /// The client's address, if it is known.
    pub(crate) client: Option<IpAddr>,
    /// The version in which the request was received, as in `Via`.
    pub(crate) received: &'static str,
    /// Who sends it, if its route has asked.
    pub(crate) identity: Option<&'a Identity>,
    /// Its trace, if Weir records traces.
    pub(crate) trace: Option<&'a TraceContext>,
    /// Which attempt this is, from 1 on.
    pub(crate) attempt: u32,
}

/// Appends the head for the server.
pub(crate) fn write_request(
    head: &RequestHead,
    origin: &Origin,
    id: &RequestId,
    changes: &RequestChanges<'_>,
    out: &mut Vec<u8>,
) {
    let trace = changes.trace.filter(|_| origin.fields.traceparent);
    out.extend_from_slice(head.method().as_bytes());
    out.push(b' ');
    write_target(head, changes.matched, changes.rewrite, out);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    match changes.rewrite.host.as_deref().unwrap_or(head.authority()) {
        // HTTP/1.0 may omit Host; HTTP/1.1, which is sent to the server, must not.
        "" => out.extend_from_slice(changes.server.authority().as_bytes()),
        host => out.extend_from_slice(host.as_bytes()),
    }
    out.extend_from_slice(b"\r\n");

    for field in head.fields() {
        let drop = match field.known {
            // The last one is a secret between the client and Weir.
            Known::Host | Known::ContentLength | Known::TransferEncoding | Known::WeirExplain => {
                true
            }
            Known::Expect => changes.continued || field.hop_by_hop,
            Known::Traceparent if trace.is_some() => true,
            // It belongs to a context that is continued.
            Known::Tracestate if trace.is_some_and(|trace| trace.parent.is_none()) => true,
            // A trusted proxy that says nothing where `client_address` looks may still know it.
            Known::XRealIp if changes.client.is_none() => !origin.trusted,
            known if is_origin_field(known) => !origin.trusted || extended(known, origin.fields),
            Known::Authorization => {
                field.hop_by_hop || changes.identity.is_some_and(|who| !who.forwards_credentials)
            }
            _ => field.hop_by_hop,
        };
        if !drop && !request_changed(changes.fields, field.name) {
            encode::put_field(out, field.name, field.value);
        }
    }
    write_origin(head, origin, id, (trace, changes.attempt), out);
    if origin.fields.real_ip
        && let Some(client) = changes.client
    {
        let _ = write!(Bytes(out), "X-Real-IP: {}\r\n", client.to_canonical());
    }
    // Each forwarder appends to the existing value (RFC 8586 section 2, RFC 9110 section 7.6.3);
    // several fields of one name are one list.
    out.extend_from_slice(changes.loop_mark);
    if origin.fields.via {
        out.extend_from_slice(b"Via: ");
        out.extend_from_slice(changes.received.as_bytes());
        out.extend_from_slice(b" weir\r\n");
    }
    if changes.http == HttpVersion::Http2 && head.accepts_trailers() {
        // The only TE that HTTP/2 allows (RFC 9113 section 8.2.2); gRPC requires it.
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    match head.body() {
        RequestBody::None => {}
        RequestBody::Length(length) => encode::put_number_field(out, b"Content-Length", length),
        RequestBody::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    if let Some(protocol) = upgrade_towards(head, changes.http) {
        out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: ");
        out.extend_from_slice(protocol);
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in changes.identity.iter().flat_map(|who| &who.fields) {
        encode::put_field(out, name.as_bytes(), value.as_bytes());
    }
    write_changes(changes.fields, out);
    out.extend_from_slice(b"\r\n");
}

/// Returns the protocol that a server is asked to upgrade to. Over HTTP/2 this is an extended
/// CONNECT, which replaces a GET and is used for `WebSocket` only; any other Upgrade may be ignored
/// (RFC 9110 section 7.8).
pub(crate) fn upgrade_towards(head: &RequestHead, http: HttpVersion) -> Option<&[u8]> {
    head.upgrade().filter(|protocol| {
        let is_websocket = protocol.eq_ignore_ascii_case(b"websocket");
        http == HttpVersion::Http11 || (head.method() == "GET" && is_websocket)
    })
}

/// Returns whether a 101 switches to a protocol that the server was asked for. A 101 that does not
/// name its protocol is ambiguous (RFC 9110 section 15.2.2).
pub(crate) fn agrees(request: &RequestHead, response: &ResponseHead) -> bool {
    let (Some(asked), Some(chosen)) = (request.upgrade(), response.known(Known::Upgrade)) else {
        return false;
    };
    let mut asked = asked.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    asked.any(|protocol| protocol.eq_ignore_ascii_case(chosen))
}

/// Returns whether this is a field in which proxies state the origin of a request. Anyone can write
/// these.
fn is_origin_field(known: Known) -> bool {
    known.is_forwarding()
        || matches!(known, Known::XRequestId | Known::Traceparent | Known::Tracestate)
}

/// Returns whether Weir writes this field, with the trusted peer's value in it or in place of that.
fn extended(known: Known, fields: ForwardFields) -> bool {
    match known {
        Known::XForwardedFor => fields.x_forwarded,
        Known::Forwarded => fields.forwarded,
        // Weir has read what the peer says, and where: `client_address` of the listener.
        Known::XRealIp => fields.real_ip,
        _ => false,
    }
}

fn write_origin(
    head: &RequestHead,
    origin: &Origin,
    id: &RequestId,
    (trace, attempt): (Option<&TraceContext>, u32),
    out: &mut Vec<u8>,
) {
    let believed = |known| {
        if origin.trusted { head.known(known) } else { None }
    };
    let fields = origin.fields;
    if believed(Known::ClientCert).is_none() {
        out.extend_from_slice(&origin.certificate);
    }
    if fields.x_forwarded {
        if let Some(before) = believed(Known::XForwardedFor) {
            out.extend_from_slice(b"X-Forwarded-For: ");
            join_values(head, Known::XForwardedFor, before, out);
            let _ = write!(Bytes(out), ", {}\r\n", origin.peer.ip().to_canonical());
        } else {
            out.extend_from_slice(&origin.x_forwarded_for);
        }
        if believed(Known::XForwardedProto).is_none() {
            encode::put_field(out, b"X-Forwarded-Proto", origin.scheme.name().as_bytes());
        }
        if believed(Known::XForwardedHost).is_none() && !head.authority().is_empty() {
            out.extend_from_slice(b"X-Forwarded-Host: ");
            out.extend_from_slice(head.authority().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
    if fields.forwarded {
        out.extend_from_slice(b"Forwarded: ");
        if let Some(before) = believed(Known::Forwarded) {
            join_values(head, Known::Forwarded, before, out);
            out.extend_from_slice(b", ");
        } else if believed(Known::XForwardedFor).is_some() {
            // The peer only supports the older field: the client is still its first element.
            for field in head.fields().filter(|field| field.known == Known::XForwardedFor) {
                origin::put_as_forwarded(field.value, out);
            }
        }
        out.extend_from_slice(&origin.forwarded);
        if !head.authority().is_empty() {
            // A host may contain a colon or brackets, which only a quoted-string may contain (RFC
            // 7239 section 4).
            out.extend_from_slice(b";host=\"");
            out.extend_from_slice(head.authority().as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
    }
    if fields.request_id && believed(Known::XRequestId).is_none() {
        out.extend_from_slice(b"X-Request-Id: ");
        out.extend_from_slice(&id.0);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(trace) = trace {
        trace.write(id.span(attempt), out);
    } else if fields.traceparent && believed(Known::Traceparent).is_none() {
        TraceContext::begun(id, false).write(id.span(attempt), out);
    }
}

/// Appends the values of all fields of one name as one list, in order (RFC 9110 section 5.3).
fn join_values(head: &RequestHead, known: Known, first: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(first);
    for field in head.fields().filter(|field| field.known == known).skip(1) {
        out.extend_from_slice(b", ");
        out.extend_from_slice(field.value);
    }
}

/// Appends the target in origin form (or `*`), with the matched part replaced if configured.
pub(crate) fn write_target(
    head: &RequestHead,
    matched: &PathMatch,
    rewrite: &Rewrite,
    out: &mut Vec<u8>,
) {
    write_path(head.path(), matched, rewrite.path.as_ref(), out);
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

/// Appends `path`, changed.
pub(crate) fn write_path(
    path: &str,
    matched: &PathMatch,
    change: Option<&PathChange>,
    out: &mut Vec<u8>,
) {
    let (replacement, rest) = match (change, matched) {
        (None, _) => {
            out.extend_from_slice(path.as_bytes());
            return;
        }
        // `*` is no path: nothing can replace a part of it.
        (Some(_), PathMatch::Prefix(_)) if path == "*" => {
            out.push(b'*');
            return;
        }
        (Some(PathChange::Prefix(to)), PathMatch::Prefix(prefix)) => {
            (to, behind_prefix(path, prefix))
        }
        (Some(PathChange::Prefix(to) | PathChange::Whole(to)), _) => (to, ""),
    };
    let base = if rest.is_empty() { replacement } else { replacement.trim_end_matches('/') };
    out.extend_from_slice(base.as_bytes());
    out.extend_from_slice(rest.as_bytes());
    if base.is_empty() && rest.is_empty() {
        out.push(b'/');
    }
}

/// How a response is sent to the client, determined by both sides' versions and framings.
#[derive(Clone, Copy)]
pub(crate) struct ResponseForm {
    /// Whether the body is chunked towards the client.
    pub(crate) chunked: bool,
    /// Whether the client's connection ends with this response.
    pub(crate) close: bool,
    /// The client speaks HTTP/1.0 and asked for keep-alive.
    pub(crate) say_keep_alive: bool,
}

impl ResponseForm {
    pub(crate) fn new(body: ResponseBody, client: Version, keep: bool) -> ResponseForm {
        let unknown_length = matches!(body, ResponseBody::Chunked | ResponseBody::UntilClose);
        let old = client == Version::Http10;
        let close = !keep || (unknown_length && old);
        ResponseForm { chunked: unknown_length && !old, close, say_keep_alive: old && !close }
    }
}

/// Fields that Weir adds to a response.
#[derive(Clone, Copy, Default)]
pub(crate) struct Additions<'a> {
    /// The field, with its value, that carries the session or the server's token to the client.
    pub(crate) affinity: Option<(&'a str, &'a str)>,
    /// What carries the session, which only Weir may set.
    pub(crate) session: Option<&'a SessionCarrier>,
    /// The changes that compression makes to the response.
    pub(crate) compression: Effect,
    pub(crate) own: OwnFields<'a>,
}

/// Appends the head for the client.
pub(crate) fn write_response(
    head: &ResponseHead,
    form: ResponseForm,
    changes: &FieldChanges,
    additions: Additions<'_>,
    out: &mut Vec<u8>,
) {
    let is_filtered = additions.compression != Effect::default();
    let put = |name: &[u8], value: &[u8], out: &mut Vec<u8>| {
        if is_filtered {
            compression::put_field(additions.compression, name, value, out);
        } else {
            encode::put_field(out, name, value);
        }
    };
    encode::put_status_line(out, Version::Http11, head.status(), head.reason());
    for field in head.fields() {
        let drop = match field.known {
            Known::TransferEncoding => true,
            // With a transfer coding, a length has no meaning (RFC 9112 section 6.3).
            Known::ContentLength => {
                form.chunked || field.hop_by_hop || additions.compression.coding.is_some()
            }
            Known::StrictTransportSecurity => additions.own.hsts.is_some(),
            _ => field.hop_by_hop,
        };
        let parts = (field.known, field.name, field.value);
        if drop
            || balance::replaces_session(additions.session, parts)
            || changed(changes, field.name)
            || additions.own.replace(field.name)
        {
            continue;
        }
        put(field.name, field.value, out);
    }
    if form.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if form.close {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if form.say_keep_alive {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    if let Some((name, value)) = additions.affinity {
        encode::put_field(out, name.as_bytes(), value.as_bytes());
    }
    for (name, value) in changes.set.iter().chain(&changes.add) {
        if !additions.own.replace(name.as_bytes()) {
            put(name.as_bytes(), value.as_bytes(), out);
        }
    }
    additions.own.write(out);
    if is_filtered {
        compression::put_own_fields(additions.compression, head, changes, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends an informational response, or a 101 with its Upgrade field and Weir's own fields. `session`: what only Weir
/// may set.
pub(crate) fn write_informational(
    head: &ResponseHead,
    own: &OwnFields<'_>,
    session: Option<&SessionCarrier>,
    out: &mut Vec<u8>,
) {
    encode::put_status_line(out, Version::Http11, head.status(), head.reason());
    for field in head.fields() {
        let drop = field.hop_by_hop || field.known == Known::ContentLength;
        let parts = (field.known, field.name, field.value);
        if !drop && !balance::replaces_session(session, parts) && !own.replace(field.name) {
            encode::put_field(out, field.name, field.value);
        }
    }
    if head.status() == 101 {
        own.write(out);
        out.extend_from_slice(b"Connection: Upgrade\r\n");
        if let Some(protocol) = head.known(Known::Upgrade) {
            out.extend_from_slice(b"Upgrade: ");
            out.extend_from_slice(protocol);
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns whether the configuration removes or replaces a request field of this name. Many servers
/// treat `X_Team` and `X-Team` as the same field, so a rule for one applies to both.
fn request_changed(changes: &FieldChanges, name: &[u8]) -> bool {
    let is = |other: &str| is_same_field(name, other.as_bytes());
    !changes.is_empty()
        && (changes.remove.iter().any(|n| is(n)) || changes.set.iter().any(|(n, _)| is(n)))
}

/// Returns whether the configuration removes or replaces a response field of this name.
fn changed(changes: &FieldChanges, name: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    !changes.is_empty()
        && (changes.remove.iter().any(|n| is(n)) || changes.set.iter().any(|(n, _)| is(n)))
}

fn write_changes(changes: &FieldChanges, out: &mut Vec<u8>) {
    for (name, value) in changes.set.iter().chain(&changes.add) {
        encode::put_field(out, name.as_bytes(), value.as_bytes());
    }
}

/// Lets `write!` append to a byte vector; cannot fail.
pub(crate) struct Bytes<'a>(pub(crate) &'a mut Vec<u8>);

impl std::fmt::Write for Bytes<'_> {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        self.0.extend_from_slice(s.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
