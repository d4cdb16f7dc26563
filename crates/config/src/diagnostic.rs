//! Diagnostics: what is wrong, where, and what was probably meant: one value per mistake or
//! warning.
//!
//! Nothing here knows how a diagnostic is displayed; `render` does.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use model::Text;

/// A range of bytes in the configuration's text; [`crate::Sources`] tells in which file.
pub type Span = Range<usize>;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> At<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> At<U> {
        At { value: f(self.value), span: self.span }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is not applied.
    Error,
    /// It is applied, but probably does not do what was intended.
    Warning,
}

/// What a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The configuration's text: the same on every machine.
    File,
    /// What the text refers to on this machine: a file that is missing or unusable there, or this
    /// machine's clock. The same text may be valid elsewhere.
    Machine,
}

/// A range of the text and a comment on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The range.
    pub span: Span,
    /// The comment; may be empty.
    pub text: String,
}

/// Returns the last character boundary of `text` at or before `at`.
pub(crate) fn boundary_before(text: &str, at: usize) -> usize {
    // At 0 there always is one.
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// One mistake or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// The problem, in one line.
    pub title: String,
    /// Its position.
    pub primary: Label,
    /// Related positions.
    pub others: Vec<Label>,
    /// What was meant, and what to write.
    pub help: Vec<String>,
}

impl Diagnostic {
    pub(crate) fn error(title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        let primary = Label { span, text: label.into() };
        Diagnostic {
            severity: Severity::Error,
            subject: Subject::File,
            title: title.into(),
            primary,
            others: Vec::new(),
            help: Vec::new(),
        }
    }

    pub(crate) fn warning(title: impl Into<String>, span: Span, label: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(title, span, label) }
    }

    /// Returns all of its positions.
    pub(crate) fn labels_mut(&mut self) -> impl Iterator<Item = &mut Label> {
        std::iter::once(&mut self.primary).chain(&mut self.others)
    }

    /// Returns whether one of its positions is within one of `spans`.
    fn is_within(&self, spans: &Spans) -> bool {
        let mut labels = std::iter::once(&self.primary).chain(&self.others);
        labels.any(|label| spans.contain(&label.span))
    }

    /// Returns one that only says where it is: a text that contains a secret is not valid there.
    fn without_secrets(self) -> Diagnostic {
        let others = self.others.into_iter().map(|label| Label { text: String::new(), ..label });
        Diagnostic {
            title: "a mistake with the contents of a file in a text".to_owned(),
            primary: Label { text: "not shown: it may be a secret".to_owned(), ..self.primary },
            others: others.collect(),
            help: vec!["write a harmless text instead of ${file:…} to see what is wrong; if nothing is, look for line breaks and control characters in the file".to_owned()],
            ..self
        }
    }

    /// Marks it as concerning this machine.
    pub(crate) fn on_machine(mut self) -> Self {
        self.subject = Subject::Machine;
        self
    }

    pub(crate) fn other(mut self, span: Span, text: impl Into<String>) -> Self {
        self.others.push(Label { span, text: text.into() });
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }
}

/// Ranges of the text that do not overlap: the end of each by its start.
#[derive(Clone, Debug, Default)]
struct Spans(BTreeMap<usize, usize>);

impl Spans {
    /// Returns whether `span` is within one of them.
    fn contain(&self, span: &Span) -> bool {
        let before = self.0.range(..=span.start).next_back();
        before.is_some_and(|(_, end)| span.end <= *end)
    }
}

/// Collects the diagnostics of all readers and checks.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: RefCell<Vec<Diagnostic>>,
    /// How many were reported, those included that were not added to `found`.
    count: Cell<usize>,
    /// Positions in defaults, which are read for every table that has them, and whether a diagnostic is
    /// about this one.
    defaults: RefCell<HashMap<Span, bool>>,
    /// Positions of texts that contain secrets.
    secrets: RefCell<Spans>,
    /// Positions of texts that are not known, which is reported.
    unknown: RefCell<Spans>,
    /// Some of the text could not be read, so that something that seems missing may be there.
    pub(crate) broken: Cell<bool>,
}

