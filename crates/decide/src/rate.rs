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

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use model::{Moment, RateLimit};

use crate::hash_key;

/// The allowance of every key of every route.
#[derive(Debug)]
pub struct RateTable {
    /// Each is empty until its first key.
    shards: Box<[Mutex<Vec<Set>>]>,
    sets_per_shard: usize,
}

/// Entries in which a key may be stored.
const WAYS: usize = 8;

/// Number of locks, so that workers rarely contend.
const SHARDS: usize = 64;

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
        limits: &'l [RateLimit],
        key_of: impl Fn(&RateLimit) -> u64,
        now: Moment,
    ) -> Result<Duration, (&'l RateLimit, Duration)> {
        let mut turn = Duration::ZERO;
        for (at, limit) in limits.iter().enumerate() {
            match self.take(limit, key_of(limit), now) {
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
    /// With `burst` n, n requests may come at once and each further one `per / requests` after the
    /// one before; 0 counts as 1. No requests at all are allowed when `requests` is 0.
    ///
    /// # Errors
    ///
    /// The wait would be too long: returns the time until it would not be, if no other request
    /// comes before.
    pub fn take(&self, limit: &RateLimit, key: u64, now: Moment) -> Result<Duration, Duration> {
        self.with_set(key, |set, tag| {
            let [_, full_at_ns] = place(set, tag);
            let turn = turn(limit, *full_at_ns, now)?;
            let from_ns = (*full_at_ns).max(nanoseconds_of(now));
            *full_at_ns = from_ns.saturating_add(interval_ns(limit));
            Ok(turn)
        })
    }

    /// Returns what [`RateTable::take`] would return, and takes nothing.
    fn turn(&self, limit: &RateLimit, key: u64, now: Moment) -> Result<Duration, Duration> {
        turn(limit, self.full_at_ns(key), now)
    }

    /// Gives back a request that [`RateTable::take`] has taken, for one that another limit refuses.
    pub fn give_back(&self, limit: &RateLimit, key: u64) {
        let interval_ns = interval_ns(limit);
        self.with_set(key, |set, tag| {
            // A key that was evicted meanwhile has its whole allowance anyway.
            if let Some([_, full_at_ns]) = find(set, tag) {
                *full_at_ns = full_at_ns.saturating_sub(interval_ns).max(1);
            }
        });
    }

    /// Returns what is left of the allowance of `key`.
    pub fn left(&self, limit: &RateLimit, key: u64, now: Moment) -> Left {
        let now_ns = nanoseconds_of(now);
        let used_ns = self.full_at_ns(key).saturating_sub(now_ns);
        let interval_ns = interval_ns(limit);
        let whole_ns = interval_ns.saturating_mul(u64::from(limit.burst.max(1)));
        let free_ns = whole_ns.saturating_sub(used_ns);
        let requests = free_ns.checked_div(interval_ns).unwrap_or(u64::from(limit.burst));
        Left { requests, full_after: Duration::from_nanos(used_ns) }
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

/// Returns how long a request has to wait for its turn, at most `limit.wait_max`, or, as an error, the
/// time until it would not be refused.
fn turn(limit: &RateLimit, full_at_ns: u64, now: Moment) -> Result<Duration, Duration> {
    if limit.requests == 0 {
        return Err(limit.per);
    }
    let tolerance_ns = interval_ns(limit).saturating_mul(u64::from(limit.burst.saturating_sub(1)));
    let early_ns = full_at_ns.saturating_sub(nanoseconds_of(now)).saturating_sub(tolerance_ns);
    match early_ns.saturating_sub(nanoseconds(limit.wait_max)) {
        0 => Ok(Duration::from_nanos(early_ns)),
        too_early_ns => Err(Duration::from_nanos(too_early_ns)),
    }
}

/// Returns the time after which a spent allowance is there again.
pub fn window(limit: &RateLimit) -> Duration {
    Duration::from_nanos(interval_ns(limit).saturating_mul(u64::from(limit.burst.max(1))))
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
/// the same for as long as they do, also across configurations.
pub fn key(route: &str, limit: &RateLimit, part: u64) -> u64 {
    let of = hash_key(route.as_bytes()) ^ hash_key(limit.name.as_bytes()).rotate_left(1);
    of.rotate_left(32) ^ mix(part)
}

/// Returns a number for a client's address (an IPv6 client's /64; an IPv4-mapped IPv6 address counts as
/// IPv4). Hashed as in [`of_value`].
pub fn of_client(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(address) => of_value(address.octets()),
        IpAddr::V6(address) => of_value(address.to_bits() >> 64),
    }
}

/// Returns a number for a value that requests share an allowance by. Hashed with a key that is random
/// per process, so that no one can compute a value that shares another client's allowance.
pub fn of_value(value: impl Hash) -> u64 {
    static KEYED: OnceLock<RandomState> = OnceLock::new();
    KEYED.get_or_init(RandomState::new).hash_one(value)
}

/// Returns a number for the values of a part of a request, as [`of_value`]: one for each value, one for
/// none, and one for several, since which of those a server would read is unknown.
pub fn of_values<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> u64 {
    match (values.next(), values.next()) {
        (Some(one), None) => of_value(Some(one)),
        (None, _) => of_value(None::<&[u8]>),
        (Some(_), Some(_)) => of_value([(); 2]),
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

/// Spreads every bit over all others (the finaliser of `MurmurHash3`).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
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
            assert_eq!(table.take(&limit, 9, at_ms(0)), Ok(NOW));
        }
        assert_eq!(table.take(&limit, 9, at_ms(0)), Err(Duration::from_millis(100)));
        assert_eq!(table.take(&limit, 9, at_ms(99)), Err(Duration::from_millis(1)));
        // A refusal uses nothing, and its wait time is exact.
        assert_eq!(table.take(&limit, 9, at_ms(100)), Ok(NOW));
        assert_eq!(table.take(&limit, 9, at_ms(100)), Err(Duration::from_millis(100)));
        // The whole burst is back after the time it takes to refill.
        for _ in 0..3 {
            assert_eq!(table.take(&limit, 9, at_ms(500)), Ok(NOW));
        }
        assert!(table.take(&limit, 9, at_ms(500)).is_err());
    }

    #[test]
    fn those_that_may_wait_are_spread_over_time() {
        let table = RateTable::new(100);
        let mut limit = limit(10, Duration::from_secs(1), 1);
        limit.wait_max = Duration::from_millis(250);
        let waits = [0, 100, 200].map(Duration::from_millis);
        for wait in waits {
            assert_eq!(table.take(&limit, 9, at_ms(0)), Ok(wait));
        }
        // 300 ms would be too long; 50 ms later it is not, provided that no other request goes
        // before.
        assert_eq!(table.take(&limit, 9, at_ms(0)), Err(Duration::from_millis(50)));
        assert_eq!(table.take(&limit, 9, at_ms(50)), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn keys_do_not_share() {
        let table = RateTable::new(100);
        let limit = limit(1, Duration::from_mins(1), 1);
        for key in [1, 2, 1 << 32, 3 << 62] {
            assert_eq!(table.take(&limit, key, at_ms(0)), Ok(NOW), "{key}");
            assert!(table.take(&limit, key, at_ms(0)).is_err());
        }
    }

    #[test]
    fn odd_limits_do_what_they_say() {
        let table = RateTable::new(1);
        let never = limit(0, Duration::from_secs(5), 3);
        assert_eq!(table.take(&never, 1, at_ms(0)), Err(Duration::from_secs(5)));
        let no_burst = limit(1, Duration::from_secs(1), 0);
        assert_eq!(table.take(&no_burst, 2, at_ms(0)), Ok(NOW));
        assert_eq!(table.take(&no_burst, 2, at_ms(0)), Err(Duration::from_secs(1)));
        let endless = limit(1, Duration::MAX, u32::MAX);
        assert_eq!(table.take(&endless, 3, Moment::ZERO), Ok(NOW));
        let at_the_beginning = limit(u32::MAX, Duration::from_nanos(1), 1);
        assert_eq!(table.take(&at_the_beginning, 4, Moment::ZERO), Ok(NOW));
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
                let taken = table.take(&limit, 1, Moment::from_micros(now_us));
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
        let spend = |key| while table.take(&limit, key, at_ms(0)).is_ok() {};
        (0..100).for_each(spend);
        for key in 1_000..100_000 {
            assert_eq!(table.take(&limit, key, at_ms(1)), Ok(NOW));
        }
        let still_limited = (0..100).filter(|&key| table.take(&limit, key, at_ms(2)).is_err());
        assert_eq!(still_limited.count(), 100);
        assert!((2_000..3_100).contains(&room()), "{} places", room());
    }

    #[test]
    fn a_table_with_as_many_keys_as_it_is_made_for_forgets_hardly_any() {
        let table = RateTable::new(10_000);
        let limit = limit(1, Duration::from_secs(1), 1);
        for key in 0..10_000 {
            assert_eq!(table.take(&limit, key, at_ms(0)), Ok(NOW));
        }
        let forgotten = (0..10_000).filter(|&key| table.take(&limit, key, at_ms(1)).is_ok());
        let forgotten = forgotten.count();
        assert!(forgotten < 300, "{forgotten} of 10,000");
    }

    #[test]
    fn workers_together_pass_what_one_would() {
        let table = RateTable::new(100);
        let limit = limit(1_000, Duration::from_secs(1), 100);
        let passed: usize = std::thread::scope(|scope| {
            let worker = || (0..5_000).filter(|_| table.take(&limit, 1, at_ms(0)).is_ok()).count();
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
        assert_eq!(table.take(&limit, 9, at_ms(0)), Ok(NOW));
        assert_eq!(left(0), Left { requests: 2, full_after: Duration::from_millis(100) });
        for _ in 0..3 {
            table.give_back(&limit, 9);
        }
        // Nor does it add to the allowance.
        assert_eq!(left(0), Left { requests: 3, full_after: NOW });
        for _ in 0..3 {
            assert_eq!(table.take(&limit, 9, at_ms(0)), Ok(NOW));
        }
        assert!(table.take(&limit, 9, at_ms(0)).is_err());
        assert_eq!(left(0), Left { requests: 0, full_after: Duration::from_millis(300) });
        assert_eq!(left(250), Left { requests: 2, full_after: Duration::from_millis(50) });
        assert_eq!(window(&limit), Duration::from_millis(300));
        table.give_back(&limit, 10);
        assert_eq!(table.take(&limit, 10, at_ms(0)), Ok(NOW));
    }

    #[test]
    fn a_request_passes_all_limits_or_counts_for_none() {
        let table = RateTable::new(100);
        let mut limits =
            [limit(3, Duration::from_secs(3), 3), limit(5, Duration::from_secs(50), 5)];
        limits[1].name = "b".into();
        let key_of = |limit: &RateLimit| key("route", limit, 9);
        let take = |at_s: u64| table.take_all(&limits, key_of, at_ms(at_s * 1_000));
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
        assert_eq!(table.take_all(&limits, key_of, at_ms(10_000)), Ok(Duration::from_secs(10)));
    }

    #[test]
    fn an_ipv6_client_is_its_network_and_several_values_are_one() {
        let by_client = |address: &str| of_client(address.parse().unwrap());
        assert_eq!(by_client("2001:db8::1"), by_client("2001:db8::ffff:1:2:3"));
        assert_ne!(by_client("2001:db8::1"), by_client("2001:db8:0:1::1"));
        assert_eq!(by_client("192.0.2.1"), by_client("::ffff:192.0.2.1"));
        assert_ne!(by_client("192.0.2.1"), by_client("192.0.2.2"));
        let by_values = |values: &[&'static [u8]]| of_values(values.iter().copied());
        assert_eq!(by_values(&[b"a"]), by_values(&[b"a"]));
        assert_ne!(by_values(&[b"a"]), by_values(&[b"b"]));
        assert_ne!(by_values(&[]), by_values(&[b""]));
        assert_eq!(by_values(&[b"a", b"b"]), by_values(&[b"c", b"a"]));
        assert_ne!(by_values(&[b"a", b"b"]), by_values(&[b"a"]));
        assert_ne!(by_values(&[b"a", b"b"]), by_values(&[]));
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
}
