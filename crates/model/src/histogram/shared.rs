//! A histogram that all workers add to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::buckets::{BUCKETS, bucket_of};
use super::totals::HistogramTotals;

/// Buckets that are allocated together: four factors of two.
const CHUNK: usize = 32;

const CHUNKS: usize = BUCKETS.div_ceil(CHUNK);

/// A histogram that any thread adds to and any thread reads. Takes 144 bytes, and 256 more for each
/// chunk of 32 buckets (a factor of 16) with the first value in it: 2.2 kB at most.
#[derive(Debug, Default)]
pub struct SharedHistogram {
    chunks: [OnceLock<Box<[AtomicU64; CHUNK]>>; CHUNKS],
    sum_us: AtomicU64,
    max_us: AtomicU64,
}

impl SharedHistogram {
    /// Adds one duration, rounded up to a microsecond.
    pub fn record(&self, duration: Duration) {
        let micros = super::micros(duration);
        let bucket = bucket_of(micros);
        let zero = || Box::new([const { AtomicU64::new(0) }; CHUNK]);
        self.chunks[bucket / CHUNK].get_or_init(zero)[bucket % CHUNK].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(micros, Relaxed);
        if micros > self.max_us.load(Relaxed) {
            self.max_us.fetch_max(micros, Relaxed);
        }
    }

    /// Adds what was recorded so far to `totals`. While it is being written, the sum may be a few
    /// values ahead of the counts or behind.
    pub fn add_to(&self, totals: &mut HistogramTotals) {
        let used =
            self.chunks.iter().enumerate().filter_map(|(at, chunk)| Some((at, chunk.get()?)));
        let counts = used.flat_map(|(at, chunk)| {
            let counts = chunk.iter().enumerate();
            counts.map(move |(position, count)| (at * CHUNK + position, count.load(Relaxed)))
        });
        // The last chunk has room for more buckets than there are.
        let counts = counts.filter(|(_, count)| *count > 0);
        totals.add(counts, self.sum_us.load(Relaxed), self.max_us.load(Relaxed));
    }

    /// Returns the number of durations recorded so far, and their sum in microseconds.
    pub fn count_and_sum_us(&self) -> (u64, u64) {
        let counts = self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        (counts.map(|count| count.load(Relaxed)).sum(), self.sum_us.load(Relaxed))
    }

    /// Returns what was recorded so far.
    pub fn totals(&self) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        self.add_to(&mut totals);
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_lose_no_value() {
        let histogram = SharedHistogram::default();
        std::thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let histogram = &histogram;
                scope.spawn(move || {
                    for value in 0..20_000 {
                        histogram.record(Duration::from_micros(thread * value));
                    }
                });
            }
        });
        let totals = histogram.totals();
        assert_eq!(totals.count(), 80_000);
        assert_eq!(histogram.count_and_sum_us(), (80_000, (0..20_000).sum::<u64>() * 10));
        assert_eq!(totals.sum(), Duration::from_micros((0..20_000).sum::<u64>() * 10));
        assert_eq!(totals.max(), Duration::from_micros(4 * 19_999));
    }

    #[test]
    fn every_bucket_fits_and_memory_is_bounded() {
        let histogram = SharedHistogram::default();
        assert!(histogram.chunks.iter().all(|chunk| chunk.get().is_none()));
        for bucket in 0..BUCKETS {
            histogram.record(Duration::from_micros(super::super::bounds(bucket).1));
        }
        assert!(histogram.totals().counts().iter().all(|&count| count == 1));
        let largest = size_of::<SharedHistogram>() + CHUNKS * CHUNK * size_of::<AtomicU64>();
        assert!(largest <= 2_200, "{largest}");
    }
}
