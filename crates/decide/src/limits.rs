//! Concurrency limits: counts the requests in flight at each server.
//!
//! A count belongs to an address: every service that names the address shares it, over all workers
//! and across configurations. It is exact: taken by compare-and-swap, it never exceeds its maximum.
//! When requests wait, a freed slot is not returned to the count but handed over, still counted, to
//! the request that has waited longest in any of those services' queues, so that no new request can
//! take it in between. `queue` keeps the waiting requests.
//!
//! No wake-up is lost because of one rule on either side. The releasing thread lowers the count and
//! *then* checks for waiting requests; the waiting request joins the queue and *then* checks for a
//! free slot. Both execute a sequentially consistent fence between the two, so at least one of them
//! sees the other. The same holds for a thread that raises the number allowed, and then checks.
//!
//! The balancers of a fleet may share a server's limit: then the control loop says how many slots
//! this balancer may use at present ([`Slots::allow`]), at most the configured limit. It may say less
//! than is in flight, and pass a slot to another balancer once it is free here. That is exact: the
//! number allowed and the number in flight are one word (`count`), so no worker takes a slot by a
//! number that has been lowered since. While more is in flight than allowed, freed slots are not
//! handed over; a hand-over that had begun before keeps its slot counted.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, Weak};

use model::Address;

use crate::count::{Count, NO_LIMIT};
use crate::reuse::Learner;
use crate::sync::{ArcSwap, AtomicBool, AtomicU32, Fence, Mutex, MutexGuard, fence};
use crate::tickets::Tickets;

/// How often a slot is offered before it is returned to the count.
const HAND_OVERS_MAX: u32 = 64;

/// The requests in flight at one address, and their limit.
#[derive(Debug)]
pub struct Slots {
    address: Address,
    count: Count,
    /// The configured limit; 0: none.
    max: AtomicU32,
    /// Whether the balancers of the fleet share it.
    is_shared: AtomicBool,
    /// Locked while `max`, `is_shared` or the number allowed changes.
    change: Mutex<()>,
    tickets: Arc<Tickets>,
    /// What has been learned about when the server closes idle connections.
    pub learner: Learner,
    /// Idle connections to this address over all workers, as of their last sweeps.
    idle: AtomicU32,
    /// The services that name this address.
    takers: ArcSwap<Takers>,
}

/// A list that is replaced as a whole and mostly grows at its end: in chunks, so that each
/// replacement copies few entries, however many services name the same address.
#[derive(Debug, Default)]
struct Takers(Vec<Arc<Vec<Weak<dyn Taker>>>>);

/// Maximum length of a chunk.
const CHUNK_MAX: usize = 128;

impl Takers {
    fn iter(&self) -> impl Iterator<Item = &Weak<dyn Taker>> {
        self.0.iter().flat_map(|chunk| chunk.iter())
    }

    /// Returns the list with `taker` at its end.
    fn with(&self, taker: &Weak<dyn Taker>) -> Takers {
        let mut chunks = self.0.clone();
        let last = chunks.pop_if(|chunk| chunk.len() < CHUNK_MAX);
        let mut last = last.map_or_else(Vec::new, |chunk| chunk.to_vec());
        last.retain(is_there);
        last.push(Weak::clone(taker));
        chunks.push(Arc::new(last));
        Takers(chunks)
    }

    /// Returns those that `keeps` selects, and that are not gone.
    fn filtered(&self, keeps: impl Fn(&Weak<dyn Taker>) -> bool) -> Takers {
        let kept = self.iter().filter(|taker| is_there(taker) && keeps(taker));
        let kept: Vec<_> = kept.cloned().collect();
        Takers(kept.chunks(CHUNK_MAX).map(|chunk| Arc::new(chunk.to_vec())).collect())
    }
}

fn is_there(taker: &Weak<dyn Taker>) -> bool {
    taker.strong_count() > 0
}

