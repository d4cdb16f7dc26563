//! Reads a route's `respond`.

use toml::de::DeValue;

use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};
use crate::raw::table::Table;
use crate::raw::{RawBody, RawRespond, http, name, tls};

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
    let body = body(&mut table);
    let media_type = table.text("content_type", http::field_value);
    let fields = table.map("headers", field_name, http::field_value);
    let fields = fields.into_iter().map(|(name, value)| (name.value, value.value)).collect();
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
    let has_content = !matches!(body, RawBody::None);
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
    if !has_content && let Some(at) = &media_type {
        let diagnostic = Diagnostic::error("a type of nothing", at.span.clone(), "never used");
        table.problems.report_absence(diagnostic.help("write body = \"…\" or file = \"…\""));
    }
    let media_type = media_type.map(|at| at.value).or_else(|| match &body {
        RawBody::None => None,
        RawBody::Text(_) => Some(defaults::RESPOND_TEXT.to_owned()),
        RawBody::File(at) => Some(media_type_of(&at.value).to_owned()),
    });
    table.finish();
    Some(RawRespond::Fixed { status: status.value, media_type, fields, body })
}

fn body(table: &mut Table<'_>) -> RawBody {
    let text = table.text("body", |text| Ok::<_, Wrong>(text.to_owned()));
    let file = table.text("file", tls::file_path);
    match (text, file) {
        (Some(text), Some(file)) => {
            table.problems.report(
                Diagnostic::error("two contents of one response", file.span, "leave one out")
                    .other(text.span, "or this"),
            );
            RawBody::None
        }
        (Some(At { value, .. }), None) => RawBody::Text(value),
        (None, Some(file)) => RawBody::File(file),
        (None, None) => RawBody::None,
    }
}

/// Parses the name of a field that a configured response may have.
fn field_name(text: &str) -> Result<String, Wrong> {
    let name = http::changeable_field_name(text)?;
    match name.as_str() {
        "content-type" => {
            Err(Wrong::new("the type has a key of its own").help("write content_type = \"…\""))
        }
        "date" | "x-request-id" => Err(Wrong::new("Weir writes this field itself")),
        _ => Ok(name),
    }
}

/// Returns the media type of a file by the ending of its name.
fn media_type_of(path: &std::path::Path) -> &'static str {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "txt" => "text/plain; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}
