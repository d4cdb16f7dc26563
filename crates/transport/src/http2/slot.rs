//! What the task of an exchange and that of its connection share about one stream.

use std::cell::Cell;
use std::task::{Context, Poll, Waker};

use tokio::io::ReadBuf;

use super::StreamError;

/// Storage of a released stream up to this size is kept for the next one.
const KEPT_MAX_BYTES: usize = 4096;
/// Storage of an open stream up to this size is kept when everything has been read, unless memory is
/// short.
const READ_KEPT_MAX_BYTES: usize = 128 * 1024;

/// With more memory for received bytes on a thread, the windows of its connections become small.
pub(super) const HELD_MAX_BYTES: usize = 64 << 20;

thread_local! {
    /// Memory for received bytes of all streams of this thread.
    static HELD_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Returns the memory that holds received bytes of all streams of this thread, or is kept for them.
pub(super) fn held_bytes() -> usize {
    HELD_BYTES.get()
}

/// One stream, as its exchange sees it.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) received: Received,
    /// The message has ended.
    pub(super) ended: bool,
    /// Why the stream has ended early.
    pub(super) failed: Option<StreamError>,
    /// Trailer lines that were received.
    pub(super) trailers: Vec<u8>,
    /// The start of a head that is being written.
    pub(super) head: Vec<u8>,
    /// The sending side has ended.
    pub(super) sent: bool,
    /// The part of the connection's send window that is reserved for the body, in bytes.
    pub(super) promised: i64,
    pub(super) reader: Waiter,
    pub(super) writer: Waiter,
}

impl Slot {
    /// Ready when there is something to read, the end, or an error.
    pub(super) fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        match self.failed {
            _ if self.is_readable() => Poll::Ready(Ok(())),
            Some(why) => Poll::Ready(Err(why)),
            None => {
                self.reader.wait(cx);
                Poll::Pending
            }
        }
    }

    /// Returns whether there is something to read, or the end.
    pub(super) fn is_readable(&self) -> bool {
        self.received.unread() > 0 || self.ended
    }

    /// Returns whether nothing more will be read, including trailers.
    pub(super) fn is_over(&self) -> bool {
        self.ended && self.received.unread() == 0 && self.trailers.is_empty()
    }

    /// Ends the stream early, unless both its messages are complete or it has ended already.
    pub(super) fn fail(&mut self, why: StreamError) {
        if !(self.ended && self.sent) {
            self.failed.get_or_insert(why);
        }
        self.reader.wake();
        self.writer.wake();
    }

    /// Prepares the slot for another stream. Returns what was reserved of the send window.
    pub(super) fn reset(&mut self) -> i64 {
        let promised = self.promised;
        let Slot { mut received, trailers, head, reader, writer, .. } = std::mem::take(self);
        received.clear();
        *self = Slot {
            received,
            trailers: kept(trailers, KEPT_MAX_BYTES),
            head: kept(head, KEPT_MAX_BYTES),
            // Mostly the next stream is served by the same task.
            reader: reader.idle(),
            writer: writer.idle(),
            ..Slot::default()
        };
        promised
    }
}

/// Received bytes that may not have been read: heads first, then content.
#[derive(Default)]
pub(super) struct Received {
    /// Those before `read` have been read.
    bytes: Vec<u8>,
    read: usize,
    /// How many of the unread bytes are heads, which flow control does not cover.
    heads: usize,
}

impl Received {
    /// Appends the text of a head.
    pub(super) fn put_head(&mut self, text: &[u8]) {
        self.heads += text.len();
        self.put(text);
    }

    /// Appends content.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.read > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        let before = self.bytes.capacity();
        self.bytes.extend_from_slice(bytes);
        HELD_BYTES.set(HELD_BYTES.get() + self.bytes.capacity() - before);
    }

    fn unread(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Reads into `buf`; returns how much content was read.
    pub(super) fn read(&mut self, buf: &mut ReadBuf<'_>) -> usize {
        let count = self.unread().min(buf.remaining());
        buf.put_slice(&self.bytes[self.read..self.read + count]);
        self.read += count;
        let of_heads = self.heads.min(count);
        self.heads -= of_heads;
        if self.unread() == 0 {
            let is_short = held_bytes() > HELD_MAX_BYTES / 2;
            self.empty(if is_short { KEPT_MAX_BYTES } else { READ_KEPT_MAX_BYTES });
        }
        count - of_heads
    }

    fn clear(&mut self) {
        self.empty(KEPT_MAX_BYTES);
        self.heads = 0;
    }

    /// Forgets all bytes; frees the storage if it is larger than `max` bytes.
    fn empty(&mut self, max: usize) {
        let before = self.bytes.capacity();
        self.bytes = kept(std::mem::take(&mut self.bytes), max);
        self.read = 0;
        HELD_BYTES.set(HELD_BYTES.get() + self.bytes.capacity() - before);
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        HELD_BYTES.set(HELD_BYTES.get() - self.bytes.capacity());
    }
}

/// Returns the storage without its contents; none if it is larger than `max` bytes.
fn kept(mut bytes: Vec<u8>, max: usize) -> Vec<u8> {
    bytes.clear();
    if bytes.capacity() > max { Vec::new() } else { bytes }
}

/// A task that may be waiting.
#[derive(Default)]
pub(super) struct Waiter {
    waker: Option<Waker>,
    waits: bool,
}

impl Waiter {
    /// Registers the current task.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.waits = true;
        match &self.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => self.waker = Some(cx.waker().clone()),
        }
    }

    /// Wakes the task if it waits.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.waits)
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }

    /// Marks the task as running.
    pub(super) fn runs(&mut self) {
        self.waits = false;
    }

    fn idle(self) -> Waiter {
        Waiter { waits: false, ..self }
    }
}