impl Problems {
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.count.set(self.count.get() + 1);
        if diagnostic.is_within(&self.unknown.borrow()) {
            return;
        }
        let has_secret = diagnostic.is_within(&self.secrets.borrow());
        let diagnostic = if has_secret { diagnostic.without_secrets() } else { diagnostic };
        if let Some(is_reported) = self.defaults.borrow_mut().get_mut(&diagnostic.primary.span)
            && std::mem::replace(is_reported, true)
        {
            return;
        }
        self.found.borrow_mut().push(diagnostic);
    }

    /// Lets no diagnostic about the text at `span` say what it is.
    pub(crate) fn has_secret(&self, span: Span) {
        self.secrets.borrow_mut().0.insert(span.start, span.end);
    }

    /// Reports nothing else about the text at `span`.
    pub(crate) fn is_unknown(&self, span: Span) {
        self.unknown.borrow_mut().0.insert(span.start, span.end);
    }

    /// Returns a text that was read as one that knows whether it is a secret.
    pub(crate) fn text(&self, at: At<String>) -> Text {
        let is_secret = self.secrets.borrow().contain(&at.span);
        if is_secret { Text::secret(at.value) } else { at.value.into() }
    }

    /// As `text`, for names and texts.
    pub(crate) fn texts(&self, pairs: Vec<(At<String>, At<String>)>) -> Vec<(String, Text)> {
        pairs.into_iter().map(|(name, text)| (name.value, self.text(text))).collect()
    }

    /// Returns a diagnosis of single values, which are those of `self` with the same secrets.
    pub(crate) fn alone(&self) -> Problems {
        let alone = Problems {
            secrets: self.secrets.clone(),
            unknown: self.unknown.clone(),
            ..Problems::default()
        };
        alone.broken.set(true);
        alone
    }

    /// Reports at most one diagnostic about each of these positions, and none about those that have one.
    pub(crate) fn are_defaults(&self, positions: Vec<Span>) {
        let found = self.found.borrow();
        let reported: HashSet<&Span> = found.iter().map(|d| &d.primary.span).collect();
        let known = positions.into_iter().map(|span| {
            let is_reported = reported.contains(&span);
            (span, is_reported)
        });
        self.defaults.borrow_mut().extend(known);
    }

    /// As [`Problems::report`], whatever is known about its position: for a diagnostic that quotes no text
    /// in which something was substituted.
    pub(crate) fn report_as_is(&self, diagnostic: Diagnostic) {
        self.count.set(self.count.get() + 1);
        self.found.borrow_mut().push(diagnostic);
    }

    /// As [`Problems::report`], for a diagnostic that quotes no text in which something was substituted: it is
    /// shown as it is even if that text is a secret.
    pub(crate) fn report_unquoted(&self, diagnostic: Diagnostic) {
        if diagnostic.is_within(&self.unknown.borrow()) {
            self.count.set(self.count.get() + 1);
        } else {
            self.report_as_is(diagnostic);
        }
    }

    /// Reports something missing: only if all of the text could be read.
    pub(crate) fn report_absence(&self, diagnostic: Diagnostic) {
        if !self.broken.get() {
            self.report(diagnostic);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    pub(crate) fn any_error(&self) -> bool {
        self.found.borrow().iter().any(|d| d.severity == Severity::Error)
    }

    /// Removes warnings, and mistakes at positions that are not readable.
    pub(crate) fn keep_errors(&self, is_readable: impl Fn(usize) -> bool) {
        self.found
            .borrow_mut()
            .retain(|d| d.severity == Severity::Error && is_readable(d.primary.span.start));
    }

    /// Returns all diagnostics, in order of the text.
    pub(crate) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|d| d.primary.span.start);
        found
    }
}

/// Returns a path for messages. Paths may contain anything, such as line breaks.
pub(crate) fn shown_path(path: &Path) -> String {
    let path = path.display().to_string();
    let escaped = path
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    escaped.collect()
}

/// Quotes text from the file for a message: escaped and bounded.
pub fn quote(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// "a, b or c".
pub(crate) fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [start @ .., last] => format!("{} or {last}", start.join(", ")),
    }
}

/// Returns the name among `known` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['_', ' '], "-");
    let word = plain(word);
    let errors_max = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&word, &plain(name)), name))
        .filter(|&(distance, name)| distance <= errors_max && distance < name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Why a text is not valid for its key, and what to write.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) why: String,
    pub(crate) help: Option<String>,
}

impl Wrong {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Wrong { why: why.into(), help: None }
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    pub(crate) fn at(self, title: String, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::error(title, span, self.why);
        match self.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let names = ["interval", "timeout", "rise", "fall"];
        assert_eq!(nearest("intervall", names), Some("interval"));
        assert_eq!(nearest("Time_out", names), Some("timeout"));
        assert_eq!(nearest("rize", names), Some("rise"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn quoted_text_is_harmless_and_bounded() {
        assert_eq!(quote("a\u{1b}[31m\"b"), r#""a\u{1b}[31m\"b""#);
        assert!(quote(&"x".repeat(1_000_000)).len() < 100);
    }
}
