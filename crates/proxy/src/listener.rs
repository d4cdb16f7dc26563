//! A listener at run time: it outlives configurations by its name, and its connections outlive it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use decide::Published;
use model::{ListenerId, Snapshot};

/// What all workers know of a listener.
pub(crate) struct LiveListener {
    name: Arc<str>,
    /// Client connections that came by it.
    pub(crate) connections: AtomicUsize,
    closing: AtomicBool,
    /// The last configuration that it was part of: what its connections end under when there is
    /// no newer one.
    last: Mutex<Arc<Published>>,
}

impl LiveListener {
    /// A listener of `published`.
    pub(crate) fn new(name: Arc<str>, published: Arc<Published>) -> LiveListener {
        LiveListener {
            name,
            connections: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            last: Mutex::new(published),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its place in `snapshot`, if it has one.
    pub(crate) fn place_in(&self, snapshot: &Snapshot) -> Option<ListenerId> {
        let index = snapshot.listeners.iter().position(|listener| *listener.name == *self.name)?;
        Some(ListenerId(index as u32))
    }

    /// It stays in `published`.
    pub(crate) fn stay(&self, published: &Arc<Published>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(published);
    }

    /// It has been removed: its connections end after the exchange they are in.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// The last configuration that it was part of.
    pub(crate) fn last(&self) -> Arc<Published> {
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
