//! Memory that reading and replacing configurations leaves behind.

use std::sync::Arc;

use decide::Published;

/// Replaced configurations, and whether freed memory is to be returned to the system.
pub(crate) struct Garbage {
    /// Those that workers may still use.
    replaced: Vec<Arc<Published>>,
    /// A configuration has been read since memory was last returned.
    has_read: bool,
}

impl Garbage {
    /// Starts with what reading the first configuration has left.
    pub(crate) fn new() -> Garbage {
        Garbage { replaced: Vec::new(), has_read: true }
    }

    /// Adds a configuration that has just been replaced.
    pub(crate) fn add(&mut self, replaced: Arc<Published>) {
        self.replaced.push(replaced);
        self.has_read = true;
    }

    /// Returns how many replaced configurations have not been freed.
    pub(crate) fn replaced(&self) -> usize {
        self.replaced.len()
    }

    /// Frees everything that is no longer used; called when there is nothing else to do.
    /// Configurations are dropped here, and not by the worker that used one last: dropping a large
    /// one takes milliseconds, which would hold up the worker's connections.
    pub(crate) fn free(&mut self) {
        let before = self.replaced.len();
        self.replaced.retain(|published| Arc::strong_count(published) > 1);
        if std::mem::take(&mut self.has_read) || self.replaced.len() < before {
            os::memory::release_freed();
        }
    }
}
