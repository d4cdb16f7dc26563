//! Writes metric families in the three formats: metadata, names, labels and numbers. The list of
//! families is elsewhere.

use std::fmt::{Display, Write as _};

use model::histogram::{NativeBuckets, SCHEMA, ZERO_THRESHOLD_SECONDS};
use prost::Message as _;

use super::protobuf::{self, LabelPair, Metric, MetricFamily, MetricType, Value};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus's protobuf format, the only one with native histograms.
    Protobuf,
}

impl Format {
    /// Returns the format for a scraper that sent this Accept field: the one of the highest weight (RFC
    /// 9110 section 12.5.1), of several the first of protobuf, `OpenMetrics` and text.
    pub fn for_accept(accept: &str) -> Format {
        let weight = |wanted: fn(&str) -> bool| {
            let ranges = accept.split(',').filter(|range| wanted(range));
            ranges.map(quality).fold(0.0, f32::max)
        };
        let text = weight(|range| {
            ["text/plain", "text/*", "*/*"].map(|t| media_type(range, t)).contains(&true)
        });
        let open = weight(|range| media_type(range, "application/openmetrics-text"));
        let protobuf = weight(is_protobuf);
        if protobuf > 0.0 && protobuf >= open && protobuf >= text {
            Format::Protobuf
        } else if open > 0.0 && open >= text {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    /// Returns the Content-Type of a body in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }
}

fn media_type(range: &str, wanted: &str) -> bool {
    let media_type = range.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case(wanted)
}

fn parameters(range: &str) -> impl Iterator<Item = (&str, &str)> {
    let parameters = range.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
}

/// Returns a range's weight: 1 unless it says otherwise.
fn quality(range: &str) -> f32 {
    let weight = parameters(range).find(|(name, _)| name.eq_ignore_ascii_case("q"));
    weight.map_or(1.0, |(_, weight)| weight.parse().unwrap_or(0.0))
}

fn is_protobuf(range: &str) -> bool {
    let has = |name: &str, value: &str| {
        parameters(range).any(|(given, text)| {
            given.eq_ignore_ascii_case(name) && text.eq_ignore_ascii_case(value)
        })
    };
    media_type(range, "application/vnd.google.protobuf")
        && has("proto", "io.prometheus.client.MetricFamily")
        && has("encoding", "delimited")
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only increases. Its samples end in `_total`, its family's name does not.
    Counter,
    /// Cumulative buckets, sum and count.
    Histogram,
}

/// A label's name and value.
pub(super) type Label<'a> = (&'static str, &'a dyn Display);

/// A sample's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::Whole(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Real(value)
    }
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Real(value) => value,
        }
    }
}

/// A histogram's figures.
pub(super) struct Distribution<'a> {
    /// Upper bounds in seconds, ascending, each with the number of values up to it.
    pub(super) classic: &'a [(f64, u64)],
    /// Number of all values.
    pub(super) count: u64,
    /// Their sum, in seconds.
    pub(super) sum: f64,
    /// The buckets of the native histogram, if there is one.
    pub(super) native: Option<&'a NativeBuckets>,
}

/// Writes families one after the other.
pub(super) struct Families {
    out: Out,
}

enum Out {
    Text {
        text: String,
        open: bool,
    },
    /// The last is the family being written.
    Protobuf(Vec<MetricFamily>),
}

/// A family being written.
pub(super) struct Family<'f> {
    out: &'f mut Out,
    name: &'static str,
    kind: Kind,
}

// Writing to a String cannot fail; results are dropped.
impl Families {
    pub(super) fn new(format: Format) -> Families {
        let text = |open| Out::Text { text: String::new(), open };
        let out = match format {
            Format::Prometheus => text(false),
            Format::OpenMetrics => text(true),
            Format::Protobuf => Out::Protobuf(Vec::new()),
        };
        Families { out }
    }

    /// Returns whether native histograms can be written.
    pub(super) fn has_native(&self) -> bool {
        matches!(self.out, Out::Protobuf(_))
    }

