//! HTTP/2 server role: requests arrive as streams.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http2::{Config, Refusal, Role, Violation};
use model::Moment;

use super::StreamError;
use super::exchange::Exchange;
use super::link::{Link, Notice};
use super::{WEBSOCKET, WINDOW_MAX_BYTES};
use crate::Stream;

/// Receive window of each stream at first. The default of RFC 9113 section 6.9.2: more would only
/// be memory for clients whose bodies are not read.
const WINDOW_BYTES: u32 = 65_535;

/// Reads in a row before streams and other connections get their turn.
const READS_MAX: u32 = 4;

/// The settings announced to a client and enforced.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Maximum number of concurrent requests.
    pub streams_max: u32,
    /// The largest request head, in bytes as RFC 9113 section 6.5.2 counts them.
    pub head_max_bytes: u32,
}

/// A client's HTTP/2 connection.
///
/// Its task works in turns: [`Http2Server::begin_turn`], [`Http2Server::poll_next`] until that is
/// pending, the work of the streams, [`Http2Server::poll_flush`].
pub struct Http2Server {
    link: Rc<Link>,
    reads_left: u32,
    /// Nothing is received until more output has been sent.
    held_back: bool,
    /// The violation that has ended the connection was returned.
    violation_returned: bool,
}

/// Something that the client has done.
pub enum Incoming {
    /// A request arrived, as a stream.
    Request(Stream),
    /// A request was refused.
    Refused(Refusal),
    /// The client violated the protocol, which ends the connection.
    Violation(Violation),
}

impl Http2Server {
    /// Serves a client's connection, of which `before` has already been read.
    pub fn new(stream: Stream, before: &[u8], settings: ServerSettings) -> Http2Server {
        let ServerSettings { streams_max, head_max_bytes } = settings;
        let config = Config {
            streams_max,
            head_max_bytes,
            window_bytes: WINDOW_BYTES,
            window_max_bytes: WINDOW_MAX_BYTES,
            // Room for all streams: one whose body is not read must not block the others.
            connection_window_bytes: WINDOW_BYTES.saturating_mul(streams_max.max(1)).min(1 << 30),
            websocket: WEBSOCKET,
        };
        let link = Rc::new(Link::new(stream, Role::Server, config));
        link.receive(before);
        Http2Server { link, reads_left: 0, held_back: false, violation_returned: false }
    }

    /// Starts a turn of the connection's task.
    pub fn begin_turn(&mut self, now: Moment) {
        self.reads_left = READS_MAX;
        self.link.state().begin_turn(now);
    }

    /// Returns what the client does next; `None`: nothing more, ever, because the connection has
    /// ended. Reads a bounded amount each turn; if there is more, the task is woken again.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        loop {
            let mut state = self.link.state();
            if let Some(notice) = state.notices.pop_front() {
                drop(state);
                return Poll::Ready(Some(match notice {
                    Notice::Request(key) => {
                        let exchange = Exchange::new(Rc::clone(&self.link), key);
                        Incoming::Request(Stream::from_exchange(exchange))
                    }
                    Notice::Refused(refusal) => Incoming::Refused(refusal),
                }));
            }
            if let Some(StreamError::Violation(violation)) = state.ended
                && !std::mem::replace(&mut self.violation_returned, true)
            {
                return Poll::Ready(Some(Incoming::Violation(violation)));
            }
            let (ended, congested) = (state.ended.is_some(), state.engine.is_congested());
            drop(state);
            if ended || self.has_left() {
                return Poll::Ready(None);
            }
            // What a client sends causes output, so one that does not read is not read from either.
            self.held_back = congested;
            if self.held_back {
                return Poll::Pending;
            }
            if self.reads_left == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            ready!(self.link.poll_receive(cx));
            self.reads_left -= 1;
        }
    }

    /// Sends what there is. Ready when nothing is left to send.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let flushed = self.link.poll_flush(cx);
        if self.held_back {
            let state = self.link.state();
            if state.ended.is_some() || !state.engine.is_congested() {
                self.held_back = false;
                cx.waker().wake_by_ref();
            }
        }
        flushed
    }

    /// Returns the underlying connection.
    pub fn connection(&self) -> &Stream {
        &self.link.socket
    }

    /// Returns whether the client's settings have arrived, with which it must start (RFC 9113
    /// section 3.4).
    pub fn is_established(&self) -> bool {
        self.link.state().engine.is_established()
    }

    /// Returns the number of a frame or header block that has begun to arrive and whose rest the
    /// client has not sent; of DATA, only its head counts. Numbers of consecutive frames differ.
    pub fn incomplete_frame(&self) -> Option<u32> {
        // The rest may have arrived, but is not being received.
        let is_known = !self.held_back;
        is_known.then(|| self.link.state().engine.incomplete_frame()).flatten()
    }

    /// Ends the connection and all its streams, as a violation does.
    pub fn fail(&mut self, violation: Violation) {
        let mut state = self.link.state();
        state.engine.fail(violation.code);
        state.end(StreamError::Violation(violation));
        drop(state);
        self.violation_returned = true;
    }

    /// Returns the number of bytes sent so far.
    pub fn sent_bytes(&self) -> u64 {
        self.link.state().sent_bytes
    }

    /// Returns whether the connection is over: the client has been told that there will be no further
    /// requests, all have been served, and everything has been sent.
    pub fn has_left(&self) -> bool {
        let state = self.link.state();
        state.engine.has_left() && !state.engine.has_output()
    }

    /// Returns whether anything waits to be sent.
    pub fn has_unsent(&self) -> bool {
        self.link.state().has_output()
    }

    /// Sends GOAWAY: no further requests are accepted; those in progress finish (RFC 9113 section
    /// 6.8).
    pub fn go_away(&mut self) {
        self.link.state().engine.go_away();
    }

    /// Completes what [`Http2Server::go_away`] began, without waiting for the client to acknowledge
    /// it: later requests are refused.
    pub fn go_away_finally(&mut self) {
        self.link.state().engine.go_away_finally();
    }

    /// Frees memory that an idle connection does not need.
    pub fn shrink(&mut self) {
        self.link.state().shrink();
    }
}
