//! What waits for its turn, in bounded memory. Producers take no lock that the sender holds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use otlp::{LogEvent, Signal};
use tokio::sync::Notify;

/// Memory for the lines of each kind.
const LINES_MAX_BYTES: usize = 3_500_000;
/// Memory for events of the program's log. Together with both kinds of lines: 8 MB.
const EVENTS_MAX_BYTES: usize = 1_000_000;
/// Maximum number of batches, or of events.
const ITEMS_MAX: usize = 4096;
/// From this on, the sender is woken.
const WAKE_BYTES: usize = 256_000;

/// What lines become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Spans.
    Spans,
    /// Log records.
    Access,
}

/// The queues of all producers.
#[derive(Debug)]
pub(crate) struct Queues {
    spans: Queue<Vec<u8>>,
    access: Queue<Vec<u8>>,
    events: Queue<LogEvent>,
    accepts_events: AtomicBool,
    /// Woken when much waits.
    pub(crate) much_waits: Notify,
}

impl Default for Queues {
    fn default() -> Queues {
        Queues {
            spans: Queue::new(LINES_MAX_BYTES),
            access: Queue::new(LINES_MAX_BYTES),
            events: Queue::new(EVENTS_MAX_BYTES),
            accepts_events: AtomicBool::new(false),
            much_waits: Notify::new(),
        }
    }
}

impl Queues {
    /// Whether events are accepted.
    pub(crate) fn accept_events(&self, accept: bool) {
        self.accepts_events.store(accept, Relaxed);
    }

    pub(crate) fn accepts_events(&self) -> bool {
        self.accepts_events.load(Relaxed)
    }

    /// Adds lines; returns them if there is no room.
    pub(crate) fn put_lines(&self, kind: Lines, mut lines: Vec<u8>) -> Result<(), Vec<u8>> {
        // Workers hand over buffers with room for many more.
        lines.shrink_to_fit();
        let bytes = lines.len();
        let waiting = self.lines(kind).put(lines, bytes)?;
        if waiting >= WAKE_BYTES {
            self.much_waits.notify_one();
        }
        Ok(())
    }

    /// Adds an event; returns whether there was room.
    pub(crate) fn put_event(&self, event: LogEvent) -> bool {
        let fields = event.fields.iter().map(|(name, value)| name.len() + value.len() + 48);
        let bytes = 128 + event.message.len() + event.target.len() + fields.sum::<usize>();
        self.events.put(event, bytes).is_ok()
    }

    /// Takes the oldest lines, about so many bytes of them.
    pub(crate) fn take_lines(&self, kind: Lines, bytes_max: usize) -> Vec<u8> {
        self.lines(kind).take(bytes_max).concat()
    }

    /// Takes the oldest events, about so many bytes of them.
    pub(crate) fn take_events(&self, bytes_max: usize) -> Vec<LogEvent> {
        self.events.take(bytes_max)
    }

    /// Returns whether more waits of a signal than the sender should let wait.
    pub(crate) fn has_much(&self, signal: Signal) -> bool {
        let (access, events) = (self.access.waiting(), self.events.waiting());
        match signal {
            Signal::Traces => self.spans.waiting() >= WAKE_BYTES,
            Signal::Logs => access.max(events) >= WAKE_BYTES,
            Signal::Metrics => false,
        }
    }

    fn lines(&self, kind: Lines) -> &Queue<Vec<u8>> {
        match kind {
            Lines::Spans => &self.spans,
            Lines::Access => &self.access,
        }
    }
}

/// A channel that is bounded by the memory that its items take, too.
#[derive(Debug)]
struct Queue<T> {
    sender: SyncSender<(T, usize)>,
    /// Only the sender's thread takes from it.
    receiver: Mutex<Receiver<(T, usize)>>,
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl<T> Queue<T> {
    fn new(bytes_max: usize) -> Queue<T> {
        let (sender, receiver) = sync_channel(ITEMS_MAX);
        Queue { sender, receiver: Mutex::new(receiver), bytes: AtomicUsize::new(0), bytes_max }
    }

    /// Adds an item and returns how many bytes wait, or returns the item if there is no room.
    fn put(&self, item: T, bytes: usize) -> Result<usize, T> {
        let waiting = self.bytes.fetch_add(bytes, Relaxed) + bytes;
        let sent = if waiting > self.bytes_max { Err(item) } else { self.try_send(item, bytes) };
        match sent {
            Ok(()) => Ok(waiting),
            Err(item) => {
                self.bytes.fetch_sub(bytes, Relaxed);
                Err(item)
            }
        }
    }

    fn try_send(&self, item: T, bytes: usize) -> Result<(), T> {
        use std::sync::mpsc::TrySendError::{Disconnected, Full};
        let sent = self.sender.try_send((item, bytes));
        sent.map_err(|(Full((item, _)) | Disconnected((item, _)))| item)
    }

    /// Returns how many bytes wait.
    fn waiting(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Takes the oldest items until they have so many bytes.
    fn take(&self, bytes_max: usize) -> Vec<T> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut taken, mut taken_bytes) = (Vec::new(), 0);
        while taken_bytes < bytes_max {
            let Ok((item, bytes)) = receiver.try_recv() else { break };
            self.bytes.fetch_sub(bytes, Relaxed);
            taken_bytes += bytes;
            taken.push(item);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_bound_come_back_and_the_oldest_are_taken_first() {
        let queues = Queues::default();
        let line = |n: u8| vec![n; 1_000_000];
        for n in 0..3 {
            queues.put_lines(Lines::Spans, line(n)).unwrap();
        }
        assert!(queues.put_lines(Lines::Spans, line(3)).is_err());
        queues.put_lines(Lines::Access, line(4)).unwrap();
        assert_eq!(queues.take_lines(Lines::Spans, 1_000_001), [line(0), line(1)].concat());
        assert_eq!(queues.take_lines(Lines::Spans, 10), line(2));
        assert!(queues.take_lines(Lines::Spans, 10).is_empty());
        queues.put_lines(Lines::Spans, line(5)).unwrap();
        assert_eq!(queues.spans.bytes.load(Relaxed), 1_000_000);
    }

    #[test]
    fn neither_many_small_batches_nor_many_events_take_more_memory() {
        let queues = Queues::default();
        let taken = (0..10_000).filter(|_| queues.put_lines(Lines::Spans, vec![b'x'; 10]).is_ok());
        assert_eq!(taken.count(), ITEMS_MAX);
        let event = LogEvent {
            unix_us: 0,
            severity: otlp::Severity::Info,
            target: String::new(),
            message: "x".repeat(10_000),
            fields: Vec::new(),
        };
        let taken = (0..1_000).filter(|_| queues.put_event(event.clone())).count();
        assert!((90..=100).contains(&taken), "{taken}");
        assert_eq!(queues.take_events(usize::MAX).len(), taken);
        assert_eq!(queues.events.bytes.load(Relaxed), 0);
    }
}
