//! Errors and warnings of a configuration, as JSON.

use config::{Diagnostic, Label, Severity, Subject};
use serde_json::{Value, json};

/// Mistakes or warnings, with lines and columns counted from 1.
pub(crate) fn json(found: &[Diagnostic], text: &str) -> Value {
    let lines = config::Lines::of(text);
    let place = |label: &Label| {
        let (line, column) = lines.line_column(label);
        let (line_end, column_end) = lines.end_line_column(label);
        json!({
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
    found.iter().map(one).collect()
}
