//! A client's frames as the input of two servers: the engine, and the `h2` crate. After each frame
//! or header block, both must have accepted the same requests, content and trailers, and refused
//! the same. Every difference that is allowed is a rule in [`Difference::is_allowed`].
#![no_main]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use fuzz::frames::{
    self, ACK, END_HEADERS, Frame, PADDED, PAYLOAD_MAX_BYTES, Step, WITH_PRIORITY, kind,
};
use fuzz::mutate::mutate;
use http2::{
    Config, Connection, Ended, Event, PREFACE, Refusal, Role, Scratch, StreamKey, WebSocket,
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use model::Moment;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::http1::{HeadLimits, RequestHead, is_forbidden_trailer, parse_request};

const CONFIG: Config = Config {
    streams_max: 100,
    head_max_bytes: 16_384,
    window_bytes: 65_535,
    window_max_bytes: 65_535,
    connection_window_bytes: 1 << 20,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 65_536, target_max_bytes: 65_536, fields_max: 1024 };

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let (_, frames) = frames::parse(data);
    let mut units = units(frames);
    // The connection begins as it must: the other targets cover how it must not.
    if units.first().is_none_or(|unit| unit[0].kind != kind::SETTINGS || unit[0].has(ACK)) {
        let settings = Frame { kind: kind::SETTINGS, flags: 0, stream: 0, payload: Vec::new() };
        units.insert(0, vec![settings]);
    }
    let mut engine = Engine::new();
    let mut h2 = H2::new();
    let mut reset = BTreeSet::<u32>::new();
    engine.receive(PREFACE, 0);
    h2.receive(PREFACE);
    for unit in &units {
        let id = unit[0].stream;
        let bytes = unit.iter().map(Frame::bytes).collect::<Vec<_>>().concat();
        let joined = joined(unit).map_or_else(|| bytes.clone(), |frame| frame.bytes());
        let (ours, theirs) = (engine.receive(&bytes, id), h2.receive(&joined));
        let difference = Difference { ours, theirs, unit, was_reset: reset.contains(&id) };
        let is_same = difference.ours == difference.theirs;
        // `h2` does not decode the block of a stream that depends on itself, so that its table is
        // another one from then on.
        if depends_on_itself(&unit[0]) {
            return;
        }
        assert!(is_same || difference.is_allowed(), "{difference:#?}");
        // Beyond an allowed difference, a failure or a GOAWAY, the connections are not comparable.
        if !is_same || difference.ours.failed || unit[0].kind == kind::GOAWAY {
            return;
        }
        reset.extend(&difference.ours.refused);
    }
});

/// Returns the frames that arrive; those of a header block together, with a frame that interrupts it.
/// `h2` judges a block when it is complete or before, the engine when it is complete.
fn units(frames: Vec<Frame>) -> Vec<Vec<Frame>> {
    let mut units: Vec<Vec<Frame>> = Vec::new();
    let mut is_open = false;
    for frame in frames {
        let Step::Arrives(frames) = frames::expand(frame, true) else { continue };
        for frame in frames {
            let continues = is_open;
            is_open = !frame.has(END_HEADERS)
                && (frame.kind == kind::HEADERS || is_open && frame.kind == kind::CONTINUATION);
            match units.last_mut().filter(|_| continues) {
                Some(unit) => unit.push(frame),
                None => units.push(vec![frame]),
            }
        }
    }
    // A block without an end is judged by `h2` only.
    if is_open {
        units.pop();
    }
    units
}

/// Returns whether HEADERS make a stream depend on itself.
fn depends_on_itself(frame: &Frame) -> bool {
    let at = usize::from(frame.has(PADDED));
    let is_prioritised = frame.kind == kind::HEADERS && frame.has(WITH_PRIORITY);
    is_prioritised && frame.number(at) == Some(frame.stream)
}

/// Returns a header block in one frame. `h2` forgets that a block is malformed if the frame in which
/// it finds out ends within a field.
fn joined(unit: &[Frame]) -> Option<Frame> {
    let (first, rest) = unit.split_first()?;
    let mut whole = first.clone();
    if first.has(PADDED) {
        whole.flags &= !PADDED;
        let padding = usize::from(whole.payload.first().copied()?);
        whole.payload.remove(0);
        whole.payload.truncate(whole.payload.len().checked_sub(padding)?);
    }
    if first.has(WITH_PRIORITY) && whole.payload.len() < 5 {
        return None;
    }
    for frame in rest {
        if frame.kind != kind::CONTINUATION || frame.stream != first.stream {
            return None;
        }
        whole.payload.extend_from_slice(&frame.payload);
    }
    whole.flags |= END_HEADERS;
    let is_block = first.kind == kind::HEADERS && !rest.is_empty();
    (is_block && whole.payload.len() <= PAYLOAD_MAX_BYTES).then_some(whole)
}