/// A service as a server's slots see it: a possible taker of a freed slot.
pub(crate) trait Taker: std::fmt::Debug + Send + Sync {
    /// Returns the number of the ticket that has waited longest for a slot at `address`.
    fn waiting_since(&self, address: Address) -> Option<u64>;
    /// Gives a slot that is already counted to the ticket that has waited longest; false if none
    /// waits for it after all.
    fn give(&self, address: Address) -> bool;
    /// Returns the number of requests refused for lack of a slot.
    fn refused(&self) -> u64;
    /// Returns the limit that it configures for the server at `address`; `None`: it has left the
    /// configuration and no longer counts.
    fn limit(&self, address: Address) -> Option<Limit>;
    /// Returns how many requests wait that could use a slot at `address`, at most: those that avoid
    /// it count too.
    fn waiting(&self, address: Address) -> u32;
}

/// A concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// 0: none.
    pub(crate) max: u32,
    /// Whether it holds for all balancers of the fleet together; never without a limit.
    pub(crate) is_shared: bool,
}

impl Limit {
    const NONE: Limit = Limit { max: 0, is_shared: false };

    /// Returns the limit of an address with both: the smaller one, shared if either is.
    fn and(self, other: Limit) -> Limit {
        // 0 means no limit, so any number must win over it.
        let max =
            if other.max.wrapping_sub(1) < self.max.wrapping_sub(1) { other.max } else { self.max };
        Limit { max, is_shared: self.is_shared || other.is_shared }
    }

    /// Returns the number of slots allowed without the control loop.
    fn allowed(self) -> u32 {
        match (self.is_shared, self.max) {
            (true, _) => 0,
            (false, 0) => NO_LIMIT,
            (false, max) => max,
        }
    }
}

/// How the slots of an address are used at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Slots that this balancer may use; `u32::MAX`: any number.
    pub allowed: u32,
    /// Slots in use, over all services and workers; more than allowed if that was lowered meanwhile.
    pub in_flight: u32,
    /// Requests in any queue that could use a slot here, at most: those of a service with several
    /// servers wait for each of them, and those that avoid this server count too.
    pub waiting: u32,
}

impl Slots {
    /// Returns the slots of an address without a limit.
    pub(crate) fn new(address: Address, tickets: Arc<Tickets>) -> Slots {
        let takers = ArcSwap::from_pointee(Takers::default());
        Slots {
            address,
            count: Count::new(Limit::NONE.allowed()),
            max: AtomicU32::new(Limit::NONE.max),
            is_shared: AtomicBool::new(Limit::NONE.is_shared),
            change: Mutex::default(),
            tickets,
            learner: Learner::new(),
            idle: AtomicU32::new(0),
            takers,
        }
    }

    /// Returns the address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the requests (in TCP mode, connections) in flight at this address, over all services
    /// and workers.
    pub fn in_flight(&self) -> u32 {
        self.count.load().in_flight
    }

    /// Returns the configured concurrency limit; 0: no limit.
    pub fn max(&self) -> u32 {
        self.max.load(Relaxed)
    }