    /// Starts a family. A name with a unit ends in it; a counter's name is given without `_total`.
    pub(super) fn family(
        &mut self,
        name: &'static str,
        kind: Kind,
        unit: Option<&'static str>,
        help: &str,
    ) -> Family<'_> {
        debug_assert!(unit.is_none_or(|unit| name.ends_with(unit)), "{name}");
        // Help texts are constants without characters that would need escaping.
        debug_assert!(!help.contains(['\\', '\n', '"']), "{name}");
        match &mut self.out {
            Out::Text { text, open } => write_metadata(text, *open, (name, kind, unit, help)),
            Out::Protobuf(families) => {
                let (suffix, kind) = match kind {
                    Kind::Gauge => ("", MetricType::Gauge),
                    Kind::Counter => ("_total", MetricType::Counter),
                    Kind::Histogram => ("", MetricType::Histogram),
                };
                families.push(MetricFamily {
                    name: Some(format!("{name}{suffix}")),
                    help: Some(help.to_owned()),
                    kind: Some(kind.into()),
                    metric: Vec::new(),
                    unit: unit.map(str::to_owned),
                });
            }
        }
        Family { out: &mut self.out, name, kind }
    }

    /// Writes a family of one sample without labels.
    pub(super) fn single(
        &mut self,
        name: &'static str,
        kind: Kind,
        unit: Option<&'static str>,
        help: &str,
        value: impl Into<Number>,
    ) {
        self.family(name, kind, unit, help).sample(&[], value);
    }

    /// Ends the exposition and returns it.
    pub(super) fn end(self) -> Vec<u8> {
        match self.out {
            Out::Text { mut text, open } => {
                if open {
                    text.push_str("# EOF\n");
                }
                text.into_bytes()
            }
            Out::Protobuf(families) => {
                // Each after its length.
                with_metrics(families).flat_map(|f| f.encode_length_delimited_to_vec()).collect()
            }
        }
    }

    /// Ends the exposition and returns its messages; none if the format is a text.
    pub(super) fn into_messages(self) -> Vec<MetricFamily> {
        match self.out {
            Out::Text { .. } => Vec::new(),
            Out::Protobuf(families) => with_metrics(families).collect(),
        }
    }
}

/// Leaves out families without metrics: they say nothing, and Prometheus's own encoder refuses them.
fn with_metrics(families: Vec<MetricFamily>) -> impl Iterator<Item = MetricFamily> {
    families.into_iter().filter(|family| !family.metric.is_empty())
}

fn write_metadata(
    text: &mut String,
    open: bool,
    (name, kind, unit, help): (&str, Kind, Option<&str>, &str),
) {
    // The older format identifies families only by the names of their samples.
    let suffix = if kind == Kind::Counter && !open { "_total" } else { "" };
    let kind_name = match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
    };
    let _ = writeln!(text, "# TYPE {name}{suffix} {kind_name}");
    if let Some(unit) = unit.filter(|_| open) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name}{suffix} {help}");
}

impl Family<'_> {
    /// Writes a gauge's or counter's sample.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: impl Into<Number>) {
        let (value, is_counter) = (value.into(), self.kind == Kind::Counter);
        match self.out {
            Out::Text { text, .. } => {
                let suffix = if is_counter { "_total" } else { "" };
                write_sample(text, (self.name, suffix), (labels, None), value);
            }
            Out::Protobuf(families) => {
                let value = Some(Value { value: Some(value.real()) });
                let (gauge, counter) = if is_counter { (None, value) } else { (value, None) };
                let label = pairs(labels);
                push(families, Metric { label, gauge, counter, histogram: None });
            }
        }
    }

    /// Writes a histogram.
    pub(super) fn histogram(&mut self, labels: &[Label<'_>], values: &Distribution<'_>) {
        match self.out {
            Out::Text { text, .. } => write_classic(text, self.name, labels, values),
            Out::Protobuf(families) => {
                let buckets = values.classic.iter().map(|&(bound, count)| protobuf::Bucket {
                    cumulative_count: Some(count),
                    upper_bound: Some(bound),
                });
                let mut histogram = protobuf::Histogram {
                    sample_count: Some(values.count),
                    sample_sum: Some(values.sum),
                    bucket: buckets.collect(),
                    ..protobuf::Histogram::default()
                };
                if let Some(native) = values.native {
                    histogram.schema = Some(SCHEMA);
                    histogram.zero_threshold = Some(ZERO_THRESHOLD_SECONDS);
                    histogram.zero_count = Some(native.zero);
                    histogram.set_positive(&native.positive);
                }
                let (label, histogram) = (pairs(labels), Some(histogram));
                push(families, Metric { label, histogram, ..Metric::default() });
            }
        }
    }
}

