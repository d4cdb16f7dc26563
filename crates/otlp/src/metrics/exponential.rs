//! Native histograms → exponential histograms.
//!
//! Both have buckets whose bounds are powers of 2^(2^-scale), and count a bound with the bucket below it.
//! Prometheus names a bucket by its upper bound's power and OTLP by its lower one's, so that OTLP's index is
//! one less. Prometheus leaves out empty buckets and OTLP counts them all from the first to the last, so that
//! values far apart need a lower scale.

use observe::exposition::protobuf::Histogram;
use opentelemetry_proto::tonic::metrics::v1::ExponentialHistogramDataPoint;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;

/// The maximum number of buckets, as in OpenTelemetry's SDKs ("Base2 Exponential Bucket Histogram
/// Aggregation", `MaxSize`).
const BUCKETS_MAX: i64 = 160;

/// The schemas of Prometheus that are exponential.
const SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;

/// Returns whether a histogram is a native one with exponential buckets.
pub(super) fn is_native(histogram: &Histogram) -> bool {
    histogram.schema.is_some_and(|schema| SCHEMAS.contains(&schema))
}

/// Returns a native histogram as a data point without labels and times; `None` for any other.
pub(super) fn point(histogram: &Histogram) -> Option<ExponentialHistogramDataPoint> {
    let schema = histogram.schema.filter(|_| is_native(histogram))?;
    let buckets = counts(histogram);
    let (lowered, positive) = dense(&buckets);
    Some(ExponentialHistogramDataPoint {
        count: histogram.sample_count(),
        sum: Some(histogram.sample_sum()),
        scale: schema - lowered,
        zero_count: histogram.zero_count(),
        zero_threshold: histogram.zero_threshold(),
        positive: Some(positive),
        ..ExponentialHistogramDataPoint::default()
    })
}

/// Returns the buckets that are not empty: OTLP's indices, ascending, and their counts.
fn counts(histogram: &Histogram) -> Vec<(i64, u64)> {
    let (mut next, mut count) = (0_i64, 0_i64);
    let mut deltas = histogram.positive_delta.iter();
    let mut buckets = Vec::new();
    for span in &histogram.positive_span {
        next += i64::from(span.offset());
        for delta in deltas.by_ref().take(span.length() as usize) {
            count = count.saturating_add(*delta);
            if count > 0 {
                buckets.push((next - 1, count.cast_unsigned()));
            }
            next += 1;
        }
    }
    buckets
}

/// Returns the buckets from the first to the last, and by how much the scale was lowered to make them at
/// most [`BUCKETS_MAX`]. Each step merges the buckets 2n and 2n + 1 into n, for negative n too.
fn dense(buckets: &[(i64, u64)]) -> (i32, Buckets) {
    let indices = buckets.iter().map(|(index, _)| *index);
    // The order is ascending, unless a span's offset is wrong.
    let (Some(first), Some(last)) = (indices.clone().min(), indices.max()) else {
        return (0, Buckets::default());
    };
    // In the end, only the indices -1 and 0 are left.
    let lowered = (0..64).find(|by| (last >> by) - (first >> by) < BUCKETS_MAX).unwrap_or(63);
    let offset = first >> lowered;
    let mut bucket_counts = vec![0_u64; ((last >> lowered) - offset + 1) as usize];
    for (index, count) in buckets {
        if let Some(sum) = bucket_counts.get_mut(((index >> lowered) - offset) as usize) {
            *sum = sum.saturating_add(*count);
        }
    }
    (lowered, Buckets { offset: i32::try_from(offset).unwrap_or(i32::MIN), bucket_counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(buckets: &Buckets) -> u64 {
        buckets.bucket_counts.iter().sum()
    }

    #[test]
    fn close_buckets_keep_their_scale() {
        let (lowered, buckets) = dense(&[(-3, 5), (-2, 7), (1, 1), (156, 4)]);
        assert_eq!((lowered, buckets.offset, buckets.bucket_counts.len()), (0, -3, 160));
        assert_eq!(buckets.bucket_counts[..5], [5, 7, 0, 0, 1]);
        assert_eq!(total(&buckets), 17);
    }

    #[test]
    fn buckets_far_apart_are_merged_in_pairs_and_none_is_lost() {
        let (lowered, buckets) = dense(&[(-3, 5), (-2, 7), (-1, 2), (0, 1), (1, 9), (157, 4)]);
        assert_eq!((lowered, buckets.offset), (1, -2));
        assert_eq!(buckets.bucket_counts[..3], [5, 9, 10]);
        assert_eq!((buckets.bucket_counts.len(), total(&buckets)), (81, 28));
    }

    #[test]
    fn merging_keeps_every_bound() {
        // A merged bucket begins where the first of its two began, and ends where the second ended.
        let bound = |index: i64, scale: i32| (index as f64 * 2_f64.powi(-scale)).exp2();
        for index in [-401_i64, -400, -1, 0, 1, 400, 401] {
            let far = (index + 200, 1);
            let (lowered, buckets) = dense(&[(index, 3), far]);
            assert_eq!((lowered, total(&buckets)), (1, 4));
            let (lower, upper) =
                (bound(buckets.offset.into(), 2), bound(i64::from(buckets.offset) + 1, 2));
            assert!(lower <= bound(index, 3) && bound(index + 1, 3) <= upper, "{index}");
        }
    }

    #[test]
    fn indices_of_any_size_are_bounded() {
        for buckets in [
            vec![(i64::from(i32::MIN), 1), (i64::from(i32::MAX), 2)],
            vec![(i64::from(i32::MIN) * 40, 1), (i64::from(i32::MAX) * 40, 2)],
            vec![(5, 1), (-5000, 2)],
        ] {
            let (_, dense) = dense(&buckets);
            assert!(dense.bucket_counts.len() <= BUCKETS_MAX as usize);
            assert_eq!(total(&dense), 3);
        }
        assert_eq!(dense(&[]), (0, Buckets::default()));
    }
}
