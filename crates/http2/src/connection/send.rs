//! Sending and scheduling.

use std::convert::Infallible;

use model::Moment;

use super::{Connection, Role};
use crate::error::Code;
use crate::frame::{HEAD_BYTES, PAYLOAD_MAX_BYTES, flag, kind};
use crate::head;
use crate::hpack::{Encoder, index};
use crate::streams::{Sending, StreamKey, Turn};

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The stream or the connection has ended, or is not in a state in which this can be sent.
    Ended,
    /// One side has sent GOAWAY: the request can be sent on another connection.
    Leaving,
    /// HTTP/2 cannot carry this head.
    Unencodable,
    /// The request is an Upgrade, and the server does not support extended CONNECT (RFC 8441).
    NoExtendedConnect,
}

/// Content is accepted while the output is smaller than this. Content that stays with its stream
/// can still be overtaken by more urgent streams.
const WAITING_MAX_BYTES: usize = 4 * FRAME_MAX_BYTES;
const FRAME_MAX_BYTES: usize = HEAD_BYTES + PAYLOAD_MAX_BYTES;

/// After this many turns granted by urgency, the stream that has waited longest gets one, so that
/// urgent streams never starve others.
const TURNS_BY_URGENCY_MAX: u8 = 7;

/// A frame that is limited to less content than this by a window costs points.
const DRIBBLE_BYTES: usize = 64;
const DRIBBLE_POINTS: u32 = 5;

impl Connection {
    /// Sends a head: a request, a final response or an informational one. `text` includes the empty
    /// line. `ends`: there is no content and there are no trailers.
    ///
    /// # Errors
    /// Nothing was sent.
    pub fn send_head(&mut self, key: StreamKey, text: &[u8], ends: bool) -> Result<(), SendError> {
        let accepts_requests = self.accepts_requests();
        let Some(stream) = self.streams.get_mut(key) else { return Err(SendError::Ended) };
        if self.failed || stream.sending != Sending::Head {
            return Err(SendError::Ended);
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        let encoder = &mut self.encoder;
        let after = if ends { Sending::Ended } else { Sending::Body };
        match self.role {
            Role::Server => {
                let upgrades = stream.upgrades;
                let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                    head::response(text, upgrades, encoder, out)
                };
                let written = self.output.put_block(encoder, (stream.id, ends), payload_max, write);
                if written.map_err(|_| SendError::Unencodable)? >= 200 {
                    stream.sending = after;
                }
            }
            Role::Client { .. } if !accepts_requests => return Err(SendError::Leaving),
            Role::Client { is_https } => {
                let id = if self.last_begun == 0 { 1 } else { self.last_begun + 2 };
                let may_upgrade = self.peer.extended_connect;
                let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
                    let sent = head::request(text, is_https, encoder, out);
                    let sent = sent.map_err(|_| SendError::Unencodable)?;
                    if sent.upgrade.is_some() && !may_upgrade {
                        return Err(SendError::NoExtendedConnect);
                    }
                    Ok(sent)
                };
                let sent = self.output.put_block(encoder, (id, ends), payload_max, write)?;
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
            self.stops_sending(key);
        }
        Ok(())
    }

