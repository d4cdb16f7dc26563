//! Input: splits bytes into frames and processes DATA. Other frames are in `heads` and `control`.

use model::Moment;

use super::{Connection, Event, Role};
use crate::error::{Code, Ended, Violation};
use crate::frame::{HEAD_BYTES, Head, PAYLOAD_MAX_BYTES, PREFACE, flag, kind};
use crate::head::Scratch;
use crate::streams::{Receiving, Sending, StreamKey};

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    /// `None`: its content is discarded.
    stream: Option<StreamKey>,
    left: usize,
    padding: usize,
    ends: bool,
}

/// The most unsent acknowledgements and the like while the peer causes more: beyond it, the peer is
/// not reading.
const CONTROL_MAX_BYTES: usize = 64 * 1024;

/// The outcome of a frame: an event without borrowed content.
pub(super) type Happened = Result<Option<Event<'static>>, Violation>;

impl Connection {
    /// Processes received bytes, up to the next event; returns how many bytes were processed and
    /// the event. Call it again with the rest until it returns no event.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> (usize, Option<Event<'a>>) {
        let mut at = 0;
        while !self.failed {
            if let Some(violation) = self.overloaded.take() {
                return (input.len(), Some(self.violated(violation)));
            }
            if let Some(event) = self.next_unprocessed() {
                return (at, Some(event));
            }
            let rest = &input[at..];
            let (taken, happened) = match self.data {
                Some(incoming) => {
                    let (taken, event) = self.content(incoming, rest);
                    if event.is_some() {
                        return (at + taken, event);
                    }
                    (taken, Ok(None))
                }
                None => self.frame(rest, scratch, now),
            };
            at += taken;
            match happened {
                Ok(Some(event)) => return (at, Some(event)),
                Ok(None) if at == input.len() && !self.has_empty_end() => return (at, None),
                Ok(None) => {}
                Err(violation) => return (input.len(), Some(self.violated(violation))),
            }
        }
        (input.len(), None)
    }

    /// Returns whether a DATA frame without content remains to be reported.
    fn has_empty_end(&self) -> bool {
        self.data.is_some_and(|incoming| incoming.stream.is_some() && incoming.left == 0)
    }

    fn violated(&mut self, violation: Violation) -> Event<'static> {
        self.fail_by(violation.code, violation.rule);
        Event::Violation(violation)
    }

    /// Returns the next stream that the peer's GOAWAY has ended.
    fn next_unprocessed(&mut self) -> Option<Event<'static>> {
        let key = self.streams.last_above(self.peer_last?)?;
        self.end(key);
        Some(Event::Ended { stream: key, why: Ended::Unprocessed })
    }

    /// Processes the next frame, or stores the start of one.
    fn frame(&mut self, input: &[u8], scratch: &mut Scratch, now: Moment) -> (usize, Happened) {
        if self.preface_left > 0 {
            return self.preface(input);
        }
        if !self.partial.is_empty() {
            return self.continue_frame(input, scratch, now);
        }
        let Some((head, length)) = frame_start(input) else {
            self.partial.extend_from_slice(input);
            return (input.len(), Ok(None));
        };
        if let Err(violation) = check_length(head) {
            return (0, Err(violation));
        }
        if head.kind == kind::DATA {
            return (length, self.begin_data(head, input, now));
        }
        let Some(payload) = input.get(HEAD_BYTES..HEAD_BYTES + head.length) else {
            self.partial.extend_from_slice(input);
            return (input.len(), Ok(None));
        };
        (HEAD_BYTES + head.length, self.whole_frame(head, payload, scratch, now))
    }

    fn preface(&mut self, input: &[u8]) -> (usize, Happened) {
        let expected = &PREFACE[PREFACE.len() - self.preface_left..];
        let taken = expected.len().min(input.len());
        if input[..taken] != expected[..taken] {
            return (0, Err(Violation::protocol("not the preface of HTTP/2")));
        }
        self.preface_left -= taken;
        (taken, Ok(None))
    }

    /// Completes a frame whose start was stored.
    fn continue_frame(
        &mut self,
        input: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> (usize, Happened) {
        let mut partial = std::mem::take(&mut self.partial);
        let mut taken = 0;
        let mut fill = |partial: &mut Vec<u8>, length: usize| {
            let more = length.saturating_sub(partial.len()).min(input.len() - taken);
            partial.extend_from_slice(&input[taken..taken + more]);
            taken += more;
            partial.len() >= length
        };
        // The length of the padding of DATA comes after the head.
        while frame_start(&partial).is_none() {
            let length = partial.len() + 1;
            if !fill(&mut partial, length) {
                self.partial = partial;
                return (taken, Ok(None));
            }
        }
        let Some((head, _)) = frame_start(&partial) else { return (taken, Ok(None)) };
        if let Err(violation) = check_length(head) {
            return (taken, Err(violation));
        }
        if head.kind == kind::DATA {
            return (taken, self.begin_data(head, &partial, now));
        }
        if !fill(&mut partial, HEAD_BYTES + head.length) {
            self.partial = partial;
            return (taken, Ok(None));
        }
        (taken, self.whole_frame(head, &partial[HEAD_BYTES..], scratch, now))
    }

    /// Checks what holds for frames of all types.
    fn check_order(&self, head: Head) -> Result<(), Violation> {
        if let Some(block) = &self.block
            && (head.kind != kind::CONTINUATION || head.stream != block.stream)
        {
            return Err(Violation::protocol("a frame within a header block"));
        }
        if !self.peer.arrived && head.kind != kind::SETTINGS {
            return Err(Violation::protocol("the first frame is not SETTINGS"));
        }
        Ok(())
    }

    fn whole_frame(
        &mut self,
        head: Head,
        payload: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        self.check_order(head)?;
        if self.output.control_len() > CONTROL_MAX_BYTES {
            return Err(Violation::load("does not read what it causes"));
        }
        let continues =
            matches!(head.kind, kind::HEADERS | kind::CONTINUATION) && !head.has(flag::END_HEADERS);
        self.completed = self.completed.wrapping_add(u32::from(!continues));
        match head.kind {
            kind::HEADERS => self.headers(head, payload, scratch, now),
            kind::CONTINUATION => self.continuation(head, payload, scratch, now),
            kind::PRIORITY => self.priority(head, payload, now),
            kind::RST_STREAM => self.rst_stream(head, payload, now),
            kind::SETTINGS => self.settings(head, payload, now),
            kind::PUSH_PROMISE => Err(Violation::protocol("PUSH_PROMISE where push is disabled")),
            kind::PING => self.ping(head, payload, now),
            kind::GOAWAY => self.goaway(head, payload, now),
            kind::WINDOW_UPDATE => self.window_update(head, payload, now),
            kind::PRIORITY_UPDATE => self.priority_update(head, payload, now),
            // Extensions are ignored (RFC 9113 section 5.5).
            _ => self.budget.spend(1, "unknown frames", now).map(|()| None),
        }
    }

    /// Starts a DATA frame. `bytes` begins with its head and the length of its padding.
    fn begin_data(&mut self, head: Head, bytes: &[u8], now: Moment) -> Happened {
        self.check_order(head)?;
        self.completed = self.completed.wrapping_add(1);
        let (mut left, mut padding) = (head.length, 0);
        if head.has(flag::PADDED) {
            padding = bytes.get(HEAD_BYTES).map_or(0, |&length| usize::from(length));
            let Some(content) = left.checked_sub(padding + 1) else {
                return Err(Violation::protocol("padding longer than its frame"));
            };
            left = content;
        }
        if !self.shared_window.receive(head.length) {
            let rule = "DATA beyond the connection's window";
            return Err(Violation::new(Code::FLOW_CONTROL_ERROR, rule));
        }
        let ends = head.has(flag::END_STREAM);
        if left > 0 {
            self.window_size.received(head.length);
        } else if !ends {
            self.budget.spend(1, "empty DATA frames", now)?;
        }
        let key = self.known_stream(head.stream)?;
        let fault = key.and_then(|key| self.check_data(key, head.length, left, ends));
        let wanted = key.filter(|_| fault.is_none());
        // Padding and discarded content are credited at once, since they are never consumed.
        let dropped = if wanted.is_some() { head.length - left } else { head.length };
        self.credit_connection(dropped as u32);
        if let Some(key) = wanted.filter(|_| dropped > 0 && !ends) {
            self.credit_stream(key, dropped as u32, now);
        }
        self.data = Some(Incoming { stream: wanted, left, padding, ends });
        match (key, fault) {
            (Some(key), Some(violation)) => self.stream_violated(key, violation),
            _ => Ok(None),
        }
    }

    /// Counts DATA of a stream; returns the rule that it breaks.
    fn check_data(
        &mut self,
        key: StreamKey,
        length: usize,
        content: usize,
        ends: bool,
    ) -> Option<Violation> {
        let stream = self.streams.get_mut(key)?;
        match stream.receiving {
            Receiving::Head => return Some(Violation::protocol("DATA before a head")),
            Receiving::Ended => {
                return Some(Violation::new(Code::STREAM_CLOSED, "DATA after the end"));
            }
            Receiving::Body => {}
        }
        stream.receive_window -= i64::from(length as u32);
        if stream.receive_window < 0 {
            let rule = "DATA beyond the stream's window";
            return Some(Violation::new(Code::FLOW_CONTROL_ERROR, rule));
        }
        let Some(left) = stream.content_left?.checked_sub(content as u64) else {
            return Some(Violation::protocol("more DATA than content-length"));
        };
        stream.content_left = Some(left);
        (ends && left > 0).then(|| Violation::protocol("less DATA than content-length"))
    }

    /// Processes the next part of a DATA frame.
    fn content<'a>(
        &mut self,
        mut incoming: Incoming,
        input: &'a [u8],
    ) -> (usize, Option<Event<'a>>) {
        let length = incoming.left.min(input.len());
        let padding = incoming.padding.min(input.len() - length);
        incoming.left -= length;
        incoming.padding -= padding;
        let complete = incoming.left == 0;
        let over = complete && incoming.padding == 0;
        let stream = incoming.stream;
        let ends = complete && incoming.ends;
        if complete {
            // All content has been reported; only padding is left.
            incoming.stream = None;
        }
        self.data = (!over).then_some(incoming);
        let data = &input[..length];
        let taken = length + padding;
        let Some(key) = stream.filter(|_| ends || !data.is_empty()) else { return (taken, None) };
        if ends {
            self.receiving_ended(key);
        }
        // The stream may have been released since its frame began.
        let Some(stream) = self.streams.get_mut(key) else {
            self.credit_connection(length as u32);
            return (taken, None);
        };
        stream.unconsumed += length as u32;
        (taken, Some(Event::Data { stream: key, data, ended: ends }))
    }

    pub(super) fn receiving_ended(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(key) {
            stream.receiving = Receiving::Ended;
            self.streams.settle(key);
        }
    }

    /// Ends both directions of a stream.
    pub(super) fn end(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(key) {
            (stream.receiving, stream.sending) = (Receiving::Ended, Sending::Ended);
            self.stops_sending(key);
        }
    }

    /// Resets a stream because the peer violated the protocol.
    pub(super) fn stream_violated(&mut self, key: StreamKey, violation: Violation) -> Happened {
        self.reset(key, violation.code);
        if self.role == Role::Server {
            self.budget.resets()?;
        }
        Ok(Some(Event::Ended { stream: key, why: Ended::Violation(violation) }))
    }

    /// Returns the open stream with this identifier, or `None` if the stream was reset here and its
    /// frames must be ignored.
    pub(super) fn known_stream(&self, id: u32) -> Result<Option<StreamKey>, Violation> {
        match self.streams.find(id) {
            Some(key) => Ok(Some(key)),
            None if self.is_idle(id) => Err(Violation::protocol("a frame of an idle stream")),
            None if self.was_reset_here(id) => Ok(None),
            None => Err(Violation::new(Code::STREAM_CLOSED, "a frame of a closed stream")),
        }
    }

    /// Returns whether the stream has not begun (RFC 9113 section 5.1.1); those with even
    /// identifiers never do, since there is no push.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id > self.last_begun || id.is_multiple_of(2)
    }
}

/// Returns the frame at the start of `bytes`, and how many of them its start takes: its head, and
/// the length of the padding of DATA. `None`: there are not enough.
fn frame_start(bytes: &[u8]) -> Option<(Head, usize)> {
    let head = Head::parse(bytes.first_chunk()?);
    let is_padded = head.kind == kind::DATA && head.has(flag::PADDED) && head.length > 0;
    let length = HEAD_BYTES + usize::from(is_padded);
    (bytes.len() >= length).then_some((head, length))
}

/// RFC 9113 section 4.2.
fn check_length(head: Head) -> Result<(), Violation> {
    if head.length > PAYLOAD_MAX_BYTES {
        return Err(Violation::size("a frame larger than allowed"));
    }
    Ok(())
}
