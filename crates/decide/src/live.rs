//! A service at run time: its settings, its servers and its queue, and how they change.
//!
//! It keeps its identity by name across configurations, so that a reload never cuts off a request
//! that holds or waits for a slot; its settings are replaced in place. `admission` decides about
//! requests.

use std::collections::HashMap;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, Weak};

use model::{
    Address, AffinityKey, Cause, EndpointRow, EndpointSet, LimitScope, Moment, ServerState,
    ServerTarget, Service, Trial,
};

use crate::change::ServerChange;
use crate::drain::DrainRate;
use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::limits::{Limit, SlotTable, Taker};
use crate::pick::Turn;
use crate::queue::Queue;
use crate::retry::RetryBudget;
use crate::sync::{ArcSwap, AtomicBool, AtomicU64, Fence, Mutex, fence};
use crate::token::affinity_token;
use crate::zones::{Decision, Reason, Tier};

/// A change of the tier from which a service's servers are eligible: failover or failback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierChange {
    /// The service's name.
    pub service: Arc<str>,
    /// The previous tier.
    pub from: Tier,
    /// The new tier.
    pub to: Tier,
    /// The reason for the change.
    pub reason: Reason,
    /// Servers eligible now…
    pub eligible: usize,
    /// …of this many.
    pub total: usize,
}

/// A service at run time.
#[derive(Debug)]
pub struct LiveService {
    name: Arc<str>,
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) endpoints: ArcSwap<Endpoints>,
    /// Changed ahead of `endpoints` by a new configuration: first the limits of all services, then
    /// the servers of each.
    limits: ArcSwap<ServerLimits>,
    pub(crate) queue: Queue,
    retries: RetryBudget,
    pub(crate) turn: Turn,
    trial: Trial,
    drain: Mutex<DrainRate>,
    /// Requests refused because every server and the queue were full.
    pub(crate) refused: AtomicU64,
    /// No longer in the configuration; only requests in progress still refer to it.
    retired: AtomicBool,
    table: Arc<SlotTable>,
    me: Weak<LiveService>,
    /// Locked while the servers change.
    shape: Mutex<Shape>,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) spec: Arc<Service>,
    zone: Option<Arc<str>>,
    /// Key of the tokens in affinity cookies.
    affinity_key: AffinityKey,
}

/// State kept from one change of the servers to the next.
#[derive(Debug, Default)]
struct Shape {
    /// The latest result of service discovery.
    discovered: EndpointSet,
    /// The state of each known server.
    states: HashMap<Address, Arc<ServerState>>,
    /// The limits that were applied last; `None`: none counts.
    limits: Option<Arc<ServerLimits>>,
}

/// The concurrency limits that a service configures.
#[derive(Debug, PartialEq, Eq)]
struct ServerLimits {
    /// Of the servers without a limit of their own; 0: none.
    service: u32,
    /// Whether they hold for all balancers of the fleet together.
    is_shared: bool,
    /// Of the servers with one.
    servers: HashMap<Address, u32>,
}

impl ServerLimits {
    /// Returns the limits of the servers `rows`. A name may resolve to the address of another
    /// server; then the smaller limit counts.
    fn new(spec: &Service, rows: &[EndpointRow]) -> ServerLimits {
        let mut servers = HashMap::new();
        for row in rows {
            if let Some(max) = row.in_flight_max {
                servers
                    .entry(row.address)
                    .and_modify(|it: &mut u32| *it = max.min(*it))
                    .or_insert(max);
            }
        }
        let service = spec.in_flight_max.unwrap_or(0);
        ServerLimits { service, is_shared: is_shared(spec), servers }
    }

    fn of(&self, address: Address) -> Limit {
        let max = self.servers.get(&address).copied().unwrap_or(self.service);
        let is_shared = self.is_shared && max != 0 && !address.is_of_one_machine();
        Limit { max, is_shared }
    }
}

/// Returns whether the limits of a service's servers hold for all balancers of the fleet together.
fn is_shared(spec: &Service) -> bool {
    spec.in_flight_scope == LimitScope::Fleet
}

