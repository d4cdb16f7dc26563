//! Charts over time from the seconds in the JSON of `weir bench`, with all variants in the same chart.

use std::collections::BTreeSet;

use page::{Line, Mark, Unit};
use serde_json::Value;

use crate::figures::{places, values};
use crate::run::Record;
use crate::run::record::VariantRecord;

/// Lines of one chart, shared by its variants; more would hide each other.
const LINES_MAX: usize = 24;
/// A curve has at least so many seconds. Shorter ones show no more than a figure.
const POINTS_MIN: usize = 4;
/// Faults of a variant that are marked in a chart.
const MARKS_MAX: usize = 4;
/// How far apart the same fault may be in two variants to be marked once.
const MARKS_APART_S: f64 = 0.1;

/// What a chart shows, and its paths in each second of the JSON.
struct Chart {
    what: &'static str,
    unit: Unit,
    paths: &'static [&'static str],
    /// Only while requests are started: afterwards it falls to 0 in any case.
    is_of_load: bool,
}

const CHARTS: [Chart; 3] = [
    Chart { what: "responses", unit: Unit::PerSecond, paths: &["completed"], is_of_load: true },
    Chart { what: "failed requests", unit: Unit::PerSecond, paths: &["errors"], is_of_load: false },
    Chart {
        what: "99th percentile",
        unit: Unit::Milliseconds,
        paths: &["intended_start.p99_ms", "service.p99_ms"],
        is_of_load: false,
    },
];

/// Seconds since the load began, and the value.
type Points = Vec<(f64, f64)>;

/// Seconds since the load began, and what was done.
type Fault = (f64, String);

/// A variant's part of a chart, in one colour.
struct Curve {
    variant: String,
    /// One for each host that made load.
    lines: Vec<Points>,
    marks: Vec<Fault>,
}

/// The charts of a run; none if no load was measured for long enough.
pub(super) fn curves(record: &Record) -> Vec<page::Chart> {
    let mut charts = Vec::new();
    let steps: BTreeSet<&str> = record
        .variants
        .iter()
        .filter_map(|variant| record.figures.get(&variant.name)?.as_object())
        .flat_map(|of| of.keys().map(String::as_str))
        .collect();
    for step in steps {
        for chart in &CHARTS {
            let curve = |variant: &VariantRecord| Curve {
                variant: variant.name.clone(),
                lines: lines(record, &variant.name, step, chart),
                marks: marks(record, variant, step),
            };
            let curves: Vec<Curve> = record.variants.iter().map(curve).collect();
            let curves: Vec<Curve> =
                curves.into_iter().filter(|curve| !curve.lines.is_empty()).collect();
            if points(&curves).any(|point| point.1 > 0.0) {
                charts.push(drawn(format!("{step}: {}", chart.what), chart.unit, &curves));
            }
        }
    }
    charts
}

fn points(curves: &[Curve]) -> impl Iterator<Item = (f64, f64)> {
    curves.iter().flat_map(|curve| &curve.lines).flatten().copied()
}

/// A line for each run of `weir bench` in a step of a variant.
fn lines(record: &Record, variant: &str, step: &str, chart: &Chart) -> Vec<Points> {
    let Some(written) = record.figures.get(variant).and_then(|of| of.get(step)) else {
        return Vec::new();
    };
    let runs = written.as_array().map_or(std::slice::from_ref(written), Vec::as_slice);
    let line = |run: &Value| {
        let mut seconds = places("seconds.*", run);
        let has_begun = |second: &&&Value| values("started", second).iter().any(|n| *n > 0.0);
        let last = seconds.iter().rposition(|second| has_begun(&second));
        if chart.is_of_load {
            seconds.truncate(last.map_or(0, |last| last + 1));
            // Part of a second has part of its rate.
            let asked = values("shape.duration_s", run).first().map(|asked| *asked as usize);
            seconds.truncate(asked.filter(|asked| *asked > 0).unwrap_or(usize::MAX));
        }
        let point = |second: &Value| {
            let at_s = values("at_s", second).first().copied()?;
            let value = chart.paths.iter().find_map(|path| values(path, second).first().copied());
            Some((at_s, value?))
        };
        let line: Points = seconds.into_iter().filter_map(point).collect();
        (line.len() >= POINTS_MIN).then_some(line)
    };
    runs.iter().filter_map(line).collect()
}

/// The faults of a variant since a step began.
fn marks(record: &Record, variant: &VariantRecord, step: &str) -> Vec<Fault> {
    let begun = values(&format!("{}.begun_s.{step}", variant.name), &record.figures);
    let Some(&begun_s) = begun.first() else { return Vec::new() };
    let faults = variant.events.iter().filter(|event| event.is_fault && event.at_s >= begun_s);
    faults.map(|event| (event.at_s - begun_s, event.what.clone())).collect()
}

