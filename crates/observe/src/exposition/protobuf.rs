//! The messages of Prometheus's protobuf exposition (`io.prometheus.client`, `metrics.proto` in
//! `prometheus/client_model`), as far as Weir uses them. Field numbers and types are the format.

use prost::Message;

/// A family with all its metrics.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) help: Option<String>,
    #[prost(enumeration = "MetricType", optional, tag = "3")]
    pub(super) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    pub(super) unit: Option<String>,
}

/// The kinds that Weir has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

/// A series; a histogram is one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) value: Option<String>,
}

/// `Gauge` and `Counter`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Value {
    #[prost(double, optional, tag = "1")]
    pub(super) value: Option<f64>,
}

/// Classic buckets, and from `schema` on a native histogram.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(super) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(super) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    pub(super) zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pub(super) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    /// The first bucket's count, then each one's difference from the one before it.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(super) cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(super) upper_bound: Option<f64>,
}

/// Consecutive buckets of a native histogram.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct BucketSpan {
    /// The first bucket's index; of later spans, the gap to the one before.
    #[prost(sint32, optional, tag = "1")]
    pub(super) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) length: Option<u32>,
}

impl Histogram {
    /// Sets the native histogram's buckets: indices in the schema, ascending, and their counts.
    pub(super) fn set_positive(&mut self, buckets: &[(i32, u64)]) {
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