impl LiveService {
    /// Returns a service without servers; [`LiveService::apply`] adds those of its settings.
    pub(crate) fn new(
        spec: Arc<Service>,
        zone: Option<Arc<str>>,
        affinity_key: AffinityKey,
        table: Arc<SlotTable>,
        first_turn: u64,
    ) -> Arc<LiveService> {
        let mut empty =
            Endpoints::new(Vec::new(), &spec, zone.as_deref(), Tier::OwnZone, Moment::ZERO);
        // An empty tier would make the first servers look like a recovery.
        empty.tier = Tier::OwnZone;
        let limits = ServerLimits::new(&spec, &rows(&spec, &EndpointSet::default()));
        Arc::new_cyclic(|me| LiveService {
            name: Arc::clone(&spec.name),
            settings: ArcSwap::from_pointee(Settings { spec, zone, affinity_key }),
            endpoints: ArcSwap::from_pointee(empty),
            limits: ArcSwap::from_pointee(limits),
            queue: Queue::new(Arc::clone(&table.tickets)),
            retries: RetryBudget::new(),
            turn: Turn::starting_at(first_turn),
            trial: Trial::default(),
            drain: Mutex::default(),
            refused: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            table,
            me: Weak::clone(me),
            shape: Mutex::default(),
        })
    }

    /// Returns its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns its current settings.
    pub fn spec(&self) -> Arc<Service> {
        Arc::clone(&self.settings.load().spec)
    }

    /// Returns its current servers, which of them are eligible, and why.
    pub fn endpoints(&self) -> Arc<Endpoints> {
        self.endpoints.load_full()
    }

    /// Returns its retry budget.
    pub fn retries(&self) -> &RetryBudget {
        &self.retries
    }

    /// Returns the trial in which passive health checking compares its servers. While it runs,
    /// servers are drawn at random (not under `balance = "hash"`: a key belongs to its server).
    pub fn trial(&self) -> &Trial {
        &self.trial
    }

    /// Returns the cause of a request that ends because no server takes new work.
    pub fn cause_without_server(&self) -> Cause {
        // Without a source, a service has no servers at all only if its names never resolved.
        let no_source = self.settings.load().spec.discover.is_none();
        if no_source && self.endpoints.load().all.is_empty() {
            Cause::DnsError
        } else {
            Cause::DestinationUnavailable
        }
    }

    /// Returns how many requests wait for a slot.
    pub fn queue_length(&self) -> u32 {
        self.queue.length()
    }

    /// Returns the slots granted per second while it was full, as last measured; 0.0 before it ever
    /// was.
    pub fn drain_rate(&self, now: Moment) -> f64 {
        self.observe_drain(now).unwrap_or(0.0)
    }

    /// Returns when [`LiveService::refresh`] has work to do although nothing happens (slow start);
    /// `None`: not before something happens.
    pub fn refresh_due(&self) -> Option<Moment> {
        self.endpoints.load().refresh_due
    }

    /// Recomputes which servers are eligible, then serves waiting requests. Called after any change
    /// of a server's health, ejection or administrative state, and when
    /// [`LiveService::refresh_due`] says so. Returns a change of the tier.
    pub fn refresh(&self, now: Moment) -> Option<TierChange> {
        let shape = self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let change = self.replace(self.endpoints.load().all.clone(), now);
        drop(shape);
        self.serve_waiters();
        change
    }

    /// Replaces the whole set of servers with the result of discovery, including those of fixed
    /// address. The state of addresses that stay is kept.
    pub fn set_endpoints(&self, set: EndpointSet, now: Moment) -> Option<TierChange> {
        let mut shape = self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        shape.discovered = set;
        let rows = shape.discovered.rows.clone();
        self.limits.store(Arc::new(ServerLimits::new(&self.settings.load().spec, &rows)));
        let change = self.rebuild(&mut shape, rows, now);
        drop(shape);
        self.serve_waiters();
        change
    }

