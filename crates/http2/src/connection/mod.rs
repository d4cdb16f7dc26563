//! A connection: its state and its interface.

mod control;
mod credit;
mod heads;
mod interface;
mod receive;
mod send;

use std::collections::VecDeque;

use model::Moment;

use crate::budget::Budget;
use crate::error::{Code, Violation};
use crate::frame::{MAX_31, PREFACE, kind};
use crate::hpack::{Decoder, Encoder};
use crate::output::Output;
use crate::priority::Priority;
use crate::settings::{Announced, PeerSettings, WINDOW_AT_FIRST};
use crate::streams::{Receiving, Sending, Stream, StreamKey, Streams};
use crate::window::{SharedWindow, WindowSize};

pub use interface::{Config, Event, Role};
pub use send::SendError;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,
    /// The connection has failed: input is discarded.
    failed: bool,
    /// Bytes of the client's preface that have not arrived.
    preface_left: usize,
    /// The start of an incomplete frame.
    partial: Vec<u8>,
    /// The DATA frame in progress.
    data: Option<receive::Incoming>,
    /// The header block in progress.
    block: Option<heads::Block>,
    /// Number of frames and header blocks received, modulo 2³².
    completed: u32,
    decoder: Decoder,
    encoder: Encoder,
    peer: PeerSettings,
    streams: Streams,
    budget: Budget,
    /// The highest stream that the client has opened.
    last_begun: u32,
    /// Streams that this side has reset and whose frames may still arrive.
    reset: VecDeque<u32>,
    /// The highest stream that was removed from `reset` because it was full.
    reset_forgotten: u32,
    /// Priorities of streams that have not been opened (RFC 9218 section 7.1).
    early: VecDeque<(u32, Priority)>,
    /// How much the peer may still send on all streams.
    shared_window: SharedWindow,
    window_size: WindowSize,
    /// How much the peer still accepts on all streams, in bytes.
    send_window: i64,
    output: Output,
    /// Streams that wait for the output buffer or the connection's send window.
    waiting: VecDeque<StreamKey>,
    /// Number of streams in [`Turn::Granted`], at most.
    turns: usize,
    /// Number of turns granted by urgency since the last one granted by waiting time.
    turns_by_urgency: u8,
    /// The budget was exhausted while sending; reported with the next input.
    overloaded: Option<Violation>,
    leaving: Leaving,
    /// The last stream that the peer processes, from its GOAWAY.
    peer_last: Option<u32>,
}

/// Progress of a graceful shutdown (RFC 9113 section 6.8).
///
/// ```text
/// No ─ go_away ─▶ Announced ─ the PING is acknowledged, or go_away_finally ─▶ Final
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    /// Requests that cross with GOAWAY are still served.
    Announced,
    /// Later requests are refused.
    Final {
        last: u32,
    },
}

/// Payload of the PING whose acknowledgement shows that the peer has seen GOAWAY.
const GOAWAY_SEEN: [u8; 8] = *b"weir-bye";

impl Connection {
    /// Maximum memory of an idle connection in bytes, after [`Connection::shrink`]. Before that,
    /// there is also the space of streams that were open at the same time.
    pub const IDLE_MAX_BYTES: usize = size_of::<Connection>()
        + crate::hpack::MEMORY_MAX_BYTES
        + 2 * crate::output::KEPT_MAX_BYTES
        + RESET_MAX * size_of::<u32>()
        + EARLY_MAX * size_of::<(u32, Priority)>();

    /// Memory per stream in bytes, without content, which the caller keeps.
    pub const STREAM_BYTES: usize =
        size_of::<Option<Stream>>() + size_of::<(u32, u32)>() + size_of::<u32>();

