//! Reads the content of a response that is configured: `respond` of a route, and error pages.

use super::table::Table;
use super::{RawBody, RawContent, http, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};

/// Reads `body` or `file`, `content_type` and `headers`.
pub(super) fn read(table: &mut Table<'_>) -> RawContent {
    let body = body(table);
    let media_type = table.text("content_type", http::field_value);
    let problems = table.problems;
    let fields = problems.texts(table.map("headers", field_name, http::field_value));
    let has_content = !matches!(body, RawBody::None);
    if !has_content && let Some(at) = &media_type {
        let diagnostic = Diagnostic::error("a type of nothing", at.span.clone(), "never used");
        table.problems.report_absence(diagnostic.help("write body = \"…\" or file = \"…\""));
    }
    let media_type = media_type.map(|at| at.value).or_else(|| match &body {
        RawBody::None => None,
        RawBody::Text(_) => Some(defaults::RESPOND_TEXT.to_owned()),
        RawBody::File(at) => Some(media_type_of(&at.value).to_owned()),
    });
    RawContent { media_type, fields, body }
}

fn body(table: &mut Table<'_>) -> RawBody {
    let text = table.text("body", |text| Ok::<_, Wrong>(text.to_owned()));
    let file = table.text("file", paths::file_path);
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
