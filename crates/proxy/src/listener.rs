//! A listener at run time. It is identified by name across configurations, and its connections
//! outlive it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use decide::Published;
use model::{ListenerId, Moment, Snapshot};

/// The state of a listener that all workers share.
pub(crate) struct LiveListener {
    name: Arc<str>,
    /// Client connections accepted by it and by the listeners it replaced.
    pub(crate) connections: Arc<AtomicUsize>,
    closing: AtomicBool,
    /// When its tunnels end: set once a listener with other security settings has replaced it.
    tunnels_end: OnceLock<Moment>,
    /// The listeners that it replaced with the same security settings, directly or indirectly, and
    /// that still have connections: their tunnels end with its own. Weak, so that they are freed
    /// with their last connection.
    before: Vec<Weak<LiveListener>>,
    /// The last configuration that contained it: its connections finish under this one if there is
    /// no newer one.
    last: Mutex<Arc<Published>>,
}

impl LiveListener {
    /// Returns a listener of `published`.
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

    /// Makes it replace the listeners `before` it. The connections of one that had its name and
    /// other security settings count towards its limit. Tunnels of those with the same security
    /// settings end when it is replaced by one with others.
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

    /// Returns its index in `snapshot`, if it has one.
    pub(crate) fn place_in(&self, snapshot: &Snapshot) -> Option<ListenerId> {
        let index = snapshot.listeners.iter().position(|listener| *listener.name == *self.name)?;
        Some(ListenerId(index as u32))
    }

    /// Notes that `published` still contains it.
    pub(crate) fn stay(&self, published: &Arc<Published>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(published);
    }

    /// Marks it removed: its connections end after their current exchange.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    /// Marks it replaced by a listener with other security settings: its connections end after
    /// their current exchange; its tunnels, and those of the listeners that it replaced, at
    /// `tunnels_end`.
    pub(crate) fn replace(&self, tunnels_end: Moment) {
        for old in self.before.iter().filter_map(Weak::upgrade) {
            // Already set if it has two successors and the other one was replaced earlier.
            let _ = old.tunnels_end.set(tunnels_end);
        }
        // Set at most once: the listener is removed from the list with this call.
        let _ = self.tunnels_end.set(tunnels_end);
        self.close();
    }

    /// Returns whether it has been replaced because of its security settings.
    pub(crate) fn is_replaced(&self) -> bool {
        self.tunnels_end.get().is_some()
    }

    /// Returns when its tunnels end, if they do.
    pub(crate) fn tunnels_end(&self) -> Option<Moment> {
        self.tunnels_end.get().copied()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Returns the last configuration that contained it.
    pub(crate) fn last(&self) -> Arc<Published> {
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
