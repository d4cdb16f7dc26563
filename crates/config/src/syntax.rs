//! TOML syntax errors: rephrases what the parser reports, and reports each cause once instead of
//! its consequences.

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::diagnostic::{Diagnostic, Span, boundary_before, quote};
use crate::foreign;

/// Maximum number reported: a text with more errors is not a configuration. Bounds the time that
/// reporting takes.
const MISTAKES_MAX: usize = 100;

/// The result of parsing a text.
pub(crate) struct Syntax<'t> {
    /// As far as it can be parsed.
    pub(crate) tree: DeTable<'t>,
    /// Every mistake in the text itself.
    pub(crate) mistakes: Vec<Diagnostic>,
    /// The lines with mistakes.
    broken: Vec<Span>,
    /// From here on the tree is guesswork.
    unread_from: usize,
}

/// Parses as much as possible of a text whose positions begin at `start`; nothing of one that is not TOML
/// at all.
pub(crate) fn parse(text: &str, start: usize) -> Syntax<'_> {
    let mut syntax = parse_alone(text);
    if !syntax.mistakes.is_empty()
        && let Some(foreign) = foreign::recognise(text)
    {
        let tree = DeTable::new();
        syntax = Syntax { tree, mistakes: vec![foreign], broken: Vec::new(), unread_from: 0 };
    }
    if start > 0 {
        syntax.move_by(start);
    }
    syntax
}

fn parse_alone(text: &str) -> Syntax<'_> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut found: Vec<(Span, &Error)> = errors
        .iter()
        .map(|error| (error.span().unwrap_or(text.len()..text.len()), error))
        .collect();
    found.sort_by_key(|(span, _)| (span.start, span.end));
    let mut mistakes: Vec<Diagnostic> = Vec::new();
    let mut unread_from = text.len() + 1;
    let mut reported_until = 0;
    for (span, error) in found {
        // After the first mistake of a line, or of an unclosed list, the parser guesses: its
        // further reports concern its guess.
        if span.start < reported_until {
            continue;
        }
        if mistakes.len() == MISTAKES_MAX {
            unread_from = line_start(text, span.start);
            break;
        }
        if let Some(open) = unclosed_around(tree.get_ref(), text, &span) {
            reported_until = text.len() + 1;
            unread_from = line_start(text, open.start);
            mistakes.push(never_closed(text, open));
        } else {
            reported_until = line_end(text, span.start);
            mistakes.push(describe(text, tree.get_ref(), span, error));
        }
    }
    let broken = mistakes
        .iter()
        .map(|d| line_start(text, d.primary.span.start)..line_end(text, d.primary.span.end))
        .collect();
    Syntax { tree: tree.into_inner(), mistakes, broken, unread_from }
}

impl Syntax<'_> {
    /// Returns whether the line at this position could be parsed: mistakes on other lines concern a
    /// guess.
    pub(crate) fn is_readable(&self, at: usize) -> bool {
        at < self.unread_from && !self.broken.iter().any(|line| line.contains(&at))
    }

    /// Moves every position.
    fn move_by(&mut self, by: usize) {
        let move_span = |span: &mut Span| {
            span.start += by;
            span.end += by;
        };
        self.tree = moved(std::mem::take(&mut self.tree), by);
        for mistake in &mut self.mistakes {
            mistake.labels_mut().for_each(|label| move_span(&mut label.span));
        }
        self.broken.iter_mut().for_each(move_span);
        self.unread_from += by;
    }
}

fn moved(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let entries = table.into_iter().map(|(key, value)| {
        let key = Spanned::new(moved_span(key.span(), by), key.into_inner());
        (key, moved_value(value, by))
    });
    entries.collect()
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = moved_span(value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(moved(table, by)),
        DeValue::Array(mut items) => {
            for item in items.iter_mut() {
                let placeholder = Spanned::new(0..0, DeValue::Boolean(false));
                *item = moved_value(std::mem::replace(item, placeholder), by);
            }
            DeValue::Array(items)
        }
        other => other,
    };
    Spanned::new(span, value)
}

fn moved_span(span: Span, by: usize) -> Span {
    span.start + by..span.end + by
}

fn line_start(text: &str, at: usize) -> usize {
    text[..boundary_before(text, at)].rfind('\n').map_or(0, |at| at + 1)
}

/// Returns the position after the end of the line that contains `at`.
fn line_end(text: &str, at: usize) -> usize {
    let at = boundary_before(text, at);
    text[at..].find('\n').map_or(text.len(), |end| at + end) + 1
}

