//! A connection: its states, and what its owner may do with it.

mod control;
mod heads;
mod receive;
mod send;

use std::collections::VecDeque;

use model::Moment;

use crate::budget::Budget;
use crate::error::{Code, Ended, Refusal, Violation};
use crate::frame::{MAX_31, PREFACE, flag, kind};
use crate::head::{Scratch, WebSocket};
use crate::hpack::{Decoder, Encoder};
use crate::output::Output;
use crate::priority::Priority;
use crate::settings::{Announced, PeerSettings, WINDOW_AT_FIRST};
use crate::streams::{Receiving, Sending, Stream, StreamKey, Streams};
use crate::window::WindowSize;

pub use send::SendError;

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends requests, to an `https` server or an `http` one.
    Client {
        /// The connection is secured.
        is_https: bool,
    },
    /// Answers requests.
    Server,
}

/// How a connection behaves.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most requests that a client may have open at once. Servers only.
    pub streams_max: u32,
    /// The largest head, in bytes as RFC 9113 section 6.5.2 counts them.
    pub head_max_bytes: u32,
    /// The receive window of a stream at first, in bytes.
    pub window_bytes: u32,
    /// The largest receive window of a stream.
    pub window_max_bytes: u32,
    /// The receive window of the connection, in bytes: enough for all its streams, so that one whose
    /// body is not read does not hold up the others. At least 65,535.
    pub connection_window_bytes: u32,
    /// How an extended CONNECT becomes an Upgrade.
    pub websocket: WebSocket,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A client's request has arrived: [`Scratch::text`] is its head.
    Request {
        /// Its stream.
        stream: StreamKey,
        /// It has neither content nor trailers.
        ended: bool,
    },
    /// A response, or an informational one: [`Scratch::text`] is its head.
    Response {
        /// Its stream.
        stream: StreamKey,
        /// It has neither content nor trailers.
        ended: bool,
    },
    /// Content. Until [`Connection::consumed`] says that it was consumed, it takes up the window.
    Data {
        /// Its stream.
        stream: StreamKey,
        /// May be empty where it ends the message.
        data: &'a [u8],
        /// It is the last.
        ended: bool,
    },
    /// Trailers, which end the message: [`Scratch::text`] has their lines.
    Trailers {
        /// Its stream.
        stream: StreamKey,
    },
    /// The stream has ended before its messages were complete.
    Ended {
        /// Which.
        stream: StreamKey,
        /// And why.
        why: Ended,
    },
    /// A request was refused before it became a stream.
    Refused(Refusal),
    /// The peer will not process streams that begin from now on.
    GoingAway(Code),
    /// The peer broke a rule of the connection, which is over once the output is sent.
    Violation(Violation),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,
    /// A violation, or GOAWAY with an error: nothing that arrives is looked at any more.
    failed: bool,
    /// What is missing of the client's preface.
    preface_left: usize,
    /// A frame of which only the beginning has arrived.
    partial: Vec<u8>,
    /// The rest of a DATA frame.
    data: Option<receive::Incoming>,
    /// A header block that CONTINUATION frames follow.
    block: Option<heads::Block>,
    decoder: Decoder,
    encoder: Encoder,
    peer: PeerSettings,
    streams: Streams,
    budget: Budget,
    /// The highest stream that the client has begun.
    last_begun: u32,
    /// Identifiers of streams that this side has reset: their frames may still arrive.
    reset: VecDeque<u32>,
    /// All streams up to this one may be among those that `reset` has forgotten.
    reset_forgotten: u32,
    /// Priorities of requests that have not arrived (RFC 9218 section 7.1).
    early: VecDeque<(u32, Priority)>,
    /// What the peer may still send on all streams.
    receive_window: i64,
    /// Consumed, and not announced to the peer yet.
    credit: u32,
    window_size: WindowSize,
    /// What the peer still accepts on all streams.
    send_window: i64,
    output: Output,
    /// Streams that wait for room in the output or in the connection's window.
    waiting: VecDeque<StreamKey>,
    /// How many streams were told that it is their turn, and may not have sent yet.
    turns: usize,
    /// How many turns were given by urgency since the last that was given by waiting time.
    turns_by_urgency: u8,
    /// The peer has exhausted its budget by what was sent to it.
    overloaded: Option<Violation>,
    leaving: Leaving,
    /// The last stream that the peer will process, by its GOAWAY.
    peer_last: Option<u32>,
}

/// How far this side has come in ending the connection (RFC 9113 section 6.8).
///
/// ```text
/// No ─ go_away ─▶ Announced ─ the PING is acknowledged ─▶ Final
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// Requests that cross with the announcement are still served.
    Announced,
    /// Later requests are not.
    Final {
        last: u32,
    },
}

