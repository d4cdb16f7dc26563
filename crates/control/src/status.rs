//! What the control loop lets other threads read: the probe plan and the names it resolved.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use health::report::Report;

use crate::discover::Discovered;

/// Written by the control loop, read by anyone at any time.
#[derive(Debug, Default)]
pub struct Status {
    plan: ArcSwap<Report>,
    discovered: ArcSwap<Vec<Discovered>>,
    all_tried: Mutex<bool>,
    tried: Condvar,
}

impl Status {
    /// The probe plan as it runs.
    pub fn plan(&self) -> Arc<Report> {
        self.plan.load_full()
    }

    /// Names of servers and what is known of them, sorted.
    pub fn discovered(&self) -> Arc<Vec<Discovered>> {
        self.discovered.load_full()
    }

    /// Waits until every name has been looked up at least once, well or not, but no longer than
    /// `max`. Returns whether it was so. For start-up, before clients are let in.
    pub fn wait_resolved(&self, max: Duration) -> bool {
        let tried = self.all_tried.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.tried.wait_timeout_while(tried, max, |tried| !*tried);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn set_plan(&self, plan: Report) {
        self.plan.store(Arc::new(plan));
    }

    pub(crate) fn set_discovered(&self, discovered: Vec<Discovered>, all_tried: bool) {
        self.discovered.store(Arc::new(discovered));
        *self.all_tried.lock().unwrap_or_else(PoisonError::into_inner) = all_tried;
        if all_tried {
            self.tried.notify_all();
        }
    }
}
