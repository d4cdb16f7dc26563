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
//! sees the other.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, Weak};

use model::Address;

use crate::reuse::Learner;
use crate::sync::{ArcSwap, AtomicU32, Fence, Mutex, fence};
use crate::tickets::Tickets;

/// How often a slot is offered before it is returned to the count.
const HAND_OVERS_MAX: u32 = 64;

/// The requests in flight at one address, and their limit.
#[derive(Debug)]
pub struct Slots {
    address: Address,
    in_flight: AtomicU32,
    /// 0: no limit.
    max: AtomicU32,
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
    /// Returns the limit that it configures for the server at `address`; `Some(0)`: none; `None`: it
    /// has left the configuration and no longer counts.
    fn limit(&self, address: Address) -> Option<u32>;
}

impl Slots {
    pub(crate) fn new(address: Address, max: u32, tickets: Arc<Tickets>) -> Slots {
        let takers = ArcSwap::from_pointee(Takers::default());
        Slots {
            address,
            in_flight: AtomicU32::new(0),
            max: AtomicU32::new(max),
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
        self.in_flight.load(Relaxed)
    }

    /// Returns the concurrency limit; 0: no limit.
    pub fn max(&self) -> u32 {
        self.max.load(Relaxed)
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
        let max = self.max();
        max == 0 || self.in_flight() < max
    }

    /// Takes a slot if one is free.
    pub(crate) fn try_take(&self) -> bool {
        let max = self.max();
        if max == 0 {
            self.in_flight.fetch_add(1, SeqCst);
            return true;
        }
        let mut current = self.in_flight();
        while current < max {
            match self.in_flight.compare_exchange_weak(current, current + 1, SeqCst, Relaxed) {
                Ok(_) => return true,
                Err(now) => current = now,
            }
        }
        false
    }

    /// Releases a slot: hands it to the request that waits for it, or lowers the count.
    pub(crate) fn release(&self) {
        loop {
            if self.tickets.any_waiting() && !self.is_over() && self.hand_over() {
                return;
            }
            self.in_flight.fetch_sub(1, SeqCst);
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

    /// Returns whether more is in flight than allowed, because the maximum was lowered meanwhile.
    fn is_over(&self) -> bool {
        let max = self.max();
        max != 0 && self.in_flight() > max
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
    fn update_max(&self) {
        let takers = self.takers.load();
        let limits = takers.iter().filter_map(|taker| taker.upgrade()?.limit(self.address));
        // 0 means no limit, so any number must win over it.
        if let Some(limit) = limits.min_by_key(|limit| limit.wrapping_sub(1)) {
            self.max.store(limit, SeqCst);
        }
    }

    /// As [`Slots::update_max`] after `taker` was added at the end, without asking all others.
    fn lower_max(&self, taker: &Weak<dyn Taker>) {
        let limit_of = |taker: &Weak<dyn Taker>| taker.upgrade()?.limit(self.address);
        let Some(limit) = limit_of(taker) else { return };
        let takers = self.takers.load();
        let mut others = takers.iter().filter(|other| !other.ptr_eq(taker));
        let is_first = !others.any(|other| limit_of(other).is_some());
        if is_first || limit.wrapping_sub(1) < self.max().wrapping_sub(1) {
            self.max.store(limit, SeqCst);
        }
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
            let slots = Arc::new(Slots::new(address, 0, Arc::clone(&self.tickets)));
            table.insert(address, Arc::downgrade(&slots));
            slots
        });
        // The table's lock also keeps two services from overwriting each other's entry.
        let takers = slots.takers.load_full();
        slots.takers.store(Arc::new(takers.with(taker)));
        slots.lower_max(taker);
        slots
    }

    /// Undoes [`SlotTable::enlist`].
    pub(crate) fn delist(&self, slots: &Slots, taker: &Weak<dyn Taker>) {
        let table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let takers = slots.takers.load_full();
        slots.takers.store(Arc::new(takers.filtered(|other| !other.ptr_eq(taker))));
        slots.update_max();
        drop(table);
        slots.serve_waiters();
    }

    /// Recomputes the limit after a service's limit has changed. The caller then serves waiting
    /// requests.
    pub(crate) fn update_max(&self, slots: &Slots) {
        let _table = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        slots.update_max();
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
