//! Pooled byte buffers: a worker's connections borrow them while bytes move and give them back when
//! idle, so that an idle connection holds none.

use std::io;
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;
use transport::Stream;

use crate::pipes::{self, Lent, Pipes};
use crate::shelf::Shelf;
use crate::turns::Turns;

/// Holds any accepted head, and small bodies, whole.
pub(crate) const SMALL_BYTES: usize = 16 * 1024;
/// Size of the first read where bulk data is expected: enough for most heads and little else, so
/// that the rest can be spliced instead of copied.
const HEAD_BYTES: usize = 2 * 1024;
/// For bulk data: fewer system calls per byte, and still within the cache.
pub(crate) const LARGE_BYTES: usize = pipes::WIDE_BYTES_MIN;

/// A worker's unused buffers and pipes, and the turns of those that use them.
#[derive(Default)]
pub(crate) struct BufferPool {
    small: Shelf<Box<[u8]>>,
    large: Shelf<Box<[u8]>>,
    pipes: Rc<Pipes>,
    pub(crate) turns: Rc<Turns>,
}

impl BufferPool {
    fn shelf(&self, size: usize) -> &Shelf<Box<[u8]>> {
        if size == SMALL_BYTES { &self.small } else { &self.large }
    }

    fn take(&self, size: usize) -> Box<[u8]> {
        self.shelf(size).take().unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    fn give(&self, bytes: Box<[u8]>) {
        self.shelf(bytes.len()).give(bytes);
    }

    /// Frees some of the memory that has not been needed recently.
    pub(crate) fn trim(&self) {
        self.small.trim();
        self.large.trim();
        self.pipes.trim();
    }
}

/// Bytes received and not yet used: a window that moves through storage borrowed from the pool.
pub(crate) struct Buffer {
    pool: Rc<BufferPool>,
    /// `None` while idle.
    storage: Option<Box<[u8]>>,
    start: usize,
    end: usize,
    /// The last read filled all the space it was given.
    filled: bool,
}

impl Buffer {
    /// Returns an empty buffer that holds no memory yet.
    pub(crate) fn new(pool: Rc<BufferPool>) -> Buffer {
        Buffer { pool, storage: None, start: 0, end: 0, filled: false }
    }

    /// Drops the first `count` bytes. Once empty, a small buffer is returned to the pool at once,
    /// so that the next reader gets memory that is still in the CPU cache.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.storage.as_ref().is_some_and(|storage| storage.len() == SMALL_BYTES) {
                self.release();
            }
        }
    }

    /// Drops all bytes and returns the memory.
    pub(crate) fn release(&mut self) {
        self.start = 0;
        self.end = 0;
        if let Some(storage) = self.storage.take() {
            self.pool.give(storage);
        }
    }

    /// Returns whether another read could add bytes.
    pub(crate) fn has_room(&self) -> bool {
        self.storage.as_ref().is_none_or(|s| self.len() < s.len())
    }

    /// Reads once and appends. Returns the count; 0 is the end of the stream. The buffer must have
    /// room.
    pub(crate) fn poll_fill(
        &mut self,
        stream: &Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_fill_up_to(usize::MAX, stream, cx)
    }

    /// Reads a head that bulk data is expected to follow: reads little.
    pub(crate) fn poll_fill_head(
        &mut self,
        stream: &Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_fill_up_to(HEAD_BYTES, stream, cx)
    }

    fn poll_fill_up_to(
        &mut self,
        max: usize,
        stream: &Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.has_room());
        let held_none = self.storage.is_none();
        if held_none && stream.is_watched() {
            // Checked first, so that a connection that only waits holds no memory.
            ready!(stream.poll_read_ready(cx))?;
        }
        let storage = self.storage.get_or_insert_with(|| self.pool.take(SMALL_BYTES));
        if self.end == storage.len() {
            storage.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let room = storage.len() - self.end;
        let mut window = ReadBuf::new(&mut storage[self.end..][..room.min(max)]);
        match stream.poll_read(cx, &mut window) {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                if held_none {
                    self.release();
                }
                return Poll::Pending;
            }
        }
        self.filled = window.remaining() == 0;
        let count = window.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// Returns the turns of transfers on this worker.
    pub(crate) fn turns(&self) -> &Turns {
        &self.pool.turns
    }

    /// Grows the storage once. Returns false if it already has its maximum size.
    pub(crate) fn grow(&mut self) -> bool {
        match self.storage.take() {
            Some(small) if small.len() < LARGE_BYTES => {
                let mut large = self.pool.take(LARGE_BYTES);
                let held = self.end - self.start;
                large[..held].copy_from_slice(&small[self.start..self.end]);
                (self.start, self.end) = (0, held);
                self.pool.give(small);
                self.storage = Some(large);
                true
            }
            unchanged => {
                self.storage = unchanged;
                false
            }
        }
    }

    /// Returns whether even a large buffer was filled by the last read.
    pub(crate) fn is_bulk(&self) -> bool {
        self.filled && self.storage.as_ref().is_some_and(|s| s.len() == LARGE_BYTES)
    }

    /// Returns a pipe for the rest of a body if the last read left no room, which is how bulk data
    /// is recognised. Call when empty.
    pub(crate) fn pipe_for_bulk(&mut self) -> Option<Lent> {
        debug_assert!(self.is_empty());
        let lent = self.filled.then(|| self.pool.pipes.lend()).flatten()?;
        self.release();
        Some(lent)
    }

    /// Switches to a large buffer if the last read left no room, which is how bulk data is
    /// recognised. Call when empty.
    pub(crate) fn enlarge_for_bulk(&mut self) {
        debug_assert!(self.is_empty());
        if self.filled && self.storage.as_ref().is_none_or(|s| s.len() < LARGE_BYTES) {
            self.release();
            self.storage = Some(self.pool.take(LARGE_BYTES));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.storage.as_ref().map_or(&[], |storage| &storage[self.start..self.end])
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.release();
    }
}
