//! Reads a route's `respond`.

use toml::de::DeValue;

use crate::diagnostic::{Diagnostic, Wrong};
use crate::raw::table::Table;
use crate::raw::{RawBody, RawRespond, content, name};

/// The keys of a fixed response.
const FIXED: [&str; 5] = ["status", "body", "file", "content_type", "headers"];

/// Statuses whose responses have no content (RFC 9110 sections 15.3.5 and 15.3.6).
const WITHOUT_CONTENT: [u16; 2] = [204, 205];

pub(super) fn respond(table: &mut Table<'_>) -> Option<RawRespond> {
    match table.peek("respond") {
        None => None,
        Some(DeValue::String(_)) => {
            table.text("respond", ready).map(|_| RawRespond::Ready(Vec::new()))
        }
        Some(_) => table.table("respond").and_then(response),
    }
}

fn ready(word: &str) -> Result<(), Wrong> {
    match word {
        "ready" => Ok(()),
        _ => Err(Wrong::new("not a response")
            .help("write respond = \"ready\", or respond = { body = \"…\" }")),
    }
}

fn response(mut table: Table<'_>) -> Option<RawRespond> {
    let services = table.texts("ready", name);
    let status = table.integer::<u16>("status");
    let content = content::read(&mut table);
    if services.is_some() {
        for key in FIXED {
            if let Some(span) = table.key_span(key) {
                let title = format!("`{key}` has no effect beside `ready`");
                let diagnostic = Diagnostic::error(title, span, "never used");
                let other = table.span_of("ready");
                table.problems.report(diagnostic.other(other, "answers 200 or 503, as it is"));
            }
        }
        table.finish();
        return services.map(RawRespond::Ready);
    }
    let has_content = !matches!(content.body, RawBody::None);
    if status.value == 304 {
        table.problems.report(Diagnostic::error(
            "304 answers conditional requests",
            status.span.clone(),
            "clients have nothing that it could stand for",
        ));
    }
    if has_content && WITHOUT_CONTENT.contains(&status.value) {
        let title = format!("a response with status {} has no content", status.value);
        table.problems.report(Diagnostic::error(title, status.span.clone(), "but this one does"));
    }
    table.finish();
    Some(RawRespond::Fixed { status: status.value, content })
}
