//! A listener at run time: it outlives configurations by its name, and its connections outlive it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use decide::Published;
use model::{ListenerId, Moment, Snapshot};

/// What all workers know of a listener.
pub(crate) struct LiveListener {
    name: Arc<str>,
    /// Client connections that came by it, and by those that it replaced.
    pub(crate) connections: Arc<AtomicUsize>,
    closing: AtomicBool,
    /// When its tunnels end: once a listener with other security settings has replaced it.
    tunnels_end: OnceLock<Moment>,
    /// Those that it replaced with the same security settings, directly or over others, and that
    /// still have connections: their tunnels end with its own. Weak, so that they go with their
    /// last connection.
    before: Vec<Weak<LiveListener>>,
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
            before: Vec::new(),
            last: Mutex::new(published),
        }
    }

    /// Makes it replace those `before` it. The connections of one that had its name and other
    /// security settings count towards its limit. Tunnels of those with the same security settings
    /// end when it is replaced by one with others.
    pub(crate) fn replacing<'a>(
        mut self,
        before: impl Iterator<Item = &'a Arc<LiveListener>>,
    ) -> LiveListener {
        for old in before {
            if !old.is_replaced() {
                let earlier = old.before.iter().filter(|one| one.strong_count() > 0);
                self.before.extend(earlier.cloned());
                self.before.push(Arc::downgrade(old));
            } else if old.name == self.name {
                self.connections = Arc::clone(&old.connections);
            }
        }
        self
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

    /// A listener with other security settings has replaced it: its connections end after the
    /// exchange they are in, its tunnels and those of the listeners that it replaced at
    /// `tunnels_end`.
    pub(crate) fn replace(&self, tunnels_end: Moment) {
        for old in self.before.iter().filter_map(Weak::upgrade) {
            // Set already if it has two successors, and the other one was replaced earlier.
            let _ = old.tunnels_end.set(tunnels_end);
        }
        // The only call for this listener: it is removed from the list of all with it.
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
