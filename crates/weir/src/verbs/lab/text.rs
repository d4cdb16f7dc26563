//! Renders a run of the lab as text.

use std::fmt::Write;

use ::lab::run::Record;
use ::lab::run::record::{Check, Finding, Found, figure};

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
    match check.bounds() {
        bounds if bounds.is_empty() => format!("{value}{unit}"),
        bounds => format!("{value}{unit} (expected: {bounds})"),
    }
}

fn findings(found: &Found) -> String {
    let mark = if found.holds { "  " } else { "! " };
    let rule = |one: &Finding| match one.times {
        1 => format!("{} ({})", one.rule, one.severity),
        times => format!("{} ({}, {times} times)", one.rule, one.severity),
    };
    let rules: Vec<String> = found.found.iter().map(rule).collect();
    let rules = match (found.has_looked, rules.is_empty()) {
        (false, _) => "that it has not looked".to_owned(),
        (true, true) => "nothing".to_owned(),
        (true, false) => rules.join(", "),
    };
    let mut text = format!("{mark}{}, {} finds: {rules}", found.variant, found.by);
    if !found.missing.is_empty() {
        let _ = write!(text, "; missing: {}", found.missing.join(", "));
    }
    if !found.unexpected.is_empty() {
        let _ = write!(text, "; not expected: {}", found.unexpected.join(", "));
    }
    text
}
