//! Rate limits: one table of keys for all workers and all routes.
//!
//! The algorithm is GCRA (the generic cell rate algorithm, ITU-T I.371): a token bucket whose whole
//! state is the time at which the bucket will be full again. A key whose time has passed is the
//! same as an unknown key, so it needs no clean-up; its entry is reused for the next key.
//!
//! The table has a fixed size. A key may be in one of [`WAYS`] entries; when all of them hold keys
//! that have used some of their allowance, the one that has used least is evicted. A client that
//! floods the table with new keys can thus win back parts of spent allowances, but costs neither
//! memory nor time.
//!
//! The requests that other members of a fleet have let pass are charged to the allowances of limits that hold over
//! the fleet. Where this balancer may use only a part of such a limit, the part has an allowance of its own
//! beside the whole one, and a request is charged to both.

mod part;
mod shared;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{LimitScope, Moment, RateKey, RateLimit, RateShare, RateTerms, mix};

use crate::hash_key;
pub use part::PartKey;
pub use shared::{SharedRates, Side};

/// The allowance of every key of every route.
#[derive(Debug)]
pub struct RateTable {
    /// Each is empty until its first key.
    shards: Box<[Mutex<Vec<Set>>]>,
    sets_per_shard: usize,
    part_key: PartKey,
    shared: SharedRates,
}

/// Entries in which a key may be stored.
const WAYS: usize = 8;

/// Number of locks, so that workers rarely contend.
const SHARDS: usize = 64;

/// How long an allowance is spent at most by what other balancers have let pass, unless one allowance for each of
/// them takes longer to come back.
const DEBT_MAX: Duration = Duration::from_secs(2);

/// Additional requests that a balancer's part of an allowance holds. Without them, irregular requests would leave a
/// small part unused.
const OWN_BURST: u32 = 2;

/// The entries of one set of keys.
type Set = [[u64; 2]; WAYS];

/// A set without keys: all zero, so that the system's zero pages serve for unused sets.
const EMPTY: Set = [[0; 2]; WAYS];

