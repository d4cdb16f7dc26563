//! TCP statistics of the path to a server: round-trip times, retransmissions, reordering and SYN
//! retransmissions, summed over samples.
//!
//! A sample is the kernel's information about one connection at the end of one exchange
//! (`TCP_INFO`). Segments are counted from one sample of a connection to its next, so that none
//! counts twice and a long-lived connection is covered completely however few of its exchanges are
//! sampled. Ratios, such as retransmitted segments to sent segments, do not depend on the sampling
//! rate.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the round-trip time buckets, in microseconds: within a rack, a zone, a region,
/// between continents. Longer times go into one more bucket.
pub const ROUND_TRIP_BOUNDS_US: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// Number of round-trip time buckets.
pub const ROUND_TRIP_BUCKETS: usize = ROUND_TRIP_BOUNDS_US.len() + 1;

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSample {
    /// The connection's smoothed round-trip time.
    pub round_trip: Duration,
    /// Data segments sent since the connection's last sample, including retransmissions.
    pub sent: u32,
    /// How many of these were retransmissions.
    pub sent_again: u32,
    /// How often reordering was detected since then.
    pub reordered: u32,
}

/// The path to one server. Written by all workers, but only for sampled exchanges and for
/// connections that were slow to establish.
#[derive(Debug, Default)]
pub struct TcpPath {
    round_trips: [AtomicU64; ROUND_TRIP_BUCKETS],
    round_trip_sum_us: AtomicU64,
    /// Moving average in microseconds (as f64 bits); tolerates a lost update.
    average_us_bits: AtomicU64,
    sent: AtomicU64,
    sent_again: AtomicU64,
    reordered: AtomicU64,
    syn_retries: AtomicU64,
    dials: AtomicU64,
    dials_repeated: AtomicU64,
    lossy_samples: AtomicU64,
    /// When a sample was last taken beyond the configured share, in milliseconds.
    extra_at_ms: AtomicU64,
}

/// The same as plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpPathTotals {
    /// Samples by round-trip time: up to each of [`ROUND_TRIP_BOUNDS_US`], then those above.
    pub round_trips: [u64; ROUND_TRIP_BUCKETS],
    /// The sum of the round-trip times of all samples.
    pub round_trip_sum: Duration,
    /// Their moving average; `None` before the first sample.
    pub round_trip: Option<Duration>,
    /// Data segments sent, over sampled connections.
    pub sent: u64,
    /// How many of these were retransmissions.
    pub sent_again: u64,
    /// How often reordering was detected.
    pub reordered: u64,
    /// SYNs retransmitted before a connection was established, or given up.
    pub syn_retries: u64,
    /// Connection attempts.
    pub dials: u64,
    /// How many of these retransmitted their SYN.
    pub dials_repeated: u64,
    /// Samples in which segments had been retransmitted: loss episodes, each of which may include
    /// several.
    pub lossy_samples: u64,
}

impl TcpPath {
    /// Adds a sample.
    pub fn note(&self, sample: &TcpSample) {
        /// The weight of a sample in the average, as in RFC 6298 section 2.
        const GAIN: f64 = 1.0 / 8.0;
        let micros = u64::try_from(sample.round_trip.as_micros()).unwrap_or(u64::MAX);
        let bucket = ROUND_TRIP_BOUNDS_US.partition_point(|&bound| bound < micros);
        self.round_trips[bucket].fetch_add(1, Relaxed);
        self.round_trip_sum_us.fetch_add(micros, Relaxed);
        let average = f64::from_bits(self.average_us_bits.load(Relaxed));
        let average =
            if average > 0.0 { average + GAIN * (micros as f64 - average) } else { micros as f64 };
        self.average_us_bits.store(average.to_bits(), Relaxed);
        self.sent.fetch_add(u64::from(sample.sent), Relaxed);
        self.sent_again.fetch_add(u64::from(sample.sent_again), Relaxed);
        self.lossy_samples.fetch_add(u64::from(sample.sent_again > 0), Relaxed);
        self.reordered.fetch_add(u64::from(sample.reordered), Relaxed);
    }

