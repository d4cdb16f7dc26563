//! Curves over time, drawn from what `weir bench` has written second by second: every variant in
//! the same chart.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;
use wire::html::escaped;

use crate::figures::{places, values};
use crate::run::Record;
use crate::run::record::{VariantRecord, figure};

/// Measures of a chart, in pixels.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
/// Lines of one chart, shared by its variants; further ones would only hide each other.
const LINES_MAX: usize = 24;
/// Colours of the page's style sheet.
const COLOURS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Seconds that a curve takes at least: fewer show nothing that a figure does not.
const POINTS_MIN: usize = 4;
/// Faults of a variant that are written below a chart.
const MARKS_MAX: usize = 4;
/// How far apart the same fault may come in two variants that are told as one.
const MARKS_APART_S: f64 = 0.1;
/// Seconds with nothing to show between two points, from which on no line joins them.
const GAP_S: f64 = 1.5;

/// What a chart shows, and where it stands in each second.
struct Chart {
    what: &'static str,
    unit: &'static str,
    paths: &'static [&'static str],
    /// Only while load is begun: afterwards it falls to nothing, as it should.
    is_of_load: bool,
}

const CHARTS: [Chart; 3] = [
    Chart { what: "answers", unit: "per second", paths: &["completed"], is_of_load: true },
    Chart { what: "failed requests", unit: "per second", paths: &["errors"], is_of_load: false },
    Chart {
        what: "99th percentile",
        unit: "ms",
        paths: &["intended_start.p99_ms", "service.p99_ms"],
        is_of_load: false,
    },
];

/// Seconds since the load's beginning, and the value.
type Line = Vec<(f64, f64)>;

/// When, in seconds since the load's beginning, what was done.
type Mark = (f64, String);

/// What a chart shows of a variant, in one colour.
struct Curve {
    variant: String,
    /// Of several hosts, each has one.
    lines: Vec<Line>,
    marks: Vec<Mark>,
}

/// The charts of a run; nothing where no load was measured for long enough.
pub(super) fn curves(record: &Record) -> String {
    let mut out = String::new();
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
                let title = format!("{step}: {}, {}", chart.what, chart.unit);
                // Writing into a String does not fail.
                let _ = draw(&mut out, &title, &curves);
            }
        }
    }
    out
}

fn points(curves: &[Curve]) -> impl Iterator<Item = (f64, f64)> {
    curves.iter().flat_map(|curve| &curve.lines).flatten().copied()
}

/// A line for each run of load that a step has made in a variant.
fn lines(record: &Record, variant: &str, step: &str, chart: &Chart) -> Vec<Line> {
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
        }
        let point = |second: &Value| {
            let at_s = values("at_s", second).first().copied()?;
            let value = chart.paths.iter().find_map(|path| values(path, second).first().copied());
            Some((at_s, value?))
        };
        let line: Line = seconds.into_iter().filter_map(point).collect();
        (line.len() >= POINTS_MIN).then_some(line)
    };
    runs.iter().filter_map(line).collect()
}

/// What was done to the network and the programs of a variant since a step began.
fn marks(record: &Record, variant: &VariantRecord, step: &str) -> Vec<Mark> {
    let begun = values(&format!("{}.begun_s.{step}", variant.name), &record.figures);
    let Some(&begun_s) = begun.first() else { return Vec::new() };
    let faults = variant.events.iter().filter(|event| event.is_fault && event.at_s >= begun_s);
    faults.map(|event| (event.at_s - begun_s, event.what.clone())).collect()
}

/// Whether the same was done in every variant, at the same times.
fn are_marked_alike(curves: &[Curve]) -> bool {
    let is_same =
        |(one, other): (&Mark, &Mark)| one.1 == other.1 && (one.0 - other.0).abs() <= MARKS_APART_S;
    curves.windows(2).all(|two| {
        let (one, other) = (&two[0].marks, &two[1].marks);
        one.len() == other.len() && one.iter().zip(other).all(is_same)
    })
}

/// Where values and times stand in a chart.
struct Scale {
    seconds: f64,
    top: f64,
}

impl Scale {
    fn x(&self, at_s: f64) -> f64 {
        LEFT + (WIDTH - LEFT - 8.0) * at_s / self.seconds
    }

    fn y(&self, value: f64) -> f64 {
        8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value / self.top)
    }
}

