//! The messages of Prometheus's protobuf exposition (`io.prometheus.client`, `metrics.proto` in
//! `prometheus/client_model`), as far as Weir uses them. Field numbers and types are the format.

use prost::Message;

/// A family with all its metrics.
#[derive(Clone, PartialEq, Message)]
pub struct MetricFamily {
    /// As `/metrics` has it; a counter's ends in `_total`.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// What it counts, for people.
    #[prost(string, optional, tag = "2")]
    pub help: Option<String>,
    /// A [`MetricType`].
    #[prost(enumeration = "MetricType", optional, tag = "3")]
    pub kind: Option<i32>,
    /// Its series, each with other labels.
    #[prost(message, repeated, tag = "4")]
    pub metric: Vec<Metric>,
    /// `seconds`, `bytes` or none.
    #[prost(string, optional, tag = "5")]
    pub unit: Option<String>,
}

/// The kinds that Weir has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum MetricType {
    /// Only increases.
    Counter = 0,
    /// Goes up and down.
    Gauge = 1,
    /// Classic, native, or both.
    Histogram = 4,
}

/// A series; a histogram is one.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// In the order of `/metrics`.
    #[prost(message, repeated, tag = "1")]
    pub label: Vec<LabelPair>,
    /// The value, if the family is of gauges.
    #[prost(message, optional, tag = "2")]
    pub gauge: Option<Value>,
    /// The value, if the family is of counters.
    #[prost(message, optional, tag = "3")]
    pub counter: Option<Value>,
    /// The values, if the family is of histograms.
    #[prost(message, optional, tag = "7")]
    pub histogram: Option<Histogram>,
}

/// A label.
#[derive(Clone, PartialEq, Message)]
pub struct LabelPair {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Its value, unescaped.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// `Gauge` and `Counter`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Value {
    /// The number, in the family's unit.
    #[prost(double, optional, tag = "1")]
    pub value: Option<f64>,
}

/// Classic buckets, and from `schema` on a native histogram.
#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    /// Number of all values.
    #[prost(uint64, optional, tag = "1")]
    pub sample_count: Option<u64>,
    /// Their sum, in the family's unit.
    #[prost(double, optional, tag = "2")]
    pub sample_sum: Option<f64>,
    /// The classic buckets, ascending, without that of all values (`+Inf`).
    #[prost(message, repeated, tag = "3")]
    pub bucket: Vec<Bucket>,
    /// The native histogram's resolution: each bucket's bound is 2^(2^-schema) times the one before. None
    /// if there are only classic buckets.
    #[prost(sint32, optional, tag = "5")]
    pub schema: Option<i32>,
    /// The upper bound of the bucket of zero, in the family's unit.
    #[prost(double, optional, tag = "6")]
    pub zero_threshold: Option<f64>,
    /// Number of values in the bucket of zero.
    #[prost(uint64, optional, tag = "7")]
    pub zero_count: Option<u64>,
    /// Which buckets [`Histogram::positive_delta`] is about.
    #[prost(message, repeated, tag = "12")]
    pub positive_span: Vec<BucketSpan>,
    /// The first bucket's count, then each one's difference from the one before it.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub positive_delta: Vec<i64>,
}

/// A classic bucket.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Bucket {
    /// Number of values up to the bound.
    #[prost(uint64, optional, tag = "1")]
    pub cumulative_count: Option<u64>,
    /// The bound, in the family's unit; belongs to the bucket.
    #[prost(double, optional, tag = "2")]
    pub upper_bound: Option<f64>,
}

/// Consecutive buckets of a native histogram.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct BucketSpan {
    /// The first bucket's index; of later spans, the gap to the one before.
    #[prost(sint32, optional, tag = "1")]
    pub offset: Option<i32>,
    /// Number of buckets.
    #[prost(uint32, optional, tag = "2")]
    pub length: Option<u32>,
}

impl Histogram {
    /// Sets the native histogram's buckets: indices in the schema, ascending, and their counts.
    pub fn set_positive(&mut self, buckets: &[(i32, u64)]) {
        let (mut next, mut before) = (0, 0);
        for &(index, count) in buckets {
            match self.positive_span.last_mut() {
                Some(span) if index == next => {
                    span.length = span.length.map(|length| length + 1);
                }
                _ => {
                    let span = BucketSpan { offset: Some(index - next), length: Some(1) };
                    self.positive_span.push(span);
                }
            }
            self.positive_delta.push(count.cast_signed() - before);
            (next, before) = (index + 1, count.cast_signed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_spans_with_differences() {
        let mut histogram = Histogram::default();
        histogram.set_positive(&[(-3, 5), (-2, 7), (1, 1), (2, 4)]);
        let spans: Vec<_> =
            histogram.positive_span.iter().map(|s| (s.offset(), s.length())).collect();
        assert_eq!(spans, [(-3, 2), (2, 2)]);
        assert_eq!(histogram.positive_delta, [5, 2, -6, 3]);
    }
}