/// Names and values, with escapes.
type Fields = Vec<(String, String)>;

/// A request as the engine would report it: with one Host and one Cookie, and without what concerns
/// the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Head {
    method: String,
    target: String,
    host: Option<String>,
    fields: Fields,
}

/// What a frame led to, by stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    heads: BTreeMap<u32, Head>,
    content: BTreeMap<u32, Vec<u8>>,
    trailers: BTreeMap<u32, Fields>,
    /// Requests that are complete.
    ended: BTreeSet<u32>,
    /// Streams that the client reset before their request was complete.
    reset: BTreeSet<u32>,
    /// Streams that the server reset.
    refused: BTreeSet<u32>,
    failed: bool,
    notes: Notes,
}

/// For judging a difference; equal to any other.
#[derive(Debug, Default)]
struct Notes {
    /// The rules that were broken.
    rules: Vec<&'static str>,
    /// Fields of requests and trailers as they arrived.
    raw: Fields,
    has_authority: bool,
    /// The HTTP/1.1 parser refuses the request that the engine passes on.
    is_refused_later: bool,
}

impl PartialEq for Notes {
    fn eq(&self, _: &Notes) -> bool {
        true
    }
}

impl Eq for Notes {}

impl Outcome {
    fn refuses(&self) -> bool {
        self.failed || !self.refused.is_empty()
    }
}

#[derive(Debug)]
struct Difference<'a> {
    ours: Outcome,
    theirs: Outcome,
    unit: &'a [Frame],
    /// Both servers have reset the stream before.
    was_reset: bool,
}

impl Difference<'_> {
    fn is_allowed(&self) -> bool {
        let Difference { ours, theirs, unit, .. } = self;
        match (ours.refuses(), theirs.refuses()) {
            // Both refuse; one ends the connection where the other resets the stream. `h2` ends it
            // for invalid characters in fields and for frames after END_STREAM; the engine for
            // frames of streams that the client has closed.
            (true, true) => true,
            (true, false) => self.may_be_stricter(),
            (false, true) => self.may_be_laxer(),
            // `h2` stops accepting requests after a GOAWAY, which concerns a server's streams only.
            (false, false) => unit[0].kind == kind::GOAWAY,
        }
    }

    /// Returns whether the engine refuses deliberately what `h2` accepts.
    fn may_be_stricter(&self) -> bool {
        let Difference { ours, theirs, unit, .. } = self;
        let raw = |name: &'static str| theirs.notes.raw.iter().filter(move |field| field.0 == name);
        let head = theirs.heads.values().next();
        ours.notes.rules.iter().any(|&rule| match rule {
            // RFC 9113 section 8.2.1 forbids white space around values; `h2` passes it on.
            "a field name or value has forbidden characters" => {
                let is_around = |value: &str| {
                    [" ", "\\t"].iter().any(|&it| value.starts_with(it) || value.ends_with(it))
                };
                theirs.notes.raw.iter().any(|(_, value)| is_around(value))
            }
            // RFC 9113 section 8.3.1; routing by one and serving by the other is smuggling.
            "Host differs from :authority" => {
                raw("host").any(|host| head.is_some_and(|head| head.host.as_ref() != Some(&host.1)))
            }
            // RFC 9110 section 8.6: `h2` reads an empty length as 0.
            "content-length is not one number" => {
                raw("content-length").any(|field| field.1.is_empty())
            }
            // A tunnel has no length (RFC 9113 section 8.5).
            "content-length of a tunnel" => raw("content-length").next().is_some(),
            // RFC 3986 section 3.1: it begins with a letter. `h2` accepts digits.
            "no :scheme, or not a scheme" => true,
            // RFC 9113 section 8.3.1 requires a path; `h2` leaves it to the application.
            "no :path, or not a path" => {
                head.is_some_and(|head| !head.target.starts_with('/') || head.target == "/")
            }
            // RFC 9113 section 8.5 requires an authority.
            "CONNECT has an :authority only" => {
                !theirs.notes.has_authority && head.is_some_and(|head| head.method == "CONNECT")
            }
            // RFC 9113 section 8.1: `h2` drops them.
            "a pseudo-header field in trailers" => !theirs.trailers.is_empty(),
            // `h2` forgets a block that it has found to be malformed before its end.
            "a frame within a header block" => {
                unit[0].kind == kind::HEADERS && !unit[0].has(END_HEADERS)
            }
            // `h2` does not know RFC 9218, nor its setting.
            "PRIORITY_UPDATE where none may be" | "PRIORITY_UPDATE is shorter than 4 bytes" => {
                unit[0].kind == kind::PRIORITY_UPDATE
            }
            "NO_RFC7540_PRIORITIES is invalid" => unit[0].kind == kind::SETTINGS,
            // A budget: `h2` counts other things.
            "SETTINGS"
            | "PRIORITY frames"
            | "WINDOW_UPDATE frames"
            | "PING frames"
            | "empty DATA frames"
            | "unknown frames"
            | "most streams are reset" => true,
            _ => false,
        })
    }

    /// Returns whether the engine deliberately accepts what `h2` refuses.
    fn may_be_laxer(&self) -> bool {
        let Difference { ours, unit, was_reset, .. } = self;
        // The engine leaves what it has in common with HTTP/1.1 to that parser, which answers 400.
        if ours.notes.is_refused_later {
            return true;
        }
        // `http::Uri` accepts less than RFC 3986 allows: no `%` in a host, for example.
        if ours.heads.values().any(|head| !is_for_uri(head)) {
            return true;
        }
        match unit[0].kind {
            // An acknowledgement of no SETTINGS is harmless.
            kind::SETTINGS => unit[0].has(ACK),
            // Invalid PRIORITY and WINDOW_UPDATE frames of a stream are errors of the stream (RFC 9113
            // sections 6.3 and 6.9), which is closed here: the engine would refuse them otherwise. `h2`
            // ends the connection, or resets the stream again.
            kind::PRIORITY => {
                unit[0].payload.len() != 5 || unit[0].number(0) == Some(unit[0].stream)
            }
            kind::WINDOW_UPDATE => unit[0].number(0) == Some(0) && unit[0].stream != 0,
            // `h2` checks the fields even of trailers that it discards.
            kind::HEADERS => *was_reset,
            _ => false,
        }
    }
}

