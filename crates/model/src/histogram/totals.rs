//! Sums of histograms as plain numbers.

use std::time::Duration;

use super::buckets::{self, BUCKETS, bounds, bucket_of};

/// The sum of several histograms, as plain numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramTotals {
    /// Empty, or one per bucket.
    counts: Vec<u64>,
    sum_us: u64,
    max_us: u64,
}

/// The buckets of a native histogram that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeBuckets {
    /// Number of durations up to [`super::ZERO_THRESHOLD_SECONDS`].
    pub zero: u64,
    /// Indices in the schema, ascending, and their counts.
    pub positive: Vec<(i32, u64)>,
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

    /// Returns the count of each bucket; empty if nothing was recorded.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the smallest duration that is not exceeded by the share `q` (0.0 to 1.0) of all, off
    /// by 4.4 % at most, or by 8 µs below 15 µs; `None` if there is none.
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

    /// Returns how many are at most `bound`. Exact if `bound` is one of
    /// [`super::CLASSIC_BOUNDS_US`]; otherwise for the next smaller bound of a bucket.
    pub fn count_at_most(&self, bound: Duration) -> u64 {
        let micros = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        // The first bucket that may contain something longer than the bound.
        let bucket = bucket_of(micros.saturating_add(1));
        let end = if micros >= bounds(BUCKETS - 1).1 { BUCKETS } else { bucket };
        self.counts.iter().take(end).sum()
    }

    /// Returns the same as a native histogram.
    pub fn native(&self) -> NativeBuckets {
        let mut native = NativeBuckets::default();
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            match (buckets::native_index(bucket), native.positive.last_mut()) {
                (None, _) => native.zero = count,
                // The other part of a split bucket.
                (Some(index), Some(last)) if last.0 == index => last.1 += count,
                (Some(index), _) => native.positive.push((index, count)),
            }
        }
        native
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

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.sum_us, self.max_us) = (0, 0);
    }

    /// Adds `other`.
    pub fn merge(&mut self, other: &HistogramTotals) {
        self.add(other.counts.iter().copied().enumerate(), other.sum_us, other.max_us);
    }

    /// Adds the counts of some buckets, with the sum and the longest of their durations in
    /// microseconds. Buckets are indices below [`BUCKETS`]; the sum wraps.
    pub fn add(
        &mut self,
        counts: impl IntoIterator<Item = (usize, u64)>,
        sum_us: u64,
        max_us: u64,
    ) {
        for (bucket, count) in counts {
            if self.counts.is_empty() {
                self.counts.resize(BUCKETS, 0);
            }
            self.counts[bucket] += count;
        }
        self.sum_us = self.sum_us.wrapping_add(sum_us);
        self.max_us = self.max_us.max(max_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(micros: impl IntoIterator<Item = u64>) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        for us in micros {
            totals.add([(bucket_of(us), 1)], us, us);
        }
        totals
    }

    #[test]
    fn quantiles_are_within_the_width_of_a_bucket_of_the_sorted_values() {
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
                let allowed = if exact <= 15.0 { 8.0 } else { 0.046 * exact + 1.0 };
                assert!((read - exact).abs() <= allowed, "seed {seed}: {read} {exact}");
            }
        }
    }

    #[test]
    fn counts_at_classic_bounds_are_exact() {
        let totals = totals([1, 499_999, 500_000, 500_001, 10_000_000, 10_000_001, u64::MAX / 2]);
        for (bound_us, count) in [
            (500, 1),
            (500_000, 3),
            (1_000_000, 4),
            (10_000_000, 5),
            (30_000_000, 6),
            (300_000_000, 6),
        ] {
            assert_eq!(totals.count_at_most(Duration::from_micros(bound_us)), count, "{bound_us}");
        }
        assert_eq!(totals.count_at_most(Duration::MAX), 7);
    }

    #[test]
    fn nothing_recorded_is_nothing_and_too_long_is_the_longest() {
        let none = HistogramTotals::default();
        assert_eq!((none.count(), none.quantile(0.5), none.max()), (0, None, Duration::ZERO));
        assert_eq!(none.native(), NativeBuckets::default());
        let long = totals([u64::MAX / 2]);
        assert_eq!(long.count(), 1);
        let (above, up_to) = bounds(BUCKETS - 1);
        let middle = Duration::from_micros(above + (up_to - above).div_ceil(2));
        assert_eq!(long.quantile(1.0), Some(middle));
    }

    #[test]
    fn since_returns_only_later_values() {
        let before = totals([20, 200, 3_000]);
        let mut now = before.clone();
        now.merge(&totals([200, 5_000]));
        let since = now.since(&before);
        assert_eq!((since.count(), since.sum()), (2, Duration::from_micros(5_200)));
        let median = since.quantile(0.5).unwrap().as_micros();
        assert!((191..=209).contains(&median), "{median}");
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
        let mut nothing = HistogramTotals::default();
        nothing.merge(&HistogramTotals::default());
        assert_eq!(nothing, HistogramTotals::default());
    }

    #[test]
    fn a_native_histogram_merges_the_parts_of_split_buckets() {
        // 0.5 s is 2^-1 s; 0.25 s is 2^-2 s; 2.5 s splits the bucket from 2.378 to 2.594 s, whose
        // index is 11.
        let totals = totals([3, 250_000, 2_400_000, 2_500_000, 2_550_000, 2_600_000]);
        let native = totals.native();
        assert_eq!(native.zero, 1);
        assert_eq!(native.positive, [(-16, 1), (11, 3), (12, 1)]);
    }
}