impl RateTable {
    /// Returns a table for `keys_max` keys that are limited at the same time, with as much room
    /// again so that unlucky sets do not overflow: 32 bytes for each of `keys_max`.
    pub fn new(keys_max: usize) -> RateTable {
        let sets = keys_max.saturating_mul(2).div_ceil(WAYS);
        RateTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            sets_per_shard: sets.div_ceil(SHARDS).max(1),
            part_key: PartKey::random(),
            shared: SharedRates::new(),
        }
    }

    /// Returns what the control loop and the workers share about limits that hold over a fleet.
    pub fn shared(&self) -> &SharedRates {
        &self.shared
    }

    /// Returns what the parts of requests are hashed under for limits of this scope.
    pub fn part_key(&self, scope: LimitScope) -> PartKey {
        match scope {
            LimitScope::Balancer => self.part_key,
            LimitScope::Fleet => self.shared.part_key().unwrap_or(self.part_key),
        }
    }

    /// Takes one request from the allowance of each limit, whose keys `key_of` returns, or from none of
    /// them. Returns how long the request has to wait for its turn with all of them.
    ///
    /// # Errors
    ///
    /// Some of them refuse the request: returns the one that does so for the longest time, and that
    /// time, after which the request would pass if no other one comes before.
    pub fn take_all<'l>(
        &self,
        route: &str,
        limits: &'l [RateLimit],
        key_of: impl Fn(&RateLimit) -> u64,
        now: Moment,
    ) -> Result<Duration, (&'l RateLimit, Duration)> {
        let mut turn = Duration::ZERO;
        for (at, limit) in limits.iter().enumerate() {
            match self.take(route, limit, key_of(limit), now) {
                Ok(wait) => turn = turn.max(wait),
                Err(wait) => {
                    for taken in &limits[..at] {
                        self.give_back(taken, key_of(taken));
                    }
                    let others = limits[at + 1..].iter().filter_map(|other| {
                        Some((other, self.turn(other, key_of(other), now).err()?))
                    });
                    let longest = others.max_by_key(|(_, wait)| *wait);
                    let longest = longest.filter(|(_, longest)| *longest > wait);
                    return Err(longest.unwrap_or((limit, wait)));
                }
            }
        }
        Ok(turn)
    }

    /// Takes one request from the allowance of `key` (see [`key`]). Returns how long the request has to
    /// wait for its turn, at most `limit.wait_max`; the turn is reserved.
    ///
    /// `route` is the name of the limit's route. With `burst` n, n requests may come at once and each
    /// further one `per / requests` after the one before; 0 counts as 1. No requests at all are allowed
    /// when `requests` is 0.
    ///
    /// # Errors
    ///
    /// The wait would be too long: returns the time until it would not be, if no other request
    /// comes before.
    pub fn take(
        &self,
        route: &str,
        limit: &RateLimit,
        key: u64,
        now: Moment,
    ) -> Result<Duration, Duration> {
        match limit.scope {
            LimitScope::Balancer => self.take_of(&Bucket::local(limit, key), now),
            LimitScope::Fleet => self
                .shared
                .offer(route, limit, key, |terms| self.take_of_both(limit, key, terms, now)),
        }
    }

    /// Takes one request from the allowance of a key and from this balancer's own part of it, or from neither.
    fn take_of_both(
        &self,
        limit: &RateLimit,
        key: u64,
        terms: RateTerms,
        now: Moment,
    ) -> Result<Duration, Duration> {
        let whole = Bucket::whole(limit, key, self.shared.side(), terms.lag);
        let turn = self.take_of(&whole, now)?;
        let Some(own) = whole.own(terms.share) else { return Ok(turn) };
        let own = self.take_of(&own, now).inspect_err(|_| self.give_back_of(&whole))?;
        Ok(turn.max(own))
    }

    fn take_of(&self, bucket: &Bucket, now: Moment) -> Result<Duration, Duration> {
        self.with_set(bucket.key, |set, tag| {
            let [_, full_at_ns] = place(set, tag);
            // Stored, so that what is left of it gets less from now on.
            *full_at_ns = bucket.bounded(*full_at_ns, now);
            let turn = bucket.turn(*full_at_ns, now)?;
            let from_ns = (*full_at_ns).max(nanoseconds_of(now));
            *full_at_ns = from_ns.saturating_add(bucket.interval_ns);
            Ok(turn)
        })
    }

    /// Returns what [`RateTable::take`] would return, and takes nothing.
    fn turn(&self, limit: &RateLimit, key: u64, now: Moment) -> Result<Duration, Duration> {
        let turns = self.buckets(limit, key).map(|it| it.turn(self.full_at_ns(it.key), now));
        let longest = turns.reduce(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => Ok(one.max(other)),
            (Err(one), Err(other)) => Err(one.max(other)),
            (Err(wait), Ok(_)) | (Ok(_), Err(wait)) => Err(wait),
        });
        longest.unwrap_or(Ok(Duration::ZERO))
    }

    /// Gives back a request that [`RateTable::take`] has taken, for one that another limit refuses.
    pub fn give_back(&self, limit: &RateLimit, key: u64) {
        self.buckets(limit, key).for_each(|bucket| self.give_back_of(&bucket));
        match limit.scope {
            LimitScope::Balancer => {}
            LimitScope::Fleet => self.shared.give_back(key),
        }
    }

    fn give_back_of(&self, bucket: &Bucket) {
        self.with_set(bucket.key, |set, tag| {
            // A key that was evicted meanwhile has its whole allowance anyway.
            if let Some([_, full_at_ns]) = find(set, tag) {
                *full_at_ns = full_at_ns.saturating_sub(bucket.interval_ns).max(1);
            }
        });
    }

    /// Charges requests that other balancers have let pass to the allowance of `key`. No more is charged than
    /// one allowance for each member, or [`DEBT_MAX`] of the rate.
    pub fn charge(&self, limit: &RateLimit, key: u64, requests: u32, now: Moment) {
        let whole = Bucket::whole(limit, key, self.shared.side(), Duration::ZERO);
        self.with_set(key, |set, tag| {
            let [_, full_at_ns] = place(set, tag);
            let more_ns = whole.interval_ns.saturating_mul(u64::from(requests));
            let charged_ns = (*full_at_ns).max(nanoseconds_of(now)).saturating_add(more_ns);
            *full_at_ns = whole.bounded(charged_ns, now);
        });
    }

    /// Returns what is left of the allowance of `key`.
    pub fn left(&self, limit: &RateLimit, key: u64, now: Moment) -> Left {
        let left = self.buckets(limit, key).map(|it| it.left(self.full_at_ns(it.key), now));
        left.reduce(|one, other| Left {
            requests: one.requests.min(other.requests),
            full_after: one.full_after.max(other.full_after),
        })
        .unwrap_or(Left { requests: 0, full_after: Duration::ZERO })
    }

    /// Returns the allowances that a request of this key takes from.
    fn buckets(&self, limit: &RateLimit, key: u64) -> impl Iterator<Item = Bucket> {
        let (whole, own) = match limit.scope {
            LimitScope::Balancer => (Bucket::local(limit, key), None),
            LimitScope::Fleet => {
                let terms = self.shared.terms(key);
                let whole = Bucket::whole(limit, key, self.shared.side(), terms.lag);
                (whole, whole.own(terms.share))
            }
        };
        std::iter::once(whole).chain(own)
    }

    /// Returns when the whole allowance of `key` is there again.
    fn full_at_ns(&self, key: u64) -> u64 {
        self.with_set(key, |set, tag| find(set, tag).map_or(0, |[_, full_at_ns]| *full_at_ns))
    }

    /// Passes the set of a key, and its tag there, to `visit`, under the set's lock.
    fn with_set<T>(&self, key: u64, visit: impl FnOnce(&mut Set, u64) -> T) -> T {
        let tag = mix(key);
        let shard = &self.shards[tag as usize % SHARDS];
        let mut sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.is_empty() {
            *sets = vec![EMPTY; self.sets_per_shard];
        }
        // The bits above those that selected the shard select the set.
        visit(&mut sets[(tag >> 6) as usize % self.sets_per_shard], tag)
    }
}

