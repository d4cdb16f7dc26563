//! State that lives as long as the process: the current configuration, and what must survive a
//! change of it. Services keep their identity by name, counts in flight by address, server state by
//! service and address.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use model::{
    AffinityKey, AffinityKeyFile, EndpointSet, Moment, RouteAffinity, Service, ServiceId, Snapshot,
    WrittenAt,
};

use crate::limits::{SlotTable, Slots};
use crate::live::{LiveService, TierChange};
use crate::maintenance::Switched;
use crate::rate::RateTable;
use crate::route::Router;
use crate::session::SessionKey;

/// Maximum number of rate-limit buckets, over all routes.
#[cfg(not(loom))]
const RATE_KEYS_MAX: usize = 1 << 20;
/// Loom creates a registry for each interleaving that it tries; clearing a large table would take
/// most of the time.
#[cfg(loom)]
const RATE_KEYS_MAX: usize = 1 << 6;

/// The key where nothing needs one.
const NO_KEY: AffinityKey = AffinityKey::new([0; AffinityKey::LENGTH]);

/// A configuration in force.
#[derive(Debug)]
pub struct Published {
    /// What was configured.
    pub snapshot: Arc<Snapshot>,
    /// Finds a request's route.
    pub router: Router,
    /// The services at run time, indexed by [`ServiceId`].
    pub services: Vec<Arc<LiveService>>,
    /// Counts configurations; the first published is 1.
    pub generation: u64,
    /// The tier changes caused by publishing it.
    pub tier_changes: Vec<TierChange>,
    /// The key of affinities without their own.
    affinity_key: AffinityKey,
    first_use: Arc<FirstUse>,
    /// Where the routes are written now, if the files were read again since and mean the same.
    moved: ArcSwapOption<Vec<WrittenAt>>,
}

/// When a configuration was first used, in microseconds since the process started; zero: not yet.
#[derive(Debug, Default)]
pub struct FirstUse(AtomicU64);

impl FirstUse {
    /// Returns that time.
    pub fn at(&self) -> Option<Moment> {
        match self.0.load(Relaxed) {
            0 => None,
            us => Some(Moment::from_micros(us)),
        }
    }
}

impl Published {
    /// Records that a worker serves by it.
    pub fn note_use(&self, now: Moment) {
        // Only the first call has an effect.
        let _ = self.first_use.0.compare_exchange(0, now.as_micros().max(1), Relaxed, Relaxed);
    }

    /// Returns when it was first used.
    pub fn first_use(&self) -> Arc<FirstUse> {
        Arc::clone(&self.first_use)
    }

    /// Records that its files were read again as `snapshot`, which is equal: only its text may have
    /// moved ([`WrittenAt`]).
    pub fn note_reread(&self, snapshot: &Snapshot) {
        let places = snapshot.routes.iter().map(|route| route.written_at.clone());
        self.moved.store(Some(Arc::new(places.collect())));
    }

    /// Returns where the route at `index` is written now, if it is known.
    pub fn written_at(&self, index: usize) -> Option<WrittenAt> {
        let moved = self.moved.load();
        let place = match moved.as_ref() {
            Some(places) => places.get(index),
            None => self.snapshot.routes.get(index).map(|route| &route.written_at),
        };
        place.filter(|place| place.is_known()).cloned()
    }

    /// Returns the places that its routes have in `next`, which replaces it, if they are not those in
    /// `next`: a copy of this snapshot (with new certificates) knows only the first reading of the files.
    fn places_for(&self, next: &Snapshot) -> Option<Arc<Vec<WrittenAt>>> {
        let (old, new) = (self.snapshot.routes.first()?, next.routes.first()?);
        let is_copy = old.written_at.is_of_same_reading(&new.written_at);
        self.moved.load_full().filter(|places| is_copy && places.len() == next.routes.len())
    }

    /// Returns the service with this ID.
    pub fn service(&self, id: ServiceId) -> &Arc<LiveService> {
        // IDs come from the snapshot beside it, whose services these are.
        &self.services[id.0 as usize]
    }

    /// Returns the key of the sessions of a route's affinity.
    pub fn session_key(&self, affinity: &RouteAffinity) -> SessionKey {
        let key = affinity.key_file.as_ref().map_or(self.affinity_key, |file| file.key);
        SessionKey::new(&key, affinity)
    }
}

/// State that lives as long as the process. One per process.
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<Published>,
    table: Arc<SlotTable>,
    rate: RateTable,
    maintenance: Switched,
    first_turn: AtomicU64,
    /// Key of affinities without their own, for configurations that name none.
    affinity_key: OnceLock<AffinityKey>,
    /// Locked while publishing: the services of the current configuration.
    services: Mutex<HashMap<Arc<str>, Arc<LiveService>>>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry::new()
    }
}

impl Registry {
    /// Returns a registry with an empty configuration of generation 0. Its round robins start at
    /// random positions.
    pub fn new() -> Registry {
        Registry::with_seed(fastrand::u32(..))
    }

