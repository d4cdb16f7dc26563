//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>): reads the trace of a request, and writes the context
//! for its server.

use wire::http1::{Known, RequestHead};

use super::RequestId;

/// The flag of a request whose sender may have recorded it.
const SAMPLED: u8 = 1;
/// The flag of a trace ID whose last seven bytes are random (Level 2).
const RANDOM: u8 = 2;

/// The bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// The ID of a span: 16 hexadecimal digits, not all zero.
pub(crate) type SpanId = [u8; 16];

/// The trace of a request.
#[derive(Clone, Copy)]
pub(crate) struct TraceContext {
    /// 32 hexadecimal digits.
    pub(crate) trace: [u8; 32],
    /// The sender's span; `None`: the trace begins here.
    pub(crate) parent: Option<SpanId>,
    flags: u8,
}

impl TraceContext {
    /// Returns the trace that a request states, if it is valid.
    pub(crate) fn stated(head: &RequestHead) -> Option<TraceContext> {
        let mut values = head.fields().filter(|field| field.known == Known::Traceparent);
        let (first, second) = (values.next()?, values.next());
        if second.is_some() { None } else { parse(first.value) }
    }

    /// Returns a trace that begins here, with the request's ID.
    pub(crate) fn begun(id: &RequestId, is_sampled: bool) -> TraceContext {
        TraceContext { trace: id.0, parent: None, flags: u8::from(is_sampled) * SAMPLED }
    }

    /// Returns whether the trace is recorded, as far as its sender, or Weir at its beginning, knows.
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Appends the field for a server whose parent is `span`.
    pub(super) fn write(&self, span: SpanId, out: &mut Vec<u8>) {
        out.extend_from_slice(b"traceparent: 00-");
        out.extend_from_slice(&self.trace);
        out.push(b'-');
        out.extend_from_slice(&span);
        out.extend_from_slice(&[b'-', b'0', b'0' + self.flags, b'\r', b'\n']);
    }
}

/// Parses a `traceparent` (section 3.2.2). One of a later version is read as far as version 00 goes.
fn parse(value: &[u8]) -> Option<TraceContext> {
    let (known, rest) = value.split_at_checked(LENGTH)?;
    let is_00 = known.starts_with(b"00");
    let ends = if is_00 { rest.is_empty() } else { matches!(rest.first(), None | Some(b'-')) };
    let [version, trace, parent, flags] = split(known)?;
    let is_hex = |digits: &[u8]| digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_id = |digits: &[u8]| is_hex(digits) && digits.iter().any(|digit| *digit != b'0');
    let is_valid = ends && is_hex(version) && version != b"ff" && is_id(trace) && is_id(parent);
    if !is_valid || !is_hex(flags) {
        return None;
    }
    // Flags that this version does not have are not passed on.
    let flags = super::digit(flags[1]) & (SAMPLED | RANDOM);
    Some(TraceContext { trace: trace.try_into().ok()?, parent: parent.try_into().ok(), flags })
}

/// Splits the fixed parts of a `traceparent`.
fn split(known: &[u8]) -> Option<[&[u8]; 4]> {
    let (version, trace, parent, flags) =
        (known.get(..2)?, known.get(3..35)?, known.get(36..52)?, known.get(53..55)?);
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    dashes.then_some([version, trace, parent, flags])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(String, bool)> {
        let context = parse(text.as_bytes())?;
        let mut out = Vec::new();
        context.write(*b"00000000000000aa", &mut out);
        Some((String::from_utf8(out).unwrap(), context.is_sampled()))
    }

    #[test]
    fn a_valid_context_is_continued_with_its_flags() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (flags, after, sampled) in
            [("00", "00", false), ("01", "01", true), ("03", "03", true), ("ff", "03", true)]
        {
            let text = format!("00-{trace}-00f067aa0ba902b7-{flags}");
            let expected = format!("traceparent: 00-{trace}-00000000000000aa-{after}\r\n");
            assert_eq!(parsed(&text), Some((expected, sampled)), "{flags}");
        }
        let later = format!("cc-{trace}-00f067aa0ba902b7-01-what-the-future-will-be-like");
        assert!(parsed(&later).is_some());
    }

    #[test]
    fn whatever_is_not_a_context_begins_a_new_trace() {
        let (trace, zeros) = ("4bf92f3577b34da6a3ce929d0e0e4736", "0".repeat(32));
        for text in [
            String::new(),
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("00-{trace}-00f067aa0ba902b7-01 "),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{zeros}-00f067aa0ba902b7-01"),
            format!("00-{trace}-{}-01", &zeros[..16]),
            format!("00-{trace}-00f067aa0ba902b7-0g"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("01-{trace}-00f067aa0ba902b7-01.more"),
            format!("00_{trace}-00f067aa0ba902b7-01"),
        ] {
            assert_eq!(parsed(&text), None, "{text}");
        }
    }

    #[test]
    fn the_spans_of_a_request_have_different_ids() {
        let id = RequestId::new(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        let spans: std::collections::HashSet<SpanId> = (0..1_000).map(|n| id.span(n)).collect();
        assert_eq!(spans.len(), 1_000);
        assert_eq!(id.span(3), id.span(3));
        assert!(!RequestId::new(0).span(0).iter().all(|digit| *digit == b'0'));
    }
}
