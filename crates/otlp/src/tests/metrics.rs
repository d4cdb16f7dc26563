//! Metrics of Prometheus families.

use std::sync::Arc;
use std::time::Duration;

use model::{Cause, Timings};
use observe::exposition::protobuf::{
    self, Bucket, BucketSpan, LabelPair, MetricFamily, MetricType,
};
use observe::{Gauges, Registry, exposition};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogramDataPoint, Metric,
};
use prost::Message as _;

use super::{expected, map, resource};

const START_US: u64 = 1_764_000_000_000_000;
const NOW_US: u64 = 1_764_000_060_000_000;

fn metrics(families: &[MetricFamily]) -> Vec<Metric> {
    let encoded = crate::metrics(&resource(), families, START_US, NOW_US);
    let mut request = ExportMetricsServiceRequest::decode(&*encoded.body).unwrap();
    let series: usize = families.iter().map(|family| family.metric.len()).sum();
    assert_eq!((encoded.items, encoded.unreadable), (series as u64, 0), "no series is lost");
    request.resource_metrics.remove(0).scope_metrics.remove(0).metrics
}

/// Returns the families of a registry with one service, to which `durations` in microseconds were recorded.
fn families(durations: &[u64]) -> Vec<MetricFamily> {
    let registry = Registry::new();
    let shard = registry.add_shard();
    let service = shard.service(&Arc::from("listings"));
    for micros in durations {
        let timings = Timings { total: Duration::from_micros(*micros), ..Timings::default() };
        service.exchange_ended(Cause::Completed, Some(200), 1, &timings);
    }
    exposition::families(&registry.totals(), &Gauges::default())
}

fn named<'m>(metrics: &'m [Metric], name: &str) -> &'m Metric {
    let mut found = metrics.iter().filter(|metric| metric.name == name);
    let metric = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "one {name}");
    metric
}

fn exponential(metric: &Metric) -> &ExponentialHistogramDataPoint {
    match metric.data.as_ref().unwrap() {
        Data::ExponentialHistogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality(), AggregationTemporality::Cumulative);
            &histogram.data_points[0]
        }
        other => panic!("{other:?}"),
    }
}

/// Returns each bucket's bounds and its count, of those that are not empty.
fn buckets(point: &ExponentialHistogramDataPoint) -> Vec<(f64, f64, u64)> {
    let positive = point.positive.as_ref().unwrap();
    let bound = |index: i32| (f64::from(index) * 2_f64.powi(-point.scale)).exp2();
    let buckets = (positive.offset..).zip(&positive.bucket_counts).filter(|(_, n)| **n > 0);
    buckets.map(|(index, count)| (bound(index), bound(index + 1), *count)).collect()
}

