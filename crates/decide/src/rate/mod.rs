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
mod tests {
    use model::RateKey;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn limit(requests: u32, per: Duration, burst: u32) -> RateLimit {
        RateLimit {
            name: "a".into(),
            by: RateKey::Client,
            scope: LimitScope::Balancer,
            requests,
            per,
            burst,
            wait_max: Duration::ZERO,
            is_announced: false,
        }
    }

    fn at_ms(millis: u64) -> Moment {
        Moment::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate_counts() {
        let table = RateTable::new(100);
        let limit = limit(10, Duration::from_secs(1), 3);
        for _ in 0..3 {
            assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        }
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(100)));
        assert_eq!(table.take("r", &limit, 9, at_ms(99)), Err(Duration::from_millis(1)));
        // A refusal uses nothing, and its wait time is exact.
        assert_eq!(table.take("r", &limit, 9, at_ms(100)), Ok(NOW));
        assert_eq!(table.take("r", &limit, 9, at_ms(100)), Err(Duration::from_millis(100)));
        // The whole burst is back after the time it takes to refill.
        for _ in 0..3 {
            assert_eq!(table.take("r", &limit, 9, at_ms(500)), Ok(NOW));
        }
        assert!(table.take("r", &limit, 9, at_ms(500)).is_err());
    }

    #[test]
    fn those_that_may_wait_are_spread_over_time() {
        let table = RateTable::new(100);
        let mut limit = limit(10, Duration::from_secs(1), 1);
        limit.wait_max = Duration::from_millis(250);
        let waits = [0, 100, 200].map(Duration::from_millis);
        for wait in waits {
            assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(wait));
        }
        // 300 ms would be too long; 50 ms later it is not, provided that no other request goes
        // before.
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(50)));
        assert_eq!(table.take("r", &limit, 9, at_ms(50)), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn keys_do_not_share() {
        let table = RateTable::new(100);
        let limit = limit(1, Duration::from_mins(1), 1);
        for key in [1, 2, 1 << 32, 3 << 62] {
            assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW), "{key}");
            assert!(table.take("r", &limit, key, at_ms(0)).is_err());
        }
    }

    #[test]
    fn odd_limits_do_what_they_say() {
        let table = RateTable::new(1);
        let never = limit(0, Duration::from_secs(5), 3);
        assert_eq!(table.take("r", &never, 1, at_ms(0)), Err(Duration::from_secs(5)));
        let no_burst = limit(1, Duration::from_secs(1), 0);
        assert_eq!(table.take("r", &no_burst, 2, at_ms(0)), Ok(NOW));
        assert_eq!(table.take("r", &no_burst, 2, at_ms(0)), Err(Duration::from_secs(1)));
        let endless = limit(1, Duration::MAX, u32::MAX);
        assert_eq!(table.take("r", &endless, 3, Moment::ZERO), Ok(NOW));
        let at_the_beginning = limit(u32::MAX, Duration::from_nanos(1), 1);
        assert_eq!(table.take("r", &at_the_beginning, 4, Moment::ZERO), Ok(NOW));
    }

    /// Compares with the token bucket that the limit describes, implemented directly: a level that
    /// rises with time up to `burst` requests and falls by one for each request that passes.
    #[test]
    fn every_decision_is_the_token_buckets() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..100 {
            let (requests, burst) = (rng.u32(1..500), rng.u32(1..50));
            let limit = limit(requests, Duration::from_millis(rng.u64(1..5_000)), burst);
            let table = RateTable::new(64);
            let one_ns = limit.per.as_nanos() as u64 / u64::from(requests);
            let mut level_ns = one_ns * u64::from(burst);
            let mut now_us = rng.u64(0..1_000_000);
            let step_max_us = one_ns / 1_000 * rng.u64(1..4) + 2;
            for _ in 0..2_000 {
                let step_us = rng.u64(0..step_max_us);
                now_us += step_us;
                level_ns = (level_ns + step_us * 1_000).min(one_ns * u64::from(burst));
                let expected = match level_ns.checked_sub(one_ns) {
                    Some(left) => {
                        level_ns = left;
                        Ok(NOW)
                    }
                    None => Err(Duration::from_nanos(one_ns - level_ns)),
                };
                let taken = table.take("r", &limit, 1, Moment::from_micros(now_us));
                assert_eq!(taken, expected, "seed {seed}, {limit:?}, at {now_us}");
            }
        }
    }

    #[test]
    fn a_flood_of_keys_takes_no_memory_and_evicts_the_least_used() {
        let table = RateTable::new(1_000);
        let room = || table.shards.iter().map(|s| s.lock().unwrap().len() * WAYS).sum::<usize>();
        assert_eq!(room(), 0);
        let limit = limit(1, Duration::from_secs(1), 10);
        let spend = |key| while table.take("r", &limit, key, at_ms(0)).is_ok() {};
        (0..100).for_each(spend);
        for key in 1_000..100_000 {
            assert_eq!(table.take("r", &limit, key, at_ms(1)), Ok(NOW));
        }
        let still_limited = (0..100).filter(|&key| table.take("r", &limit, key, at_ms(2)).is_err());
        assert_eq!(still_limited.count(), 100);
        assert!((2_000..3_100).contains(&room()), "{} places", room());
    }

    #[test]
    fn a_table_with_as_many_keys_as_it_is_made_for_forgets_hardly_any() {
        let table = RateTable::new(10_000);
        let limit = limit(1, Duration::from_secs(1), 1);
        for key in 0..10_000 {
            assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW));
        }
        let forgotten = (0..10_000).filter(|&key| table.take("r", &limit, key, at_ms(1)).is_ok());
        let forgotten = forgotten.count();
        assert!(forgotten < 300, "{forgotten} of 10,000");
    }

    #[test]
    fn workers_together_pass_what_one_would() {
        let table = RateTable::new(100);
        let limit = limit(1_000, Duration::from_secs(1), 100);
        let passed: usize = std::thread::scope(|scope| {
            let worker =
                || (0..5_000).filter(|_| table.take("r", &limit, 1, at_ms(0)).is_ok()).count();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn a_request_that_is_given_back_was_not_counted() {
        let table = RateTable::new(100);
        let limit = limit(10, Duration::from_secs(1), 3);
        let left = |at| table.left(&limit, 9, at_ms(at));
        assert_eq!(left(0), Left { requests: 3, full_after: NOW });
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        assert_eq!(left(0), Left { requests: 2, full_after: Duration::from_millis(100) });
        for _ in 0..3 {
            table.give_back(&limit, 9);
        }
        // Nor does it add to the allowance.
        assert_eq!(left(0), Left { requests: 3, full_after: NOW });
        for _ in 0..3 {
            assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        }
        assert!(table.take("r", &limit, 9, at_ms(0)).is_err());
        assert_eq!(left(0), Left { requests: 0, full_after: Duration::from_millis(300) });
        assert_eq!(left(250), Left { requests: 2, full_after: Duration::from_millis(50) });
        assert_eq!(window(&limit), Duration::from_millis(300));
        table.give_back(&limit, 10);
        assert_eq!(table.take("r", &limit, 10, at_ms(0)), Ok(NOW));
    }

    #[test]
    fn a_request_passes_all_limits_or_counts_for_none() {
        let table = RateTable::new(100);
        let mut limits =
            [limit(3, Duration::from_secs(3), 3), limit(5, Duration::from_secs(50), 5)];
        limits[1].name = "b".into();
        let key_of = |limit: &RateLimit| key("route", limit, 9);
        let take = |at_s: u64| table.take_all("route", &limits, key_of, at_ms(at_s * 1_000));
        let left = |at_s: u64| {
            let of = |limit| table.left(limit, key_of(limit), at_ms(at_s * 1_000)).requests;
            [of(&limits[0]), of(&limits[1])]
        };
        for _ in 0..3 {
            assert_eq!(take(0), Ok(NOW));
        }
        assert_eq!(take(0), Err((&limits[0], Duration::from_secs(1))));
        assert_eq!(left(0), [0, 2]);
        assert_eq!((take(2), take(2)), (Ok(NOW), Ok(NOW)));
        // Both refuse: the second does so for longer.
        assert_eq!(take(2), Err((&limits[1], Duration::from_secs(8))));
        // Only the second refuses, and the first does not count the request.
        assert_eq!(take(5), Err((&limits[1], Duration::from_secs(5))));
        assert_eq!(left(5), [3, 0]);
        assert_eq!(take(10), Ok(NOW));
        // Turns of both are waited for.
        limits[0].wait_max = Duration::from_secs(60);
        limits[1].wait_max = Duration::from_secs(60);
        assert_eq!(
            table.take_all("route", &limits, key_of, at_ms(10_000)),
            Ok(Duration::from_secs(10))
        );
    }

    #[test]
    fn routes_limits_and_values_have_keys_of_their_own() {
        let (one, mut other) = (limit(1, Duration::from_secs(1), 1), limit(1, Duration::ZERO, 1));
        assert_eq!(key("r", &one, 1), key("r", &other, 1));
        other.name = "b".into();
        let keys = [key("r", &one, 1), key("s", &one, 1), key("r", &other, 1), key("r", &one, 2)];
        let different: std::collections::HashSet<_> = keys.into_iter().collect();
        assert_eq!(different.len(), 4);
        // A limit and a route that exchange their names do not exchange their allowances.
        assert_ne!(key("b", &one, 1), key("a", &other, 1));
    }

    fn over_the_fleet(requests: u32, burst: u32) -> RateLimit {
        let scope = LimitScope::Fleet;
        RateLimit { scope, ..limit(requests, Duration::from_secs(1), burst) }
    }

    /// A table whose keys of limits over the fleet are read.
    fn shared_table(keys_max: usize) -> RateTable {
        let table = RateTable::new(keys_max);
        table.shared().begin(PartKey::new([7; 16]));
        table
    }

    /// Returns how many of many requests at once pass.
    fn passing(table: &RateTable, limit: &RateLimit, at: u64) -> usize {
        (0..1_000).filter(|_| table.take("r", limit, 9, at_ms(at)).is_ok()).count()
    }

    #[test]
    fn what_others_let_pass_counts_here() {
        let table = shared_table(100);
        let limit = over_the_fleet(10, 5);
        table.charge(&limit, 9, 3, at_ms(0));
        assert_eq!(passing(&table, &limit, 0), 2);
        table.charge(&limit, 9, 7, at_ms(0));
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Err(Duration::from_millis(800)));
        // Whatever others have let pass, two seconds later this one passes some again.
        table.charge(&limit, 9, u32::MAX, at_ms(0));
        table.charge(&limit, 9, u32::MAX, at_ms(10));
        assert!(table.take("r", &limit, 9, at_ms(1_600)).is_err());
        assert_eq!(passing(&table, &limit, 2_010), 5);
    }

    #[test]
    fn a_balancer_uses_its_part_of_its_sides_part() {
        let table = shared_table(100);
        let limit = over_the_fleet(100, 20);
        assert_eq!(passing(&table, &limit, 0), 20);
        table.shared().set_side(Side { share: RateShare::of(0.5), members: 1 });
        assert_eq!(passing(&table, &limit, 10_000), 10);
        assert_eq!(passing(&table, &limit, 10_100), 5);
        let [reading] = table.shared().readings()[..] else { panic!("one key") };
        assert_eq!((reading.offered, reading.taken), (3_000, 35));
        assert_eq!(reading.limit, limit_id("r", &limit));
        // Of 50 per second, a tenth; others are charged in lots of 100 ms.
        let terms = RateTerms { share: RateShare::of(0.1), lag: Duration::from_millis(100) };
        table.shared().set_terms(9, terms);
        assert_eq!(passing(&table, &limit, 20_000), 4);
        assert_eq!(table.left(&limit, 9, at_ms(20_000)).requests, 0);
        assert_eq!(passing(&table, &limit, 20_200), 1);
        // A key that was used since the reading is not forgotten.
        assert!(!table.shared().forget(&reading));
        let [reading] = table.shared().readings()[..] else { panic!("one key") };
        assert!(table.shared().forget(&reading));
        assert_eq!(table.shared().readings(), []);
    }

    #[test]
    fn what_was_taken_of_a_small_part_does_not_count_for_longer_than_of_a_large_one() {
        let table = shared_table(100);
        let limit = over_the_fleet(100, 100);
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        let share = |part| {
            let share = RateShare::of(part);
            table.shared().set_terms(9, RateTerms { share, lag: Duration::from_millis(250) });
        };
        share(1e-4);
        assert_eq!(passing(&table, &limit, 1_000), 2);
        assert!(table.left(&limit, 9, at_ms(1_000)).full_after > Duration::from_secs(150));
        share(0.5);
        assert!(table.left(&limit, 9, at_ms(1_000)).full_after < Duration::from_secs(2));
        assert_eq!(passing(&table, &limit, 1_000), 0);
        assert!(passing(&table, &limit, 3_000) > 50);
        // The same for the part of a side.
        table.shared().set_side(Side { share: RateShare::of(1e-3), members: 1 });
        passing(&table, &limit, 10_000);
        table.shared().set_side(Side { share: RateShare::WHOLE, members: 2 });
        assert!(table.left(&limit, 9, at_ms(10_000)).full_after < Duration::from_secs(3));
    }

    #[test]
    fn alone_again_nothing_is_kept_of_the_fleet() {
        let table = shared_table(100);
        let limit = over_the_fleet(10, 5);
        passing(&table, &limit, 0);
        let lag = Duration::from_millis(250);
        table.shared().set_terms(9, RateTerms { share: RateShare::of(0.1), lag });
        table.shared().set_side(Side { share: RateShare::of(0.5), members: 2 });
        table.shared().retire();
        assert_eq!(passing(&table, &limit, 10_000), 5);
        assert_eq!(table.shared().readings(), []);
    }

    #[test]
    fn limits_of_one_name_with_other_values_are_other_limits() {
        let one = over_the_fleet(10, 5);
        let by = RateKey::Field("x-key".into());
        let others = [
            RateLimit { requests: 11, ..one.clone() },
            RateLimit { burst: 6, ..one.clone() },
            RateLimit { per: Duration::from_secs(2), ..one.clone() },
            RateLimit { by: RateKey::User, ..one.clone() },
            RateLimit { by: by.clone(), ..one.clone() },
            RateLimit { by: RateKey::Field("x-other".into()), ..one.clone() },
        ];
        let all = others.iter().chain([&one]);
        let ids: std::collections::HashSet<u32> = all.map(|it| limit_id("r", it)).collect();
        assert_eq!(ids.len(), others.len() + 1);
        // Waiting is up to each balancer.
        let waits = RateLimit { wait_max: Duration::from_secs(1), ..one.clone() };
        assert_eq!(limit_id("r", &waits), limit_id("r", &one));
    }

    #[test]
    fn a_request_that_is_given_back_is_not_reported() {
        let table = shared_table(100);
        let limit = over_the_fleet(10, 5);
        let taken = || table.shared().readings()[0].taken;
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        table.give_back(&limit, 9);
        assert_eq!(table.left(&limit, 9, at_ms(0)).requests, 5);
        assert_eq!(taken(), 1, "totals never fall");
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        assert_eq!(taken(), 1);
        assert_eq!(table.take("r", &limit, 9, at_ms(0)), Ok(NOW));
        assert_eq!(taken(), 2);
    }

    #[test]
    fn more_keys_than_have_a_place_are_limited_here_alone() {
        let table = shared_table(200_000);
        let limit = over_the_fleet(1, 1);
        for key in 0..100_000 {
            assert_eq!(table.take("r", &limit, key, at_ms(0)), Ok(NOW));
        }
        let tracked = table.shared().readings().len();
        assert!((30_000..=32_768).contains(&tracked), "{tracked}");
        assert_eq!(table.shared().untracked(), 100_000 - tracked as u64);
        let refused = (0..100_000).filter(|&key| table.take("r", &limit, key, at_ms(500)).is_err());
        assert!(refused.count() > 99_000);
        // Keys of other limits have places.
        let other = RateLimit { name: "b".into(), ..limit };
        assert_eq!(table.take("r", &other, 200_000, at_ms(0)), Ok(NOW));
        assert_eq!(table.shared().readings().len(), tracked + 1);
        table.shared().retain(|limit| limit == limit_id("r", &other));
        assert_eq!(table.shared().readings().len(), 1);
    }
}
