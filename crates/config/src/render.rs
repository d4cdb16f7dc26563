//! Renders diagnostics: line, column, the text underlined, what to write.
//!
//! Knows nothing about the diagnostics' meaning.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity, Span, boundary_before};

/// Maximum number printed; the rest are counted. A file with more mistakes than that is probably
/// the wrong file.
const PRINTED_MAX: usize = 100;

/// Returns `diagnostics` of `text`, which was read from `name`, rendered: one block each, and a
/// line that counts them.
pub fn render(diagnostics: &[Diagnostic], text: &str, name: &str, colour: bool) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(PRINTED_MAX) {
        out.push_str(&renderer.render(&[group(diagnostic, text, name)]));
        out.push_str("\n\n");
    }
    out.push_str(&tally(diagnostics, name));
    out.push('\n');
    out
}

fn group<'a>(diagnostic: &'a Diagnostic, text: &'a str, name: &'a str) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut snippet = Snippet::source(text).path(name);
    let others = diagnostic.others.iter().map(|label| (AnnotationKind::Context, label));
    for (kind, label) in
        std::iter::once((AnnotationKind::Primary, &diagnostic.primary)).chain(others)
    {
        let mut annotation = kind.span(fit(&label.span, text));
        if !label.text.is_empty() {
            annotation = annotation.label(label.text.as_str());
        }
        snippet = snippet.annotation(annotation);
    }
    level
        .primary_title(diagnostic.title.as_str())
        .element(snippet)
        .elements(diagnostic.help.iter().map(|help| Level::HELP.message(help.as_str())))
}

/// Moves `span` onto character boundaries inside `text`.
fn fit(span: &Span, text: &str) -> Span {
    let start = boundary_before(text, span.start);
    let end = (span.end.max(start)..text.len()).find(|&at| text.is_char_boundary(at));
    start..end.unwrap_or(text.len())
}

fn tally(diagnostics: &[Diagnostic], name: &str) -> String {
    let count = |severity, noun: &str| match diagnostics
        .iter()
        .filter(|d| d.severity == severity)
        .count()
    {
        0 => None,
        1 => Some(format!("1 {noun}")),
        n => Some(format!("{n} {noun}s")),
    };
    let counts: Vec<_> = [count(Severity::Error, "mistake"), count(Severity::Warning, "warning")]
        .into_iter()
        .flatten()
        .collect();
    let unprinted = match diagnostics.len().saturating_sub(PRINTED_MAX) {
        0 => String::new(),
        n => format!(" ({n} not printed)"),
    };
    format!("{name}: {}{unprinted}", counts.join(", "))
}
