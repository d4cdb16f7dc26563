//! Curves over time, drawn from what `weir bench` has written second by second: every variant in
//! the same chart.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;
use wire::html::escaped;

use crate::run::Record;
use crate::run::figures::{places, values};
use crate::run::record::{VariantRecord, figure};

/// Measures of a chart, in pixels.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
/// Lines of one chart; further ones would only hide each other.
const LINES_MAX: usize = 24;
/// Colours of the page's style sheet.
const COLOURS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Seconds that a curve takes at least: fewer show nothing that a figure does not.
const POINTS_MIN: usize = 4;
/// Faults that are written below a chart.
const MARKS_MAX: usize = 4;
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

struct Line {
    /// Lines of one variant, those of several hosts, have one colour.
    variant: String,
    /// Seconds since the load's beginning, and the value.
    points: Vec<(f64, f64)>,
}

/// When, in seconds since the load's beginning, what was done.
type Mark = (f64, String);

/// The charts of a run; nothing where no load was measured for long enough.
pub(super) fn curves(record: &Record) -> String {
    let mut out = String::new();
    let variants: Vec<&str> = record.variants.iter().map(|variant| &*variant.name).collect();
    let steps: BTreeSet<&str> = variants
        .iter()
        .filter_map(|variant| record.figures.get(variant)?.as_object())
        .flat_map(|of| of.keys().map(String::as_str))
        .collect();
    for step in steps {
        for chart in &CHARTS {
            let lines: Vec<Line> = variants
                .iter()
                .flat_map(|variant| lines(record, variant, step, chart))
                .take(LINES_MAX)
                .collect();
            let has_any = lines.iter().flat_map(|line| &line.points).any(|point| point.1 > 0.0);
            if has_any {
                let title = format!("{step}: {}, {}", chart.what, chart.unit);
                // Writing into a String does not fail.
                let _ = draw(&mut out, &title, &lines, &marks(record, step));
            }
        }
    }
    out
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
        let points: Vec<(f64, f64)> = seconds.into_iter().filter_map(point).collect();
        let variant = variant.to_owned();
        (points.len() >= POINTS_MIN).then_some(Line { variant, points })
    };
    runs.iter().filter_map(line).collect()
}

/// What was done to the network and the programs during a step, in the first variant that has it.
fn marks(record: &Record, step: &str) -> Vec<Mark> {
    let begun = |variant: &VariantRecord| {
        values(&format!("{}.begun_s.{step}", variant.name), &record.figures).first().copied()
    };
    let Some((variant, begun_s)) =
        record.variants.iter().find_map(|variant| Some((variant, begun(variant)?)))
    else {
        return Vec::new();
    };
    let faults = variant.events.iter().filter(|event| event.is_fault && event.at_s >= begun_s);
    faults.map(|event| (event.at_s - begun_s, event.what.clone())).collect()
}

fn draw(out: &mut String, title: &str, lines: &[Line], marks: &[Mark]) -> std::fmt::Result {
    let points = || lines.iter().flat_map(|line| &line.points).copied();
    let seconds = points().map(|point| point.0).fold(1.0, f64::max);
    let top = round_up(points().map(|point| point.1).fold(0.0, f64::max));
    let x = |at_s: f64| LEFT + (WIDTH - LEFT - 8.0) * at_s / seconds;
    let y = |value: f64| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value / top);
    write!(
        out,
        "<figure><figcaption>{}</figcaption><svg role=img width={WIDTH} height={HEIGHT} viewBox=\"0 0 {WIDTH} {HEIGHT}\">",
        escaped(title)
    )?;
    for part in [0.0, 0.5, 1.0] {
        let at = y(top * part);
        write!(
            out,
            "<line class=grid x1={LEFT} x2={} y1={at:.1} y2={at:.1} /><text class=soft text-anchor=end x={} y={:.1}>{}</text>",
            WIDTH - 8.0,
            LEFT - 6.0,
            at + 4.0,
            figure(top * part)
        )?;
    }
    write!(
        out,
        "<text class=soft x={LEFT} y={}>0 s</text><text class=soft text-anchor=end x={} y={}>{seconds:.0} s</text>",
        HEIGHT - 6.0,
        WIDTH - 8.0,
        HEIGHT - 6.0
    )?;
    let marks: Vec<&Mark> = marks.iter().filter(|mark| mark.0 <= seconds).take(MARKS_MAX).collect();
    for (at_s, _) in &marks {
        let at = x(*at_s);
        write!(out, "<line class=mark x1={at:.1} x2={at:.1} y1=8 y2={} />", HEIGHT - BOTTOM)?;
    }
    let variants: Vec<&[Line]> = lines.chunk_by(|one, next| one.variant == next.variant).collect();
    let coloured = || variants.iter().zip(COLOURS.iter().cycle());
    for (line, colour) in
        coloured().flat_map(|(of, colour)| of.iter().map(move |line| (line, colour)))
    {
        for part in line.points.chunk_by(|one, next| next.0 - one.0 <= GAP_S) {
            let mut points = String::new();
            for (at_s, value) in part {
                write!(points, "{:.1},{:.1} ", x(*at_s), y(*value))?;
            }
            write!(
                out,
                "<polyline fill=none stroke=\"var(--{colour})\" stroke-width=1.6 stroke-linecap=round points=\"{}\" />",
                points.trim_end()
            )?;
        }
    }
    write!(out, "</svg><div>")?;
    for (of, colour) in coloured() {
        let name = of.first().map_or_else(String::new, |line| escaped(&line.variant));
        let hosts = if of.len() > 1 { format!(", {} hosts", of.len()) } else { String::new() };
        write!(out, "<span style=\"color:var(--{colour})\">— {name}{hosts}</span> ")?;
    }
    write!(out, "</div>")?;
    for (at_s, what) in &marks {
        write!(out, "<div class=soft>┆ {at_s:.1} s: {}</div>", escaped(what))?;
    }
    write!(out, "</figure>")
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
    use super::round_up;

    #[test]
    fn an_axis_ends_above_the_highest_point() {
        for (most, top) in [(0.9, 1.0), (1.5, 2.0), (42.0, 50.0), (501.0, 1000.0), (1000.0, 1000.0)]
        {
            assert!((round_up(most) - top).abs() < 1e-9, "{most}");
        }
    }
}
