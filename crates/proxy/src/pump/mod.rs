//! Moves one message body from one connection to another: bytes are decoded from the framing they
//! came in, and framed anew, so that nothing ambiguous is ever passed on.
//!
//! One type serves both directions. It holds no bytes of its own beyond framing and small runs:
//! what it moves stays in the source connection's buffer until the other side has taken it, which
//! is all the back-pressure there is. Bulk that leaves as it came is spliced past this process.

mod ahead;
mod flush;
mod framing;
mod gather;
mod splice;

use std::io::ErrorKind;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use model::{Cause, Moment};
use transport::Stream;
use wire::http1::ChunkError;

use crate::buffer::Buffer;
use crate::filter::BodyFilter;
use crate::pipes::Lent;
use crate::watchdog::{Direction, Limits};
pub(crate) use framing::{Framing, Source};
use framing::{frame_run, trailers};

/// After this much another connection gets its turn.
pub(crate) const TURN_BYTES: u64 = 256 * 1024;

/// Why a body could not be moved to its end.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The sender's connection failed.
    Read(ErrorKind),
    /// The sender closed before the body's end.
    Incomplete,
    /// The sender broke the chunked coding.
    Malformed(ChunkError),
    /// More than the limit on this body.
    TooLarge,
    /// The receiver's connection failed.
    Write(ErrorKind),
    /// A filter on its way failed.
    Filter,
}

/// What to do when nothing moves: how long to wait, and what that would be called.
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

/// A body on its way.
pub(crate) struct Pump {
    source: Source,
    framing: Framing,
    patience: Patience,
    /// Written before anything else: a message head, chunk framing, small runs.
    pending: Vec<u8>,
    pending_sent: usize,
    /// How much of `pending` is the message's head, as long as nothing has been sent.
    head_bytes: usize,
    /// Bytes at the front of the source's buffer that are body and not yet written.
    run: usize,
    ended: bool,
    /// The receiver's stream has been told of the end.
    finished: bool,
    /// Trailers that came beside the body.
    trailers: Vec<u8>,
    has_sent: bool,
    /// The work done so far, as bytes handed to the kernel, framing included. What goes through a
    /// filter counts for more.
    turn_bytes: u64,
    blocked: Blocked,
    /// When that began…
    blocked_at: Moment,
    /// …and how long the sender has let this message wait in all, before that.
    waited_for_sender: Duration,
    /// Carries the body past this process; then nothing of it is in the source's buffer.
    pipe: Option<Lent>,
    has_spliced: bool,
    bytes: u64,
    bytes_max: u64,
    /// How many it has said that it has, where its framing does not say so.
    bytes_said: Option<u64>,
    /// Decoded bytes kept for another attempt; `None` when nothing is kept (any more).
    kept: Option<Vec<u8>>,
    kept_max: usize,
    /// What has been read stands in `kept` alone: it was read ahead and not framed yet.
    unframed: bool,
    /// Nothing is kept for a second attempt, only what was read ahead for the first.
    sent_once: bool,
    /// What the body goes through on its way.
    filter: Option<Box<BodyFilter>>,
}