/// Marks the PING that tells when the peer has seen GOAWAY.
const GOAWAY_SEEN: [u8; 8] = *b"weir-bye";

impl Connection {
    /// The most memory that an idle connection keeps, in bytes.
    pub const IDLE_MAX_BYTES: usize = size_of::<Connection>()
        + crate::hpack::MEMORY_MAX_BYTES
        + 2 * crate::output::KEPT_MAX_BYTES
        + RESET_MAX * size_of::<u32>()
        + EARLY_MAX * size_of::<(u32, Priority)>();

    /// What each stream takes, in bytes, but for content that the caller keeps.
    pub const STREAM_BYTES: usize =
        size_of::<Option<Stream>>() + size_of::<(u32, u32)>() + size_of::<u32>();

    /// Begins a connection: its preface and settings are in the output.
    pub fn new(role: Role, config: Config, now: Moment) -> Connection {
        let mut output = Output::default();
        let is_client = role != Role::Server;
        if is_client {
            output.put_raw(PREFACE);
        }
        let Config { streams_max, head_max_bytes, window_bytes, .. } = config;
        let window = window_bytes.min(MAX_31);
        let announced = Announced { is_client, streams_max, window, head_max_bytes };
        output.put_control(kind::SETTINGS, 0, 0, &announced.payload());
        let whole = config.connection_window_bytes.clamp(WINDOW_AT_FIRST, MAX_31);
        if whole > WINDOW_AT_FIRST {
            let more = (whole - WINDOW_AT_FIRST).to_be_bytes();
            output.put_control(kind::WINDOW_UPDATE, 0, 0, &more);
        }
        Connection {
            role,
            config,
            failed: false,
            preface_left: if is_client { 0 } else { PREFACE.len() },
            partial: Vec::new(),
            data: None,
            block: None,
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            peer: PeerSettings::default(),
            streams: Streams::default(),
            budget: Budget::new(now),
            last_begun: 0,
            reset: VecDeque::new(),
            reset_forgotten: 0,
            early: VecDeque::new(),
            receive_window: i64::from(whole),
            credit: 0,
            window_size: WindowSize::new(window, config.window_max_bytes.min(MAX_31)),
            send_window: i64::from(WINDOW_AT_FIRST),
            output,
            waiting: VecDeque::new(),
            turns: 0,
            turns_by_urgency: 0,
            overloaded: None,
            leaving: Leaving::No,
            peer_last: None,
        }
    }

    /// Returns the bytes to send, in order.
    pub fn output(&self) -> [&[u8]; 3] {
        self.output.slices()
    }

    /// Returns whether there is anything to send.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Notes that this many bytes of the output were sent.
    pub fn sent(&mut self, count: usize) {
        self.turns = 0;
        self.output.advance(count);
    }

    /// Returns whether the connection has failed: nothing that arrives is looked at any more.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether the peer's settings have arrived, with which it must begin.
    pub fn is_established(&self) -> bool {
        self.peer.arrived
    }

    /// Returns how many streams are held, or open on the wire.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns how many streams the peer accepts at once.
    pub fn streams_max(&self) -> u32 {
        self.peer.streams_max
    }

    /// Returns whether requests can still be sent: neither side has said that it leaves.
    pub fn accepts_requests(&self) -> bool {
        !self.failed
            && self.peer_last.is_none()
            && self.leaving == Leaving::No
            && self.last_begun < MAX_31 - 2
    }

    /// Returns how much content the peer still accepts on all streams together, less what waits to
    /// be sent.
    pub fn send_window(&self) -> i64 {
        self.send_window
    }

    /// Reserves a stream for a request. It is on the wire, and counts towards the peer's limit, once
    /// its head is sent.
    pub fn open(&mut self) -> StreamKey {
        let window = self.config.window_bytes.min(MAX_31);
        self.streams.add(Stream::new(Receiving::Head, self.peer.window, window))
    }

