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

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use model::{Moment, RateKey, RateLimit};

use crate::route::RequestView;

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

    /// Takes one request from the allowance of `key` on `route` (numbers that stay the same for as
    /// long as the allowance should, including across configurations). Returns how long the request
    /// has to wait for its turn, at most `limit.wait_max`; the turn is reserved.
    ///
    /// With `burst` n, n requests may come at once and each further one `per / requests` after the
    /// one before; 0 counts as 1. No requests at all are allowed when `requests` is 0.
    ///
    /// # Errors
    ///
    /// The wait would be too long: returns the time until it would not be, if no other request
    /// comes before.
    pub fn take(
        &self,
        route: u64,
        limit: &RateLimit,
        key: u64,
        now: Moment,
    ) -> Result<Duration, Duration> {
        if limit.requests == 0 {
            return Err(limit.per);
        }
        let now_ns = now.as_micros().saturating_mul(1_000);
        let interval_ns = nanoseconds(limit.per) / u64::from(limit.requests);
        let tolerance_ns = interval_ns.saturating_mul(u64::from(limit.burst.saturating_sub(1)));

        let tag = mix(route.rotate_left(32) ^ mix(key));
        let shard = &self.shards[tag as usize % SHARDS];
        let mut sets = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.is_empty() {
            *sets = vec![EMPTY; self.sets_per_shard];
        }
        // The bits above those that selected the shard select the set.
        let set = &mut sets[(tag >> 6) as usize % self.sets_per_shard];
        let [_, full_at_ns] = place(set, tag);

        let from_ns = (*full_at_ns).max(now_ns);
        let early_ns = (from_ns - now_ns).saturating_sub(tolerance_ns);
        let too_early_ns = early_ns.saturating_sub(nanoseconds(limit.wait_max));
        if too_early_ns > 0 {
            return Err(Duration::from_nanos(too_early_ns));
        }
        *full_at_ns = from_ns.saturating_add(interval_ns);
        Ok(Duration::from_nanos(early_ns))
    }
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