    /// Stores settings without applying them yet, so that limits shared by several services can be
    /// computed from the new settings of all. Returns whether they differ from those before.
    pub(crate) fn adopt(
        &self,
        spec: &Arc<Service>,
        zone: Option<&Arc<str>>,
        affinity_key: AffinityKey,
    ) -> bool {
        let before = self.settings.load();
        let is_same = (Arc::ptr_eq(&before.spec, spec) || before.spec == *spec)
            && before.zone.as_ref() == zone
            && before.affinity_key == affinity_key;
        if !is_same {
            self.adopt_limits(spec);
            if before.spec.version_field != spec.version_field {
                // What another field stated is not the version.
                self.endpoints().all.iter().for_each(|one| one.state.version.clear());
            }
            let (spec, zone) = (Arc::clone(spec), zone.cloned());
            self.settings.store(Arc::new(Settings { spec, zone, affinity_key }));
        }
        self.retired.store(false, SeqCst);
        !is_same
    }

    /// Stores the result of discovery without applying it yet.
    pub(crate) fn know(&self, set: EndpointSet) {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).discovered = set;
        self.adopt_limits(&self.settings.load().spec);
    }

    /// Stores the limits of the servers that [`LiveService::apply`] will use.
    fn adopt_limits(&self, spec: &Service) {
        let shape = self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = ServerLimits::new(spec, &rows(spec, &shape.discovered));
        self.limits.store(Arc::new(limits));
    }

    /// Applies the stored settings: servers of fixed address as configured, those found by name as
    /// last discovered.
    pub(crate) fn apply(&self, now: Moment) -> Option<TierChange> {
        let mut shape = self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings.load();
        if settings.spec.discover.is_none() {
            shape.discovered.rows.retain(|row| !row.is_discovered());
            shape.discovered.rows.iter_mut().for_each(|row| row.listing = None);
        }
        let rows = rows(&settings.spec, &shape.discovered);
        let change = self.rebuild(&mut shape, rows, now);
        drop(shape);
        self.serve_waiters();
        change
    }

    /// Retires the service after it left the configuration: its limits no longer count, waiting
    /// requests are still served.
    pub(crate) fn retire(&self) {
        self.retired.store(true, SeqCst);
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).limits = None;
        for endpoint in &self.endpoints.load().all {
            self.table.update_limit(&endpoint.slots);
            endpoint.slots.serve_waiters();
        }
    }

    fn rebuild(
        &self,
        shape: &mut Shape,
        rows: Vec<EndpointRow>,
        now: Moment,
    ) -> Option<TierChange> {
        let me: Weak<dyn Taker> = self.me.clone();
        let before = self.endpoints.load_full();
        let settings = self.settings.load();
        let (key, is_checked) = (settings.affinity_key, settings.spec.check.is_some());
        let mut all: Vec<Arc<Endpoint>> = Vec::with_capacity(rows.len());
        let mut states = HashMap::with_capacity(rows.len());
        let limits = (!self.retired.load(SeqCst)).then(|| self.limits.load_full());
        let limits_changed = shape.limits != limits;
        shape.limits = limits;
        for row in rows {
            let address = row.address;
            if states.contains_key(&address) {
                continue;
            }
            let known = before.by_address(address);
            let slots = match known {
                Some(known) => Arc::clone(&known.slots),
                None => self.table.enlist(address, &me),
            };
            if known.is_some() && limits_changed {
                self.table.update_limit(&slots);
            }
            let state = shape.states.remove(&address).unwrap_or_default();
            states.insert(address, Arc::clone(&state));
            let kept = known.filter(|known| {
                known.row == row
                    && known.is_checked == is_checked
                    && Arc::ptr_eq(&known.state, &state)
                    && known.affinity_token == affinity_token(&key, address)
            });
            all.push(match kept {
                Some(known) => Arc::clone(known),
                None => Arc::new(Endpoint::new(row, state, slots, &key, is_checked)),
            });
        }
        shape.states = states;
        let change = self.replace(all, now);
        for gone in &before.all {
            if !shape.states.contains_key(&gone.row.address) {
                self.table.delist(&gone.slots, &me);
            }
        }
        change
    }

    /// Replaces the current servers. Only called with the shape locked.
    fn replace(&self, all: Vec<Arc<Endpoint>>, now: Moment) -> Option<TierChange> {
        let settings = self.settings.load();
        let from = self.endpoints.load().tier;
        let next = Endpoints::new(all, &settings.spec, settings.zone.as_deref(), from, now);
        let change = (next.tier != from).then(|| TierChange {
            service: Arc::clone(&self.name),
            from,
            to: next.tier,
            reason: next.reason,
            eligible: next.eligible.len(),
            total: next.all.len(),
        });
        // Counts of different proportions cannot be compared with one another.
        if !next.draws_like(&self.endpoints.load()) {
            self.trial.end();
        }
        self.endpoints.store(Arc::new(next));
        change
    }

    /// Decides which servers would be eligible if those at `addresses` were changed. Returns the servers
    /// in the order of the decision, too.
    pub(crate) fn decide_with(
        &self,
        addresses: &[Address],
        change: ServerChange,
    ) -> (Arc<Endpoints>, Decision) {
        let (settings, endpoints) = (self.settings.load(), self.endpoints.load_full());
        let zone = settings.zone.as_deref();
        let decision = endpoints.decide_with(addresses, change, &settings.spec, zone);
        (endpoints, decision)
    }

    /// Gives free slots to waiting requests. Must be called after every change of the servers.
    pub(crate) fn serve_waiters(&self) {
        // A request that joins meanwhile has seen the new servers, or is seen here (see `limits`).
        fence(Fence::Changed);
        let endpoints = self.endpoints.load();
        self.relax(&endpoints);
        for endpoint in &endpoints.all {
            endpoint.slots.serve_waiters();
        }
    }

    /// Tells the control loop that a request has found no free slot, if it could provide one.
    pub(crate) fn note_need(&self, spec: &Service) {
        if is_shared(spec) {
            self.table.tickets.news.note();
        }
    }

    fn relax(&self, endpoints: &Endpoints) {
        self.queue.relax(
            |address| endpoints.by_address(address).is_some_and(|one| one.is_ready()),
            |avoided| endpoints.are_all(avoided),
        );
    }

    pub(crate) fn observe_drain(&self, now: Moment) -> Option<f64> {
        let endpoints = self.endpoints.load();
        let handed = endpoints.all.iter().map(|one| one.state.requests.load(Relaxed)).sum();
        self.drain.lock().unwrap_or_else(PoisonError::into_inner).observe(handed, now)
    }
}

