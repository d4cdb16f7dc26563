//! A run of the lab as text.

use std::fmt::Write;

use ::lab::run::Record;
use ::lab::run::record::{Check, Found};

/// What came of a run, for people.
pub(super) fn record(record: &Record, is_coloured: bool) -> String {
    let mut out = String::new();
    let verdict = |holds: bool| match (holds, is_coloured) {
        (true, true) => "\x1b[32mas expected\x1b[0m",
        (true, false) => "as expected",
        (false, true) => "\x1b[31mNOT AS EXPECTED\x1b[0m",
        (false, false) => "NOT AS EXPECTED",
    };
    let short = if record.is_short { ", shortened" } else { "" };
    // Writing into a String does not fail.
    let _ = writeln!(
        out,
        "\n{} ({}{short}, seed {}, {:.0} s): {}",
        record.title,
        record.name,
        record.seed,
        record.took_s,
        verdict(record.holds())
    );
    for check in &record.checks {
        let mark = if check.holds { "  " } else { "! " };
        let _ = writeln!(out, "  {mark}{}: {}", check.what, measured(check));
        if !check.theirs.is_empty() {
            let _ = writeln!(out, "      theirs: {}", check.theirs);
        }
    }
    for found in &record.findings {
        let _ = writeln!(out, "  {}", findings(found));
    }
    out
}

fn measured(check: &Check) -> String {
    let value = check.value.map_or_else(|| "not measured".to_owned(), figure);
    let unit = if check.unit.is_empty() { String::new() } else { format!(" {}", check.unit) };
    let bounds = match (check.at_least, check.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", figure(least), figure(most)),
        (Some(least), None) => format!("at least {}", figure(least)),
        (None, Some(most)) => format!("at most {}", figure(most)),
        (None, None) => String::new(),
    };
    format!("{value}{unit} (expected: {bounds})")
}

fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn findings(found: &Found) -> String {
    let mark = if found.holds { "  " } else { "! " };
    let rules: Vec<String> =
        found.found.iter().map(|one| format!("{} ({})", one.rule, one.severity)).collect();
    let rules = if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") };
    let mut text = format!("{mark}{}, {} finds: {rules}", found.variant, found.step);
    if !found.missing.is_empty() {
        let _ = write!(text, "; missing: {}", found.missing.join(", "));
    }
    if !found.unexpected.is_empty() {
        let _ = write!(text, "; not expected: {}", found.unexpected.join(", "));
    }
    text
}