/// Returns whether the `http` crate can represent a target and an authority.
fn is_for_uri(head: &Head) -> bool {
    let host = head.host.as_deref().unwrap_or("a");
    http::uri::Authority::try_from(host).is_ok()
        && (head.method == "CONNECT" || http::uri::PathAndQuery::try_from(&head.target[..]).is_ok())
}

/// Sorts by name; values of one name keep their order.
fn sorted(mut fields: Fields) -> Fields {
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

/// Splits lines of HTTP/1.1.
fn lines(text: &[u8]) -> Fields {
    let mut fields = Fields::new();
    let mut rest = text;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
            fields.push((name, line[colon + 2..].escape_ascii().to_string()));
        }
    }
    fields
}

fn removed(fields: &mut Fields, name: &str) -> Option<String> {
    let at = fields.iter().position(|field| field.0 == name)?;
    Some(fields.remove(at).1)
}

/// The engine as a server that answers each request when it is complete.
struct Engine {
    connection: Connection,
    scratch: Scratch,
    ids: BTreeMap<usize, u32>,
}

impl Engine {
    fn new() -> Engine {
        Engine {
            connection: Connection::new(Role::Server, CONFIG, Moment::ZERO),
            scratch: Scratch::default(),
            ids: BTreeMap::new(),
        }
    }

    /// Receives frames; requests that begin have the identifier `id`.
    fn receive(&mut self, bytes: &[u8], id: u32) -> Outcome {
        let now = Moment::ZERO;
        let mut outcome = Outcome::default();
        let mut rest = bytes;
        loop {
            let (taken, event) = self.connection.receive(rest, &mut self.scratch, now);
            rest = &rest[taken..];
            let ended = match event {
                None => break,
                Some(Event::Request { stream, ended }) => {
                    self.ids.insert(stream.slot(), id);
                    outcome.heads.insert(id, head_of(self.scratch.text(), ended));
                    let mut parsed = RequestHead::default();
                    outcome.notes.is_refused_later =
                        parse_request(self.scratch.text(), &LIMITS, &mut parsed).is_err();
                    ended.then_some(stream)
                }
                Some(Event::Data { stream, data, ended }) => {
                    let id = self.ids[&stream.slot()];
                    if !data.is_empty() {
                        outcome.content.entry(id).or_default().extend_from_slice(data);
                    }
                    self.connection.consumed(stream, data.len(), now);
                    ended.then_some(stream)
                }
                Some(Event::Trailers { stream }) => {
                    let fields = sorted(lines(self.scratch.text()));
                    outcome.trailers.insert(self.ids[&stream.slot()], fields);
                    Some(stream)
                }
                Some(Event::Ended { stream, why }) => {
                    let id = self.ids[&stream.slot()];
                    match why {
                        Ended::Violation(violation) => {
                            outcome.notes.rules.push(violation.rule);
                            outcome.refused.insert(id);
                        }
                        _ => drop(outcome.reset.insert(id)),
                    }
                    self.connection.release(stream);
                    None
                }
                Some(Event::Refused(refusal)) => {
                    if let Refusal::Malformed(rule) = refusal {
                        outcome.notes.rules.push(rule);
                    }
                    outcome.refused.insert(id);
                    None
                }
                Some(Event::Violation(violation)) => {
                    outcome.notes.rules.push(violation.rule);
                    outcome.failed = true;
                    None
                }
                Some(Event::GoingAway(_)) => None,
                Some(event) => panic!("{event:?}"),
            };
            if let Some(stream) = ended {
                outcome.ended.insert(self.ids[&stream.slot()]);
                self.answer(stream);
            }
        }
        let length = self.connection.output().concat().len();
        self.connection.sent(length);
        outcome
    }

