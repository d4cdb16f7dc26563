//! Moves one message body from one connection to another. Bytes are decoded from the sender's
//! framing and reframed, so that nothing ambiguous is ever forwarded.
//!
//! One type serves both directions. It holds no bytes of its own beyond framing and small runs:
//! body bytes stay in the source connection's buffer until the other side has taken them, which is
//! all the back-pressure there is. Bulk data that is not reframed is spliced without passing
//! through this process.

mod ahead;
mod copied;
mod flush;
mod framing;
mod gather;
mod splice;

use std::borrow::Cow;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use model::{Cause, Moment};
use transport::Stream;
use transport::http2::StreamError;
use wire::http1::ChunkError;

use crate::buffer::Buffer;
use crate::filter::BodyFilter;
use crate::identity_names::IdentityNames;
use crate::pipes::Lent;
use crate::turns::Ticket;
use crate::watchdog::{Direction, Limits};
pub(crate) use copied::Copied;
use framing::frame_run;
pub(crate) use framing::{Framing, Source};

/// Why a body could not be moved to its end.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The sender's connection failed.
    Read(StreamError),
    /// The sender closed before the body's end.
    Incomplete,
    /// The sender violated the chunked coding.
    Malformed(ChunkError),
    /// The body exceeds its limit.
    TooLarge,
    /// The receiver's connection failed.
    Write(StreamError),
    /// A filter failed.
    Filter,
}

impl PumpError {
    /// Describes an error of a read from the sender.
    pub(crate) fn read(error: io::Error) -> PumpError {
        PumpError::Read(StreamError::of(&error))
    }

    /// Describes an error of a write to the receiver.
    pub(crate) fn write(error: io::Error) -> PumpError {
        PumpError::Write(StreamError::of(&error))
    }
}

/// How long to wait when nothing moves, and the cause reported then.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) direction: Direction,
    pub(crate) read: (Duration, Cause),
    pub(crate) write: (Duration, Cause),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocked {
    No,
    OnRead,
    OnWrite,
}

/// A body being moved.
pub(crate) struct Pump {
    source: Source,
    framing: Framing,
    patience: Patience,
    /// Written before anything else: a message head, chunk framing, small runs.
    pending: Vec<u8>,
    pending_sent: usize,
    /// How much of `pending` is the message head, as long as nothing has been sent.
    head_bytes: usize,
    /// Number of body bytes at the front of the source's buffer that are not written yet.
    run: usize,
    ended: bool,
    /// The end has been signalled to the receiver's stream.
    finished: bool,
    /// Trailers that arrived outside the body (HTTP/2).
    trailers: Vec<u8>,
    /// Trailers that are not sent.
    withheld: IdentityNames,
    has_sent: bool,
    /// The work done so far, as bytes handed to the kernel, framing included. Filtered bytes count
    /// for more.
    turn_bytes: u64,
    blocked: Blocked,
    /// When the current wait began…
    blocked_at: Moment,
    /// …and how long the sender has kept this message waiting in total before that.
    waited_for_sender: Duration,
    /// Its place among the transfers that wait for a turn.
    ticket: Ticket,
    /// Carries the body past this process; none of it is in the source's buffer then.
    pipe: Option<Lent>,
    has_spliced: bool,
    bytes: u64,
    bytes_max: u64,
    /// The number of bytes announced where the framing does not contain it.
    bytes_said: Option<u64>,
    /// Decoded bytes kept for another attempt; `None` when nothing is kept (any more).
    kept: Option<Vec<u8>>,
    kept_max: usize,
    /// A copy for other receivers.
    copied: Option<Box<Copied>>,
    /// The bytes read so far are in `kept` alone: they were read ahead and not framed yet.
    unframed: bool,
    /// Only what was read ahead for the first attempt is kept, nothing for a second.
    sent_once: bool,
    /// The filter that the body passes through.
    filter: Option<Box<BodyFilter>>,
}

impl Pump {
    /// Reuses `storage`, whatever it holds from before.
    pub(crate) fn new(
        source: Source,
        framing: Framing,
        patience: Patience,
        storage: Vec<u8>,
    ) -> Pump {
        let mut pending = storage;
        pending.clear();
        Pump {
            source,
            framing,
            patience,
            pending,
            pending_sent: 0,
            head_bytes: 0,
            run: 0,
            ended: false,
            finished: false,
            trailers: Vec::new(),
            withheld: IdentityNames::default(),
            has_sent: false,
            turn_bytes: 0,
            blocked: Blocked::No,
            blocked_at: Moment::ZERO,
            waited_for_sender: Duration::ZERO,
            ticket: Ticket::default(),
            pipe: None,
            has_spliced: false,
            bytes: 0,
            bytes_max: u64::MAX,
            bytes_said: None,
            kept: None,
            kept_max: 0,
            copied: None,
            unframed: false,
            sent_once: false,
            filter: None,
        }
    }

