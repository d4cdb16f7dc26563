//! Tells the control loop that something happened to the slots that the fleet shares, once until it looks.

use std::fmt;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Arc, OnceLock};

use crate::sync::AtomicBool;

/// Whether there is news, and the function to call.
///
/// Both sides exchange the flag, so one of them sees the other: either the reader sees all that was
/// written before the news, or the function is called again.
#[derive(Default)]
pub(crate) struct News {
    is_pending: AtomicBool,
    tell: OnceLock<Arc<dyn Fn() + Send + Sync>>,
}

impl News {
    /// Sets the function, once; later calls have no effect. It is called at once if there is news already.
    pub(crate) fn set(&self, tell: Arc<dyn Fn() + Send + Sync>) {
        let is_first = self.tell.set(Arc::clone(&tell)).is_ok();
        // Either this sees the flag, or the thread that sets it sees the function.
        if is_first && self.is_pending.fetch_or(false, AcqRel) {
            tell();
        }
    }

    /// Records news, and calls the function unless that was done since the last [`News::take`].
    pub(crate) fn note(&self) {
        if !self.is_pending.swap(true, AcqRel)
            && let Some(tell) = self.tell.get()
        {
            tell();
        }
    }

    /// Returns whether there was news. The next news causes another call.
    pub(crate) fn take(&self) -> bool {
        self.is_pending.swap(false, AcqRel)
    }
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").field("is_pending", &self.is_pending).finish_non_exhaustive()
    }
}
