//! Header blocks: requests, responses and trailers.

use model::Moment;

use super::receive::Happened;
use super::{Connection, Event, Leaving, Role};
use crate::error::{Code, Refusal, Violation};
use crate::frame::{Head, flag, number, unpadded};
use crate::head::{Fault, HeadReader, Message, ResponseContext, Scratch};
use crate::streams::{Receiving, Stream, StreamKey};
use wire::http1::INFORMATIONAL_MAX;

/// A header block that is not complete.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    ends: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
}

/// A block may be this many times as long as the largest head. Inefficient encoding is allowed, an
/// endless block is not (CONTINUATION flood, CVE-2024-27316).
const BLOCK_PER_HEAD: usize = 4;
const BLOCK_MIN_BYTES: usize = 64 * 1024;

/// What a request costs that crosses with the final GOAWAY.
const CROSSING_POINTS: u32 = 5;

impl Connection {
    pub(super) fn headers(
        &mut self,
        head: Head,
        payload: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        if head.stream == 0 {
            return Err(Violation::protocol("HEADERS without a stream"));
        }
        let Some(mut fragment) = unpadded(head, payload) else {
            return Err(Violation::protocol("padding longer than its frame"));
        };
        let mut depends_on_itself = false;
        if head.has(flag::PRIORITY) {
            let Some((priority, rest)) = fragment.split_at_checked(5) else {
                return Err(Violation::size("HEADERS too short for their priority"));
            };
            depends_on_itself = number(priority) == Some(head.stream);
            fragment = rest;
        }
        let ends = head.has(flag::END_STREAM);
        let mut block = Block { stream: head.stream, ends, depends_on_itself, bytes: Vec::new() };
        if head.has(flag::END_HEADERS) {
            return self.whole_block(&block, fragment, scratch, now);
        }
        block.bytes.extend_from_slice(fragment);
        self.block = Some(block);
        Ok(None)
    }