    /// Makes a body of more than `max` bytes fail with [`PumpError::TooLarge`].
    pub(crate) fn limit_bytes(&mut self, max: u64) {
        self.bytes_max = max;
    }

    /// Makes a body that does not have exactly `count` bytes fail with [`PumpError::Incomplete`].
    pub(crate) fn expect_bytes(&mut self, count: u64) {
        self.bytes_said = Some(count);
    }

    /// Sends the body through `filter`. Call before any of it has moved; such a body is sent once,
    /// never again.
    pub(crate) fn filter(&mut self, filter: Option<Box<BodyFilter>>) {
        debug_assert!(filter.is_none() || (self.bytes == 0 && self.kept.is_none()));
        self.filter = filter;
    }

    /// Sets how long to wait for the sender from now on.
    pub(crate) fn wait_for_sender(&mut self, patience: Duration) {
        self.patience.read.0 = patience;
    }

    /// Keeps what it reads, up to `max` bytes, so that the message can be sent again.
    pub(crate) fn keep(&mut self, max: usize) {
        self.kept = Some(Vec::new());
        self.kept_max = max;
    }

    /// Returns whether [`Pump::rewind`] is possible: nothing has been sent, or all of it has been
    /// kept.
    pub(crate) fn can_rewind(&self) -> bool {
        !self.has_sent || self.kept.is_some() || self.bytes == 0
    }

