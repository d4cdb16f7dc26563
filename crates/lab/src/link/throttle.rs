//! A throttle on new connections, as a cloud's connection tracking imposes it on small machines.
//!
//! A model of unexplained measurements: sources belong to pools according to their connection rate, and
//! each pool has a token bucket. When the bucket is empty, the pool is closed: with `sheds = "all"` for all
//! its sources, including hosts that were not at fault, until the bucket has filled again; with
//! `sheds = "slowest"` for one source after the other until the others fit. A closed source gets through
//! now and then, as retransmitted SYNs did there. Without bounds between pools it is a plain token bucket,
//! for all sources together or for each.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::units::{Share, Time};

/// Sources with their own state; further ones share one.
const SOURCES_MAX: usize = 65_536;
/// Pools of a throttle.
const POOLS_MAX: usize = 8;
/// A source that was let through this long ago does not count among those of its pool.
const QUIET_NS: u64 = 2_000_000_000;

/// The throttle of one direction, as in the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// From the slowest sources to the fastest.
    pub pools: Vec<Pool>,
    /// A bucket for each source, and not one for all of a pool.
    #[serde(default)]
    pub each_source: bool,
    /// The time over which a source's speed is measured (that of an exponential mean).
    #[serde(default = "second")]
    pub measure: Time,
    /// How long a source may do as it likes before it is put into a pool.
    #[serde(default)]
    pub grace: Time,
    /// New connections per second that get through while a bucket, or a source, is shut.
    #[serde(default)]
    pub trickle_per_s: f64,
    /// How long a source stays shut out of a pool that sheds the slowest.
    #[serde(default = "second")]
    pub penalty: Time,
}

/// Sources of like speed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Sources with fewer new connections per second than this; the last pool takes all.
    pub below_per_s: Option<f64>,
    /// New connections per second that the bucket is filled with.
    pub rate_per_s: f64,
    /// How many the bucket holds.
    pub burst: f64,
    /// How full the bucket must be again before it opens.
    #[serde(default)]
    pub reopen: Share,
    /// Whom it shuts out.
    #[serde(default)]
    pub sheds: Sheds,
}

/// Whom a pool shuts out when its bucket is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sheds {
    /// Everyone.
    #[default]
    All,
    /// The source that connects slowest.
    Slowest,
}

fn second() -> Time {
    Time(std::time::Duration::from_secs(1))
}

impl Throttle {
    /// # Errors
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.pools.is_empty() || self.pools.len() > POOLS_MAX {
            return Err(format!("`throttle` wants 1 to {POOLS_MAX} `pools`"));
        }
        for (index, pool) in self.pools.iter().enumerate() {
            let is_last = index + 1 == self.pools.len();
            if is_last != pool.below_per_s.is_none() {
                return Err("every pool but the last has `below_per_s`".to_owned());
            }
            if !(pool.rate_per_s > 0.0 && pool.burst >= 1.0) {
                return Err("a pool's `rate_per_s` is above 0, its `burst` 1 or more".to_owned());
            }
        }
        let rises = |two: &[Pool]| two[0].below_per_s < two[1].below_per_s;
        let bounded = self.pools.len() - 1;
        if !self.pools[..bounded].windows(2).all(rises) {
            return Err("pools go from the slowest to the fastest".to_owned());
        }
        if self.measure.as_nanos() == 0 {
            return Err("`measure` is longer than 0".to_owned());
        }
        Ok(())
    }
}

/// A token bucket that, once empty, stays shut until it is full enough.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    tokens: f64,
    filled_ns: u64,
    is_shut: bool,
    next_trickle_ns: u64,
}

impl Bucket {
    fn full(pool: &Pool, now_ns: u64) -> Bucket {
        Bucket { tokens: pool.burst, filled_ns: now_ns, is_shut: false, next_trickle_ns: 0 }
    }

    fn fill(&mut self, pool: &Pool, now_ns: u64) {
        let seconds = now_ns.saturating_sub(self.filled_ns) as f64 / 1e9;
        self.tokens = (self.tokens + seconds * pool.rate_per_s).min(pool.burst);
        self.filled_ns = now_ns;
        // One token at least: what opens must be able to let one through.
        let enough = (pool.reopen.0 * pool.burst).max(1.0);
        self.is_shut &= self.tokens < enough;
    }

    fn take(&mut self) -> bool {
        let has = !self.is_shut && self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        } else {
            self.is_shut = true;
        }
        has
    }
}

/// What is known of a source.
#[derive(Clone, Debug)]
struct Source {
    seen_ns: u64,
    /// New connections let through per second: an exponential mean that began at 0.
    speed_per_s: f64,
    measured_ns: u64,
    shut_until_ns: u64,
    next_trickle_ns: u64,
    /// With `each_source`.
    bucket: Option<Bucket>,
}

impl Source {
    fn new(now_ns: u64) -> Source {
        Source {
            seen_ns: now_ns,
            speed_per_s: 0.0,
            measured_ns: now_ns,
            shut_until_ns: 0,
            next_trickle_ns: 0,
            bucket: None,
        }
    }

    fn mean_at(&self, now_ns: u64, measure_s: f64) -> f64 {
        self.speed_per_s * fading(self.measured_ns, now_ns, measure_s)
    }

