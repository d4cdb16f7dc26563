//! Access lines on their way out: gathered per worker, handed over in batches, written by a
//! thread of their own. A writer that cannot keep up costs lines, which are counted, never time.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use model::AccessLog;

/// A batch is handed over when it is this long, or by the worker's clock.
const BATCH_BYTES: usize = 32 * 1024;
/// Batches that wait for the writer, all workers together: 8 MiB of lines.
const ORDERS_MAX: usize = 256;

/// How long a writer may take to notice that it is to write elsewhere.
const REDIRECT_MAX: Duration = Duration::from_secs(1);
/// How often it is tried meanwhile.
const REDIRECT_EVERY: Duration = Duration::from_millis(5);

/// How long the last lines may take to be written.
const FINISH_MAX: Duration = Duration::from_secs(1);

/// Where the workers' batches go.
#[derive(Clone)]
pub struct AccessSink(SyncSender<Order>);

/// What the writer is told.
enum Order {
    Write(Vec<u8>),
    /// From here on, lines go elsewhere.
    Redirect(AccessTarget),
}

/// An opened access log.
pub struct AccessTarget(Box<dyn Write + Send>);

impl AccessTarget {
    /// Opens what a configuration names. `owner`: whom this process, still root, is about to become
    /// (user and group ids); a new file is theirs then, and no link is followed.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub fn open(log: &AccessLog, owner: Option<(u32, u32)>) -> io::Result<AccessTarget> {
        Ok(AccessTarget(match log {
            AccessLog::Off => Box::new(io::sink()),
            AccessLog::Stdout => Box::new(io::stdout()),
            AccessLog::File(path) => Box::new(os::log_file::append(path, owner)?),
        }))
    }
}

impl AccessSink {
    /// Starts the log's writer, whose thread ends when the last sink is dropped.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub fn start(target: AccessTarget) -> io::Result<(AccessSink, AccessWriter)> {
        let (sender, receiver) = sync_channel(ORDERS_MAX);
        let writer = thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_batches(target, &receiver))?;
        Ok((AccessSink(sender), AccessWriter(writer)))
    }

    /// Lets lines go to `target` from here on: a log file that was renamed is left for a new one of
    /// its name, or the configuration names another. Waits a second at most; false: the writer is
    /// stuck, and writes where it wrote before.
    pub fn redirect(&self, target: AccessTarget) -> bool {
        let deadline = os::clock::now() + REDIRECT_MAX;
        let mut order = Order::Redirect(target);
        loop {
            match self.0.try_send(order) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) if os::clock::now() >= deadline => return false,
                Err(TrySendError::Full(back)) => order = back,
            }
            thread::park_timeout(REDIRECT_EVERY);
        }
    }
}

/// The thread that writes.
pub struct AccessWriter(thread::JoinHandle<()>);

impl AccessWriter {
    /// Waits until the last lines are written, once every sink is dropped; a second at most, since
    /// whoever reads a pipe may have stopped reading for good. Then the thread is left to itself:
    /// it ends with the process. False: lines are lost, which is said in the log.
    pub fn finish(self) -> bool {
        let deadline = os::clock::now() + FINISH_MAX;
        while !self.0.is_finished() && os::clock::now() < deadline {
            thread::park_timeout(REDIRECT_EVERY);
        }
        if !self.0.is_finished() {
            tracing::error!("the reader of the access log is stalled; the last lines are lost");
            return false;
        }
        if self.0.join().is_err() {
            tracing::error!("the access log's writer thread panicked");
            return false;
        }
        true
    }
}

fn write_batches(mut target: AccessTarget, orders: &Receiver<Order>) {
    let mut failed = false;
    for order in orders {
        let batch = match order {
            Order::Write(batch) => batch,
            Order::Redirect(next) => {
                target = next;
                failed = false;
                continue;
            }
        };
        let result = target.0.write_all(&batch).and_then(|()| target.0.flush());
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
        let mut lines = self.lines.borrow_mut();
        if lines.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut *lines, Vec::with_capacity(BATCH_BYTES + 1024));
        let count = self.count.replace(0);
        if self.sink.0.try_send(Order::Write(batch)).is_err() {
            self.dropped.set(self.dropped.get() + count);
        }
    }

    /// Lines lost since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_where_the_log_is_by_then() {
        let folder = std::env::temp_dir().join(format!("weir-access-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (log, old) = (folder.join("access.log"), folder.join("access.log.1"));
        let open = |log: &AccessLog| AccessTarget::open(log, None).unwrap();
        let (sink, writer) = AccessSink::start(open(&AccessLog::File(log.clone()))).unwrap();
        let batch = AccessBatch::new(sink.clone());
        let line = |text: &str| {
            batch.line(|out| out.extend(text.bytes()));
            batch.flush();
        };
        line("one\n");
        // As logrotate does it.
        std::fs::rename(&log, &old).unwrap();
        line("two\n");
        assert!(sink.redirect(open(&AccessLog::File(log.clone()))));
        line("three\n");
        assert!(sink.redirect(open(&AccessLog::Off)));
        line("four\n");
        drop((sink, batch));
        assert!(writer.finish());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "three\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_reader_that_stands_still_does_not_hold_up_the_end() {
        let (reader, pipe) = io::pipe().unwrap();
        let (sink, writer) = AccessSink::start(AccessTarget(Box::new(pipe))).unwrap();
        let batch = AccessBatch::new(sink.clone());
        // More than a pipe takes, whatever a system's pages are.
        batch.line(|out| out.resize(4 << 20, b'x'));
        drop((sink, batch));
        assert!(!writer.finish());
        drop(reader);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_before_anything_changes() {
        let log = AccessLog::File("/nonexistent/access.log".into());
        assert!(AccessTarget::open(&log, None).is_err());
    }
}