/// What is left of an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The requests that may come at once.
    pub requests: u64,
    /// The time after which the whole allowance is there again, if no request comes before.
    pub full_after: Duration,
}

/// The allowance of one key, without its state.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    key: u64,
    /// `None`: no requests are allowed; one may ask again after this time.
    refused_for: Option<Duration>,
    interval_ns: u64,
    /// At least 1.
    burst: u32,
    wait_max_ns: u64,
    /// It is spent for so long at most: what was taken when less of the limit was this balancer's does not
    /// count for longer.
    spent_max_ns: u64,
}

impl Bucket {
    /// Returns that of a key whose requests all come to this balancer.
    fn local(limit: &RateLimit, key: u64) -> Bucket {
        Bucket {
            key,
            refused_for: (limit.requests == 0).then_some(limit.per),
            interval_ns: interval_ns(limit),
            burst: limit.burst.max(1),
            wait_max_ns: nanoseconds(limit.wait_max),
            spent_max_ns: u64::MAX,
        }
    }

    /// Returns that of a key under a limit of which this side of the fleet has a part. What passes at other
    /// balancers is charged in batches, after this time: one more of them has to fit.
    fn whole(limit: &RateLimit, key: u64, side: Side, lag: Duration) -> Bucket {
        let local = Bucket::local(limit, key);
        let interval_ns = side.share.of_interval(local.interval_ns);
        let batch = nanoseconds(lag).checked_div(interval_ns).unwrap_or(0);
        let batch = u32::try_from(batch).unwrap_or(u32::MAX);
        let burst = side.share.of_number(local.burst).max(1).saturating_add(batch);
        let whole = Bucket { interval_ns, burst, ..local };
        // Each member can let one allowance pass before the counts arrive.
        let of_members_ns = whole.window_ns().saturating_mul(u64::from(side.members));
        let spent_max_ns =
            of_members_ns.max(nanoseconds(DEBT_MAX)).saturating_add(local.wait_max_ns);
        Bucket { spent_max_ns, ..whole }
    }

    /// Returns this balancer's part of it; `None`: that is all of it.
    fn own(&self, share: RateShare) -> Option<Bucket> {
        if share == RateShare::WHOLE {
            return None;
        }
        let interval_ns = share.of_interval(self.interval_ns);
        let burst = share.of_number(self.burst).saturating_add(OWN_BURST);
        let own = Bucket { key: !self.key, interval_ns, burst, ..*self };
        Some(Bucket { spent_max_ns: own.window_ns().saturating_add(own.wait_max_ns), ..own })
    }

    /// Returns when the whole allowance is there again, at most [`Bucket::spent_max_ns`] from now.
    fn bounded(&self, full_at_ns: u64, now: Moment) -> u64 {
        full_at_ns.min(nanoseconds_of(now).saturating_add(self.spent_max_ns))
    }