    fn answer(&mut self, stream: StreamKey) {
        let sent = self.connection.send_head(stream, b"HTTP/1.1 200 OK\r\n\r\n", true);
        assert_eq!(sent, Ok(()));
        self.connection.release(stream);
    }
}

/// Reads the engine's text of a head, without the fields that it adds.
fn head_of(text: &[u8], ended: bool) -> Head {
    let end = text.windows(2).position(|two| two == b"\r\n").unwrap_or(text.len());
    let line = text[..end].escape_ascii().to_string();
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (mut method, target) = (word(), word());
    let mut fields = lines(&text[end + 2..]);
    if removed(&mut fields, "upgrade").is_some() {
        // An extended CONNECT has become an Upgrade.
        removed(&mut fields, "connection");
        removed(&mut fields, "sec-websocket-key");
        method = "CONNECT".to_owned();
    } else if !ended && !fields.iter().any(|field| field.0 == "content-length") {
        assert_eq!(removed(&mut fields, "transfer-encoding").as_deref(), Some("chunked"));
    }
    let host = removed(&mut fields, "host");
    Head { method, target, host, fields: sorted(fields) }
}

/// Bytes to `h2` and from it.
#[derive(Clone, Default)]
struct Wire {
    to: Rc<RefCell<Vec<u8>>>,
    from: Rc<RefCell<Vec<u8>>>,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut to = self.to.borrow_mut();
        let count = to.len().min(buffer.remaining());
        if count == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&to[..count]);
        to.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.from.borrow_mut().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Respond = h2::server::SendResponse<Bytes>;

/// The `h2` crate as the same server. It is polled by hand, without a runtime.
struct H2 {
    wire: Wire,
    handshake: Option<h2::server::Handshake<Wire, Bytes>>,
    connection: Option<h2::server::Connection<Wire, Bytes>>,
    streams: BTreeMap<u32, (h2::RecvStream, Respond)>,
}

impl H2 {
    fn new() -> H2 {
        let wire = Wire::default();
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(CONFIG.window_bytes)
            .initial_connection_window_size(CONFIG.connection_window_bytes)
            .max_concurrent_streams(CONFIG.streams_max)
            .max_header_list_size(CONFIG.head_max_bytes)
            .max_concurrent_reset_streams(10_000)
            .max_pending_accept_reset_streams(10_000)
            .max_local_error_reset_streams(None)
            .reset_stream_duration(Duration::from_secs(3600))
            .enable_connect_protocol();
        let handshake = Some(builder.handshake(wire.clone()));
        H2 { wire, handshake, connection: None, streams: BTreeMap::new() }
    }

    fn receive(&mut self, bytes: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        self.wire.to.borrow_mut().extend_from_slice(bytes);
        let cx = &mut Context::from_waker(Waker::noop());
        if let Some(handshake) = &mut self.handshake
            && let Poll::Ready(ready) = Pin::new(handshake).poll(cx)
        {
            self.handshake = None;
            self.connection = ready.ok();
            outcome.failed = self.connection.is_none();
        }
        // Accepting drives the connection; what the streams do may need to be sent.
        while self.accept(&mut outcome, cx) | self.read(&mut outcome, cx) {}
        self.accept(&mut outcome, cx);
        self.refusals(&mut outcome);
        outcome
    }

