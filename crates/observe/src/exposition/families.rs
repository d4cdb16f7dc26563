//! Writes metric families in the two formats: metadata, names, labels and numbers. The list of
//! families is elsewhere.

use std::fmt::{Display, Write as _};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format for a scraper that sent this Accept field: `OpenMetrics` if it is listed.
    pub fn for_accept(accept: &str) -> Format {
        let open = accept.split(',').any(|range| {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            media_type.eq_ignore_ascii_case("application/openmetrics-text")
        });
        if open { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Returns the Content-Type of a body in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
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

/// Writes families one after the other.
pub(super) struct Families<'o> {
    out: &'o mut String,
    format: Format,
}

/// A family being written.
pub(super) struct Family<'f, 'o> {
    families: &'f mut Families<'o>,
    name: &'static str,
    kind: Kind,
}

// Writing to a String cannot fail; results are dropped.
impl<'o> Families<'o> {
    pub(super) fn new(out: &'o mut String, format: Format) -> Families<'o> {
        Families { out, format }
    }

    /// Starts a family. A name with a unit ends in it; a counter's name is given without `_total`.
    pub(super) fn family(
        &mut self,
        name: &'static str,
        kind: Kind,
        unit: Option<&'static str>,
        help: &str,
    ) -> Family<'_, 'o> {
        debug_assert!(unit.is_none_or(|unit| name.ends_with(unit)), "{name}");
        // The older format identifies families only by the names of their samples.
        let suffix = match (self.format, kind) {
            (Format::Prometheus, Kind::Counter) => "_total",
            _ => "",
        };
        let kind_name = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.out, "# TYPE {name}{suffix} {kind_name}");
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            let _ = writeln!(self.out, "# UNIT {name} {unit}");
        }
        // Help texts are constants without characters that would need escaping.
        debug_assert!(!help.contains(['\\', '\n', '"']), "{name}");
        let _ = writeln!(self.out, "# HELP {name}{suffix} {help}");
        Family { families: self, name, kind }
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

    /// Ends the text.
    pub(super) fn end(self) {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
    }
}

impl Family<'_, '_> {
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: impl Into<Number>) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.sample_of(suffix, labels, value);
    }

    /// Writes a sample whose name is the family's followed by `suffix`.
    pub(super) fn sample_of(
        &mut self,
        suffix: &str,
        labels: &[Label<'_>],
        value: impl Into<Number>,
    ) {
        let out = &mut *self.families.out;
        out.push_str(self.name);
        out.push_str(suffix);
        for (position, (name, value)) in labels.iter().enumerate() {
            out.push(if position == 0 { '{' } else { ',' });
            let _ = write!(out, "{name}=\"");
            let _ = write!(Escaped(out), "{value}");
            out.push('"');
        }
        if !labels.is_empty() {
            out.push('}');
        }
        let _ = match value.into() {
            Number::Whole(value) => writeln!(out, " {value}"),
            // Both formats require `NaN` and `+Inf` in this form; neither value is ever exposed.
            Number::Real(value) => writeln!(out, " {value:?}"),
        };
    }
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
        for accept in ["", "*/*", "text/plain", "text/html, application/openmetrics-textual"] {
            assert_eq!(Format::for_accept(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn labels_are_escaped_and_numbers_exact() {
        let mut out = String::new();
        let mut families = Families::new(&mut out, Format::Prometheus);
        let mut family = families.family("a", Kind::Gauge, None, "Help.");
        family.sample(&[("x", &"a\"b\\c\nd"), ("y", &1)], u64::MAX);
        family.sample(&[], 0.25);
        assert_eq!(
            out,
            "# TYPE a gauge\n# HELP a Help.\n\
             a{x=\"a\\\"b\\\\c\\nd\",y=\"1\"} 18446744073709551615\na 0.25\n"
        );
    }
}
