//! The state of the control loop that other threads can read: the probe plan, probe results, and
//! resolved names.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use health::report::{Endpoint, Report};
use health::verdict::ProbeEvent;
use model::histogram::{HistogramTotals, SharedHistogram};
use model::{Address, PublishedRoute};

use crate::discover::{Discovered, SharedTags, SourceState, TagsState};
use crate::fleet::{FleetState, Leaving, Loads, Shared as SharedFleet};
use crate::probe::{Heard, What};
use crate::register::{RegistrationState, Registrations};

/// Probe statistics of one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Number of finished probes.
    pub ended: u64,
    /// Number of failed probes: no response within the longest timeout of any service, a broken
    /// connection, an unexpected status.
    pub failed: u64,
    /// Total duration of finished probes.
    pub time: Duration,
    /// Duration of the last one.
    pub last: Duration,
}

/// Written by the control loop, read by any thread at any time.
#[derive(Debug, Default)]
pub struct Status {
    plan: ArcSwap<Report>,
    /// By probed address; those no longer in the plan are dropped.
    probed: Mutex<BTreeMap<Address, Probed>>,
    discovered: ArcSwap<Vec<Discovered>>,
    /// By service.
    sources: Mutex<BTreeMap<Arc<str>, SourceState>>,
    registrations: Arc<Registrations>,
    tags: Arc<SharedTags>,
    fleet: Arc<SharedFleet>,
    loads: Arc<Loads>,
    leaving: Arc<Leaving>,
    propagation: SharedHistogram,
    all_tried: Mutex<bool>,
    tried: Condvar,
}

impl Status {
    /// Returns the probe plan as it runs.
    pub fn plan(&self) -> Arc<Report> {
        self.plan.load_full()
    }

    /// Returns the probe statistics by address.
    pub fn probed(&self) -> BTreeMap<Address, Probed> {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the state of each server name, sorted.
    pub fn discovered(&self) -> Arc<Vec<Discovered>> {
        self.discovered.load_full()
    }

    /// Returns the state of each service's source, sorted by service.
    pub fn sources(&self) -> Vec<SourceState> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.values().cloned().collect()
    }

    /// Returns how long answers of sources took from their arrival until all workers used them, for those that
    /// changed servers.
    pub fn propagation(&self) -> HistogramTotals {
        self.propagation.totals()
    }

    /// Waits until every name and every source has been asked at least once, successfully or not, but no longer than
    /// `max`. Returns whether all were. After the start, only those that the prepared configuration adds are waited for.
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

    /// Counts a probe of this process, if it has ended.
    pub(crate) fn count(&self, heard: &Heard) {
        let What::Own(ProbeEvent::Done { elapsed, result }) = heard.what else { return };
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let probed = probed.entry(heard.address).or_default();
        probed.ended += 1;
        probed.failed += u64::from(result.is_err());
        probed.time += elapsed;
        probed.last = elapsed;
    }

    pub(crate) fn set_discovered(&self, discovered: Vec<Discovered>) {
        self.discovered.store(Arc::new(discovered));
    }

    /// Notes how long an answer of a source took from its arrival until all workers use it.
    pub(crate) fn note_propagation(&self, took: Duration) {
        self.propagation.record(took);
    }

    pub(crate) fn set_source(&self, state: SourceState) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(Arc::clone(&state.service), state);
    }

    pub(crate) fn keep_sources(&self, services: impl Fn(&str) -> bool) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|service, _| services(service));
    }

    /// Returns the entries of listeners in Consul, sorted by listener.
    pub fn registrations(&self) -> Vec<RegistrationState> {
        self.registrations.all()
    }

    /// Returns the routes that services publish in Consul's tags, and how their source is; `None`: they publish none.
    pub fn tags(&self) -> Option<TagsState> {
        self.tags.state()
    }

    /// Returns the routes alone: the same allocation as before if they have not changed.
    pub fn published_routes(&self) -> Arc<Vec<PublishedRoute>> {
        self.tags.published()
    }

    /// Returns the fleet as this member sees it; `None` without a fleet.
    pub fn fleet(&self) -> Option<Arc<FleetState>> {
        self.fleet.get()
    }

    /// Returns the loads of services, which the members of a fleet share.
    pub fn loads(&self) -> &Arc<Loads> {
        &self.loads
    }

    /// Returns the servers that are about to be removed, which the members of a fleet share.
    pub fn leaving(&self) -> &Arc<Leaving> {
        &self.leaving
    }

    /// Returns the fleet, for the loop to write.
    pub(crate) fn shared_fleet(&self) -> Arc<SharedFleet> {
        Arc::clone(&self.fleet)
    }

    /// Returns the routes, for the loop to write.
    pub(crate) fn shared_tags(&self) -> Arc<SharedTags> {
        Arc::clone(&self.tags)
    }

    /// Returns the entries, for the loop to write.
    pub(crate) fn shared_registrations(&self) -> Arc<Registrations> {
        Arc::clone(&self.registrations)
    }

    pub(crate) fn set_all_tried(&self, all_tried: bool) {
        *self.all_tried.lock().unwrap_or_else(PoisonError::into_inner) = all_tried;
        if all_tried {
            self.tried.notify_all();
        }
    }
}