/// Returns the same of a native histogram.
fn native_buckets(histogram: &protobuf::Histogram) -> Vec<(f64, f64, u64)> {
    let bound = |index: i32| (f64::from(index) * 2_f64.powi(-histogram.schema())).exp2();
    let (mut next, mut count, mut buckets) = (0, 0, Vec::new());
    let mut deltas = histogram.positive_delta.iter();
    for span in &histogram.positive_span {
        next += span.offset();
        for delta in deltas.by_ref().take(span.length() as usize) {
            count += delta;
            buckets.push((bound(next - 1), bound(next), count.cast_unsigned()));
            next += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    buckets
}

#[test]
fn counters_and_gauges_keep_their_names() {
    let family = |name: &str, unit: Option<&str>, kind: MetricType, value: f64| {
        let value = Some(protobuf::Value { value: Some(value) });
        let is_gauge = kind == MetricType::Gauge;
        let (gauge, counter) = if is_gauge { (value, None) } else { (None, value) };
        let label = LabelPair { name: Some("service".into()), value: Some("a\"b".into()) };
        MetricFamily {
            name: Some(name.to_owned()),
            help: Some("Help.".to_owned()),
            kind: Some(kind.into()),
            metric: vec![protobuf::Metric { label: vec![label], gauge, counter, histogram: None }],
            unit: unit.map(str::to_owned),
        }
    };
    let metrics = metrics(&[
        family("weir_attempts_total", None, MetricType::Counter, 7.0),
        family("weir_response_body_bytes_total", Some("bytes"), MetricType::Counter, 5e9),
        family("weir_probe_seconds_total", Some("seconds"), MetricType::Counter, 2.0),
        family("weir_queue_length", None, MetricType::Gauge, 3.0),
    ]);
    let found = metrics.iter().map(|metric| {
        let (point, is_sum) = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
                (&sum.data_points[0], true)
            }
            Data::Gauge(gauge) => (&gauge.data_points[0], false),
            other => panic!("{other:?}"),
        };
        assert_eq!(map(&point.attributes), expected(&[("service", "a\"b")]));
        let start = if is_sum { START_US * 1000 } else { 0 };
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (start, NOW_US * 1000));
        assert_eq!(metric.description, "Help.");
        let kind = if is_sum { "counter" } else { "gauge" };
        assert_eq!(map(&metric.metadata), expected(&[("prometheus.type", kind)]));
        (&*metric.name, &*metric.unit, point.value.unwrap(), is_sum)
    });
    let wanted = [
        ("weir_attempts_total", "", Value::AsInt(7), true),
        ("weir_response_body_bytes_total", "By", Value::AsInt(5_000_000_000), true),
        ("weir_probe_seconds_total", "s", Value::AsDouble(2.0), true),
        ("weir_queue_length", "", Value::AsDouble(3.0), false),
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_native_histogram_has_the_same_bounds_and_counts() {
    let families = families(&[900, 1000, 1001, 20_000, 500_000, 500_001, 3_000_000]);
    let metrics = metrics(&families);
    let name = "weir_request_duration_seconds";
    let family = families.iter().find(|family| family.name() == name).unwrap();
    let native = family.metric[0].histogram.as_ref().unwrap();
    let metric = named(&metrics, name);
    let point = exponential(metric);
    assert_eq!(metric.unit, "s");
    assert_eq!((point.scale, point.count, point.sum), (3, 7, Some(native.sample_sum())));
    assert_eq!(point.zero_threshold.to_bits(), native.zero_threshold().to_bits());
    assert_eq!(point.zero_count, native.zero_count());
    assert_eq!(buckets(point), native_buckets(native));
    assert_eq!(map(&point.attributes), expected(&[("service", "listings")]));
}

#[test]
fn values_far_apart_lower_the_scale_and_none_is_lost() {
    let families = families(&[0, 1, 20, 21, 70_000, 3_600_000_000, 3_600_000_001]);
    let metrics = metrics(&families);
    let point = exponential(named(&metrics, "weir_request_duration_seconds"));
    let positive = point.positive.as_ref().unwrap();
    assert!((1..3).contains(&point.scale), "{}", point.scale);
    assert!(positive.bucket_counts.len() <= 160);
    assert_eq!(positive.bucket_counts.iter().sum::<u64>() + point.zero_count, 7);
    // Each value is still within the bounds of a bucket.
    for seconds in [0.07, 3600.0] {
        assert!(buckets(point).iter().any(|&(low, high, _)| low < seconds && seconds <= high));
    }
}

#[test]
fn a_classic_histogram_has_the_count_of_each_bucket() {
    let bucket = |bound, count| Bucket { upper_bound: Some(bound), cumulative_count: Some(count) };
    let classic = protobuf::Histogram {
        sample_count: Some(10),
        sample_sum: Some(4.5),
        bucket: vec![bucket(0.1, 2), bucket(0.5, 2), bucket(1.0, 9), bucket(f64::INFINITY, 10)],
        ..protobuf::Histogram::default()
    };
    let mut native = classic.clone();
    (native.schema, native.zero_count) = (Some(3), Some(10));
    let of =
        |histogram| protobuf::Metric { histogram: Some(histogram), ..protobuf::Metric::default() };
    let family = MetricFamily {
        name: Some("weir_x_seconds".to_owned()),
        kind: Some(MetricType::Histogram.into()),
        metric: vec![of(classic), of(native)],
        ..MetricFamily::default()
    };
    let metrics = metrics(&[family]);
    assert_eq!(metrics.len(), 2, "one of each kind");
    let empty = exponential(&metrics[0]);
    assert_eq!((empty.count, empty.zero_count, buckets(empty).len()), (10, 10, 0));
    let Some(Data::Histogram(histogram)) = &metrics[1].data else { panic!("{:?}", metrics[1]) };
    let point = &histogram.data_points[0];
    assert_eq!(point.explicit_bounds, [0.1, 0.5, 1.0]);
    assert_eq!(point.bucket_counts, [2, 0, 7, 1]);
    assert_eq!((point.count, point.sum), (10, Some(4.5)));
}

#[test]
fn figures_that_contradict_each_other_never_panic() {
    let bucket = |count| Bucket { upper_bound: Some(1.0), cumulative_count: Some(count) };
    let span = |offset, length| BucketSpan { offset: Some(offset), length: Some(length) };
    for schema in [None, Some(3), Some(-53), Some(i32::MIN), Some(i32::MAX)] {
        let histogram = protobuf::Histogram {
            bucket: vec![bucket(9), bucket(4)],
            schema,
            positive_span: vec![span(i32::MAX, 2), span(i32::MIN, u32::MAX), span(-5, 0)],
            positive_delta: vec![i64::MAX, i64::MAX, i64::MIN, i64::MIN, 7],
            ..protobuf::Histogram::default()
        };
        let metric = protobuf::Metric { histogram: Some(histogram), ..protobuf::Metric::default() };
        let kind = Some(MetricType::Histogram.into());
        metrics(&[MetricFamily { kind, metric: vec![metric], ..MetricFamily::default() }]);
    }
}

#[test]
fn every_family_of_weir_is_sent() {
    let families = families(&[1000]);
    let metrics = metrics(&families);
    let names: Vec<&str> = metrics.iter().map(|metric| &*metric.name).collect();
    assert_eq!(names, families.iter().map(MetricFamily::name).collect::<Vec<_>>());
}