    /// Starts a connection; its preface and SETTINGS are in the output.
    pub fn new(role: Role, config: Config, now: Moment) -> Connection {
        let mut output = Output::default();
        let is_client = role != Role::Server;
        if is_client {
            output.put_raw(PREFACE);
        }
        // RFC 9113 section 6.9.1.
        let config = Config {
            window_bytes: config.window_bytes.min(MAX_31),
            window_max_bytes: config.window_max_bytes.min(MAX_31),
            connection_window_bytes: config.connection_window_bytes.clamp(WINDOW_AT_FIRST, MAX_31),
            ..config
        };
        let Config { streams_max, head_max_bytes, window_bytes: window, .. } = config;
        let announced = Announced { is_client, streams_max, window, head_max_bytes };
        output.put_control(kind::SETTINGS, 0, 0, &announced.payload());
        if config.connection_window_bytes > WINDOW_AT_FIRST {
            let more = config.connection_window_bytes - WINDOW_AT_FIRST;
            output.put_control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
        Connection {
            role,
            config,
            failed: false,
            preface_left: if is_client { 0 } else { PREFACE.len() },
            partial: Vec::new(),
            data: None,
            block: None,
            completed: 0,
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            peer: PeerSettings::default(),
            streams: Streams::default(),
            budget: Budget::new(now),
            last_begun: 0,
            reset: VecDeque::new(),
            reset_forgotten: 0,
            early: VecDeque::new(),
            shared_window: SharedWindow::new(config.connection_window_bytes),
            window_size: WindowSize::new(window, config.window_max_bytes),
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

    /// Removes sent bytes from the output.
    pub fn sent(&mut self, count: usize) {
        self.turns = 0;
        self.output.advance(count);
    }

    /// Fixes the order of the present output. For a transport that may have encrypted bytes that it
    /// has not sent: they must be offered again unchanged.
    pub fn commit_output(&mut self) {
        self.output.commit();
    }

    /// Returns whether so much output is unsent that the caller should send before it receives more:
    /// most input causes output. For servers; a client that did not receive could wait forever for
    /// a server that waits as well.
    pub fn is_congested(&self) -> bool {
        self.output.control_len() > CONGESTED_CONTROL_BYTES
            || self.output.frames_len() > CONGESTED_FRAMES_BYTES
    }

    /// Returns the number of unsent bytes, without PING, `WINDOW_UPDATE` and GOAWAY frames.
    pub fn unsent(&self) -> usize {
        self.output.frames_len()
    }

    /// Returns the number of a frame or header block that has begun to arrive and is not complete;
    /// of DATA, only its head counts. Numbers of consecutive frames differ.
    pub fn incomplete_frame(&self) -> Option<u32> {
        (self.block.is_some() || !self.partial.is_empty()).then_some(self.completed)
    }

    /// Returns whether the connection has failed; input is then discarded.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether the peer's first SETTINGS frame has arrived.
    pub fn is_established(&self) -> bool {
        self.peer.arrived
    }

    /// Returns the number of streams that have not been released.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the number of concurrent streams that the peer accepts.
    pub fn streams_max(&self) -> u32 {
        self.peer.streams_max
    }

    /// Returns whether requests can be sent: neither side has sent GOAWAY, and there are
    /// identifiers left.
    pub fn accepts_requests(&self) -> bool {
        !self.failed
            && self.peer_last.is_none()
            && self.leaving == Leaving::No
            && self.last_begun < MAX_31 - 2
    }

    /// Returns whether one side has sent its final GOAWAY and no stream is left: the connection can
    /// be closed once its output is sent.
    pub fn has_left(&self) -> bool {
        let is_over = self.peer_last.is_some() || matches!(self.leaving, Leaving::Final { .. });
        is_over && self.streams.len() == 0
    }

    /// Returns whether the final head has not been sent yet.
    pub fn awaits_head(&self, key: StreamKey) -> bool {
        self.streams.get(key).is_some_and(|stream| stream.sending == Sending::Head)
    }

    /// Returns how many bytes of content can be sent on all streams together, beyond those already
    /// in the output.
    pub fn send_window(&self) -> i64 {
        self.send_window
    }

    /// Creates a stream for a request. It is opened, and counts towards the peer's limit, when its
    /// head is sent.
    pub fn open(&mut self) -> StreamKey {
        let window = self.config.window_bytes;
        self.streams.add(Stream::new(Receiving::Head, self.peer.window, window))
    }

    /// Resets a stream, so that the peer does not consider either message complete.
    pub fn reset(&mut self, key: StreamKey, code: Code) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        if stream.is_complete() {
            return;
        }
        let id = stream.id;
        self.end(key);
        // Without a head, the stream was not opened.
        if id != 0 {
            self.put_reset(id, code);
        }
    }

    /// Removes a stream, and resets it if it is incomplete: a client's with `CANCEL`, a server's
    /// with `INTERNAL_ERROR`, or with `NO_ERROR` if the response is complete and the request is not
    /// (RFC 9113 section 8.1).
    pub fn release(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(key) else { return };
        let code = match (self.role, stream.sending) {
            (Role::Client { .. }, _) => Code::CANCEL,
            (Role::Server, Sending::Ended) => Code::NO_ERROR,
            (Role::Server, _) => Code::INTERNAL_ERROR,
        };
        let (unconsumed, window) = (stream.unconsumed, stream.window);
        self.reset(key, code);
        self.streams.remove(key);
        let first = self.config.window_bytes;
        self.shared_window.follow(window.max(first), first);
        self.credit_connection(unconsumed);
    }

    /// Starts a graceful shutdown: sends GOAWAY; requests in progress, and those that cross with
    /// it, are served (RFC 9113 section 6.8).
    pub fn go_away(&mut self) {
        if self.leaving == Leaving::No && !self.failed {
            self.leaving = Leaving::Announced;
            self.put_goaway(MAX_31, Code::NO_ERROR, "");
            self.output.put_control(kind::PING, 0, 0, &GOAWAY_SEEN);
        }
    }

    /// Completes a graceful shutdown without waiting for the peer to acknowledge it: refuses further
    /// requests.
    pub fn go_away_finally(&mut self) {
        if self.leaving == Leaving::Announced && !self.failed {
            let last = self.last_processed();
            self.leaving = Leaving::Final { last };
            self.put_goaway(last, Code::NO_ERROR, "");
        }
    }

    /// Ends the connection and all its streams immediately.
    pub fn fail(&mut self, code: Code) {
        self.fail_by(code, "");
    }

    fn fail_by(&mut self, code: Code, rule: &str) {
        if !self.failed {
            self.failed = true;
            self.output.drop_frames();
            self.put_goaway(self.last_processed(), code, rule);
        }
    }

    /// Returns the last of the peer's streams that was or will be processed.
    fn last_processed(&self) -> u32 {
        match (self.role, self.leaving) {
            // It must not increase (RFC 9113 section 6.8).
            (_, Leaving::Final { last }) => last,
            (Role::Server, _) => self.last_begun,
            // There is no push.
            (Role::Client { .. }, _) => 0,
        }
    }

    /// Frees unused memory. For idle connections.
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

    /// Makes receive windows small for a while, because memory is short.
    pub fn shrink_windows(&mut self, now: Moment) {
        self.window_size.shrink(now);
    }

    fn put_goaway(&mut self, last: u32, code: Code, rule: &str) {
        let payload = [&last.to_be_bytes()[..], &code.0.to_be_bytes(), rule.as_bytes()].concat();
        self.output.put_control(kind::GOAWAY, 0, 0, &payload);
    }

    fn put_reset(&mut self, id: u32, code: Code) {
        // Nothing follows the GOAWAY of a failed connection.
        if self.failed {
            return;
        }
        self.output.put(kind::RST_STREAM, 0, id, &code.0.to_be_bytes());
        if self.reset.len() == RESET_MAX
            && let Some(forgotten) = self.reset.pop_front()
        {
            self.reset_forgotten = self.reset_forgotten.max(forgotten);
        }
        self.reset.push_back(id);
    }

    /// Returns whether frames of this closed stream may still arrive.
    fn was_reset_here(&self, id: u32) -> bool {
        id <= self.reset_forgotten || self.reset.contains(&id)
    }
}

/// From this much unsent output on, a connection is congested: acknowledgements and the like, and
/// frames of streams. Content alone is less.
const CONGESTED_CONTROL_BYTES: usize = 16 * 1024;
const CONGESTED_FRAMES_BYTES: usize = 256 * 1024;

/// Maximum length of `Connection::reset`.
const RESET_MAX: usize = 256;

/// Maximum length of `Connection::early`.
const EARLY_MAX: usize = 16;