fn draw(out: &mut String, title: &str, curves: &[Curve]) -> std::fmt::Result {
    let most = |of: fn((f64, f64)) -> f64, least| points(curves).map(of).fold(least, f64::max);
    let scale =
        Scale { seconds: most(|point| point.0, 1.0), top: round_up(most(|point| point.1, 0.0)) };
    let mut below = String::new();
    write!(
        out,
        "<figure><figcaption>{}</figcaption><svg role=img width={WIDTH} height={HEIGHT} viewBox=\"0 0 {WIDTH} {HEIGHT}\">",
        escaped(title)
    )?;
    axes(out, &scale)?;
    let coloured = || curves.iter().zip(COLOURS.iter().cycle());
    if are_marked_alike(curves) {
        let marks = curves.first().map_or(&[][..], |curve| &curve.marks);
        draw_marks(out, &mut below, &scale, marks, "")?;
    } else {
        for (curve, colour) in coloured() {
            let whose = format!(
                "<span style=\"color:var(--{colour})\">{}</span>, ",
                escaped(&curve.variant)
            );
            draw_marks(out, &mut below, &scale, &curve.marks, &whose)?;
        }
    }
    let lines_max = (LINES_MAX / curves.len().max(1)).max(1);
    let lines = coloured().flat_map(|(curve, colour)| {
        curve.lines.iter().take(lines_max).map(move |line| (line, colour))
    });
    for (line, colour) in lines {
        for part in line.chunk_by(|one, next| next.0 - one.0 <= GAP_S) {
            let mut points = String::new();
            for (at_s, value) in part {
                write!(points, "{:.1},{:.1} ", scale.x(*at_s), scale.y(*value))?;
            }
            write!(
                out,
                "<polyline fill=none stroke=\"var(--{colour})\" stroke-width=1.6 stroke-linecap=round points=\"{}\" />",
                points.trim_end()
            )?;
        }
    }
    write!(out, "</svg><div>")?;
    for (curve, colour) in coloured() {
        let hosts = match curve.lines.len() {
            1 => String::new(),
            all if all > lines_max => format!(", {lines_max} of {all} hosts"),
            all => format!(", {all} hosts"),
        };
        let name = escaped(&curve.variant);
        write!(out, "<span style=\"color:var(--{colour})\">— {name}{hosts}</span> ")?;
    }
    write!(out, "</div>{below}</figure>")
}

fn axes(out: &mut String, scale: &Scale) -> std::fmt::Result {
    for part in [0.0, 0.5, 1.0] {
        let at = scale.y(scale.top * part);
        write!(
            out,
            "<line class=grid x1={LEFT} x2={} y1={at:.1} y2={at:.1} /><text class=soft text-anchor=end x={} y={:.1}>{}</text>",
            WIDTH - 8.0,
            LEFT - 6.0,
            at + 4.0,
            figure(scale.top * part)
        )?;
    }
    write!(
        out,
        "<text class=soft x={LEFT} y={}>0 s</text><text class=soft text-anchor=end x={} y={}>{:.0} s</text>",
        HEIGHT - 6.0,
        WIDTH - 8.0,
        HEIGHT - 6.0,
        scale.seconds
    )
}

/// Marks in a chart, and what they are in words `below` it; `whose` stands before these.
fn draw_marks(
    out: &mut String,
    below: &mut String,
    scale: &Scale,
    marks: &[Mark],
    whose: &str,
) -> std::fmt::Result {
    for (at_s, what) in marks.iter().filter(|mark| mark.0 <= scale.seconds).take(MARKS_MAX) {
        let at = scale.x(*at_s);
        write!(out, "<line class=mark x1={at:.1} x2={at:.1} y1=8 y2={} />", HEIGHT - BOTTOM)?;
        write!(below, "<div class=soft>┆ {whose}{at_s:.1} s: {}</div>", escaped(what))?;
    }
    Ok(())
}

/// The next of 1, 2, 5, 10, 20, 50 …
fn round_up(most: f64) -> f64 {
    let ten = 10_f64.powf(most.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|step| step * ten)
        .find(|top| *top >= most)
        .unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(variant: &str, hosts: usize, marks: &[(f64, &str)]) -> Curve {
        let marks = marks.iter().map(|(at_s, what)| (*at_s, (*what).to_owned())).collect();
        let line: Line = (0..8).map(|second| (f64::from(second), 5.0)).collect();
        Curve { variant: variant.to_owned(), lines: vec![line; hosts], marks }
    }

    fn drawn(curves: &[Curve]) -> String {
        let mut out = String::new();
        draw(&mut out, "t", curves).unwrap();
        out
    }

    #[test]
    fn every_variant_has_its_share_of_lines() {
        let out = drawn(&[curve("one", 70, &[]), curve("two", 2, &[]), curve("three", 1, &[])]);
        assert_eq!(out.matches("<polyline").count(), 8 + 2 + 1);
        for told in ["— one, 8 of 70 hosts<", "— two, 2 hosts<", "— three<"] {
            assert!(out.contains(told), "{told}: {out}");
        }
    }

    #[test]
    fn faults_are_told_once_where_they_are_alike_and_else_with_their_variant() {
        let alike = drawn(&[curve("one", 1, &[(3.0, "cut")]), curve("two", 1, &[(3.04, "cut")])]);
        assert_eq!(alike.matches("class=mark").count(), 1);
        assert!(alike.contains("┆ 3.0 s: cut"), "{alike}");
        for other in [&[][..], &[(4.0, "cut")], &[(3.0, "paused")]] {
            let out = drawn(&[curve("one", 1, &[(3.0, "cut")]), curve("two", 1, other)]);
            assert_eq!(out.matches("class=mark").count(), 1 + other.len());
            assert!(out.contains(">one</span>, 3.0 s: cut"), "{out}");
            assert_eq!(out.contains(">two</span>, "), !other.is_empty(), "{out}");
        }
    }

    #[test]
    fn an_axis_ends_above_the_highest_point() {
        for (most, top) in [(0.9, 1.0), (1.5, 2.0), (42.0, 50.0), (501.0, 1000.0), (1000.0, 1000.0)]
        {
            assert!((round_up(most) - top).abs() < 1e-9, "{most}");
        }
    }
}
