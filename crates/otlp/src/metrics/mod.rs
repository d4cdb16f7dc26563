//! Prometheus families → OTLP metrics, by OpenTelemetry's "Prometheus and
//! `OpenMetrics` Compatibility".
//!
//! Names stay as `/metrics` has them, `_total` and units included, so that dashboards and alert rules also
//! fit behind a collector; OpenTelemetry's Prometheus exporters do not add what is already there.

mod exponential;

use observe::exposition::protobuf::{self, MetricFamily, MetricType};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};

use crate::attributes::Attributes;
use crate::envelope::{Encoded, Resource};

/// All that Weir counts is since its start.
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// From when to when a point counts, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    now: u64,
}

/// Returns the metrics of `families` at `now_unix_us`, counted since `start_unix_us`; both are in
/// microseconds since 1970. Counters are monotonic sums; histograms are exponential ones if they are native,
/// else explicit ones. The items are data points: one for each series.
pub fn metrics(
    resource: &Resource,
    families: &[MetricFamily],
    start_unix_us: u64,
    now_unix_us: u64,
) -> Encoded {
    let span =
        Span { start: start_unix_us.saturating_mul(1000), now: now_unix_us.saturating_mul(1000) };
    let metrics: Vec<Metric> =
        families.iter().flat_map(|family| family_metrics(family, span)).collect();
    let items = metrics.iter().map(points).sum();
    let scope_metrics =
        vec![ScopeMetrics { scope: Some(resource.scope()), metrics, schema_url: String::new() }];
    let resource_metrics = vec![ResourceMetrics {
        resource: Some(resource.message()),
        scope_metrics,
        schema_url: String::new(),
    }];
    Encoded::new(&ExportMetricsServiceRequest { resource_metrics }, items, 0)
}

fn points(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.len(),
        Some(Data::Summary(_)) | None => 0,
    }
}

/// Returns a family's metrics that have points: one, or two if only some of its histograms are native.
fn family_metrics(family: &MetricFamily, span: Span) -> impl Iterator<Item = Metric> {
    let (kind, data) = match family.kind() {
        MetricType::Gauge => ("gauge", vec![gauge(family, span)]),
        MetricType::Counter => ("counter", vec![sum(family, span)]),
        MetricType::Histogram => {
            ("histogram", vec![exponential(family, span), explicit(family, span)])
        }
    };
    let mut metadata = Attributes::default();
    metadata.text("prometheus.type", kind);
    let metadata = metadata.into_messages();
    let metric = move |data| Metric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        unit: unit(family.unit()).to_owned(),
        metadata: metadata.clone(),
        data: Some(data),
    };
    data.into_iter().map(metric).filter(|metric| points(metric) > 0)
}

/// Returns a unit in the notation of UCUM. A family without one has none here either: `1` would have
/// exporters append `_ratio` to its name.
fn unit(unit: &str) -> &str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        "ratio" => "1",
        other => other,
    }
}

fn labels(metric: &protobuf::Metric) -> Vec<KeyValue> {
    let mut attributes = Attributes::default();
    for label in &metric.label {
        attributes.text(label.name(), label.value());
    }
    attributes.into_messages()
}

fn gauge(family: &MetricFamily, span: Span) -> Data {
    let point = |metric: &protobuf::Metric| {
        let value = Value::AsDouble(metric.gauge?.value());
        // A gauge counts from no moment.
        Some(number(metric, Span { start: 0, ..span }, value))
    };
    Data::Gauge(Gauge { data_points: family.metric.iter().filter_map(point).collect() })
}

fn sum(family: &MetricFamily, span: Span) -> Data {
    // By the unit and not by the value, since a series must not change its type: only seconds have fractions.
    let is_whole = family.unit() != "seconds";
    let point = |metric: &protobuf::Metric| {
        let value = metric.counter?.value();
        let is_whole = is_whole && value.fract() == 0.0;
        let value = if is_whole { Value::AsInt(value as i64) } else { Value::AsDouble(value) };
        Some(number(metric, span, value))
    };
    let data_points = family.metric.iter().filter_map(point).collect();
    Data::Sum(Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true })
}

fn number(metric: &protobuf::Metric, span: Span, value: Value) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels(metric),
        start_time_unix_nano: span.start,
        time_unix_nano: span.now,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn exponential(family: &MetricFamily, span: Span) -> Data {
    let point = |metric: &protobuf::Metric| {
        let mut point = exponential::point(metric.histogram.as_ref()?)?;
        point.attributes = labels(metric);
        point.start_time_unix_nano = span.start;
        point.time_unix_nano = span.now;
        Some(point)
    };
    let data_points = family.metric.iter().filter_map(point).collect();
    Data::ExponentialHistogram(ExponentialHistogram {
        data_points,
        aggregation_temporality: CUMULATIVE,
    })
}

fn explicit(family: &MetricFamily, span: Span) -> Data {
    let point = |metric: &protobuf::Metric| {
        let histogram = metric.histogram.as_ref().filter(|h| !exponential::is_native(h))?;
        let (explicit_bounds, bucket_counts) = buckets(histogram);
        Some(HistogramDataPoint {
            attributes: labels(metric),
            start_time_unix_nano: span.start,
            time_unix_nano: span.now,
            count: histogram.sample_count(),
            sum: Some(histogram.sample_sum()),
            bucket_counts,
            explicit_bounds,
            ..HistogramDataPoint::default()
        })
    };
    let data_points = family.metric.iter().filter_map(point).collect();
    Data::Histogram(Histogram { data_points, aggregation_temporality: CUMULATIVE })
}

/// Returns the finite bounds of a classic histogram, and the count of each bucket and of what is above the
/// last. Both formats' upper bounds belong to their buckets.
fn buckets(histogram: &protobuf::Histogram) -> (Vec<f64>, Vec<u64>) {
    let (mut bounds, mut counts, mut before) = (Vec::new(), Vec::new(), 0);
    for bucket in histogram.bucket.iter().filter(|bucket| bucket.upper_bound().is_finite()) {
        bounds.push(bucket.upper_bound());
        counts.push(bucket.cumulative_count().saturating_sub(before));
        before = bucket.cumulative_count();
    }
    counts.push(histogram.sample_count().saturating_sub(before));
    (bounds, counts)
}
