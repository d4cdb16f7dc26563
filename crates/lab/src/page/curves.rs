//! Curves over time, drawn from what `weir bench` has written second by second: every variant in
//! the same chart.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::{number, text};
use crate::run::Record;
use crate::run::figures::{places, values};

/// Measures of a chart, in pixels.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 24.0;
/// Lines of one chart; further ones would only hide each other.
const LINES_MAX: usize = 12;
/// Colours of the page's style sheet.
const COLOURS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

struct Line {
    name: String,
    points: Vec<f64>,
}

/// The charts of a run.
pub(super) fn curves(record: &Record) -> String {
    let mut out = String::from("<div class=charts>");
    let variants: Vec<&str> = record.variants.iter().map(|variant| &*variant.name).collect();
    let steps: BTreeSet<&str> = variants
        .iter()
        .filter_map(|variant| record.figures.get(variant)?.as_object())
        .flat_map(|of| of.keys().map(String::as_str))
        .collect();
    for step in steps {
        for (what, unit, paths) in [
            ("answers", "/s", &["seconds.*.completed"][..]),
            ("failed requests", "/s", &["seconds.*.errors"]),
            (
                "99th percentile",
                "ms",
                &["seconds.*.intended_start.p99_ms", "seconds.*.service.p99_ms"],
            ),
        ] {
            let lines: Vec<Line> = variants
                .iter()
                .flat_map(|variant| lines(record, variant, step, paths))
                .take(LINES_MAX)
                .collect();
            let has_any = lines.iter().flat_map(|line| &line.points).any(|point| *point > 0.0);
            if has_any && lines.iter().any(|line| line.points.len() > 1) {
                // Writing into a String does not fail.
                let _ = chart(&mut out, &format!("{step}: {what}"), unit, &lines);
            }
        }
    }
    out.push_str("</div>");
    out
}

/// A line for each run of load that a step has made in a variant.
fn lines(record: &Record, variant: &str, step: &str, paths: &[&str]) -> Vec<Line> {
    let Some(written) = record.figures.get(variant).and_then(|of| of.get(step)) else {
        return Vec::new();
    };
    let runs: Vec<(String, &Value)> = match written {
        Value::Array(runs) => {
            runs.iter().enumerate().map(|(n, run)| (format!("{variant} {}", n + 1), run)).collect()
        }
        run => vec![(variant.to_owned(), run)],
    };
    let line = |(name, run): (String, &Value)| {
        let path = paths.iter().find(|path| !places(path, run).is_empty())?;
        let points = values(path, run);
        (points.len() > 1).then_some(Line { name, points })
    };
    runs.into_iter().filter_map(line).collect()
}

fn chart(out: &mut String, title: &str, unit: &str, lines: &[Line]) -> std::fmt::Result {
    let seconds = lines.iter().map(|line| line.points.len()).max().unwrap_or(1).max(2);
    let most = lines.iter().flat_map(|line| &line.points).copied().fold(0.0, f64::max);
    let top = round_up(most);
    let x = |index: usize| LEFT + (WIDTH - LEFT - 8.0) * index as f64 / (seconds - 1) as f64;
    let y = |value: f64| 8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value / top);
    write!(
        out,
        "<figure><figcaption>{}, {unit}</figcaption><svg role=img width={WIDTH} height={HEIGHT} viewBox=\"0 0 {WIDTH} {HEIGHT}\">",
        text(title)
    )?;
    for part in [0.0, 0.5, 1.0] {
        let at = y(top * part);
        write!(
            out,
            "<line class=grid x1={LEFT} x2={} y1={at:.1} y2={at:.1} /><text class=soft text-anchor=end x={} y={:.1}>{}</text>",
            WIDTH - 8.0,
            LEFT - 6.0,
            at + 4.0,
            number(top * part)
        )?;
    }
    write!(
        out,
        "<text class=soft x={LEFT} y={}>0 s</text><text class=soft text-anchor=end x={} y={}>{} s</text>",
        HEIGHT - 6.0,
        WIDTH - 8.0,
        HEIGHT - 6.0,
        seconds - 1
    )?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let mut points = String::new();
        for (index, value) in line.points.iter().enumerate() {
            write!(points, "{:.1},{:.1} ", x(index), y(*value))?;
        }
        write!(
            out,
            "<polyline fill=none stroke=\"var(--{colour})\" stroke-width=1.6 points=\"{}\" />",
            points.trim_end()
        )?;
    }
    write!(out, "</svg><div>")?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        write!(out, "<span style=\"color:var(--{colour})\">— {}</span> ", text(&line.name))?;
    }
    write!(out, "</div></figure>")
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