    /// Records a connection attempt with `syn_retries` SYN retransmissions, successful or not.
    pub fn note_dial(&self, syn_retries: u32) {
        self.dials.fetch_add(1, Relaxed);
        if syn_retries > 0 {
            self.syn_retries.fetch_add(u64::from(syn_retries), Relaxed);
            self.dials_repeated.fetch_add(1, Relaxed);
        }
    }

    /// Returns whether to take a sample at `now_ms`, beyond the configured share: true at most once
    /// every `every_ms`, for one of the callers.
    pub fn claims_extra(&self, now_ms: u64, every_ms: u64) -> bool {
        let last = self.extra_at_ms.load(Relaxed);
        now_ms.saturating_sub(last) >= every_ms
            && self.extra_at_ms.compare_exchange(last, now_ms, Relaxed, Relaxed).is_ok()
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> TcpPathTotals {
        let average = f64::from_bits(self.average_us_bits.load(Relaxed));
        TcpPathTotals {
            round_trips: self.round_trips.each_ref().map(|bucket| bucket.load(Relaxed)),
            round_trip_sum: Duration::from_micros(self.round_trip_sum_us.load(Relaxed)),
            round_trip: (average > 0.0).then(|| Duration::from_secs_f64(average / 1e6)),
            sent: self.sent.load(Relaxed),
            sent_again: self.sent_again.load(Relaxed),
            reordered: self.reordered.load(Relaxed),
            syn_retries: self.syn_retries.load(Relaxed),
            dials: self.dials.load(Relaxed),
            dials_repeated: self.dials_repeated.load(Relaxed),
            lossy_samples: self.lossy_samples.load(Relaxed),
        }
    }
}

impl TcpPathTotals {
    /// Returns the number of samples.
    pub fn samples(&self) -> u64 {
        self.round_trips.iter().sum()
    }

    /// Adds another server's counts. The average then applies to neither and is left out.
    pub fn add(&mut self, other: &TcpPathTotals) {
        for (sum, count) in self.round_trips.iter_mut().zip(other.round_trips) {
            *sum += count;
        }
        self.round_trip = None;
        self.round_trip_sum += other.round_trip_sum;
        self.sent += other.sent;
        self.sent_again += other.sent_again;
        self.reordered += other.reordered;
        self.syn_retries += other.syn_retries;
        self.dials += other.dials;
        self.dials_repeated += other.dials_repeated;
        self.lossy_samples += other.lossy_samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(micros: u64) -> TcpSample {
        let round_trip = Duration::from_micros(micros);
        TcpSample { round_trip, sent: 10, sent_again: 1, reordered: 2 }
    }

    #[test]
    fn a_bucket_holds_its_bound() {
        let path = TcpPath::default();
        for micros in [0, 50, 51, 250_000, 250_001, 9_000_000] {
            path.note(&sample(micros));
        }
        let totals = path.totals();
        assert_eq!(totals.round_trips, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!((totals.samples(), totals.sent, totals.sent_again), (6, 60, 6));
        assert_eq!(totals.round_trip_sum, Duration::from_micros(9_500_102));
    }

    #[test]
    fn the_average_begins_with_the_first_and_follows_slowly() {
        let path = TcpPath::default();
        assert_eq!(path.totals().round_trip, None);
        path.note(&sample(800));
        assert_eq!(path.totals().round_trip, Some(Duration::from_micros(800)));
        path.note(&sample(1600));
        assert_eq!(path.totals().round_trip, Some(Duration::from_micros(900)));
    }

    #[test]
    fn several_servers_add_up() {
        let (one, other) = (TcpPath::default(), TcpPath::default());
        one.note(&sample(80));
        other.note(&sample(80));
        other.note_dial(3);
        other.note_dial(0);
        let mut sum = one.totals();
        sum.add(&other.totals());
        assert_eq!((sum.samples(), sum.reordered, sum.syn_retries), (2, 4, 3));
        assert_eq!((sum.dials, sum.dials_repeated, sum.lossy_samples), (2, 1, 2));
        assert_eq!(sum.round_trip, None);
    }

    #[test]
    fn a_sample_beyond_the_share_is_claimed_once_each_time() {
        let path = TcpPath::default();
        let claimed: Vec<bool> =
            [1_000, 1_000, 1_009, 1_010, 1_500, 1_501].map(|at| path.claims_extra(at, 10)).into();
        assert_eq!(claimed, [true, false, false, true, true, false]);
    }
}
