//! What is sent, and whose turn it is.

use model::Moment;

use super::{Connection, Role};
use crate::error::Code;
use crate::frame::{HEAD_BYTES, PAYLOAD_MAX_BYTES, flag, kind};
use crate::head;
use crate::hpack::{Encoder, index};
use crate::streams::{Sending, StreamKey};

/// Why something could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The stream has ended, by the peer or by a violation.
    Ended,
    /// One side is leaving: the request can be sent on another connection.
    Leaving,
    /// The head is one that HTTP/2 cannot carry.
    Unencodable,
    /// It is an Upgrade, and the server takes no extended CONNECT (RFC 8441).
    NoExtendedConnect,
}

/// Content is taken while less than this waits to be sent: what waits longer is better kept by whoever
/// has it, since it can still be overtaken there.
const WAITING_MAX_BYTES: usize = 4 * FRAME_MAX_BYTES;
const FRAME_MAX_BYTES: usize = HEAD_BYTES + PAYLOAD_MAX_BYTES;

/// At least every so many turns goes to the stream that has waited longest, so that urgent ones never
/// starve the others.
const TURNS_BY_URGENCY_MAX: u8 = 7;

/// A frame with less content than this, because a window has no room for more, takes points.
const DRIBBLE_BYTES: usize = 64;
const DRIBBLE_POINTS: u32 = 5;

impl Connection {
    /// Sends the head in `text`, complete with its empty line: a request, a response, or an
    /// informational response, after which another follows. `ends`: nothing follows.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn send_head(&mut self, key: StreamKey, text: &[u8], ends: bool) -> Result<(), SendError> {
        let accepts_requests = self.accepts_requests();
        let Some(stream) = self.streams.get_mut(key) else { return Err(SendError::Ended) };
        if stream.sending != Sending::Head {
            return Err(SendError::Ended);
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        let encoder = &mut self.encoder;
        let after = if ends { Sending::Ended } else { Sending::Body };
        match self.role {
            Role::Server => {
                let upgrades = stream.upgrades;
                let write = |out: &mut Vec<u8>| head::response(text, upgrades, encoder, out);
                let status = self.output.put_block(stream.id, ends, payload_max, write);
                let status = status.map_err(|_| {
                    self.encoder.abandon_block();
                    SendError::Unencodable
                })?;
                if status >= 200 {
                    stream.sending = after;
                }
            }
            Role::Client { .. } if !accepts_requests => return Err(SendError::Leaving),
            Role::Client { is_https } => {
                let id = if self.last_begun == 0 { 1 } else { self.last_begun + 2 };
                let may_upgrade = self.peer.extended_connect;
                let write = |out: &mut Vec<u8>| {
                    let sent = head::request(text, is_https, encoder, out);
                    let sent = sent.map_err(|_| SendError::Unencodable)?;
                    if sent.upgrade.is_some() && !may_upgrade {
                        return Err(SendError::NoExtendedConnect);
                    }
                    Ok(sent)
                };
                let sent = self.output.put_block(id, ends, payload_max, write);
                let sent = sent.inspect_err(|_| self.encoder.abandon_block())?;
                stream.is_head = sent.is_head;
                stream.upgrade = sent
                    .upgrade
                    .map(|name| Box::new((name.to_owned(), (self.config.websocket.accept)(text))));
                stream.sending = after;
                // SETTINGS may have arrived since it was opened.
                stream.send_window = i64::from(self.peer.window);
                self.last_begun = id;
                self.streams.name(key, id);
            }
        }
        if ends {
            self.streams.settle(key);
        }
        Ok(())
    }

    /// Sends the beginning of `data`, as much as the windows and the output have room for; returns
    /// how much. 0: the stream waits, and [`Connection::next_writable`] will name it. `ends`: if all of
    /// it was taken, the message ends.
    ///
    /// # Errors
    /// The stream has ended, or its head was not sent.
    pub fn send_data(
        &mut self,
        key: StreamKey,
        data: &[u8],
        ends: bool,
        now: Moment,
    ) -> Result<usize, SendError> {
        let Some(stream) = self.streams.get_mut(key) else { return Err(SendError::Ended) };
        if stream.sending != Sending::Body {
            return Err(SendError::Ended);
        }
        if stream.turn {
            self.turns = self.turns.saturating_sub(1);
        }
        // Those whose turn it is as well have room for a frame each.
        let reserved = self.output.frames_len() + self.turns * FRAME_MAX_BYTES;
        let room = WAITING_MAX_BYTES.saturating_sub(reserved);
        let window = stream.send_window.min(self.send_window).max(0) as usize;
        // With others waiting, each takes a frame when it is its turn.
        let turn = match (self.waiting.is_empty() && self.turns == 0, stream.turn) {
            (true, _) => WAITING_MAX_BYTES,
            (false, true) => PAYLOAD_MAX_BYTES,
            (false, false) => 0,
        };
        stream.turn = false;
        let taken = data.len().min(window).min(room).min(turn);
        if taken == 0 && !data.is_empty() {
            stream.waits = true;
            self.queue_if_waiting(key);
            return Ok(0);
        }
        let id = stream.id;
        stream.waits = false;
        stream.send_window -= i64::from(taken as u32);
        self.send_window -= i64::from(taken as u32);
        let ends = ends && taken == data.len();
        if ends {
            stream.sending = Sending::Ended;
        }
        if taken < data.len() && taken < DRIBBLE_BYTES && taken == window {
            self.dribbles(now);
        } else if taken > 0 {
            self.budget.data();
        }
        self.put_data(id, &data[..taken], ends);
        if ends {
            self.streams.settle(key);
        }
        Ok(taken)
    }