    /// Rewinds to the start of the message for another connection: the head and the body bytes read
    /// so far go first.
    pub(crate) fn rewind(&mut self, buffer: &mut Buffer, write_head: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.can_rewind());
        // The head goes before any of the body.
        self.pipe = None;
        self.blocked = Blocked::No;
        self.waited_for_sender = Duration::ZERO;
        if !self.has_sent && !self.unframed {
            // What follows the head, and a run still in the buffer, stay where they are.
            let body = self.pending.split_off(self.head_bytes);
            self.pending.clear();
            write_head(&mut self.pending);
            self.head_bytes = self.pending.len();
            self.pending.extend_from_slice(&body);
            return;
        }
        self.finished = false;
        // A run still in the buffer has been kept too.
        buffer.consume(self.run);
        self.run = 0;
        self.pending.clear();
        self.pending_sent = 0;
        write_head(&mut self.pending);
        self.head_bytes = self.pending.len();
        if let Some(kept) = self.kept.as_deref().filter(|kept| !kept.is_empty()) {
            frame_run(self.framing, kept, &mut self.pending);
        }
        if self.sent_once {
            self.kept = None;
        }
        if self.ended {
            self.end_framing();
        }
        self.has_sent = false;
        self.unframed = false;
    }

    /// Returns the buffer written before the body: the place for the message head.
    pub(crate) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Returns whether the whole message has been handed to the kernel.
    pub(crate) fn is_done(&self) -> bool {
        let end_is_sent = self.finished || self.framing != Framing::Stream;
        self.ended && self.run == 0 && self.pending.is_empty() && end_is_sent
    }

    /// Returns whether any of the message has been handed to the kernel.
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// Returns whether the pump waits for the sender.
    pub(crate) fn is_starved(&self) -> bool {
        self.blocked == Blocked::OnRead
    }

    /// Returns whether the receiver has taken nothing for a while although there is more to write.
    pub(crate) fn is_held_up(&self) -> bool {
        self.blocked == Blocked::OnWrite
    }

    /// Returns how long the sender has kept this message waiting in total.
    pub(crate) fn waited_for_sender(&self) -> Duration {
        match self.blocked {
            Blocked::OnRead => self.waited_for_sender + (os::clock::now() - self.blocked_at),
            _ => self.waited_for_sender,
        }
    }

    /// Returns whether bulk data was spliced.
    pub(crate) fn has_spliced(&self) -> bool {
        self.has_spliced
    }

    /// Returns the number of body bytes read so far, without framing.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of body bytes produced from them, without framing.
    pub(crate) fn bytes_out(&self) -> u64 {
        self.filter.as_ref().map_or(self.bytes, |filter| filter.bytes_out())
    }

    /// Returns the trailer lines as received, once the body has been read completely.
    pub(crate) fn trailers(&self) -> &[u8] {
        match &self.source {
            Source::Chunked(decoder) => decoder.trailers(),
            _ => &self.trailers,
        }
    }

    /// Returns the trailer lines to send.
    fn trailers_to_send(&self) -> Cow<'_, [u8]> {
        self.withheld.without(self.trailers())
    }

    /// Keeps trailers of these names from the receiver.
    pub(crate) fn withhold_trailers(&mut self, names: IdentityNames) {
        self.withheld = names;
    }

    /// Takes the framing vector for reuse. The body ends with it.
    pub(crate) fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Moves as much as possible. Ready when the whole body has been handed to the kernel.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
        limits: &Limits,
    ) -> Poll<Result<(), PumpError>> {
        let before = self.turn_bytes;
        let polled = self.poll_turn(cx, from, buffer, to, limits);
        buffer.turns().count(self.turn_bytes - before);
        polled
    }

    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
        limits: &Limits,
    ) -> Poll<Result<(), PumpError>> {
        let before = self.turn_bytes;
        loop {
            if buffer.turns().share(self.turn_bytes - before) == 0 {
                return self.wait_for_turn(cx, buffer, limits);
            }
            ready!(self.poll_splice(cx, (from, to), buffer, limits, before))?;
            let starved = self.gather(buffer)?;
            if self.poll_flush(cx, buffer, to).map_err(PumpError::write)?.is_pending() {
                self.wait(Blocked::OnWrite, limits);
                return Poll::Pending;
            }
            if self.is_done() {
                limits.clear(self.patience.direction);
                return Poll::Ready(Ok(()));
            }
            if !starved {
                continue;
            }
            if self.may_splice(from, to) {
                self.pipe = buffer.pipe_for_bulk();
                if self.pipe.is_some() {
                    self.has_spliced = true;
                    continue;
                }
            }
            if self.filter.is_none() {
                buffer.enlarge_for_bulk();
            }
            match self.poll_fill(cx, from, buffer, limits) {
                Poll::Ready(filled) => filled?,
                // The receiver gets what there is without waiting for more.
                Poll::Pending if self.flush_filter()? => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Waits for more of the body, or for its end.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        limits: &Limits,
    ) -> Poll<Result<(), PumpError>> {
        match buffer.poll_fill(from, cx) {
            Poll::Pending => {
                self.wait(Blocked::OnRead, limits);
                return Poll::Pending;
            }
            Poll::Ready(Err(e)) => return Poll::Ready(Err(PumpError::read(e))),
            Poll::Ready(Ok(0)) => match self.source {
                Source::UntilClose if self.bytes_said.is_none_or(|said| said == self.bytes) => {
                    self.trailers = from.take_trailers();
                    self.end_body()?;
                }
                _ => return Poll::Ready(Err(PumpError::Incomplete)),
            },
            Poll::Ready(Ok(_)) => {}
        }
        self.unblock();
        Poll::Ready(Ok(()))
    }

    /// Lets other connections have this thread; this one is not blocked.
    fn wait_for_turn<T>(&mut self, cx: &Context<'_>, buffer: &Buffer, limits: &Limits) -> Poll<T> {
        limits.clear(self.patience.direction);
        buffer.turns().wait(&mut self.ticket, cx);
        Poll::Pending
    }

    /// Restarts the timeout of the current wait.
    pub(crate) fn restart_wait(&mut self, limits: &Limits) {
        let on = self.unblock();
        if on != Blocked::No {
            self.wait(on, limits);
        }
    }

    /// Ends the current wait, and returns what it was for.
    fn unblock(&mut self) -> Blocked {
        self.waited_for_sender = self.waited_for_sender();
        std::mem::replace(&mut self.blocked, Blocked::No)
    }

    /// Starts the timeout once per wait, not at every poll.
    fn wait(&mut self, on: Blocked, limits: &Limits) {
        if self.blocked != on {
            self.unblock();
            self.blocked = on;
            self.blocked_at = os::clock::now();
            let (patience, cause) =
                if on == Blocked::OnRead { self.patience.read } else { self.patience.write };
            limits.set(self.patience.direction, self.blocked_at + patience, cause);
        }
    }
}
