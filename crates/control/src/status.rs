//! What the control loop lets other threads read: the probe plan, how its probes went, and the
//! names it resolved.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use health::report::{Endpoint, Report};
use health::verdict::ProbeEvent;

use crate::discover::Discovered;
use crate::probe::Heard;

/// How the probes of one address went so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Probes that ended.
    pub ended: u64,
    /// Of these, those that failed: no answer in the time of the most patient service, a
    /// connection that broke, a status that was not expected.
    pub failed: u64,
    /// How long those that ended took together.
    pub time: Duration,
    /// How long the last one took.
    pub last: Duration,
}

/// Written by the control loop, read by anyone at any time.
#[derive(Debug, Default)]
pub struct Status {
    plan: ArcSwap<Report>,
    /// By the address that is probed; those that are no longer in the plan are forgotten.
    probed: Mutex<BTreeMap<SocketAddr, Probed>>,
    discovered: ArcSwap<Vec<Discovered>>,
    all_tried: Mutex<bool>,
    tried: Condvar,
}

impl Status {
    /// The probe plan as it runs.
    pub fn plan(&self) -> Arc<Report> {
        self.plan.load_full()
    }

    /// How the probes of each address went, by address.
    pub fn probed(&self) -> BTreeMap<SocketAddr, Probed> {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        probed.retain(|address, _| {
            plan.rows.binary_search_by(|row| row.endpoint.cmp(&Endpoint::Address(*address))).is_ok()
        });
        drop(probed);
        self.plan.store(Arc::new(plan));
    }

    /// Counts a probe, if it has ended.
    pub(crate) fn count(&self, heard: &Heard) {
        let ProbeEvent::Done { elapsed, result } = heard.event else { return };
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let probed = probed.entry(heard.address).or_default();
        probed.ended += 1;
        probed.failed += u64::from(result.is_err());
        probed.time += elapsed;
        probed.last = elapsed;
    }

    pub(crate) fn set_discovered(&self, discovered: Vec<Discovered>, all_tried: bool) {
        self.discovered.store(Arc::new(discovered));
        *self.all_tried.lock().unwrap_or_else(PoisonError::into_inner) = all_tried;
        if all_tried {
            self.tried.notify_all();
        }
    }
}