    /// Returns how long a request has to wait for its turn, at most `wait_max`, or, as an error, the time
    /// until it would not be refused.
    fn turn(&self, full_at_ns: u64, now: Moment) -> Result<Duration, Duration> {
        if let Some(time) = self.refused_for {
            return Err(time);
        }
        let tolerance_ns = self.window_ns().saturating_sub(self.interval_ns);
        let spent_ns = self.bounded(full_at_ns, now).saturating_sub(nanoseconds_of(now));
        let early_ns = spent_ns.saturating_sub(tolerance_ns);
        match early_ns.saturating_sub(self.wait_max_ns) {
            0 => Ok(Duration::from_nanos(early_ns)),
            too_early_ns => Err(Duration::from_nanos(too_early_ns)),
        }
    }

    fn left(&self, full_at_ns: u64, now: Moment) -> Left {
        let used_ns = self.bounded(full_at_ns, now).saturating_sub(nanoseconds_of(now));
        let free_ns = self.window_ns().saturating_sub(used_ns);
        let requests = free_ns.checked_div(self.interval_ns).unwrap_or(u64::from(self.burst));
        Left { requests, full_after: Duration::from_nanos(used_ns) }
    }

    /// Returns the time after which a spent allowance is there again.
    fn window_ns(&self) -> u64 {
        self.interval_ns.saturating_mul(u64::from(self.burst))
    }
}

/// Returns the time after which a spent allowance is there again.
pub fn window(limit: &RateLimit) -> Duration {
    Duration::from_nanos(Bucket::local(limit, 0).window_ns())
}

/// Returns the entry of `tag`, if it has one.
fn find(set: &mut Set, tag: u64) -> Option<&mut [u64; 2]> {
    set.iter_mut().find(|[other, full_at_ns]| *other == tag && *full_at_ns != 0)
}

/// Returns the entry of `tag` in its set: the one it has, or that of the key which loses least by
/// eviction (a free entry, or a key with its whole allowance, loses nothing).
fn place(set: &mut Set, tag: u64) -> &mut [u64; 2] {
    let known = set.iter().position(|&[other, full_at_ns]| other == tag && full_at_ns != 0);
    let at = known.unwrap_or_else(|| {
        let least = set.iter().enumerate().min_by_key(|(_, [_, full_at_ns])| *full_at_ns);
        let at = least.map_or(0, |(at, _)| at);
        set[at] = [tag, 0];
        at
    });
    &mut set[at]
}

/// Returns the key of an allowance: that of `part` under `limit` of the route with this name. It stays
/// the same for as long as they do, also across configurations; that of a limit over the fleet for as long as the
/// limit is the same.
pub fn key(route: &str, limit: &RateLimit, part: u64) -> u64 {
    identity(route, limit).rotate_left(32) ^ mix(part)
}

/// Returns the number that identifies a limit over the fleet at all balancers. Limits with the same name and
/// different values have different numbers, so that their requests are not added up.
pub fn limit_id(route: &str, limit: &RateLimit) -> u32 {
    identity(route, limit) as u32
}

fn identity(route: &str, limit: &RateLimit) -> u64 {
    let names = hash_key(route.as_bytes()) ^ hash_key(limit.name.as_bytes()).rotate_left(1);
    match limit.scope {
        LimitScope::Balancer => names,
        LimitScope::Fleet => {
            let by = match &limit.by {
                RateKey::Client | RateKey::User => 0,
                RateKey::Field(name) | RateKey::Cookie(name) => hash_key(name.as_bytes()),
                RateKey::Claim(path) => hash_key(path.as_bytes()),
            };
            let numbers = [
                hash_key(limit.by.as_str().as_bytes()) ^ by.rotate_left(1),
                u64::from(limit.requests) << 32 | u64::from(limit.burst),
                nanoseconds(limit.per),
            ];
            numbers.into_iter().fold(names, |all, number| mix(all ^ number))
        }
    }
}

fn interval_ns(limit: &RateLimit) -> u64 {
    nanoseconds(limit.per).checked_div(u64::from(limit.requests)).unwrap_or(u64::MAX)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn nanoseconds_of(moment: Moment) -> u64 {
    moment.as_micros().saturating_mul(1_000)
}

#[cfg(test)]
mod tests;