    /// Returns whether a request was accepted.
    fn accept(&mut self, outcome: &mut Outcome, cx: &mut Context<'_>) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match connection.poll_accept(cx) {
            Poll::Pending => false,
            Poll::Ready(Some(Ok((request, respond)))) => {
                let id = respond.stream_id().as_u32();
                outcome.heads.insert(id, head_from(&request, &mut outcome.notes));
                self.streams.insert(id, (request.into_body(), respond));
                true
            }
            Poll::Ready(Some(Err(_)) | None) => {
                self.connection = None;
                true
            }
        }
    }

    /// Returns whether anything of a stream was read.
    fn read(&mut self, outcome: &mut Outcome, cx: &mut Context<'_>) -> bool {
        let mut has_read = false;
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            let Some((body, respond)) = self.streams.get_mut(&id) else { continue };
            let is_over = match body.poll_data(cx) {
                Poll::Pending => continue,
                Poll::Ready(Some(Ok(data))) => {
                    let _ = body.flow_control().release_capacity(data.len());
                    if !data.is_empty() {
                        outcome.content.entry(id).or_default().extend_from_slice(&data);
                    }
                    false
                }
                Poll::Ready(Some(Err(error))) => {
                    if error.is_remote() && error.is_reset() {
                        outcome.reset.insert(id);
                    }
                    true
                }
                Poll::Ready(None) => match body.poll_trailers(cx) {
                    Poll::Pending => continue,
                    Poll::Ready(Err(_)) => true,
                    Poll::Ready(Ok(trailers)) => {
                        if let Some(trailers) = trailers {
                            let all = fields_from(&trailers);
                            outcome.notes.raw.extend(all.iter().cloned());
                            let kept = all.into_iter().filter(|(name, _)| {
                                !is_forbidden_trailer(name.as_bytes()) && name != "http2-settings"
                            });
                            outcome.trailers.insert(id, sorted(kept.collect()));
                        }
                        outcome.ended.insert(id);
                        let _ = respond.send_response(http::Response::new(()), true);
                        true
                    }
                },
            };
            has_read = true;
            if is_over {
                self.streams.remove(&id);
            }
        }
        has_read
    }

    /// Reads the output for what was reset.
    fn refusals(&mut self, outcome: &mut Outcome) {
        let bytes = std::mem::take(&mut *self.wire.from.borrow_mut());
        let mut rest = &bytes[..];
        while let Some(frame) = frames::take(&mut rest) {
            match frame.kind {
                kind::RST_STREAM => drop(outcome.refused.insert(frame.stream)),
                kind::GOAWAY => outcome.failed |= frame.number(4) != Some(0),
                _ => {}
            }
        }
        assert!(rest.is_empty());
    }
}

fn fields_from(map: &http::HeaderMap) -> Fields {
    let value = |value: &http::HeaderValue| value.as_bytes().escape_ascii().to_string();
    map.iter().map(|(name, it)| (name.to_string(), value(it))).collect()
}

/// Returns a request of `h2` as the engine would report it.
fn head_from(request: &http::Request<h2::RecvStream>, notes: &mut Notes) -> Head {
    let mut fields = sorted(fields_from(request.headers()));
    notes.raw.extend(fields.iter().cloned());
    let uri = request.uri();
    let authority =
        uri.authority().map(|authority| authority.as_str().as_bytes().escape_ascii().to_string());
    notes.has_authority = authority.is_some();
    let is_tunnel = request.extensions().get::<h2::ext::Protocol>().is_some();
    let mut host = removed(&mut fields, "host");
    if let Some(authority) = authority {
        host = Some(authority);
        // Equal to it, or the engine would refuse.
        fields.retain(|field| field.0 != "host");
    }
    while removed(&mut fields, "http2-settings").is_some() {}
    if let Some(length) = removed(&mut fields, "content-length") {
        fields.retain(|field| field.0 != "content-length");
        fields.push(("content-length".to_owned(), length));
    }
    if is_tunnel {
        fields
            .retain(|field| !matches!(&field.0[..], "sec-websocket-key" | "sec-websocket-accept"));
    }
    let mut cookies = String::new();
    while let Some(cookie) = removed(&mut fields, "cookie") {
        cookies.push_str(if cookies.is_empty() { "" } else { "; " });
        cookies.push_str(&cookie);
    }
    if !cookies.is_empty() {
        fields.push(("cookie".to_owned(), cookies));
    }
    let method = request.method().to_string();
    let target = match uri.path_and_query() {
        _ if method == "CONNECT" && !is_tunnel => host.clone().unwrap_or_default(),
        Some(path) => path.as_str().as_bytes().escape_ascii().to_string(),
        None => String::new(),
    };
    Head { method, target, host, fields: sorted(fields) }
}