/// Returns the opening bracket of the outermost list or inline table around `span` that was never
/// closed: it extends to the end of the text, or into a line that can only be a heading or a key.
fn unclosed_around(tree: &DeTable<'_>, text: &str, span: &Span) -> Option<Span> {
    tree.iter().find_map(|(_, value)| {
        let at = value.span();
        let inside = at.start <= span.start && span.start <= at.end;
        let written = text.get(at.clone()).unwrap_or_default();
        let bracketed = inside && written.starts_with(['[', '{']) && !written.starts_with("[[");
        match value.get_ref() {
            DeValue::Array(items) if !bracketed => {
                items.iter().find_map(|item| match item.get_ref() {
                    DeValue::Table(table) => unclosed_around(table, text, span),
                    _ => None,
                })
            }
            DeValue::Table(table) if !bracketed => unclosed_around(table, text, span),
            DeValue::Array(_) | DeValue::Table(_) => {
                let closed = written.ends_with([']', '}']);
                let to_the_end = text.get(at.end..).is_some_and(|rest| rest.trim().is_empty());
                let line = line_start(text, span.start);
                let ran_on = line > at.start && is_heading_or_key(&text[line..]);
                ((to_the_end && !closed) || ran_on).then_some(at.start..at.start + 1)
            }
            _ => None,
        }
    })
}

/// Returns whether a line begins like `[name`, `[[name` or `name =`.
fn is_heading_or_key(line: &str) -> bool {
    let line = line.trim_start();
    let inner = line.trim_start_matches('[');
    let name = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-.\"".contains(c));
    let named = name.len() < inner.len();
    if inner.len() < line.len() {
        named && name.starts_with(']')
    } else {
        named && name.trim_start().starts_with('=')
    }
}

fn never_closed(text: &str, open: Span) -> Diagnostic {
    let bracket = if text[open.clone()].starts_with('{') { '{' } else { '[' };
    let closing = if bracket == '{' { '}' } else { ']' };
    Diagnostic::error(
        format!("this `{bracket}` is never closed"),
        open,
        format!("needs a `{closing}`"),
    )
    .help("everything below it could not be read and is not checked yet")
}

fn describe(text: &str, tree: &DeTable<'_>, span: Span, error: &Error) -> Diagnostic {
    let message = error.message();
    let written = text.get(span.clone()).unwrap_or_default();
    let bare_word = message.starts_with("string values must be quoted")
        || message.starts_with("invalid boolean")
        || message.starts_with("invalid float");
    if bare_word && written.is_empty() {
        return Diagnostic::error("a value is missing", span, "after the `=`");
    }
    if bare_word {
        let help = match written.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" => "write true, or in quotes if text is meant".to_owned(),
            "no" | "off" | "false" => format!("write false, or \"{written}\" if text is meant"),
            _ => format!("write {}", quote(written)),
        };
        return Diagnostic::error("text stands in quotes", span, "not in quotes").help(help);
    }
    if message == "duplicate key" {
        let title = format!("{} is given twice", quote(written));
        let mut earlier = Vec::new();
        places_of(tree, text, written, span.start, &mut earlier);
        let diagnostic = Diagnostic::error(title, span, "again here");
        let diagnostic = match earlier.as_slice() {
            [first] => diagnostic.other(first.clone(), "first here"),
            _ => diagnostic,
        };
        return diagnostic.help("join the two, or leave one out");
    }
    if message.contains("string") && message.starts_with("invalid") && written.is_empty() {
        let quotes = message.rsplit("expected ").next().unwrap_or("a quote");
        return Diagnostic::error("text that is never closed", span, format!("needs {quotes}"));
    }
    if message.starts_with("missing escaped value") {
        return Diagnostic::error("no such escape", span, "after a backslash")
            .help("write a backslash as \\\\, or the text in single quotes");
    }
    let (title, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let label = match expected {
        "" => String::new(),
        "nothing" => "not expected here".to_owned(),
        expected => format!("expected {expected}"),
    };
    let diagnostic = Diagnostic::error(title, span.clone(), label);
    match assignment(text, span.start) {
        Some(assignment) => diagnostic.help(format!("write {assignment}")),
        None => diagnostic,
    }
}

/// Collects the positions of keys written like this before `before`.
fn places_of(tree: &DeTable<'_>, text: &str, written: &str, before: usize, found: &mut Vec<Span>) {
    for (key, value) in tree {
        if text.get(key.span()) == Some(written) && key.span().start < before {
            found.push(key.span());
        }
        match value.get_ref() {
            DeValue::Table(table) => places_of(table, text, written, before, found),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(table) = item.get_ref() {
                        places_of(table, text, written, before, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// YAML and nginx write `key: value` and `key value;`: suggests the TOML form.
fn assignment(text: &str, at: usize) -> Option<String> {
    let start = line_start(text, at);
    let line = text.get(start..line_end(text, start).min(text.len()))?.trim();
    let (key, value) = line.split_once([':', ' '])?;
    let value = value.trim().trim_end_matches([';', ',']);
    let bare = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !bare(key) || line.contains('=') || value.is_empty() {
        return None;
    }
    let plain = value.parse::<i64>().is_ok() || matches!(value, "true" | "false");
    let value =
        if plain || value.starts_with(['"', '\'']) { value.to_owned() } else { quote(value) };
    Some(format!("{key} = {value}"))
}