    /// Returns whether the balancers of the fleet share the limit. Then it has one, and the control
    /// loop says how much of it this balancer may use ([`Slots::allow`]): at first nothing.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(SeqCst)
    }

    /// Returns how the slots are used. `allowed` and `in_flight` are of one moment, `waiting` is of
    /// a later one.
    pub fn usage(&self) -> Usage {
        let now = self.count.load();
        let waiting = if self.tickets.any_waiting() {
            let takers = self.takers.load();
            let waiting = takers.iter().filter_map(Weak::upgrade);
            waiting.map(|taker| taker.waiting(self.address)).fold(0, u32::saturating_add)
        } else {
            0
        };
        Usage { allowed: now.allowed, in_flight: now.in_flight, waiting }
    }

    /// Sets how many slots this balancer may use, at most the configured limit, and gives those that
    /// are free to waiting requests. Returns the number in flight when it was set: from then on it
    /// grows to `allowed` at most, and while it is above, it only falls. Has no effect unless the
    /// limit is shared; nothing can be allowed once no service names the address any more.
    pub fn allow(&self, allowed: u32) -> u32 {
        let change = self.lock_change();
        if !self.is_shared() {
            return self.in_flight();
        }
        let most = if self.has_taker() { self.max() } else { 0 };
        let in_flight = self.set_allowed(allowed.min(most));
        drop(change);
        self.serve_waiters();
        in_flight
    }

    /// Returns the idle connections to this address, as of the workers' last sweeps.
    pub fn idle(&self) -> u32 {
        self.idle.load(Relaxed)
    }

    /// Records that a worker's number of idle connections has changed from `before` to `now`.
    pub fn idle_changed(&self, before: u32, now: u32) {
        // Both directions in one step: the addition wraps.
        self.idle.fetch_add(now.wrapping_sub(before), Relaxed);
    }

    /// Returns how many requests the services that name this address have refused so far because
    /// all their servers and the queue were full.
    pub fn refused(&self) -> u64 {
        let takers = self.takers.load();
        takers.iter().filter_map(Weak::upgrade).map(|taker| taker.refused()).sum()
    }

    /// Returns whether a request waits for a slot at this address, in the queue of any service.
    pub fn is_waited_for(&self) -> bool {
        self.tickets.any_waiting() && self.longest_waiting().is_some()
    }

    /// Returns whether a slot is free at this moment.
    pub fn has_room(&self) -> bool {
        self.count.load().has_room()
    }

    /// Takes a slot if one is free.
    pub(crate) fn try_take(&self) -> bool {
        self.count.take()
    }

    /// Releases a slot: hands it to the request that waits for it, or lowers the count.
    pub(crate) fn release(&self) {
        loop {
            let may_hand_over = self.tickets.any_waiting() && !self.count.load().is_over();
            if may_hand_over && self.hand_over() {
                return;
            }
            if self.count.give_back().is_over() && self.is_shared() {
                // The control loop passes it on.
                self.tickets.news.note();
            }
            fence(Fence::Freed);
            // A request may have joined a queue since the check above, and found the server full.
            // If the slot cannot be retaken, another request has it, and checks when it ends.
            if !self.tickets.any_waiting() || self.longest_waiting().is_none() || !self.try_take() {
                return;
            }
        }
    }

    /// Gives free slots to waiting requests, as long as there are both.
    pub(crate) fn serve_waiters(&self) {
        while self.tickets.any_waiting()
            && self.has_room()
            && self.longest_waiting().is_some()
            && self.try_take()
        {
            if !self.hand_over() {
                self.release();
            }
        }
    }

    /// Gives a counted slot to the ticket that has waited longest for it in any queue; false if
    /// there is none.
    fn hand_over(&self) -> bool {
        // A round that gives nothing has met a service in the middle of a change; the thread that
        // changes it serves the waiting requests afterwards.
        for _ in 0..HAND_OVERS_MAX {
            let Some(taker) = self.longest_waiting() else { return false };
            if taker.give(self.address) {
                return true;
            }
        }
        false
    }

    fn longest_waiting(&self) -> Option<Arc<dyn Taker>> {
        let takers = self.takers.load();
        let waiting = takers.iter().filter_map(|taker| {
            let taker = taker.upgrade()?;
            Some((taker.waiting_since(self.address)?, taker))
        });
        waiting.min_by_key(|(ticket, _)| *ticket).map(|(_, taker)| taker)
    }

    /// Adopts the smallest limit among the services that name this address. (Two different ones are
    /// a configuration error, but names may resolve to the same address later.)
    fn update_limit(&self) {
        let takers = self.takers.load();
        let limits = takers.iter().filter_map(|taker| taker.upgrade()?.limit(self.address));
        if let Some(limit) = limits.reduce(Limit::and) {
            self.set_limit(limit);
        }
    }

    /// As [`Slots::update_limit`] after `taker` was added at the end, without asking all others.
    fn lower_limit(&self, taker: &Weak<dyn Taker>) {
        let limit_of = |taker: &Weak<dyn Taker>| taker.upgrade()?.limit(self.address);
        let Some(limit) = limit_of(taker) else { return };
        let takers = self.takers.load();
        let mut others = takers.iter().filter(|other| !other.ptr_eq(taker));
        if others.any(|other| limit_of(other).is_some()) {
            self.set_limit(self.limit().and(limit));
        } else {
            // What was allowed for the services before may have been passed on since.
            self.forbid_shared();
            self.set_limit(limit);
        }
    }

    fn limit(&self) -> Limit {
        Limit { max: self.max(), is_shared: self.is_shared() }
    }

    /// Adopts a limit. The caller then serves waiting requests.
    fn set_limit(&self, limit: Limit) {
        let _change = self.lock_change();
        let before = self.limit();
        if limit == before {
            return;
        }
        self.max.store(limit.max, SeqCst);
        self.is_shared.store(limit.is_shared, SeqCst);
        let allowed = if limit.is_shared && before.is_shared {
            // It stays the control loop's.
            self.count.load().allowed.min(limit.max)
        } else {
            limit.allowed()
        };
        self.set_allowed(allowed);
    }

    /// Allows nothing any more if the limit is shared.
    fn forbid_shared(&self) {
        let _change = self.lock_change();
        if self.is_shared() {
            self.set_allowed(0);
        }
    }

    /// Sets the number allowed; returns the number in flight at that moment. Only called with
    /// `change` locked.
    fn set_allowed(&self, allowed: u32) -> u32 {
        let in_flight = self.count.allow(allowed);
        fence(Fence::Allowed);
        in_flight
    }

    fn lock_change(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a service uses this address, maybe one that has left the configuration and
    /// still has requests.
    fn has_taker(&self) -> bool {
        self.takers.load().iter().any(is_there)
    }

    /// Returns whether requests may come or are in flight.
    fn is_in_use(&self) -> bool {
        self.has_taker() || self.in_flight() > 0
    }
}