    /// Notes that so much of a stream's content was consumed: the peer may send as much again.
    pub fn consumed(&mut self, key: StreamKey, count: usize, now: Moment) {
        let count = count as u32;
        self.credit_connection(count);
        let wanted = self.window_size.window();
        let Some(stream) = self.streams.get_mut(key) else { return };
        if stream.receiving != Receiving::Body {
            return;
        }
        stream.credit += count;
        if stream.credit < stream.window / 2 {
            return;
        }
        // The window follows the connection's choice; it shrinks by credit that is withheld.
        let window = wanted.max(stream.window - stream.credit.min(stream.window));
        let more = (stream.credit + window).saturating_sub(stream.window);
        let grown = window.saturating_sub(stream.window);
        (stream.credit, stream.window) = (0, window);
        if more == 0 {
            return;
        }
        stream.receive_window += i64::from(more);
        let id = stream.id;
        self.output.put_control(kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        // The connection's window is enough for those of all streams.
        self.credit_connection(grown);
        if self.window_size.begins_probe(now) {
            self.output.put_control(kind::PING, 0, 0, &crate::window::PROBE);
        }
    }

    /// Lets the peer send as much more on all streams together.
    fn credit_connection(&mut self, count: u32) {
        self.credit += count;
        let room = (i64::from(MAX_31) - self.receive_window).max(0) as u32;
        let more = self.credit.min(room);
        if self.credit >= self.config.connection_window_bytes.max(WINDOW_AT_FIRST) / 2 && more > 0 {
            self.output.put_control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
            self.receive_window += i64::from(more);
            self.credit -= more;
        }
    }

    /// Resets a stream, so that the peer does not take either message for complete.
    pub fn reset(&mut self, key: StreamKey, code: Code) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        if stream.is_complete() {
            return;
        }
        let id = stream.id;
        (stream.receiving, stream.sending) = (Receiving::Ended, Sending::Ended);
        // A request whose head was not sent is not on the wire.
        if id != 0 {
            self.put_reset(id, code);
        }
        self.streams.settle(key);
    }

    /// Gives a stream up. One that is not complete is reset: a client's request with `CANCEL`, a
    /// response that is not complete with `INTERNAL_ERROR`, and a request that the response did not
    /// wait for with `NO_ERROR` (RFC 9113 section 8.1).
    pub fn release(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(key) else { return };
        let code = match (self.role, stream.sending) {
            (Role::Client { .. }, _) => Code::CANCEL,
            (Role::Server, Sending::Ended) => Code::NO_ERROR,
            (Role::Server, _) => Code::INTERNAL_ERROR,
        };
        self.reset(key, code);
        self.streams.release(key);
        self.turns = 0;
    }

    /// Announces that the connection ends: requests that are under way are still served (RFC 9113
    /// section 6.8).
    pub fn go_away(&mut self) {
        if self.leaving == Leaving::No && !self.failed {
            self.leaving = Leaving::Announced;
            self.put_goaway(MAX_31, Code::NO_ERROR, "");
            self.output.put_control(kind::PING, 0, 0, &GOAWAY_SEEN);
        }
    }

    /// Ends the connection at once, with all its streams.
    pub fn fail(&mut self, code: Code) {
        if !self.failed {
            self.failed = true;
            self.output.drop_frames();
            let last = if self.role == Role::Server { self.last_begun } else { 0 };
            self.put_goaway(last, code, "");
        }
    }

    /// Frees memory that only waits for use. For connections that have been idle.
    pub fn shrink(&mut self) {
        self.decoder.shrink();
        self.encoder.shrink();
        self.streams.shrink();
        self.output.shrink();
        self.partial.shrink_to_fit();
        self.waiting.shrink_to_fit();
        self.early.shrink_to_fit();
        self.reset.shrink_to_fit();
    }

    /// Keeps receive windows at their first size from now on: memory is short.
    pub fn shrink_windows(&mut self) {
        self.window_size.shrink();
    }

    fn put_goaway(&mut self, last: u32, code: Code, rule: &str) {
        let payload = [&last.to_be_bytes()[..], &code.0.to_be_bytes(), rule.as_bytes()].concat();
        self.output.put_control(kind::GOAWAY, 0, 0, &payload);
    }

    fn put_reset(&mut self, id: u32, code: Code) {
        self.output.put(kind::RST_STREAM, 0, id, &code.0.to_be_bytes());
        if self.reset.len() == RESET_MAX
            && let Some(forgotten) = self.reset.pop_front()
        {
            self.reset_forgotten = self.reset_forgotten.max(forgotten);
        }
        self.reset.push_back(id);
    }

    /// Returns whether frames of this closed stream may still be on their way.
    fn was_reset_here(&self, id: u32) -> bool {
        id <= self.reset_forgotten || self.reset.contains(&id)
    }

    fn acknowledge_ping(&mut self, payload: &[u8]) {
        self.output.put_control(kind::PING, flag::ACK, 0, payload);
    }
}

/// The most streams reset here that are remembered.
const RESET_MAX: usize = 256;

/// The most priorities kept for requests that have not arrived.
const EARLY_MAX: usize = 16;

impl Scratch {
    /// Returns the head or the trailers that the last event reported.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}