/// Adds a series to the family being written.
fn push(families: &mut [MetricFamily], metric: Metric) {
    if let Some(family) = families.last_mut() {
        family.metric.push(metric);
    }
}

fn pairs(labels: &[Label<'_>]) -> Vec<LabelPair> {
    let pair = |&(name, value): &Label<'_>| LabelPair {
        name: Some(name.to_owned()),
        value: Some(value.to_string()),
    };
    labels.iter().map(pair).collect()
}

fn write_classic(
    text: &mut String,
    name: &'static str,
    labels: &[Label<'_>],
    values: &Distribution<'_>,
) {
    for (bound, count) in values.classic {
        // Debug: `1.0`, not `1`, as OpenMetrics requires.
        let bound = format!("{bound:?}");
        write_sample(text, (name, "_bucket"), (labels, Some(("le", &bound))), (*count).into());
    }
    write_sample(text, (name, "_bucket"), (labels, Some(("le", &"+Inf"))), values.count.into());
    write_sample(text, (name, "_sum"), (labels, None), values.sum.into());
    write_sample(text, (name, "_count"), (labels, None), values.count.into());
}

/// Writes a sample whose name is the family's followed by a suffix, with `labels` and one more.
fn write_sample(
    out: &mut String,
    name: (&str, &str),
    (labels, more): (&[Label<'_>], Option<Label<'_>>),
    value: Number,
) {
    out.push_str(name.0);
    out.push_str(name.1);
    for (position, (name, value)) in labels.iter().chain(&more).enumerate() {
        out.push(if position == 0 { '{' } else { ',' });
        let _ = write!(out, "{name}=\"");
        let _ = write!(Escaped(out), "{value}");
        out.push('"');
    }
    if !labels.is_empty() || more.is_some() {
        out.push('}');
    }
    let _ = match value {
        Number::Whole(value) => writeln!(out, " {value}"),
        // Both formats require `NaN` and `+Inf` in this form; neither value is ever exposed.
        Number::Real(value) => writeln!(out, " {value:?}"),
    };
}

/// Escapes text as a label's value.
struct Escaped<'o>(&'o mut String);

impl std::fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_asked_for() {
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::for_accept(prometheus_3), Format::OpenMetrics);
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                      encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6";
        assert_eq!(Format::for_accept(native), Format::Protobuf);
        let other_framing = native.replace("delimited", "compact-text");
        assert_eq!(Format::for_accept(&other_framing), Format::OpenMetrics);
        let unwanted = native.replace("q=0.7", "q=0");
        assert_eq!(Format::for_accept(&unwanted), Format::OpenMetrics);
        let text_first = "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.5";
        assert_eq!(Format::for_accept(text_first), Format::Prometheus);
        for accept in ["", "*/*", "text/plain", "text/html, application/openmetrics-textual"] {
            assert_eq!(Format::for_accept(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn labels_are_escaped_and_numbers_exact() {
        let mut families = Families::new(Format::Prometheus);
        let mut family = families.family("a", Kind::Gauge, None, "Help.");
        family.sample(&[("x", &"a\"b\\c\nd"), ("y", &1)], u64::MAX);
        family.sample(&[], 0.25);
        assert_eq!(
            String::from_utf8(families.end()).unwrap(),
            "# TYPE a gauge\n# HELP a Help.\n\
             a{x=\"a\\\"b\\\\c\\nd\",y=\"1\"} 18446744073709551615\na 0.25\n"
        );
    }
}