    /// As [`Registry::new`], with a reproducible start.
    pub fn with_seed(seed: u32) -> Registry {
        let empty = Snapshot::empty();
        let empty = Published {
            router: Router::new(&empty.routes),
            services: Vec::new(),
            generation: 0,
            tier_changes: Vec::new(),
            affinity_key: NO_KEY,
            first_use: Arc::default(),
            moved: ArcSwapOption::empty(),
            snapshot: Arc::new(empty),
        };
        Registry {
            current: ArcSwap::from_pointee(empty),
            table: Arc::default(),
            rate: RateTable::new(RATE_KEYS_MAX),
            maintenance: Switched::default(),
            first_turn: AtomicU64::new(u64::from(seed)),
            affinity_key: OnceLock::new(),
            services: Mutex::default(),
        }
    }

    /// Sets this instance's key of affinities, used from the next configuration on by services and
    /// routes without a key file. It is set once; later calls have no effect.
    pub fn set_affinity_key(&self, key: AffinityKey) {
        let _ = self.affinity_key.set(key);
    }

    /// Returns this instance's key, if it has been set.
    pub fn affinity_key(&self) -> Option<AffinityKey> {
        self.affinity_key.get().copied()
    }

    /// Returns the key of affinities without their own: that of the configuration's file, else this instance's.
    fn affinity_key_of(&self, snapshot: &Snapshot) -> AffinityKey {
        let of_file = snapshot.affinity_key_file.as_ref().map(|file| file.key);
        // The caller that publishes a configuration which needs this instance's key has set it.
        of_file.or_else(|| self.affinity_key()).unwrap_or(NO_KEY)
    }

    /// Puts a configuration into force. Requests in progress keep what they hold.
    pub fn publish(&self, snapshot: Arc<Snapshot>, now: Moment) -> Arc<Published> {
        self.publish_with(snapshot, now, |_| None)
    }

    /// As [`Registry::publish`], with the resolved addresses of servers given by name, which apply
    /// before the first request reaches the service. `None`: as last discovered.
    pub fn publish_with(
        &self,
        snapshot: Arc<Snapshot>,
        now: Moment,
        discovered: impl Fn(&Service) -> Option<EndpointSet>,
    ) -> Arc<Published> {
        let mut known = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        let zone = snapshot.zone.as_ref();
        let mut services = Vec::with_capacity(snapshot.services.len());
        // Those with new settings or servers: the others stay as they are.
        let mut changed = Vec::new();
        // First the settings of all services, then what is derived from several of them.
        let of_instance = self.affinity_key_of(&snapshot);
        for spec in &snapshot.services {
            let affinity_key = key_file_of(spec).map_or(of_instance, |file| file.key);
            let kept = known.remove(&spec.name);
            let is_new = kept.is_none();
            let live = kept.unwrap_or_else(|| {
                let (spec, table) = (Arc::clone(spec), Arc::clone(&self.table));
                let turn = self.first_turn.fetch_add(1, Relaxed);
                LiveService::new(spec, zone.cloned(), affinity_key, table, turn)
            });
            let is_changed = live.adopt(spec, zone, affinity_key);
            let found = discovered(spec);
            if is_new || is_changed || found.is_some() {
                changed.push(Arc::clone(&live));
            }
            if let Some(set) = found {
                live.know(set);
            }
            services.push(live);
        }
        for gone in known.drain() {
            gone.1.retire();
        }
        let tier_changes = changed.iter().filter_map(|live| live.apply(now)).collect();
        known.extend(services.iter().map(|live| (Arc::clone(live.name()), Arc::clone(live))));
        let before = self.current.load_full();
        let published = Arc::new(Published {
            router: Router::after(&before.router, &before.snapshot.routes, &snapshot.routes),
            generation: before.generation + 1,
            moved: ArcSwapOption::new(before.places_for(&snapshot)),
            snapshot,
            services,
            tier_changes,
            affinity_key: of_instance,
            first_use: Arc::default(),
        });
        self.current.store(Arc::clone(&published));
        self.table.sweep();
        self.maintenance.retain(&published.snapshot);
        published
    }

    /// Returns the configuration in force, for short use.
    pub fn current(&self) -> Guard<Arc<Published>> {
        self.current.load()
    }

    /// Returns the configuration in force, to keep.
    pub fn load_full(&self) -> Arc<Published> {
        self.current.load_full()
    }

    /// Returns the maintenance that operators have switched on.
    pub fn maintenance(&self) -> &Switched {
        &self.maintenance
    }

    /// Returns the slots of all addresses in use whose limit the balancers of the fleet share
    /// ([`Slots::allow`]), in order of address. An address that has left the configuration stays
    /// until its last request has ended.
    pub fn shared_slots(&self) -> Vec<Arc<Slots>> {
        self.table.shared()
    }

    /// Sets what any thread calls when the control loop should look at the shared slots: a request joined
    /// the queue of a service whose limits are shared, or was refused because that was full; or a
    /// slot was freed where more was in flight than allowed. Called at most once until
    /// [`Registry::take_news`]. It is set once; later calls have no effect.
    pub fn set_news(&self, tell: Arc<dyn Fn() + Send + Sync>) {
        self.table.tickets.news.set(tell);
    }

    /// Returns whether there was news since the last call. To be called before the slots are read,
    /// so that anything missed there causes another call.
    pub fn take_news(&self) -> bool {
        self.table.tickets.news.take()
    }

    /// Returns the buckets of all routes' rate limits.
    pub fn rate(&self) -> &RateTable {
        &self.rate
    }
}

/// Returns the file with the key of a service's own affinity.
fn key_file_of(spec: &Service) -> Option<&AffinityKeyFile> {
    spec.affinity.as_ref().and_then(|affinity| affinity.key_file.as_ref())
}
