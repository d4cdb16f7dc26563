//! Access lines on their way out: gathered per worker, handed over in batches, written by a
//! thread of their own. A writer that cannot keep up costs lines, which are counted, never time.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use model::AccessLog;

/// A batch is handed over when it is this long, or by the worker's clock.
const BATCH_BYTES: usize = 32 * 1024;
/// Batches that wait for the writer, all workers together: 8 MiB of lines.
const BATCHES_MAX: usize = 256;

/// Where the workers' batches go.
#[derive(Clone)]
pub struct AccessSink(Option<SyncSender<Vec<u8>>>);

impl AccessSink {
    /// Opens the log and starts its writer. The thread ends when the last sink is dropped; join
    /// it then, so that the last lines are written.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub fn open(log: &AccessLog) -> io::Result<(AccessSink, Option<thread::JoinHandle<()>>)> {
        let target: Box<dyn Write + Send> = match log {
            AccessLog::Off => return Ok((AccessSink(None), None)),
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(append(path)?),
        };
        let (sender, receiver) = sync_channel(BATCHES_MAX);
        let writer = thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_batches(target, &receiver))?;
        Ok((AccessSink(Some(sender)), Some(writer)))
    }
}

fn append(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn write_batches(mut target: Box<dyn Write + Send>, batches: &Receiver<Vec<u8>>) {
    let mut failed = false;
    for batch in batches {
        let result = target.write_all(&batch).and_then(|()| target.flush());
        // A full disk or a closed pipe must not stop the traffic; it is said once.
        if let Err(error) = &result
            && !failed
        {
            tracing::warn!(%error, "cannot write the access log; lines are lost");
        }
        failed = result.is_err();
    }
}

/// A worker's lines that are not handed over yet.
pub(crate) struct AccessBatch {
    sink: AccessSink,
    lines: RefCell<Vec<u8>>,
    count: Cell<u64>,
    dropped: Cell<u64>,
}

impl AccessBatch {
    pub(crate) fn new(sink: AccessSink) -> AccessBatch {
        AccessBatch { sink, lines: RefCell::default(), count: Cell::new(0), dropped: Cell::new(0) }
    }

    /// Appends one line, written by `write`, newline included.
    pub(crate) fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.sink.0.is_none() {
            return;
        }
        let full = {
            let mut lines = self.lines.borrow_mut();
            write(&mut lines);
            lines.len() >= BATCH_BYTES
        };
        self.count.set(self.count.get() + 1);
        if full {
            self.flush();
        }
    }

    /// Hands over what there is.
    pub(crate) fn flush(&self) {
        let Some(sender) = &self.sink.0 else { return };
        let mut lines = self.lines.borrow_mut();
        if lines.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut *lines, Vec::with_capacity(BATCH_BYTES + 1024));
        let count = self.count.replace(0);
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sender.try_send(batch) {
            self.dropped.set(self.dropped.get() + count);
        }
    }

    /// Lines lost since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.replace(0)
    }
}
