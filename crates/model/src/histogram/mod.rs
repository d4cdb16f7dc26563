//! Histograms of durations: their buckets, sums of several, and one that all workers add to.
//!
//! Buckets are those of Prometheus's native histograms with [`SCHEMA`] 3: eight per factor of two, so
//! that a value reported as the middle of its bucket is off by 4.4 % at most. They are split at the
//! bounds of the classic exposition ([`CLASSIC_BOUNDS_US`]), so that both expositions are exact.

mod buckets;
mod shared;
mod totals;

pub use buckets::{BUCKETS, CLASSIC_BOUNDS_US, SCHEMA, ZERO_THRESHOLD_SECONDS, bounds, bucket_of};
pub use shared::SharedHistogram;
pub use totals::{HistogramTotals, NativeBuckets};

use std::time::Duration;

/// Returns a duration in whole microseconds, rounded up: only zero is zero.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}
