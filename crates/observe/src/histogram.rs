//! A worker's histogram of durations. Its buckets are those of [`model::histogram`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use model::histogram::{BUCKETS, HistogramTotals, bucket_of, micros};

use crate::Counter;
use crate::counters::UNCOUNTED;

/// A histogram that one thread writes and any thread reads. Allocates its memory (1.9 kB) with the
/// first value.
#[derive(Debug, Default)]
pub struct Histogram(OnceLock<Box<Buckets>>);

#[derive(Debug)]
struct Buckets {
    counts: [Counter; BUCKETS],
    sum_us: Counter,
    max_us: AtomicU64,
}

impl Histogram {
    /// Adds one duration, rounded up to a microsecond. By one thread only: two writers would lose
    /// each other's additions.
    pub fn record(&self, duration: Duration) {
        if UNCOUNTED {
            return;
        }
        let micros = micros(duration);
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
        let counts = buckets.counts.iter().map(Counter::get).enumerate();
        totals.add(counts, buckets.sum_us.get(), buckets.max_us.load(Relaxed));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_counted() {
        let histogram = Histogram::default();
        let mut totals = HistogramTotals::default();
        histogram.add_to(&mut totals);
        assert_eq!(totals, HistogramTotals::default());
        for us in [20, 30_000, 700] {
            histogram.record(Duration::from_micros(us));
        }
        histogram.add_to(&mut totals);
        assert_eq!((totals.count(), totals.sum()), (3, Duration::from_micros(30_720)));
        assert_eq!(totals.max(), Duration::from_millis(30));
        histogram.add_to(&mut totals);
        assert_eq!(totals.count(), 6);
    }
}