/// Returns the rate limit key of a request: the client's address (an IPv6 client's /64; an
/// IPv4-mapped IPv6 address counts as IPv4) or the value of a field. Hashed with a key that is
/// random per process, so that no one can compute a value that shares another client's allowance.
pub fn rate_key<R: RequestView>(by: &RateKey, client: IpAddr, head: &R) -> u64 {
    static KEYED: OnceLock<RandomState> = OnceLock::new();
    let keyed = KEYED.get_or_init(RandomState::new);
    match by {
        RateKey::Client => match client.to_canonical() {
            IpAddr::V4(address) => keyed.hash_one(address.octets()),
            IpAddr::V6(address) => keyed.hash_one(address.to_bits() >> 64),
        },
        RateKey::Field(name) => keyed.hash_one(head.field(name)),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Spreads every bit over all others (the finaliser of `MurmurHash3`).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn limit(requests: u32, per: Duration, burst: u32) -> RateLimit {
        RateLimit { by: RateKey::Client, requests, per, burst, wait_max: Duration::ZERO }
    }

    fn at_ms(millis: u64) -> Moment {
        Moment::from_millis(1_000_000 + millis)
    }

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate_counts() {
        let table = RateTable::new(100);
        let limit = limit(10, Duration::from_secs(1), 3);
        for _ in 0..3 {
            assert_eq!(table.take(1, &limit, 9, at_ms(0)), Ok(NOW));
        }
        assert_eq!(table.take(1, &limit, 9, at_ms(0)), Err(Duration::from_millis(100)));
        assert_eq!(table.take(1, &limit, 9, at_ms(99)), Err(Duration::from_millis(1)));
        // A refusal uses nothing, and its wait time is exact.
        assert_eq!(table.take(1, &limit, 9, at_ms(100)), Ok(NOW));
        assert_eq!(table.take(1, &limit, 9, at_ms(100)), Err(Duration::from_millis(100)));
        // The whole burst is back after the time it takes to refill.
        for _ in 0..3 {
            assert_eq!(table.take(1, &limit, 9, at_ms(500)), Ok(NOW));
        }
        assert!(table.take(1, &limit, 9, at_ms(500)).is_err());
    }

    #[test]
    fn those_that_may_wait_are_spread_over_time() {
        let table = RateTable::new(100);
        let mut limit = limit(10, Duration::from_secs(1), 1);
        limit.wait_max = Duration::from_millis(250);
        let waits = [0, 100, 200].map(Duration::from_millis);
        for wait in waits {
            assert_eq!(table.take(1, &limit, 9, at_ms(0)), Ok(wait));
        }
        // 300 ms would be too long; 50 ms later it is not, provided that no other request goes
        // before.
        assert_eq!(table.take(1, &limit, 9, at_ms(0)), Err(Duration::from_millis(50)));
        assert_eq!(table.take(1, &limit, 9, at_ms(50)), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn keys_and_routes_do_not_share() {
        let table = RateTable::new(100);
        let limit = limit(1, Duration::from_mins(1), 1);
        for (route, key) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            assert_eq!(table.take(route, &limit, key, at_ms(0)), Ok(NOW), "{route} {key}");
            assert!(table.take(route, &limit, key, at_ms(0)).is_err());
        }
    }

    #[test]
    fn odd_limits_do_what_they_say() {
        let table = RateTable::new(1);
        let never = limit(0, Duration::from_secs(5), 3);
        assert_eq!(table.take(1, &never, 1, at_ms(0)), Err(Duration::from_secs(5)));
        let no_burst = limit(1, Duration::from_secs(1), 0);
        assert_eq!(table.take(2, &no_burst, 1, at_ms(0)), Ok(NOW));
        assert_eq!(table.take(2, &no_burst, 1, at_ms(0)), Err(Duration::from_secs(1)));
        let endless = limit(1, Duration::MAX, u32::MAX);
        assert_eq!(table.take(3, &endless, 1, Moment::ZERO), Ok(NOW));
        let at_the_beginning = limit(u32::MAX, Duration::from_nanos(1), 1);
        assert_eq!(table.take(4, &at_the_beginning, 1, Moment::ZERO), Ok(NOW));
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
                let taken = table.take(1, &limit, 1, Moment::from_micros(now_us));
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
        let spend = |key| while table.take(1, &limit, key, at_ms(0)).is_ok() {};
        (0..100).for_each(spend);
        for key in 1_000..100_000 {
            assert_eq!(table.take(1, &limit, key, at_ms(1)), Ok(NOW));
        }
        let still_limited = (0..100).filter(|&key| table.take(1, &limit, key, at_ms(2)).is_err());
        assert_eq!(still_limited.count(), 100);
        assert!((2_000..3_100).contains(&room()), "{} places", room());
    }

    #[test]
    fn a_table_with_as_many_keys_as_it_is_made_for_forgets_hardly_any() {
        let table = RateTable::new(10_000);
        let limit = limit(1, Duration::from_secs(1), 1);
        for key in 0..10_000 {
            assert_eq!(table.take(1, &limit, key, at_ms(0)), Ok(NOW));
        }
        let forgotten = (0..10_000).filter(|&key| table.take(1, &limit, key, at_ms(1)).is_ok());
        let forgotten = forgotten.count();
        assert!(forgotten < 300, "{forgotten} of 10,000");
    }

    #[test]
    fn workers_together_pass_what_one_would() {
        let table = RateTable::new(100);
        let limit = limit(1_000, Duration::from_secs(1), 100);
        let passed: usize = std::thread::scope(|scope| {
            let worker =
                || (0..5_000).filter(|_| table.take(1, &limit, 1, at_ms(0)).is_ok()).count();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn an_ipv6_client_is_its_network_and_a_field_its_value() {
        struct Head(Option<&'static [u8]>);
        impl RequestView for Head {
            fn method(&self) -> &'static str {
                "GET"
            }
            fn host(&self) -> &'static str {
                ""
            }
            fn path(&self) -> &'static str {
                "/"
            }
            fn query(&self) -> Option<&str> {
                None
            }
            fn field_names(&self) -> impl Iterator<Item = &[u8]> {
                std::iter::empty()
            }
            fn field(&self, name: &str) -> Option<&[u8]> {
                (name == "x-api-key").then_some(self.0).flatten()
            }
            fn field_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
                self.field(name).into_iter()
            }
            fn cookie_values(&self, _: &str) -> impl Iterator<Item = &[u8]> {
                std::iter::empty()
            }
        }
        let by_client =
            |address: &str| rate_key(&RateKey::Client, address.parse().unwrap(), &Head(None));
        assert_eq!(by_client("2001:db8::1"), by_client("2001:db8::ffff:1:2:3"));
        assert_ne!(by_client("2001:db8::1"), by_client("2001:db8:0:1::1"));
        assert_eq!(by_client("192.0.2.1"), by_client("::ffff:192.0.2.1"));
        assert_ne!(by_client("192.0.2.1"), by_client("192.0.2.2"));
        let by_field = |value| {
            let client = IpAddr::from([192, 0, 2, 1]);
            rate_key(&RateKey::Field("x-api-key".into()), client, &Head(value))
        };
        assert_eq!(by_field(Some(b"a")), by_field(Some(b"a")));
        assert_ne!(by_field(Some(b"a")), by_field(Some(b"b")));
        assert_ne!(by_field(None), by_field(Some(b"")));
    }
}
