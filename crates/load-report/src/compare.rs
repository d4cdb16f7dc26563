//! Compares runs: the main figures, each with its difference from the first run's.

use page::milliseconds;

use crate::latency::Summary;
use crate::named::Named;
use crate::run::Run;

/// A figure of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub label: &'static str,
    /// As text with its unit, run by run; `-` where a run has none.
    pub values: Vec<String>,
    /// Difference from the first run, in percent of it; `None` for the first, and where there is
    /// nothing to compare.
    pub changes: Vec<Option<f64>>,
    /// Whether less of it is better; `None`: it is neither.
    pub less_is_better: Option<bool>,
}

/// How a figure is written.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    PerSecond,
    Ms,
    Percent,
    Seconds,
}

type Figure = (&'static str, Unit, Option<bool>, fn(&Run) -> Option<f64>);

const FIGURES: &[Figure] = &[
    ("requests", Unit::Count, None, |r| Some(r.totals.requests as f64)),
    ("duration", Unit::Seconds, None, |r| Some(r.totals.duration_s)),
    ("intended rate", Unit::PerSecond, None, |r| r.rate.intended_per_s),
    ("achieved rate", Unit::PerSecond, Some(false), |r| Some(r.rate.achieved_per_s)),
    ("responses", Unit::PerSecond, Some(false), |r| Some(r.rate.responses_per_s)),
    ("errors", Unit::Percent, Some(true), |r| share(r.totals.errors, r.totals.requests)),
    ("status 400 and more", Unit::Percent, Some(true), |r| share(bad(r), r.totals.responses)),
    ("starts late", Unit::Count, Some(true), |r| {
        r.rate.intended_per_s.map(|_| r.totals.late_starts as f64)
    }),
    ("starts dropped", Unit::Count, Some(true), |r| {
        r.rate.intended_per_s.map(|_| r.totals.dropped_starts as f64)
    }),
    ("p50 from intended start", Unit::Ms, Some(true), |r| {
        Some(r.latency.intended_start.as_ref()?.p50_ms)
    }),
    ("p90 from intended start", Unit::Ms, Some(true), |r| {
        Some(r.latency.intended_start.as_ref()?.p90_ms)
    }),
    ("p99 from intended start", Unit::Ms, Some(true), |r| {
        Some(r.latency.intended_start.as_ref()?.p99_ms)
    }),
    ("p99.9 from intended start", Unit::Ms, Some(true), |r| {
        Some(r.latency.intended_start.as_ref()?.p99_9_ms)
    }),
    ("max from intended start", Unit::Ms, Some(true), |r| {
        Some(r.latency.intended_start.as_ref()?.max_ms)
    }),
    ("service mean", Unit::Ms, Some(true), |r| Some(service(r)?.mean_ms)),
    ("service p50", Unit::Ms, Some(true), |r| Some(service(r)?.p50_ms)),
    ("service p90", Unit::Ms, Some(true), |r| Some(service(r)?.p90_ms)),
    ("service p99", Unit::Ms, Some(true), |r| Some(service(r)?.p99_ms)),
    ("service p99.9", Unit::Ms, Some(true), |r| Some(service(r)?.p99_9_ms)),
    ("service max", Unit::Ms, Some(true), |r| Some(service(r)?.max_ms)),
    ("first byte p50", Unit::Ms, Some(true), |r| {
        Some(&r.latency.phases.first_byte).filter(|s| s.count > 0).map(|s| s.p50_ms)
    }),
    ("connect p50", Unit::Ms, Some(true), |r| {
        Some(&r.latency.phases.connect).filter(|s| s.count > 0).map(|s| s.p50_ms)
    }),
    ("connections", Unit::Count, None, |r| Some(r.totals.connections as f64)),
    ("generator CPU", Unit::Seconds, None, |r| Some(r.totals.cpu_user_s + r.totals.cpu_system_s)),
];

/// The figures that at least one of the runs has.
pub fn rows(runs: &[Named]) -> Vec<Row> {
    let row = |&(label, unit, less_is_better, get): &Figure| {
        let numbers: Vec<Option<f64>> =
            runs.iter().map(|named| get(&named.run).filter(|n| n.is_finite())).collect();
        let base = numbers.first().copied().flatten();
        let change = |(index, number): (usize, &Option<f64>)| {
            let (base, number) = (base?, (*number)?);
            (index > 0 && base != 0.0).then(|| (number / base - 1.0) * 100.0)
        };
        Row {
            label,
            values: numbers.iter().map(|number| shown(*number, unit)).collect(),
            changes: numbers.iter().enumerate().map(change).collect(),
            less_is_better,
        }
    };
    FIGURES.iter().map(row).filter(|row| row.values.iter().any(|value| value != "-")).collect()
}

/// The service times, where there was a response.
fn service(run: &Run) -> Option<&Summary> {
    Some(&run.latency.service).filter(|summary| summary.count > 0)
}

/// Responses with a status of 400 or more.
pub fn bad(run: &Run) -> u64 {
    let is_bad = |status: &str| status.parse::<u16>().is_ok_and(|status| status >= 400);
    run.totals.statuses.iter().filter(|(status, _)| is_bad(status)).map(|(_, count)| count).sum()
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64 * 100.0)
}

fn shown(number: Option<f64>, unit: Unit) -> String {
    let Some(number) = number else { return "-".to_owned() };
    match unit {
        Unit::Count => format!("{number:.0}"),
        Unit::PerSecond => format!("{number:.1}/s"),
        Unit::Ms => milliseconds(number),
        Unit::Percent => format!("{number:.2} %"),
        Unit::Seconds => format!("{number:.1} s"),
    }
}

/// Writes a difference in percent; `same` below 0.05 %.
pub fn change(percent: f64) -> String {
    if percent.abs() < 0.05 { "same".to_owned() } else { format!("{percent:+.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_from_the_first_run() {
        let named = |name: &str, p99_ms, responses_per_s| {
            let mut run = Run::default();
            run.latency.service = Summary { count: 1, p99_ms, ..Summary::default() };
            run.rate.responses_per_s = responses_per_s;
            run.totals.statuses.insert("502".to_owned(), 5);
            run.totals.statuses.insert("200".to_owned(), 95);
            run.totals.responses = 100;
            Named { name: name.to_owned(), run }
        };
        let rows = rows(&[named("a", 200.0, 100.0), named("b", 150.0, 100.0)]);
        let row = |label| rows.iter().find(|row| row.label == label).unwrap();
        assert_eq!(row("service p99").values, ["200 ms", "150 ms"]);
        assert_eq!(row("service p99").changes, [None, Some(-25.0)]);
        assert_eq!(row("responses").changes, [None, Some(0.0)]);
        assert_eq!(row("status 400 and more").values, ["5.00 %", "5.00 %"]);
        assert!(rows.iter().all(|row| row.label != "intended rate"), "no run has one");
        assert_eq!((change(-25.0), change(0.01)), ("-25.0 %".to_owned(), "same".to_owned()));
    }

    #[test]
    fn times_have_digits_that_matter() {
        let texts = [0.0123, 1.2345, 12.345, 123.45, 1234.5, 61_354.978].map(milliseconds);
        assert_eq!(texts, ["0.012 ms", "1.23 ms", "12.3 ms", "123 ms", "1.23 s", "61.4 s"]);
    }
}