impl Taker for LiveService {
    fn waiting_since(&self, address: Address) -> Option<u64> {
        let endpoints = self.endpoints.load();
        let to_any = endpoints.is_eligible(address);
        self.queue.waiting_since(address, to_any)
    }

    fn give(&self, address: Address) -> bool {
        let endpoints = self.endpoints.load();
        let Some(index) = endpoints.position(address) else {
            return false;
        };
        let to_any = endpoints.is_eligible_at(index);
        while let Some(ticket) = self.queue.pop(address, to_any) {
            if ticket.grant(&endpoints.all[index]) {
                return true;
            }
        }
        false
    }

    fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn limit(&self, address: Address) -> Option<Limit> {
        let retired = self.retired.load(SeqCst);
        (!retired).then(|| self.limits.load().of(address))
    }

    fn waiting(&self, address: Address) -> u32 {
        let endpoints = self.endpoints.load();
        let place = endpoints.position(address).and_then(|index| endpoints.eligible_place(index));
        let asks = place.is_some_and(|place| self.queue.asks(place, endpoints.eligible.len()));
        self.queue.waiting(address, asks)
    }
}

/// Returns the servers in the settings: fixed addresses as they are, names as last discovered, and those
/// that a source lists.
fn rows(spec: &Service, discovered: &EndpointSet) -> Vec<EndpointRow> {
    let mut rows = Vec::with_capacity(spec.servers.len());
    for server in &spec.servers {
        let name: Arc<str> = server.target.to_string().into();
        let row = |address, listing| EndpointRow::of(server, Arc::clone(&name), address, listing);
        let known = discovered.rows.iter().filter(|found| found.name == name);
        match &server.target {
            ServerTarget::Address(address) => {
                let mut known = known.filter(|found| !found.is_discovered());
                rows.push(row(*address, known.next().and_then(|found| found.listing.clone())));
            }
            ServerTarget::Name { .. } => {
                let known = known.filter(|found| !found.is_discovered());
                rows.extend(known.map(|found| row(found.address, found.listing.clone())));
            }
        }
    }
    if spec.discover.is_some() {
        rows.extend(discovered.rows.iter().filter(|found| found.is_discovered()).cloned());
    }
    rows
}
