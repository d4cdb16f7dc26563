//! A listener at run time: it outlives configurations by its name, and its connections outlive it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use decide::Published;
use model::{ListenerId, Moment, Snapshot};

/// What all workers know of a listener.
pub(crate) struct LiveListener {
    name: Arc<str>,
    /// Client connections that came by it, and by those that it replaced.
    pub(crate) connections: Arc<AtomicUsize>,
    closing: AtomicBool,
    /// When its tunnels end, if another of its name has replaced it.
    tunnels_end: OnceLock<Moment>,
    /// The last configuration that it was part of: what its connections end under when there is
    /// no newer one.
    last: Mutex<Arc<Published>>,
}

impl LiveListener {
    /// A listener of `published`.
    pub(crate) fn new(name: Arc<str>, published: Arc<Published>) -> LiveListener {
        LiveListener {
            name,
            connections: Arc::default(),
            closing: AtomicBool::new(false),
            tunnels_end: OnceLock::new(),
            last: Mutex::new(published),
        }
    }

    /// The one that replaces it, with other security settings in `published`. Its connections count
    /// towards the limit of that.
    pub(crate) fn successor(&self, published: Arc<Published>) -> LiveListener {
        let new = LiveListener::new(Arc::clone(&self.name), published);
        LiveListener { connections: Arc::clone(&self.connections), ..new }
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

    /// One of its name has replaced it on the same sockets, with other security settings: its
    /// connections end after the exchange they are in, tunnels at `tunnels_end`.
    pub(crate) fn replace(&self, tunnels_end: Moment) {
        // It is replaced once, by whoever removes it from the list of all.
        let _ = self.tunnels_end.set(tunnels_end);
        self.close();
    }

    /// Whether it has been replaced because of its security settings.
    pub(crate) fn is_replaced(&self) -> bool {
        self.tunnels_end.get().is_some()
    }

    /// When its tunnels end, if they do.
    pub(crate) fn tunnels_end(&self) -> Option<Moment> {
        self.tunnels_end.get().copied()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// The last configuration that it was part of.
    pub(crate) fn last(&self) -> Arc<Published> {
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