    pub(super) fn continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        let Some(mut block) = self.block.take() else {
            return Err(Violation::protocol("CONTINUATION without a header block"));
        };
        // Even a long block needs few frames; short ones cost twice.
        self.budget.spend(1 + u32::from(payload.len() < 64), "CONTINUATION frames", now)?;
        block.bytes.extend_from_slice(payload);
        let max = (self.config.head_max_bytes as usize * BLOCK_PER_HEAD).max(BLOCK_MIN_BYTES);
        if block.bytes.len() > max {
            return Err(Violation::load("a header block that does not end"));
        }
        if !head.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        let bytes = std::mem::take(&mut block.bytes);
        self.whole_block(&block, &bytes, scratch, now)
    }

    /// Decodes a header block, even if its stream is refused or closed: later blocks depend on the
    /// table.
    fn whole_block(
        &mut self,
        block: &Block,
        bytes: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        let key = if self.role == Role::Server && block.stream > self.last_begun {
            if block.stream.is_multiple_of(2) {
                return Err(Violation::protocol("a stream with an even identifier"));
            }
            return self.request(block, bytes, scratch, now);
        } else {
            self.known_stream(block.stream)?
        };
        let receiving = key.and_then(|key| self.streams.get(key)).map(|stream| stream.receiving);
        match (key, receiving) {
            (Some(key), Some(Receiving::Head)) => self.response(key, block, bytes, scratch, now),
            (Some(key), Some(receiving)) => self.trailers(key, receiving, block, bytes, scratch),
            _ => {
                self.read_block(Message::Trailers, bytes, scratch, |_| ())?;
                self.budget.spend(1, "HEADERS of closed streams", now)?;
                Ok(None)
            }
        }
    }

    fn read_block<T>(
        &mut self,
        message: Message,
        bytes: &[u8],
        scratch: &mut Scratch,
        finish: impl FnOnce(HeadReader<'_>) -> T,
    ) -> Result<T, Violation> {
        let max = self.config.head_max_bytes as usize;
        let (mut reader, buffer) = HeadReader::new(scratch, message, max);
        let decoded = self.decoder.decode(bytes, buffer, |line| reader.field(line));
        decoded.map_err(|_| Violation::new(Code::COMPRESSION_ERROR, "not a header block"))?;
        Ok(finish(reader))
    }

    fn request(
        &mut self,
        block: &Block,
        bytes: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        let id = block.stream;
        self.last_begun = id;
        self.budget.begins();
        let key = self.config.websocket.key;
        let finish = |reader: HeadReader<'_>| reader.finish_request(block.ends, key);
        let read = self.read_block(Message::Request, bytes, scratch, finish)?;
        if let Leaving::Final { last } = self.leaving
            && id > last
        {
            // It crossed with the final GOAWAY, which says that it is not processed.
            self.put_reset(id, Code::REFUSED_STREAM);
            return self.budget.spend(CROSSING_POINTS, "requests after GOAWAY", now).map(|()| None);
        }
        if self.streams.open() >= self.config.streams_max as usize {
            self.put_reset(id, Code::REFUSED_STREAM);
            return self.refused(Refusal::TooManyStreams);
        }
        let facts = match read {
            Ok(_) if block.depends_on_itself => {
                self.put_reset(id, Code::PROTOCOL_ERROR);
                return self.refused(Refusal::Malformed("a stream that depends on itself"));
            }
            Ok(facts) => facts,
            Err(Fault::Malformed(rule)) => {
                self.put_reset(id, Code::PROTOCOL_ERROR);
                return self.refused(Refusal::Malformed(rule));
            }
            Err(Fault::TooLarge) => {
                self.answer_too_large(id, block.ends);
                return self.refused(Refusal::HeadTooLarge);
            }
        };
        self.budget.head();
        let window = self.config.window_bytes;
        let receiving = if block.ends { Receiving::Ended } else { Receiving::Body };
        let early = self.early.iter().position(|&(early, _)| early == id);
        let early = early.and_then(|at| self.early.remove(at)).map(|(_, priority)| priority);
        let mut stream = Stream::new(receiving, self.peer.window, window);
        stream.id = id;
        stream.content_left = facts.content_length;
        stream.upgrades = facts.upgrades;
        stream.priority = early.or(facts.priority);
        let stream = self.streams.add(stream);
        Ok(Some(Event::Request { stream, ended: block.ends }))
    }

    fn refused(&mut self, refusal: Refusal) -> Happened {
        self.budget.resets()?;
        Ok(Some(Event::Refused(refusal)))
    }

    fn response(
        &mut self,
        key: StreamKey,
        block: &Block,
        bytes: &[u8],
        scratch: &mut Scratch,
        now: Moment,
    ) -> Happened {
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let upgrade = stream.upgrade.take();
        let context = ResponseContext {
            is_head: stream.is_head,
            ended: block.ends,
            upgrade: upgrade.as_deref().map(|(name, accept)| (name.as_str(), accept.as_str())),
        };
        let message = Message::Response { upgrades: upgrade.is_some() };
        let finish = |reader: HeadReader<'_>| reader.finish_response(context);
        let read = self.read_block(message, bytes, scratch, finish)?;
        let (status, content) = match read {
            Ok(read) => read,
            Err(Fault::Malformed(rule)) => {
                return self.stream_violated(key, Violation::protocol(rule));
            }
            Err(Fault::TooLarge) => {
                let rule = "a head larger than announced";
                return self.stream_violated(key, Violation::protocol(rule));
            }
        };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        if status >= 200 {
            stream.receiving = Receiving::Body;
            stream.content_left = content;
            self.budget.head();
        } else {
            stream.upgrade = upgrade;
            stream.informational += 1;
            // The caller keeps them until they are read.
            if stream.informational > INFORMATIONAL_MAX {
                let rule = "too many informational responses";
                return self.stream_violated(key, Violation::protocol(rule));
            }
            self.budget.spend(1, "informational responses", now)?;
        }
        if block.ends {
            self.receiving_ended(key);
        }
        Ok(Some(Event::Response { stream: key, ended: block.ends }))
    }

    fn trailers(
        &mut self,
        key: StreamKey,
        receiving: Receiving,
        block: &Block,
        bytes: &[u8],
        scratch: &mut Scratch,
    ) -> Happened {
        let finish = |reader: HeadReader<'_>| reader.finish_trailers();
        let read = self.read_block(Message::Trailers, bytes, scratch, finish)?;
        let content_left = self.streams.get(key).and_then(|stream| stream.content_left);
        let violation = match read {
            _ if receiving == Receiving::Ended => {
                Violation::new(Code::STREAM_CLOSED, "HEADERS after the end")
            }
            _ if !block.ends => Violation::protocol("trailers that do not end their stream"),
            _ if block.depends_on_itself => Violation::protocol("a stream that depends on itself"),
            _ if content_left.unwrap_or(0) > 0 => {
                Violation::protocol("less DATA than content-length")
            }
            Err(Fault::Malformed(rule)) => Violation::protocol(rule),
            Err(Fault::TooLarge) => Violation::protocol("trailers larger than announced"),
            Ok(()) => {
                self.receiving_ended(key);
                return Ok(Some(Event::Trailers { stream: key }));
            }
        };
        self.stream_violated(key, violation)
    }
}
