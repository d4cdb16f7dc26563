//! Rate limits that hold over a fleet (`scope = "fleet"`): the requests of each key in use here, which the control
//! loop reads for the other members, and what this balancer may use of the limit meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use model::{RateLimit, RateReading, RateShare, RateTerms, mix};

use super::{PartKey, limit_id};

/// Number of locks, so that workers rarely contend.
const SHARDS: usize = 16;

/// Keys of one limit in each of them, so that a flood of keys of one limit leaves places for those of others.
const KEYS_OF_LIMIT_MAX: usize = 2_048;

/// Keys in each of them.
const KEYS_MAX: usize = 4_096;

/// The members that answer, as far as they matter for limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The part of every limit that these members have together.
    pub share: RateShare,
    /// How many they are, this one included.
    pub members: u32,
}

impl Side {
    /// This balancer is the only one.
    pub const ALONE: Side = Side { share: RateShare::WHOLE, members: 1 };
}

/// The keys in use.
#[derive(Debug)]
pub struct SharedRates {
    /// The key of all members under which parts of requests are hashed; `None`: this process was never a member.
    part_key: ArcSwapOption<PartKey>,
    side: ArcSwap<Side>,
    /// The control loop reads what is counted.
    is_read: AtomicBool,
    shards: [Mutex<Shard>; SHARDS],
    /// Requests whose keys had no place.
    untracked: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    keys: HashMap<u64, Key>,
    /// How many of these each limit has.
    of_limits: HashMap<u32, usize>,
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    limit: u32,
    terms: RateTerms,
    offered: u32,
    taken: u32,
    /// Requests that were counted and then given back: as many that pass are not counted.
    given_back: u32,
}

impl Key {
    /// Counts a request.
    pub(super) fn count(&mut self, passes: bool) {
        if passes && self.given_back > 0 {
            self.given_back -= 1;
            return;
        }
        self.offered = self.offered.wrapping_add(1);
        self.taken = self.taken.wrapping_add(u32::from(passes));
    }
}

impl Shard {
    /// Returns the key; `None`: there is no place for it.
    fn place(&mut self, key: u64, limit: impl FnOnce() -> u32) -> Option<&mut Key> {
        if !self.keys.contains_key(&key) {
            let limit = limit();
            let of_limit = self.of_limits.entry(limit).or_default();
            if self.keys.len() >= KEYS_MAX || *of_limit >= KEYS_OF_LIMIT_MAX {
                return None;
            }
            *of_limit += 1;
            let terms = RateTerms::ALONE;
            self.keys.insert(key, Key { limit, terms, offered: 0, taken: 0, given_back: 0 });
        }
        self.keys.get_mut(&key)
    }

    fn remove(&mut self, key: u64) {
        let Some(removed) = self.keys.remove(&key) else { return };
        if let Some(of_limit) = self.of_limits.get_mut(&removed.limit) {
            *of_limit -= 1;
        }
    }

    /// Keeps the keys of some limits.
    fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.keys.retain(|_, key| is_kept(key.limit));
        self.of_limits.retain(|limit, _| is_kept(*limit));
    }
}

impl SharedRates {
    pub(super) fn new() -> SharedRates {
        SharedRates {
            part_key: ArcSwapOption::empty(),
            side: ArcSwap::from_pointee(Side::ALONE),
            is_read: AtomicBool::new(false),
            shards: std::array::from_fn(|_| Mutex::default()),
            untracked: AtomicU64::new(0),
        }
    }

    /// Sets the key of all members under which parts of requests are hashed, and counts from now on for the
    /// control loop.
    pub fn begin(&self, key: PartKey) {
        self.part_key.store(Some(Arc::new(key)));
        self.is_read.store(true, Relaxed);
    }

    /// From now on this balancer counts alone: the control loop takes no part any more.
    pub fn retire(&self) {
        self.is_read.store(false, Relaxed);
        self.set_side(Side::ALONE);
        self.retain(|_| false);
    }

    /// Sets which members answer.
    pub fn set_side(&self, side: Side) {
        self.side.store(Arc::new(side));
    }

    /// Sets what this balancer may use of the limit of a key, if the key is in use.
    pub fn set_terms(&self, key: u64, terms: RateTerms) {
        if let Some(key) = self.shard(key).keys.get_mut(&key) {
            key.terms = terms;
        }
    }

    /// Returns all keys in use.
    pub fn readings(&self) -> Vec<RateReading> {
        let mut readings = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            readings.extend(shard.keys.iter().map(|(&key, it)| RateReading {
                key,
                limit: it.limit,
                offered: it.offered,
                taken: it.taken,
            }));
        }
        readings
    }

    /// Forgets a key if it has not been used since the reading. Returns whether it is forgotten.
    pub fn forget(&self, reading: &RateReading) -> bool {
        let mut shard = self.shard(reading.key);
        let used = shard.keys.get(&reading.key).is_some_and(|key| key.offered != reading.offered);
        if !used {
            shard.remove(reading.key);
        }
        !used
    }

    /// Forgets the keys of all but some limits ([`limit_id`]).
    pub fn retain(&self, is_kept: impl Fn(u32) -> bool) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).retain(&is_kept);
        }
    }

    /// Returns how many requests since the start had keys for which there was no place: this balancer counted
    /// these alone.
    pub fn untracked(&self) -> u64 {
        self.untracked.load(Relaxed)
    }

    pub(super) fn part_key(&self) -> Option<PartKey> {
        self.part_key.load().as_deref().copied()
    }

    pub(super) fn side(&self) -> Side {
        **self.side.load()
    }

    /// Passes what this balancer may use of its side's part of a limit to `decide`, under a lock, and counts the
    /// request.
    pub(super) fn offer<T, E>(
        &self,
        route: &str,
        limit: &RateLimit,
        key: u64,
        decide: impl FnOnce(RateTerms) -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.is_read.load(Relaxed) {
            return decide(RateTerms::ALONE);
        }
        let mut shard = self.shard(key);
        let Some(known) = shard.place(key, || limit_id(route, limit)) else {
            drop(shard);
            self.untracked.fetch_add(1, Relaxed);
            return decide(RateTerms::ALONE);
        };
        let decided = decide(known.terms);
        known.count(decided.is_ok());
        decided
    }

    /// Returns what this balancer may use of its side's part of the limit of a key.
    pub(super) fn terms(&self, key: u64) -> RateTerms {
        self.shard(key).keys.get(&key).map_or(RateTerms::ALONE, |known| known.terms)
    }

    /// A request that passed does not count after all.
    pub(super) fn give_back(&self, key: u64) {
        if let Some(key) = self.shard(key).keys.get_mut(&key) {
            key.given_back = key.given_back.saturating_add(1);
        }
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[mix(key) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