impl Pump {
    /// Works in `storage`, whatever it holds from before.
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
            has_sent: false,
            turn_bytes: 0,
            blocked: Blocked::No,
            blocked_at: Moment::ZERO,
            waited_for_sender: Duration::ZERO,
            pipe: None,
            has_spliced: false,
            bytes: 0,
            bytes_max: u64::MAX,
            bytes_said: None,
            kept: None,
            kept_max: 0,
            unframed: false,
            sent_once: false,
            filter: None,
        }
    }

    /// Fails with [`PumpError::TooLarge`] beyond `max` bytes of body.
    pub(crate) fn limit_bytes(&mut self, max: u64) {
        self.bytes_max = max;
    }

    /// Fails with [`PumpError::Incomplete`] unless the body has exactly so many bytes.
    pub(crate) fn expect_bytes(&mut self, count: u64) {
        self.bytes_said = Some(count);
    }

    /// Sends the body through `filter`. Call before anything of it has moved; such a body is sent
    /// once, never again.
    pub(crate) fn filter(&mut self, filter: Option<Box<BodyFilter>>) {
        debug_assert!(filter.is_none() || (self.bytes == 0 && self.kept.is_none()));
        self.filter = filter;
    }

    /// Waits so long for the sender, from now on.
    pub(crate) fn wait_for_sender(&mut self, patience: Duration) {
        self.patience.read.0 = patience;
    }

    /// Keeps what it reads, up to `max` bytes, so that the message can be sent again.
    pub(crate) fn keep(&mut self, max: usize) {
        self.kept = Some(Vec::new());
        self.kept_max = max;
    }

    /// Whether [`Pump::rewind`] can do its work: nothing has left, or all of it has been kept.
    pub(crate) fn can_rewind(&self) -> bool {
        !self.has_sent || self.kept.is_some() || self.bytes == 0
    }

    /// Goes back to the start of the message, towards another connection: the head and what was
    /// read of the body go first.
    pub(crate) fn rewind(&mut self, buffer: &mut Buffer, write_head: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.can_rewind());
        // Nothing of the body goes before the head.
        self.pipe = None;
        self.blocked = Blocked::No;
        self.waited_for_sender = Duration::ZERO;
        if !self.has_sent && !self.unframed {
            // What follows the head, and a run still in the buffer, wait where they are.
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

    /// What is written before the body: the place for the message's head.
    pub(crate) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Whether the whole message has been handed to the kernel.
    pub(crate) fn is_done(&self) -> bool {
        let is_told = self.finished || self.framing != Framing::Stream;
        self.ended && self.run == 0 && self.pending.is_empty() && is_told
    }

    /// Whether any of the message has been handed to the kernel.
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// Whether the next bytes are the sender's to send.
    pub(crate) fn is_starved(&self) -> bool {
        self.blocked == Blocked::OnRead
    }

    /// Whether the receiver has taken nothing for a while: there is more to write than it takes.
    pub(crate) fn is_held_up(&self) -> bool {
        self.blocked == Blocked::OnWrite
    }

    /// How long the sender has let this message wait in all.
    pub(crate) fn waited_for_sender(&self) -> Duration {
        match self.blocked {
            Blocked::OnRead => self.waited_for_sender + (os::clock::now() - self.blocked_at),
            _ => self.waited_for_sender,
        }
    }

    /// Whether bulk went past this process.
    pub(crate) fn has_spliced(&self) -> bool {
        self.has_spliced
    }

    /// Body bytes read so far, without framing.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Body bytes that came of them, without framing.
    pub(crate) fn bytes_out(&self) -> u64 {
        self.filter.as_ref().map_or(self.bytes, |filter| filter.bytes_out())
    }

    /// The lines of the trailers, once the body has been read to its end.
    pub(crate) fn trailers(&self) -> &[u8] {
        trailers(&self.source, &self.trailers)
    }

    /// Takes the vector that framing was gathered in, to be used again. The body ends with it.
    pub(crate) fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Moves what can be moved. Ready when the whole body has been handed to the kernel.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
        limits: &Limits,
    ) -> Poll<Result<(), PumpError>> {
        let turn_ends = self.turn_bytes + TURN_BYTES;
        loop {
            if self.turn_bytes >= turn_ends {
                // Others are waiting for this thread; nothing here waits.
                limits.clear(self.patience.direction);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            ready!(self.poll_splice(cx, from, to, limits))?;
            let starved = self.gather(buffer)?;
            if self.poll_flush(cx, buffer, to).map_err(|e| PumpError::Write(e.kind()))?.is_pending()
            {
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
                // The receiver gets what there is, before it is known when more comes.
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
            Poll::Ready(Err(e)) => return Poll::Ready(Err(PumpError::Read(e.kind()))),
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

    /// Starts the present wait's clock anew.
    pub(crate) fn wait_anew(&mut self, limits: &Limits) {
        let on = self.unblock();
        if on != Blocked::No {
            self.wait(on, limits);
        }
    }

    /// Ends the present wait, and returns what it was for.
    fn unblock(&mut self) -> Blocked {
        self.waited_for_sender = self.waited_for_sender();
        std::mem::replace(&mut self.blocked, Blocked::No)
    }

    /// Starts the clock once per wait, not at every poll.
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
