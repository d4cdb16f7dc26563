//! Writes access log lines: buffered per worker, handed over in batches, written by a dedicated
//! thread. If the writer cannot keep up, lines are dropped and counted; requests never wait for it.

mod syslog;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use model::AccessLog;

use crate::line_batch::{Batch, TakesLines};

use syslog::Collector;

/// Maximum number of batches queued for the writer by all workers together: 8 MiB of lines.
const ORDERS_MAX: usize = 256;

/// How long the writer may take to accept a redirect.
const REDIRECT_MAX: Duration = Duration::from_secs(1);
/// Interval between attempts to hand over a redirect.
const REDIRECT_EVERY: Duration = Duration::from_millis(5);

/// How long writing the last lines may take at shutdown.
const FINISH_MAX: Duration = Duration::from_secs(1);

/// The sending side of the writer's queue, used by the workers.
#[derive(Clone)]
pub struct AccessSink {
    orders: SyncSender<Order>,
    /// Lines that the writer could not write, until a worker counts them.
    lost: Arc<AtomicU64>,
}

/// A message to the writer thread.
enum Order {
    Write(Batch),
    /// Write to this target from now on.
    Redirect(AccessTarget),
}

/// An opened access log.
pub struct AccessTarget(Target);

enum Target {
    Stream(Box<dyn Write + Send>),
    Collector(Box<Collector>),
}

impl AccessTarget {
    /// Opens the file or stream that a configuration names. `owner` is the user and group that this
    /// process, still root, is about to switch to: a new file is created as theirs, and symbolic
    /// links are not followed.
    ///
    /// `collector` is written to if the configuration names the OpenTelemetry collector.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub fn open(
        log: &AccessLog,
        owner: Option<(u32, u32)>,
        collector: impl FnOnce() -> Box<dyn Write + Send>,
    ) -> io::Result<AccessTarget> {
        Ok(AccessTarget(match log {
            AccessLog::Off => Target::Stream(Box::new(io::sink())),
            AccessLog::Stdout => Target::Stream(Box::new(io::stdout())),
            AccessLog::File(path) => Target::Stream(Box::new(os::log_file::append(path, owner)?)),
            // A collector may come later than Weir.
            AccessLog::Syslog(syslog) => Target::Collector(Box::new(Collector::new(syslog))),
            AccessLog::Otlp => Target::Stream(collector()),
        }))
    }
}

impl AccessSink {
    /// Starts the writer thread, which ends when the last sink is dropped.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn start(target: AccessTarget) -> io::Result<(AccessSink, AccessWriter)> {
        let (orders, receiver) = sync_channel(ORDERS_MAX);
        let lost = Arc::default();
        let sink = AccessSink { orders, lost: Arc::clone(&lost) };
        let writer = thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_batches(target.0, &receiver, &lost))?;
        Ok((sink, AccessWriter(writer)))
    }

    /// Writes to `target` from now on, because the log file was rotated or the configuration names
    /// another one. Waits up to a second. Returns false if the writer is blocked and keeps writing
    /// to the old target.
    pub fn redirect(&self, target: AccessTarget) -> bool {
        let deadline = os::clock::now() + REDIRECT_MAX;
        let mut order = Order::Redirect(target);
        loop {
            match self.orders.try_send(order) {
                Ok(()) => return true,
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) if os::clock::now() >= deadline => return false,
                Err(TrySendError::Full(back)) => order = back,
            }
            thread::park_timeout(REDIRECT_EVERY);
        }
    }
}

/// The writer thread.
pub struct AccessWriter(thread::JoinHandle<()>);

impl AccessWriter {
    /// Waits, once every sink is dropped, until the last lines are written; at most a second, since
    /// the reader of a pipe may have stopped for good. After that the thread is detached and ends
    /// with the process. Returns false if lines were lost, which is logged.
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

fn write_batches(mut target: Target, orders: &Receiver<Order>, lost: &AtomicU64) {
    let mut failed = false;
    loop {
        let order = match &mut target {
            Target::Stream(_) => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Target::Collector(collector) => next_order(collector, orders),
        };
        match (order, &mut target) {
            (Ok(Order::Write(batch)), Target::Stream(stream)) => {
                let result = stream.write_all(&batch.lines).and_then(|()| stream.flush());
                // A full disk or a closed pipe must not stop traffic; it is logged once.
                if let Err(error) = &result {
                    lost.fetch_add(batch.count, Relaxed);
                    if !failed {
                        tracing::warn!(%error, "cannot write the access log; lines are lost");
                    }
                }
                failed = result.is_err();
            }
            (Ok(Order::Write(batch)), Target::Collector(collector)) => collector.add(batch),
            (Ok(Order::Redirect(next)), before) => {
                if let Target::Collector(collector) = before {
                    collector.finish();
                    lost.fetch_add(collector.take_lost(), Relaxed);
                }
                target = next.0;
                failed = false;
            }
            (Err(RecvTimeoutError::Timeout), Target::Collector(collector)) => {
                collector.send(os::clock::now());
            }
            (Err(RecvTimeoutError::Disconnected), Target::Collector(collector)) => {
                collector.finish();
                lost.fetch_add(collector.take_lost(), Relaxed);
                return;
            }
            (Err(_), Target::Stream(_)) => return,
        }
        if let Target::Collector(collector) = &mut target {
            lost.fetch_add(collector.take_lost(), Relaxed);
        }
    }
}

/// Returns the next order; the error `Timeout` means that the collector is due. All orders come before
/// it, so that a slow collector never fills the workers' queue.
fn next_order(collector: &Collector, orders: &Receiver<Order>) -> Result<Order, RecvTimeoutError> {
    match collector.wait(os::clock::now()) {
        None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(wait) => orders.recv_timeout(wait),
    }
}

impl TakesLines for AccessSink {
    fn take(&self, batch: Batch) -> bool {
        self.orders.try_send(Order::Write(batch)).is_ok()
    }

    fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_batch::LineBatch;

    /// No configuration here names one.
    fn collector() -> Box<dyn Write + Send> {
        Box::new(io::sink())
    }

    #[test]
    fn lines_go_where_the_log_is_by_then() {
        let folder = std::env::temp_dir().join(format!("weir-access-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (log, old) = (folder.join("access.log"), folder.join("access.log.1"));
        let open = |log: &AccessLog| AccessTarget::open(log, None, collector).unwrap();
        let (sink, writer) = AccessSink::start(open(&AccessLog::File(log.clone()))).unwrap();
        let batch = LineBatch::new(sink.clone());
        let line = |text: &str| {
            batch.line(|_, out| out.extend(text.bytes()));
            batch.flush();
        };
        line("one\n");
        // Rename the file as logrotate does.
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
    fn a_stalled_reader_does_not_delay_shutdown() {
        let (reader, pipe) = io::pipe().unwrap();
        let (sink, writer) =
            AccessSink::start(AccessTarget(Target::Stream(Box::new(pipe)))).unwrap();
        let batch = LineBatch::new(sink.clone());
        // More than any system's pipe buffer holds.
        batch.line(|_, out| out.resize(4 << 20, b'x'));
        drop((sink, batch));
        assert!(!writer.finish());
        drop(reader);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_before_anything_changes() {
        let log = AccessLog::File("/nonexistent/access.log".into());
        assert!(AccessTarget::open(&log, None, collector).is_err());
    }
}
