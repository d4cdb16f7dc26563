//! Records which tasks want to be polled: the connection, and which of its streams. The worker's
//! loop polls; a wake-up schedules nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Who wants to be polled.
#[derive(Debug, Default)]
pub(super) struct Woken {
    driver: AtomicBool,
    streams: Mutex<Vec<usize>>,
}

impl Woken {
    /// What wakes the connection.
    pub(super) fn driver(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(DriverWake(Arc::clone(self))))
    }

    /// What wakes the stream of that number.
    pub(super) fn stream(self: &Arc<Self>, index: usize) -> Waker {
        Waker::from(Arc::new(StreamWake { index, woken: Arc::clone(self) }))
    }

    /// The stream of that number wants to be polled.
    pub(super) fn push(&self, index: usize) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    /// Streams that want to be polled; afterwards none does.
    pub(super) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the connection wants to be polled; afterwards it does not.
    pub(super) fn take_driver(&self) -> bool {
        self.driver.swap(false, Ordering::Relaxed)
    }

    /// Whether anybody wants to be polled.
    pub(super) fn any(&self) -> bool {
        self.driver.load(Ordering::Relaxed)
            || !self.streams.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

struct DriverWake(Arc<Woken>);

impl Wake for DriverWake {
    fn wake(self: Arc<Self>) {
        self.0.driver.store(true, Ordering::Relaxed);
    }
}

struct StreamWake {
    index: usize,
    woken: Arc<Woken>,
}

impl Wake for StreamWake {
    fn wake(self: Arc<Self>) {
        self.woken.push(self.index);
    }
}