/// Whether every variant has the same faults at the same times.
fn are_marked_alike(curves: &[Curve]) -> bool {
    let is_same = |(one, other): (&Fault, &Fault)| {
        one.1 == other.1 && (one.0 - other.0).abs() <= MARKS_APART_S
    };
    curves.windows(2).all(|two| {
        let (one, other) = (&two[0].marks, &two[1].marks);
        one.len() == other.len() && one.iter().zip(other).all(is_same)
    })
}

/// One chart of several variants.
fn drawn(title: String, unit: Unit, curves: &[Curve]) -> page::Chart {
    let mut xs: Vec<f64> = points(curves).map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let end_s = xs.last().copied().unwrap_or(0.0);
    let lines_max = (LINES_MAX / curves.len().max(1)).max(1);
    let mut lines = Vec::new();
    for (colour, curve) in curves.iter().enumerate() {
        let name = match curve.lines.len() {
            1 => curve.variant.clone(),
            all if all > lines_max => format!("{}, {lines_max} of {all} hosts", curve.variant),
            all => format!("{}, {all} hosts", curve.variant),
        };
        for (index, line) in curve.lines.iter().take(lines_max).enumerate() {
            let mut points = line.iter().peekable();
            let value = |x: &f64| points.next_if(|point| point.0 <= *x).map(|point| point.1);
            let values = xs.iter().map(value).collect();
            let (label, quiet) = (name.clone(), index > 0);
            lines.push(Line { label, colour, quiet, values, ..Line::default() });
        }
    }
    let marks = if are_marked_alike(curves) {
        curves.first().map_or_else(Vec::new, |curve| marked(curve, end_s, None))
    } else {
        let own = |(colour, curve): (usize, &Curve)| {
            marked(curve, end_s, Some((curve.variant.clone(), colour)))
        };
        curves.iter().enumerate().flat_map(own).collect()
    };
    page::Chart { title, unit, xs, lines, marks, ..page::Chart::default() }
}

/// The marks of a variant within a chart.
fn marked(curve: &Curve, end_s: f64, whose: Option<(String, usize)>) -> Vec<Mark> {
    let within = curve.marks.iter().filter(|event| event.0 <= end_s).take(MARKS_MAX);
    within.map(|(x, text)| Mark { x: *x, text: text.clone(), whose: whose.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(variant: &str, hosts: usize, marks: &[(f64, &str)]) -> Curve {
        let marks = marks.iter().map(|(at_s, what)| (*at_s, (*what).to_owned())).collect();
        let line: Points = (0..8).map(|second| (f64::from(second), 5.0)).collect();
        Curve { variant: variant.to_owned(), lines: vec![line; hosts], marks }
    }

    fn chart(curves: &[Curve]) -> page::Chart {
        drawn("t".to_owned(), Unit::PerSecond, curves)
    }

    #[test]
    fn every_variant_has_its_share_of_lines() {
        let chart = chart(&[curve("one", 70, &[]), curve("two", 2, &[]), curve("three", 1, &[])]);
        assert_eq!(chart.lines.len(), 8 + 2 + 1);
        let legend = chart.lines.iter().filter(|line| !line.quiet);
        let legend: Vec<(&str, usize)> =
            legend.map(|line| (line.label.as_str(), line.colour)).collect();
        assert_eq!(legend, [("one, 8 of 70 hosts", 0), ("two, 2 hosts", 1), ("three", 2)]);
    }

    #[test]
    fn marks_are_shown_once_if_all_variants_have_them_and_else_with_their_variant() {
        let alike = chart(&[curve("one", 1, &[(3.0, "cut")]), curve("two", 1, &[(3.04, "cut")])]);
        assert_eq!(alike.marks, [Mark { x: 3.0, text: "cut".to_owned(), whose: None }]);
        for other in [&[][..], &[(4.0, "cut")], &[(3.0, "paused")]] {
            let chart = chart(&[curve("one", 1, &[(3.0, "cut")]), curve("two", 1, other)]);
            let whose = |mark: &Mark| mark.whose.clone().unwrap();
            assert_eq!(chart.marks.len(), 1 + other.len());
            assert_eq!(whose(&chart.marks[0]), ("one".to_owned(), 0));
            assert!(chart.marks.iter().skip(1).all(|mark| whose(mark) == ("two".to_owned(), 1)));
        }
    }

    #[test]
    fn lines_share_one_axis_and_missing_seconds_interrupt_them() {
        let mut short = curve("short", 1, &[]);
        short.lines[0].remove(3);
        short.lines[0].truncate(5);
        let chart = chart(&[curve("long", 1, &[(99.0, "late")]), short]);
        assert_eq!(chart.xs, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let some = Some(5.0);
        assert_eq!(chart.lines[1].values, [some, some, some, None, some, some, None, None]);
        assert!(chart.marks.is_empty(), "after the end");
    }
}