    fn put_data(&mut self, id: u32, data: &[u8], ends: bool) {
        if data.is_empty() {
            if ends && !self.output.end_with_last(id) {
                self.output.put(kind::DATA, flag::END_STREAM, id, &[]);
            }
            return;
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        let mut rest = data;
        while !rest.is_empty() {
            let (payload, after) = rest.split_at(rest.len().min(payload_max));
            rest = after;
            let flags = if ends && rest.is_empty() { flag::END_STREAM } else { 0 };
            self.output.put(kind::DATA, flags, id, payload);
        }
    }

    /// The peer opens windows by a few bytes, so that much work moves little (CVE-2019-9511).
    fn dribbles(&mut self, now: Moment) {
        if let Err(violation) = self.budget.spend(DRIBBLE_POINTS, "tiny windows", now) {
            self.overloaded = Some(violation);
        }
    }

    /// Ends a stream's message with these trailer lines.
    ///
    /// # Errors
    /// The stream has ended, its head was not sent, or these are no trailers.
    pub fn send_trailers(&mut self, key: StreamKey, lines: &[u8]) -> Result<(), SendError> {
        let Some(stream) = self.streams.get_mut(key) else { return Err(SendError::Ended) };
        if stream.sending != Sending::Body {
            return Err(SendError::Ended);
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        let encoder = &mut self.encoder;
        let write = |out: &mut Vec<u8>| head::trailers(lines, encoder, out);
        let written = self.output.put_block(stream.id, true, payload_max, write);
        written.map_err(|_| {
            self.encoder.abandon_block();
            SendError::Unencodable
        })?;
        stream.sending = Sending::Ended;
        self.streams.settle(key);
        Ok(())
    }

    /// Returns the stream whose turn it is to send, which had to wait and need not any more. Ask
    /// until there is none, after each time that output was sent or input received.
    ///
    /// The most urgent goes first (RFC 9218 section 10), those that share an urgency take turns, and
    /// the one that has waited longest is never passed over for long. Streams that were given no
    /// priority have the default urgency and share.
    pub fn next_writable(&mut self) -> Option<StreamKey> {
        // Each has room for a frame until it has used it.
        let waits = self.output.frames_len() + (self.turns + 1) * FRAME_MAX_BYTES;
        let has_room = waits <= WAITING_MAX_BYTES && self.send_window > 0;
        while has_room && !self.waiting.is_empty() {
            let at = self.next_turn();
            let key = self.waiting.remove(at)?;
            let Some(stream) = self.streams.get_mut(key) else { continue };
            if stream.sending == Sending::Body && stream.waits {
                (stream.waits, stream.turn) = (false, true);
                self.turns += 1;
                return Some(key);
            }
        }
        None
    }

    fn next_turn(&mut self) -> usize {
        if !self.streams.are_prioritised() || self.turns_by_urgency >= TURNS_BY_URGENCY_MAX {
            self.turns_by_urgency = 0;
            return 0;
        }
        self.turns_by_urgency += 1;
        let rank = |&key: &StreamKey| match self.streams.get(key) {
            // Of those that are not incremental, one after the other is quickest for all.
            Some(stream) => match stream.priority {
                Some(priority) if !priority.incremental => (priority.urgency, stream.id),
                _ => (stream.urgency(), u32::MAX),
            },
            // It has ended, and is only to be removed.
            None => (0, 0),
        };
        let ranks = self.waiting.iter().map(rank).enumerate();
        ranks.min_by_key(|&(_, rank)| rank).map_or(0, |(at, _)| at)
    }

    pub(super) fn queue_if_waiting(&mut self, key: StreamKey) {
        let waits = self.streams.get(key).is_some_and(|it| it.waits && it.send_window > 0);
        if waits && !self.waiting.contains(&key) {
            self.waiting.push_back(key);
        }
    }

    /// After a change of all windows.
    pub(super) fn queue_all_waiting(&mut self) {
        let waiting = self
            .streams
            .keys()
            .filter(|&key| self.streams.get(key).is_some_and(|it| it.waits && it.send_window > 0));
        let mut waiting: Vec<StreamKey> = waiting.collect();
        waiting.retain(|key| !self.waiting.contains(key));
        self.waiting.extend(waiting);
    }

    /// Answers a request whose head is too large, and does not want its content.
    pub(super) fn answer_too_large(&mut self, id: u32, ended: bool) {
        let encoder = &mut self.encoder;
        let write = |out: &mut Vec<u8>| {
            encoder.begin(out);
            Encoder::named(index::STATUS_200, b"431", out);
            Encoder::named(index::CONTENT_LENGTH, b"0", out);
            Ok::<_, ()>(())
        };
        let _ = self.output.put_block(id, true, PAYLOAD_MAX_BYTES, write);
        if !ended {
            self.put_reset(id, Code::NO_ERROR);
        }
    }
}
