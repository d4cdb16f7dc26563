//! Lines that a worker has written and hands over in batches.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

/// Size at which a batch is handed over. The worker's timer hands over smaller ones.
const BATCH_BYTES: usize = 32 * 1024;

/// A batch of lines.
pub(crate) struct Batch {
    pub(crate) lines: Vec<u8>,
    /// How many.
    pub(crate) count: u64,
    /// When it was handed over, since 1970.
    pub(crate) at: Duration,
}

impl Batch {
    /// Returns the memory that it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.capacity() + size_of::<Batch>()
    }
}

/// Receives the lines of exchanges that become traces, in batches. It must not block.
pub type SpanSink = Arc<dyn Fn(Vec<u8>) + Send + Sync>;

/// Takes batches of lines.
pub(crate) trait TakesLines {
    /// Takes a batch without waiting; returns false if it has no room.
    fn take(&self, batch: Batch) -> bool;

    /// Returns the number of taken lines that were lost since the last call.
    fn take_lost(&self) -> u64;
}

impl TakesLines for SpanSink {
    fn take(&self, batch: Batch) -> bool {
        self(batch.lines);
        true
    }

    /// The receiver counts what it drops.
    fn take_lost(&self) -> u64 {
        0
    }
}

/// A worker's lines that have not been handed over yet.
pub(crate) struct LineBatch<S> {
    sink: S,
    lines: RefCell<Vec<u8>>,
    /// Lent to what writes a line.
    spare: RefCell<Vec<u8>>,
    count: Cell<u64>,
    dropped: Cell<u64>,
}

impl<S: TakesLines> LineBatch<S> {
    pub(crate) fn new(sink: S) -> LineBatch<S> {
        LineBatch {
            sink,
            lines: RefCell::default(),
            spare: RefCell::default(),
            count: Cell::new(0),
            dropped: Cell::new(0),
        }
    }

    /// Appends one line, written by `write` into its second argument, newline included. The first may
    /// hold anything in between.
    pub(crate) fn line(&self, write: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        let full = {
            let mut lines = self.lines.borrow_mut();
            write(&mut self.spare.borrow_mut(), &mut lines);
            lines.len() >= BATCH_BYTES
        };
        self.count.set(self.count.get() + 1);
        if full {
            self.flush();
        }
    }

    /// Hands over the buffered lines.
    pub(crate) fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if lines.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut *lines, Vec::with_capacity(BATCH_BYTES + 1024));
        let count = self.count.replace(0);
        let batch = Batch { lines: batch, count, at: os::clock::wall() };
        if !self.sink.take(batch) {
            self.dropped.set(self.dropped.get() + count);
        }
    }

    /// Returns the number of lines dropped since the last call, also those that the writer could not
    /// write for any worker.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.replace(0) + self.sink.take_lost()
    }
}