    /// Sends as much of `data` as the windows and the output have room for; returns the number of
    /// bytes. 0 means that the stream must wait until [`Connection::next_writable`] returns it.
    /// `ends`: the message ends with `data`, if all of it is accepted.
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
        if self.failed || stream.sending != Sending::Body {
            return Err(SendError::Ended);
        }
        let is_granted = stream.turn == Turn::Granted;
        if is_granted {
            stream.turn = Turn::Free;
            self.turns = self.turns.saturating_sub(1);
        }
        // Other streams with a turn have room reserved for a frame each.
        let reserved = self.output.frames_len() + self.turns * FRAME_MAX_BYTES;
        let room = WAITING_MAX_BYTES.saturating_sub(reserved);
        let window = stream.send_window.min(self.send_window).max(0) as usize;
        // While others wait, each stream sends one frame per turn.
        let turn = match (self.waiting.is_empty() && self.turns == 0, is_granted) {
            (true, _) => WAITING_MAX_BYTES,
            (false, true) => PAYLOAD_MAX_BYTES,
            (false, false) => 0,
        };
        let taken = data.len().min(window).min(room).min(turn);
        if taken == 0 && !data.is_empty() {
            if stream.turn != Turn::Queued {
                stream.turn = Turn::Shut;
                self.queue_if_open(key);
            }
            return Ok(0);
        }
        let id = stream.id;
        if stream.turn == Turn::Shut {
            stream.turn = Turn::Free;
        }
        stream.send_window -= i64::from(taken as u32);
        self.send_window -= i64::from(taken as u32);
        let ends = ends && taken == data.len();
        if ends {
            stream.sending = Sending::Ended;
        }
        let frames = self.put_data(id, &data[..taken], ends);
        if taken < data.len() && taken < DRIBBLE_BYTES && taken == window {
            self.dribbles(now);
        } else {
            self.budget.sent(taken, frames);
        }
        if ends {
            self.stops_sending(key);
        }
        Ok(taken)
    }

    /// Returns the number of new frames with content.
    fn put_data(&mut self, id: u32, data: &[u8], ends: bool) -> u32 {
        if data.is_empty() {
            if ends && !self.output.end_with_last(id) {
                self.output.put(kind::DATA, flag::END_STREAM, id, &[]);
            }
            return 0;
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        // Small pieces become one frame if they wait for the peer anyway.
        if self.output.extend_last(id, data, payload_max) {
            if ends {
                self.output.end_with_last(id);
            }
            return 0;
        }
        let mut rest = data;
        while !rest.is_empty() {
            let (payload, after) = rest.split_at(rest.len().min(payload_max));
            rest = after;
            let flags = if ends && rest.is_empty() { flag::END_STREAM } else { 0 };
            self.output.put(kind::DATA, flags, id, payload);
        }
        data.len().div_ceil(payload_max) as u32
    }

    /// Charges the peer for opening windows by a few bytes at a time (data dribble, CVE-2019-9511).
    fn dribbles(&mut self, now: Moment) {
        if let Err(violation) = self.budget.spend(DRIBBLE_POINTS, "tiny windows", now) {
            self.overloaded = Some(violation);
        }
    }

    /// Sends trailers, which end the message.
    ///
    /// # Errors
    /// The stream has ended, its head was not sent, or these are no trailers.
    pub fn send_trailers(&mut self, key: StreamKey, lines: &[u8]) -> Result<(), SendError> {
        let Some(stream) = self.streams.get_mut(key) else { return Err(SendError::Ended) };
        if self.failed || stream.sending != Sending::Body {
            return Err(SendError::Ended);
        }
        let payload_max = self.peer.frame_max_bytes.min(PAYLOAD_MAX_BYTES);
        let write = |encoder: &mut Encoder, out: &mut Vec<u8>| head::trailers(lines, encoder, out);
        let encoder = &mut self.encoder;
        let written = self.output.put_block(encoder, (stream.id, true), payload_max, write);
        written.map_err(|_| SendError::Unencodable)?;
        stream.sending = Sending::Ended;
        self.stops_sending(key);
        Ok(())
    }

    /// Returns the next waiting stream that can send now. Call it until it returns `None` whenever
    /// output was sent or input was received.
    ///
    /// The most urgent stream comes first (RFC 9218 section 10); streams of equal urgency take
    /// turns; the stream that has waited longest gets a turn at regular intervals. Streams without
    /// a priority have the default urgency and are incremental.
    pub fn next_writable(&mut self) -> Option<StreamKey> {
        while self.has_writable() {
            let at = self.next_turn();
            let key = self.waiting.remove(at)?;
            let Some(stream) = self.streams.get_mut(key) else { continue };
            if stream.send_window > 0 {
                stream.turn = Turn::Granted;
                self.turns += 1;
                return Some(key);
            }
            // The peer has made its window smaller since.
            stream.turn = Turn::Shut;
        }
        None
    }

    /// Returns whether [`Connection::next_writable`] may return a stream.
    pub fn has_writable(&self) -> bool {
        // Each turn reserves room for a frame.
        let waits = self.output.frames_len() + (self.turns + 1) * FRAME_MAX_BYTES;
        !self.waiting.is_empty() && waits <= WAITING_MAX_BYTES && self.send_window > 0
    }

    /// Removes a stream that has ended its side from those that wait to send.
    pub(super) fn stops_sending(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        match std::mem::replace(&mut stream.turn, Turn::Free) {
            Turn::Queued => self.waiting.retain(|&waiting| waiting != key),
            Turn::Granted => self.turns = self.turns.saturating_sub(1),
            Turn::Free | Turn::Shut => {}
        }
        self.streams.settle(key);
    }

    fn next_turn(&mut self) -> usize {
        if !self.streams.are_prioritised() || self.turns_by_urgency >= TURNS_BY_URGENCY_MAX {
            self.turns_by_urgency = 0;
            return 0;
        }
        self.turns_by_urgency += 1;
        let rank = |&key: &StreamKey| match self.streams.get(key) {
            // Non-incremental responses are sent one after the other.
            Some(stream) => match stream.priority {
                Some(priority) if !priority.incremental => (priority.urgency, stream.id),
                _ => (stream.urgency(), u32::MAX),
            },
            // A stream that ends leaves the queue.
            None => (0, 0),
        };
        let ranks = self.waiting.iter().map(rank).enumerate();
        ranks.min_by_key(|&(_, rank)| rank).map_or(0, |(at, _)| at)
    }

    /// Queues a stream that waited for its own window, if that is open.
    pub(super) fn queue_if_open(&mut self, key: StreamKey) {
        if let Some(stream) = self.streams.get_mut(key)
            && stream.turn == Turn::Shut
            && stream.send_window > 0
        {
            stream.turn = Turn::Queued;
            self.waiting.push_back(key);
        }
    }

    /// Answers a request whose head is too large, and refuses its content.
    pub(super) fn answer_too_large(&mut self, id: u32, ended: bool) {
        let write = |_: &mut Encoder, out: &mut Vec<u8>| {
            Encoder::named(index::STATUS_200, b"431", out);
            Encoder::named(index::CONTENT_LENGTH, b"0", out);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = self.output.put_block(&mut self.encoder, (id, true), PAYLOAD_MAX_BYTES, write);
        if !ended {
            self.put_reset(id, Code::NO_ERROR);
        }
    }
}
