//! Renders diagnostics: line, column, the text underlined, what to write.
//!
//! Knows nothing about the diagnostics' meaning.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity, Span, boundary_before};
use crate::sources::Sources;

/// Maximum number printed; the rest are counted. A file with more mistakes than that is probably
/// the wrong file.
const PRINTED_MAX: usize = 100;

/// Returns `diagnostics` of `sources` rendered: one block each, and a line that counts them.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(PRINTED_MAX) {
        out.push_str(&renderer.render(&[group(diagnostic, sources)]));
        out.push_str("\n\n");
    }
    out.push_str(&tally(diagnostics, sources.name()));
    out.push('\n');
    out
}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let others = diagnostic.others.iter().map(|label| (AnnotationKind::Context, label));
    let labels: Vec<_> = std::iter::once((AnnotationKind::Primary, &diagnostic.primary))
        .chain(others)
        .map(|(kind, label)| (sources.index_at(label.span.start), kind, label))
        .collect();
    // One snippet for each file, that of the primary position first.
    let mut files: Vec<usize> = Vec::new();
    for (file, ..) in &labels {
        if !files.contains(file) {
            files.push(*file);
        }
    }
    let snippets = files.into_iter().map(|file| {
        let source = &sources.all()[file];
        let annotations = labels.iter().filter(|(of, ..)| *of == file).map(|(_, kind, label)| {
            let annotation = kind.span(fit(&source.local(&label.span), &source.text));
            if label.text.is_empty() { annotation } else { annotation.label(label.text.as_str()) }
        });
        Snippet::source(&*source.text).path(source.name.as_str()).annotations(annotations)
    });
    level
        .primary_title(diagnostic.title.as_str())
        .elements(snippets)
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