    /// The mean, corrected for its start at 0.
    fn speed_at(&self, now_ns: u64, measure_s: f64) -> f64 {
        let known = 1.0 - fading(self.seen_ns, now_ns, measure_s);
        self.mean_at(now_ns, measure_s) / known.max(0.01)
    }
}

/// What is left of a thing's weight after a time.
fn fading(since_ns: u64, now_ns: u64, measure_s: f64) -> f64 {
    (-(now_ns.saturating_sub(since_ns) as f64 / 1e9) / measure_s).exp()
}

/// The throttle at work.
#[derive(Clone, Debug, Default)]
pub struct ThrottleState {
    sources: HashMap<IpAddr, Source>,
    pools: Vec<Bucket>,
}

impl ThrottleState {
    /// Whether a new connection of `source` gets through.
    pub fn admits(&mut self, throttle: &Throttle, source: IpAddr, now_ns: u64) -> bool {
        if self.pools.len() != throttle.pools.len() {
            self.pools = throttle.pools.iter().map(|pool| Bucket::full(pool, now_ns)).collect();
        }
        let measure_s = throttle.measure.0.as_secs_f64();
        let key = if self.sources.len() < SOURCES_MAX || self.sources.contains_key(&source) {
            source
        } else {
            IpAddr::from([0; 4])
        };
        let known = self.sources.entry(key).or_insert_with(|| Source::new(now_ns));
        let speed = known.speed_at(now_ns, measure_s);
        let below = |pool: &Pool| pool.below_per_s.is_none_or(|below| speed < below);
        let index = throttle.pools.iter().position(below).unwrap_or(0);
        let Some(pool) = throttle.pools.get(index) else { return true };
        let trickle_ns = (1e9 / throttle.trickle_per_s.max(1e-6)) as u64;
        let admitted = if now_ns.saturating_sub(known.seen_ns) < throttle.grace.as_nanos() {
            true
        } else if known.shut_until_ns > now_ns {
            trickle(&mut known.next_trickle_ns, trickle_ns, now_ns)
        } else {
            let bucket = match known.bucket.as_mut() {
                Some(bucket) if throttle.each_source => bucket,
                _ if throttle.each_source => known.bucket.insert(Bucket::full(pool, now_ns)),
                _ => &mut self.pools[index],
            };
            bucket.fill(pool, now_ns);
            match (bucket.take(), pool.sheds) {
                (true, _) => true,
                (false, Sheds::All) => trickle(&mut bucket.next_trickle_ns, trickle_ns, now_ns),
                (false, Sheds::Slowest) => {
                    // What the others need while the next one is found.
                    bucket.is_shut = false;
                    bucket.tokens = pool.burst / 4.0;
                    self.shut_slowest(throttle, index, now_ns);
                    self.sources.get(&key).is_none_or(|known| known.shut_until_ns <= now_ns)
                }
            }
        };
        if admitted && let Some(known) = self.sources.get_mut(&key) {
            known.speed_per_s = known.mean_at(now_ns, measure_s) + 1.0 / measure_s;
            known.measured_ns = now_ns;
        }
        admitted
    }

    /// Shuts the slowest source out of a pool, unless there is but one.
    fn shut_slowest(&mut self, throttle: &Throttle, index: usize, now_ns: u64) {
        let measure_s = throttle.measure.0.as_secs_f64();
        let from = index.checked_sub(1).and_then(|below| throttle.pools[below].below_per_s);
        let (from, below) = (from.unwrap_or(0.0), throttle.pools[index].below_per_s);
        let belongs = |source: &Source| {
            let speed = source.speed_at(now_ns, measure_s);
            speed >= from
                && below.is_none_or(|below| speed < below)
                && source.shut_until_ns <= now_ns
                && now_ns.saturating_sub(source.measured_ns) < QUIET_NS
        };
        let speed = |source: &Source| source.speed_at(now_ns, measure_s);
        if self.sources.values().filter(|source| belongs(source)).count() < 2 {
            return;
        }
        // By address where speeds are equal, so that the same packets make the same decisions.
        let of_pool = self.sources.iter_mut().filter(|(_, source)| belongs(source));
        let slowest = of_pool.min_by(|(a, one), (b, other)| {
            speed(one).total_cmp(&speed(other)).then_with(|| a.cmp(b))
        });
        if let Some((_, source)) = slowest {
            source.shut_until_ns = now_ns.saturating_add(throttle.penalty.as_nanos());
        }
    }

    /// Sources and their speeds at the moment, in new connections per second.
    pub fn speeds(&self, throttle: &Throttle, now_ns: u64) -> Vec<(IpAddr, f64)> {
        let measure_s = throttle.measure.0.as_secs_f64();
        let speed = |(ip, source): (&IpAddr, &Source)| (*ip, source.speed_at(now_ns, measure_s));
        let mut speeds: Vec<_> = self.sources.iter().map(speed).collect();
        speeds.sort_by_key(|(ip, _)| *ip);
        speeds
    }
}

/// One at a time, at distances.
fn trickle(next_ns: &mut u64, distance_ns: u64, now_ns: u64) -> bool {
    let passes = now_ns >= *next_ns && distance_ns < 1_000_000_000_000;
    if passes {
        *next_ns = now_ns.saturating_add(distance_ns);
    }
    passes
}

#[cfg(test)]
#[path = "throttle/tests.rs"]
mod tests;
