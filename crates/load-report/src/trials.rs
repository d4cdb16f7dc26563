//! The trials of a search for the limit: rate against latency, and as a table.

use std::fmt;

use page::{Axis, Cell, Chart, Level, Line, Mark, Page, Shape, Tone, Unit, milliseconds, table};

use crate::run::{Run, Step};
use crate::words::{per_second, sentence};

/// From this ratio of the slowest to the fastest trial on, times are drawn on a log scale.
const LOG_FROM: f64 = 8.0;

/// The chart of rate against the 99th percentile; `None`: the run was no search.
pub(crate) fn chart(run: &Run) -> Option<Chart> {
    let mut steps: Vec<&Step> = run.steps.iter().filter(|step| step.p99_ms > 0.0).collect();
    steps.sort_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s));
    let limit = run.limit.as_ref()?;
    let (first, _) = (steps.first()?, steps.last()?);
    let longest = |step: &Step| step.duration_s >= limit.sustained_s;
    let line = |label: &str, colour, shape, wanted: &dyn Fn(&Step) -> bool| Line {
        label: label.to_owned(),
        colour,
        shape: Some(shape),
        values: steps.iter().map(|step| wanted(step).then_some(step.p99_ms)).collect(),
        ..Line::default()
    };
    let lines = [
        line("sustained", 0, Shape::Dot, &|step| step.passed),
        line("sustained in the longest run", 0, Shape::Ring, &|step| step.passed && longest(step)),
        line("not sustained", 1, Shape::Cross, &|step| !step.passed),
    ];
    let lines = lines.into_iter().filter(|line| line.values.iter().any(Option::is_some)).collect();
    let p99s = || steps.iter().map(|step| step.p99_ms);
    let (least, most) = (p99s().fold(first.p99_ms, f64::min), p99s().fold(first.p99_ms, f64::max));
    let mark = |rate: Option<f64>, text: &str| {
        rate.map(|x| Mark { x, text: text.to_owned(), whose: None })
    };
    let marks = [
        mark(limit.sustained_per_s, "the highest rate that was sustained"),
        mark(limit.failed_per_s, "the lowest rate above it that was not"),
    ];
    Some(Chart {
        title: "Rate and latency of the trials".to_owned(),
        note: "99th percentile from the intended start.".to_owned(),
        unit: Unit::Milliseconds,
        x: Axis::Rate,
        log: most / least >= LOG_FROM,
        xs: steps.iter().map(|step| step.rate_per_s).collect(),
        lines,
        marks: marks.into_iter().flatten().collect(),
        levels: bound(run).into_iter().collect(),
        ..Chart::default()
    })
}

/// The bound on the 99th percentile that was asked for.
fn bound(run: &Run) -> Option<Level> {
    let bound = |text: &str| {
        let bound = text.strip_prefix("p99")?.trim_start().strip_prefix('<')?;
        Some(bound.trim_start_matches('=').trim().to_owned())
    };
    let (one, time) = run.expectations.iter().find_map(|one| Some((one, bound(&one.text)?)))?;
    let (digits, scale) = [("ms", 1.0), ("us", 1e-3), ("s", 1e3)]
        .into_iter()
        .find_map(|(unit, scale)| Some((time.strip_suffix(unit)?, scale)))?;
    let ms = digits.trim().parse::<f64>().ok()? * scale;
    // Others have no place on a logarithmic scale.
    let ms = Some(ms).filter(|ms| ms.is_finite() && *ms > 0.0)?;
    Some(Level { y: ms, text: format!("objective: {}", one.text) })
}

/// The table of trials, in order.
pub(crate) fn write_table(out: &mut Page, run: &Run) -> fmt::Result {
    let row = |step: &Step| {
        let (tone, outcome) =
            if step.passed { (Tone::Good, "sustained") } else { (Tone::Bad, "not sustained") };
        let why = if step.why == outcome { String::new() } else { sentence(&step.why) };
        [
            Cell::from(format!("{}/s", per_second(step.rate_per_s))),
            Cell::from(format!("{}/s", per_second(step.achieved_per_s))),
            Cell::from(format!("{:.0} s", step.duration_s)),
            Cell::from(milliseconds(step.p99_ms)),
            Cell::from(format!("{:.2} %", step.errors_percent)),
            Cell::markup(format!("{}{outcome}", tone.mark())).class("state"),
            Cell::from(why).class("text"),
        ]
    };
    let heads = ["intended", "started", "for", "p99", "errors"].map(Cell::from);
    let heads =
        heads.into_iter().chain(["outcome", "why"].map(|head| Cell::from(head).class("text")));
    table(out, "Trials", heads, run.steps.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Expectation, Limit, SearchEnd};

    #[test]
    fn trials_differ_by_shape_and_the_objective_is_a_level() {
        let step = |rate_per_s, p99_ms, passed, duration_s| Step {
            rate_per_s,
            duration_s,
            p99_ms,
            passed,
            ..Step::default()
        };
        let run = Run {
            steps: vec![
                step(10.0, 200.0, true, 8.0),
                step(20.0, 4_000.0, false, 8.0),
                step(15.0, 250.0, true, 30.0),
            ],
            limit: Some(Limit {
                outcome: SearchEnd::Found,
                sustained_per_s: Some(15.0),
                sustained_s: 30.0,
                failed_per_s: Some(20.0),
            }),
            expectations: vec![Expectation {
                text: "p99<0.5s".to_owned(),
                ..Expectation::default()
            }],
            ..Run::default()
        };
        let chart = chart(&run).unwrap();
        assert_eq!(chart.xs, [10.0, 15.0, 20.0]);
        assert_eq!(chart.lines[0].values, [Some(200.0), Some(250.0), None]);
        assert_eq!(chart.lines[1].values, [None, Some(250.0), None], "confirmed");
        assert_eq!(chart.lines[2].values, [None, None, Some(4_000.0)]);
        let shapes: Vec<_> = chart.lines.iter().map(|line| line.shape).collect();
        assert_eq!(shapes, [Some(Shape::Dot), Some(Shape::Ring), Some(Shape::Cross)]);
        assert!((chart.levels[0].y - 500.0).abs() < 1e-9);
        assert!(chart.log);
        let mut page = Page::new("weir test", "t", "");
        write_table(&mut page, &run).unwrap();
        assert!(page.finish().contains("not sustained</td>"));
    }
}