/// The slots of every address in use.
#[derive(Debug, Default)]
pub(crate) struct SlotTable {
    /// In order: `tests/orders.rs` replays each run step by step.
    by_address: Mutex<BTreeMap<Address, Weak<Slots>>>,
    pub(crate) tickets: Arc<Tickets>,
}

impl SlotTable {
    /// Returns the slots at `address`, which `taker` uses from now on and did not use before.
    pub(crate) fn enlist(&self, address: Address, taker: &Weak<dyn Taker>) -> Arc<Slots> {
        let mut table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = table.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            let slots = Arc::new(Slots::new(address, Arc::clone(&self.tickets)));
            table.insert(address, Arc::downgrade(&slots));
            slots
        });
        // The table's lock also keeps two services from overwriting each other's entry.
        let takers = slots.takers.load_full();
        slots.takers.store(Arc::new(takers.with(taker)));
        slots.lower_limit(taker);
        slots
    }

    /// Undoes [`SlotTable::enlist`].
    pub(crate) fn delist(&self, slots: &Slots, taker: &Weak<dyn Taker>) {
        let table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let takers = slots.takers.load_full();
        slots.takers.store(Arc::new(takers.filtered(|other| !other.ptr_eq(taker))));
        slots.update_limit();
        if !slots.has_taker() {
            // A worker in the middle of its choice may still try to take one.
            slots.forbid_shared();
        }
        drop(table);
        slots.serve_waiters();
    }

    /// Recomputes the limit after a service's limit has changed. The caller then serves waiting
    /// requests.
    pub(crate) fn update_limit(&self, slots: &Slots) {
        let _table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        slots.update_limit();
    }

    /// Returns the slots of the addresses in use whose limit is shared, in order of address.
    pub(crate) fn shared(&self) -> Vec<Arc<Slots>> {
        let table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = table.values().filter_map(Weak::upgrade);
        slots.filter(|slots| slots.is_shared() && slots.is_in_use()).collect()
    }

    /// Drops addresses no longer in use, and services that are gone.
    pub(crate) fn sweep(&self) {
        let mut table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, slots| slots.strong_count() > 0);
        for slots in table.values().filter_map(Weak::upgrade) {
            let takers = slots.takers.load_full();
            if !takers.iter().all(is_there) {
                slots.takers.store(Arc::new(takers.filtered(|_| true)));
            }
        }
    }
}
