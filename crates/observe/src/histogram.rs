//! Histograms of durations: log-linear buckets like an HDR histogram, but decimal.
//!
//! A bucket covers two significant digits of microseconds: 1 µs wide up to 100 µs, 10 µs up to 1 ms
//! and so on, up to 10^10 µs (2.8 h; longer durations count as that). A value reported as the
//! middle of its bucket is off by 5 % at most. Decimal, so that common bounds (0.25 s, 0.5 s, 10 s)
//! are bucket bounds, and a count "at most 0.5 s" is exact.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::Counter;
use crate::counters::UNCOUNTED;

/// A histogram that one thread writes and any thread reads. Allocates its memory (6.6 kB) with the
/// first value.
#[derive(Debug, Default)]
pub struct Histogram(OnceLock<Box<Buckets>>);

#[derive(Debug)]
struct Buckets {
    counts: [Counter; BUCKETS],
    sum_us: Counter,
    max_us: AtomicU64,
}

/// Values up to 100 µs, then 90 buckets for each of 8 further decades.
const BUCKETS: usize = 100 + 90 * 8;

impl Histogram {
    /// Adds one duration, rounded up to a microsecond. By one thread only: two writers would lose
    /// each other's additions.
    pub fn record(&self, duration: Duration) {
        if UNCOUNTED {
            return;
        }
        let micros = u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        let buckets = self.0.get_or_init(Buckets::new);
        buckets.counts[bucket_of(micros)].increment();
        buckets.sum_us.add(micros);
        if micros > buckets.max_us.load(Relaxed) {
            buckets.max_us.store(micros, Relaxed);
        }
    }

    /// Adds what was recorded so far to `totals`. While it is being written, the sum may be a few
    /// values ahead of the counts or behind.
    pub fn add_to(&self, totals: &mut HistogramTotals) {
        let Some(buckets) = self.0.get() else { return };
        totals.counts.resize(BUCKETS, 0);
        for (total, count) in totals.counts.iter_mut().zip(&buckets.counts) {
            *total += count.get();
        }
        totals.sum_us = totals.sum_us.wrapping_add(buckets.sum_us.get());
        totals.max_us = totals.max_us.max(buckets.max_us.load(Relaxed));
    }
}

impl Buckets {
    fn new() -> Box<Buckets> {
        Box::new(Buckets {
            counts: [const { Counter::new() }; BUCKETS],
            sum_us: Counter::new(),
            max_us: AtomicU64::new(0),
        })
    }
}

/// The sum of several histograms, as plain numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramTotals {
    /// Empty, or one per bucket.
    counts: Vec<u64>,
    sum_us: u64,
    max_us: u64,
}

impl HistogramTotals {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// Returns the longest; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us)
    }

    /// Returns the smallest duration that is not exceeded by the share `q` (0.0 to 1.0) of all, off
    /// by 5 % at most; `None` if there is none.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        for (bucket, in_bucket) in self.counts.iter().enumerate() {
            below += in_bucket;
            if below >= rank {
                let (above_us, up_to_us) = bounds(bucket);
                let middle_us = above_us + (up_to_us - above_us).div_ceil(2);
                return Some(Duration::from_micros(middle_us.min(self.max_us)));
            }
        }
        None
    }

    /// Returns how many are at most `bound`. Exact if `bound` has no more than two significant
    /// digits of microseconds; otherwise for the next smaller such number.
    pub fn count_at_most(&self, bound: Duration) -> u64 {
        let micros = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        // The first bucket that may contain something longer than the bound.
        let end = bucket_of(micros.saturating_add(1));
        self.counts.iter().take(end).sum()
    }

    /// Returns what was recorded after `before`, an earlier sum of the same histograms. Its longest
    /// duration is unknown; [`HistogramTotals::max`] stays the longest ever.
    #[must_use]
    pub fn since(&self, before: &HistogramTotals) -> HistogramTotals {
        let earlier = before.counts.iter().copied().chain(std::iter::repeat(0));
        HistogramTotals {
            // A service that was dropped and counted from zero again has fewer than before.
            counts: self.counts.iter().zip(earlier).map(|(n, m)| n.saturating_sub(m)).collect(),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
            max_us: self.max_us,
        }
    }

    /// Adds `other`.
    pub fn merge(&mut self, other: &HistogramTotals) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (total, count) in self.counts.iter_mut().zip(&other.counts) {
            *total += count;
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }
}

/// Returns the bucket of a number of microseconds.
fn bucket_of(micros: u64) -> usize {
    // Buckets contain their upper bound and not their lower one: 100 is in the bucket of 91, not of
    // 101.
    let below = micros.saturating_sub(1);
    if below < 100 {
        return below as usize;
    }
    let decade = below.ilog10();
    let two_digits = below / 10_u64.pow(decade - 1);
    // 100 µs start decade 2, whose two digits start with 10.
    let bucket = 100 + (decade as usize - 2) * 90 + (two_digits as usize - 10);
    bucket.min(BUCKETS - 1)
}

