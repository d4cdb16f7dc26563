//! A client's frames as the input of two servers: the engine, and the `h2` crate. After each frame
//! or header block, both must have accepted the same requests, content and trailers, and refused
//! the same. Every difference that is allowed is a rule in [`Difference::is_allowed`].
#![no_main]

use std::collections::BTreeSet;

use fuzz::engine_server::Engine;
use fuzz::frames::{
    self, ACK, END_HEADERS, Frame, PADDED, PAYLOAD_MAX_BYTES, Step, WITH_PRIORITY, kind,
};
use fuzz::h2_server::H2;
use fuzz::mutate::mutate;
use fuzz::outcome::{Head, Outcome};
use http2::PREFACE;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

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
            // RFC 8441 section 3: it must not go from 1 to 0. `h2` checks the value only.
            "ENABLE_CONNECT_PROTOCOL is invalid" => unit[0].kind == kind::SETTINGS,
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
