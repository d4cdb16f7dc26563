//! Errors and warnings of a configuration, as JSON.

use config::{Diagnostic, Label, Place, Report, Severity, Subject};
use serde_json::{Value, json};

/// Mistakes or warnings, with lines and columns counted from 1.
pub(crate) fn json(report: &Report) -> Value {
    let lines = config::Lines::of(&report.sources);
    let place = |label: &Label| {
        let Place { file, first: (line, column), end: (line_end, column_end) } = lines.place(label);
        json!({
            "file": file,
            "line": line, "column": column, "line_end": line_end, "column_end": column_end,
            "text": label.text,
        })
    };
    let one = |diagnostic: &Diagnostic| {
        json!({
            "severity": match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            // "machine": the same text may be valid on another one.
            "where": match diagnostic.subject {
                Subject::File => "file",
                Subject::Machine => "machine",
            },
            "title": diagnostic.title,
            "at": place(&diagnostic.primary),
            "others": diagnostic.others.iter().map(place).collect::<Value>(),
            "help": diagnostic.help,
        })
    };
    report.found.iter().map(one).collect()
}