/// Returns the range of a bucket, in microseconds: more than the first, up to and including the
/// second.
fn bounds(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < 100 {
        return (bucket, bucket + 1);
    }
    let (decade, digits) = ((bucket - 100) / 90, (bucket - 100) % 90 + 10);
    let width = 10_u64.pow(decade as u32 + 1);
    (digits * width, (digits + 1) * width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(micros: impl IntoIterator<Item = u64>) -> HistogramTotals {
        let histogram = Histogram::default();
        micros.into_iter().for_each(|us| histogram.record(Duration::from_micros(us)));
        let mut totals = HistogramTotals::default();
        histogram.add_to(&mut totals);
        totals
    }

    #[test]
    fn buckets_are_contiguous_and_contain_their_values() {
        for bucket in 0..BUCKETS {
            let (above, up_to) = bounds(bucket);
            assert_eq!(bucket_of(above + 1), bucket);
            assert_eq!(bucket_of(up_to), bucket);
            if bucket + 1 < BUCKETS {
                assert_eq!(bounds(bucket + 1).0, up_to);
            }
            // The middle is within 5 % of anything in it, or within a microsecond.
            let middle = above + (up_to - above).div_ceil(2);
            assert!(middle - above <= 1 || (middle - above) * 20 <= above, "{above}..={up_to}");
        }
        assert_eq!(bounds(BUCKETS - 1).1, 10_000_000_000);
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert!(bounds(BUCKETS - 1).1 > 3_600_000_000, "an hour fits");
    }

    #[test]
    fn quantiles_are_within_five_percent_of_the_sorted_values() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..20 {
            let magnitude = 10_f64.powf(rng.f64() * 9.0);
            let mut values: Vec<u64> = (0..rng.usize(1..3_000))
                .map(|_| (-magnitude * (1.0 - rng.f64()).ln()).min(3.6e9) as u64)
                .collect();
            let totals = totals(values.iter().copied());
            values.sort_unstable();
            assert_eq!(totals.count(), values.len() as u64);
            assert_eq!(totals.sum().as_micros() as u64, values.iter().sum::<u64>());
            assert_eq!(totals.max().as_micros() as u64, values[values.len() - 1]);
            for q in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let rank = (q * values.len() as f64).ceil() as usize;
                let exact = values[rank.clamp(1, values.len()) - 1] as f64;
                let read = totals.quantile(q).unwrap().as_micros() as f64;
                assert!((read - exact).abs() <= 0.05 * exact + 1.0, "seed {seed}: {read} {exact}");
            }
        }
    }

    #[test]
    fn counts_at_round_bounds_are_exact() {
        let totals = totals([100, 101, 499_999, 500_000, 500_001, 10_000_000, 10_000_001]);
        for (bound_us, count) in [
            (99, 0),
            (100, 1),
            (110, 2),
            (500_000, 4),
            (510_000, 5),
            (10_000_000, 6),
            (11_000_000, 7),
        ] {
            assert_eq!(totals.count_at_most(Duration::from_micros(bound_us)), count, "{bound_us}");
        }
        assert_eq!(totals.count_at_most(Duration::MAX), 7);
    }

    #[test]
    fn nothing_recorded_is_nothing_and_too_long_is_the_longest() {
        let none = HistogramTotals::default();
        assert_eq!((none.count(), none.quantile(0.5), none.max()), (0, None, Duration::ZERO));
        let long = totals([u64::MAX / 2]);
        assert_eq!(long.count(), 1);
        assert_eq!(long.quantile(1.0), Some(Duration::from_secs(9950)));
    }

    #[test]
    fn since_returns_only_later_values() {
        let before = totals([1, 200, 3_000]);
        let mut now = before.clone();
        now.merge(&totals([200, 5_000]));
        let since = now.since(&before);
        assert_eq!((since.count(), since.sum()), (2, Duration::from_micros(5_200)));
        assert_eq!(since.quantile(0.5), Some(Duration::from_micros(195)));
        assert_eq!(now.since(&HistogramTotals::default()), now);
        assert_eq!(before.since(&now).count(), 0);
    }

    #[test]
    fn merging_is_recording_in_one() {
        let (one, other) = (totals([1, 200, 3_000]), totals([40_000, 5]));
        let mut merged = HistogramTotals::default();
        merged.merge(&one);
        merged.merge(&other);
        assert_eq!(merged, totals([1, 200, 3_000, 40_000, 5]));
    }
}
