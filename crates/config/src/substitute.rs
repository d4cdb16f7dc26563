//! Substitutes `${NAME}` and `${file:PATH}` in the texts of a configuration, after TOML has been parsed: a
//! value can never add a key. What is substituted is not scanned again.
//!
//! The contents of files are secrets. They may only be in keys whose value nothing shows, which `schema`
//! marks, and no diagnostic about such a value quotes it.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{At, Diagnostic, Problems, Span, quote, shown_path};
use crate::schema::names::Renamed;
use crate::schema::spec::{Kind, TableSpec};
use crate::sources::Sources;
use crate::{Surroundings, Unreadable};

/// Maximum length of a file in a text.
const FILE_MAX_BYTES: usize = 64 * 1024;
/// Maximum number of mistakes that are reported about one text.
const MISTAKES_MAX: usize = 5;
/// Maximum of all that is substituted.
const SUBSTITUTED_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Substitutes in the files of one configuration.
pub(crate) struct Substitution<'a> {
    surroundings: &'a dyn Surroundings,
    problems: &'a Problems,
    substituted_bytes: usize,
    /// Everything could be substituted.
    pub(crate) complete: bool,
    /// The files that only root may read.
    pub(crate) only_root: Vec<At<PathBuf>>,
}

/// A part of a text.
#[derive(Debug, PartialEq)]
enum Part<'t> {
    Literal(&'t str),
    /// What stands between the braces, and the position of the `$`.
    Reference(&'t str, usize),
}

impl<'a> Substitution<'a> {
    pub(crate) fn new(surroundings: &'a dyn Surroundings, problems: &'a Problems) -> Self {
        Substitution {
            surroundings,
            problems,
            substituted_bytes: 0,
            complete: true,
            only_root: Vec::new(),
        }
    }

    /// Substitutes in all values below `table`, which `spec` describes.
    pub(crate) fn in_table(
        &mut self,
        table: &mut DeTable<'_>,
        spec: &TableSpec,
        sources: &Sources,
    ) {
        for (key, value) in table.iter_mut() {
            let name: &str = key.get_ref();
            let name = Renamed::from_old(spec, name).map_or(name, |renamed| renamed.new);
            // An unknown key is reported as such.
            if let Some(known) = spec.key(name) {
                self.in_value(name, value, &known.kind, sources);
            }
        }
    }

    fn in_value(
        &mut self,
        key: &str,
        value: &mut Spanned<DeValue<'_>>,
        kind: &Kind,
        sources: &Sources,
    ) {
        let span = value.span();
        let kind = match kind {
            Kind::OneOrMore(of) if !matches!(value.get_ref(), DeValue::Array(_)) => of,
            kind => kind,
        };
        match (value.get_mut(), kind) {
            (DeValue::String(text), _) if text.contains("${") => {
                if let Some(new) = self.in_text(key, text, &span, kind, sources) {
                    *text = new.into();
                } else {
                    self.complete = false;
                    self.problems.is_unknown(span);
                }
            }
            (DeValue::Array(items), Kind::List(of) | Kind::OneOrMore(of)) => {
                items.iter_mut().for_each(|item| self.in_value(key, item, of, sources));
            }
            (DeValue::Array(items), _) => {
                items.iter_mut().for_each(|item| self.in_value(key, item, kind, sources));
            }
            (value @ DeValue::Table(_), Kind::Either(kinds)) => {
                let is_table = |kind: &&Kind| matches!(kind, Kind::Table(_));
                if let (DeValue::Table(table), Some(Kind::Table(spec))) =
                    (value, kinds.iter().find(is_table))
                {
                    self.in_table(table, spec, sources);
                }
            }
            (DeValue::Table(table), Kind::Table(spec) | Kind::Tables(spec)) => {
                self.in_table(table, spec, sources);
            }
            (DeValue::Table(table), Kind::Defaults { of, .. }) => self.in_table(table, of, sources),
            (DeValue::Table(tables), Kind::NamedTables(spec)) => {
                for (_, value) in tables.iter_mut() {
                    self.in_value(key, value, &Kind::Table(spec), sources);
                }
            }
            (DeValue::Table(entries), Kind::Map(_, of)) => {
                for (name, value) in entries.iter_mut() {
                    self.in_value(name.get_ref(), value, of, sources);
                }
            }
            _ => {}
        }
    }

    /// Returns a text with everything substituted, or reports every mistake in it.
    fn in_text(
        &mut self,
        key: &str,
        text: &str,
        span: &Span,
        kind: &Kind,
        sources: &Sources,
    ) -> Option<String> {
        let found_before = self.problems.count();
        let written = Written::of(text, span, sources);
        let mut new = String::with_capacity(text.len());
        let mut is_secret = false;
        for part in parts(text) {
            if self.problems.count() - found_before >= MISTAKES_MAX {
                return None;
            }
            let (reference, at) = match part {
                Ok(Part::Literal(literal)) => {
                    new.push_str(literal);
                    continue;
                }
                Ok(Part::Reference(reference, at)) => (reference, at),
                Err(at) => {
                    self.problems.report(
                        Diagnostic::error(
                            "`${` is never closed",
                            written.place(at, 2),
                            "needs a `}`",
                        )
                        .help("write $${ if these two characters are meant"),
                    );
                    return None;
                }
            };
            let place = written.place(at, reference.len() + 3);
            let value = match reference.strip_prefix("file:") {
                None => self.variable(reference, place),
                Some(_) if !kind.may_be_secret() => {
                    self.problems.report(
                        Diagnostic::error(
                            format!("`{key}` cannot come from a file"),
                            place,
                            "Weir shows this value",
                        )
                        .help("files are for secrets, in fields and bodies: for another value, write ${NAME} and set this environment variable"),
                    );
                    None
                }
                Some(path) => {
                    is_secret = true;
                    self.file(path, place, sources)
                }
            };
            let Some(value) = value else { continue };
            self.substituted_bytes += value.len();
            if self.substituted_bytes > SUBSTITUTED_MAX_BYTES {
                if self.complete {
                    let title = format!(
                        "more than {} MB are substituted in all",
                        SUBSTITUTED_MAX_BYTES >> 20
                    );
                    self.problems.report(Diagnostic::error(title, span.clone(), "from here on"));
                }
                return None;
            }
            new.push_str(&value);
        }
        if self.problems.count() > found_before {
            return None;
        }
        if is_secret {
            self.problems.has_secret(span.clone());
        }
        Some(new)
    }

    fn variable(&self, name: &str, place: Span) -> Option<String> {
        if !is_name(name) {
            let title = format!("{} is not a name of a variable", quote(name));
            let help = "write ${NAME} for an environment variable, ${file:PATH} for the contents of a file, $${ if these characters are meant";
            self.problems.report(Diagnostic::error(title, place, "").help(help));
            return None;
        }
        match self.surroundings.variable(name) {
            Ok(value) => Some(value),
            Err(why) => {
                let title = format!("no value for the environment variable {name}");
                let diagnostic = Diagnostic::error(title, place, why);
                let help = "set it where Weir is started, such as Environment= of its systemd unit";
                self.problems.report(diagnostic.help(help).on_machine());
                None
            }
        }
    }

    /// Returns the contents of a file, without a line break at the end.
    fn file(&mut self, path: &str, place: Span, sources: &Sources) -> Option<String> {
        let refuse = |title: String, label: String, help: Option<String>| {
            let mut diagnostic = Diagnostic::error(title, place.clone(), label);
            diagnostic.help.extend(help);
            self.problems.report(diagnostic.on_machine());
            None
        };
        if path.is_empty() || path.contains('\0') {
            self.problems.report(
                Diagnostic::error("`${file:` without a path", place, "")
                    .help("write ${file:PATH}, such as ${file:/run/secrets/token}"),
            );
            return None;
        }
        let unusable = |label: &str| {
            refuse(format!("cannot use {}", shown_path(path.as_ref())), label.to_owned(), None)
        };
        let found = match self.surroundings.file(&sources.path(path.as_ref(), &place)) {
            Ok(found) => found,
            Err(Unreadable { why, help, .. }) => {
                return refuse(format!("cannot read {}", shown_path(path.as_ref())), why, help);
            }
        };
        if found.material.bytes.len() > FILE_MAX_BYTES {
            return unusable(&format!("more than {FILE_MAX_BYTES} bytes"));
        }
        let Ok(text) = std::str::from_utf8(&found.material.bytes) else {
            return unusable("not UTF-8");
        };
        let text =
            text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
        if text.is_empty() {
            return unusable("empty, or only a line break");
        }
        if found.only_root {
            self.only_root.push(At { value: path.into(), span: place });
        }
        Some(text.to_owned())
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the parts of a text. `$${` stands for `${`: of a run of `$` before a brace, each two are one, and
/// a last single one begins a reference. Ends with the position of a reference that is not closed.
fn parts(text: &str) -> impl Iterator<Item = Result<Part<'_>, usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let Some(brace) = rest.find("${").map(|dollar| dollar + 1) else {
            at = text.len();
            return Some(Ok(Part::Literal(rest)));
        };
        let run = rest[..brace].bytes().rev().take_while(|byte| *byte == b'$').count();
        if run % 2 == 0 {
            // The text before the run and half of the run, then the brace.
            let literal = &rest[..brace - run / 2];
            at += brace;
            // The brace itself comes with what follows.
            return Some(Ok(Part::Literal(literal)));
        }
        let literal = brace - run + run / 2;
        if literal > 0 {
            // What remains is a single `$` before the brace.
            at += brace - 1;
            return Some(Ok(Part::Literal(&rest[..literal])));
        }
        let start = at;
        let Some(end) = rest.find('}') else {
            at = text.len();
            return Some(Err(start));
        };
        at += end + 1;
        Some(Ok(Part::Reference(&rest[brace + 1..end], start)))
    })
}

/// A text as it is written in its file.
struct Written<'s> {
    text: &'s str,
    /// Where it begins in the file; `None`: it is written with escapes, and only known as a whole.
    start: Option<usize>,
    span: &'s Span,
}

impl<'s> Written<'s> {
    fn of(text: &'s str, span: &'s Span, sources: &Sources) -> Self {
        let in_file = sources.written(span).unwrap_or_default();
        let start = in_file.find(text).map(|at| span.start + at);
        Written { text, start, span }
    }

    /// Returns the position of `length` bytes from `at`; that of the whole text if it is not known.
    fn place(&self, at: usize, length: usize) -> Span {
        let end = (at + length).min(self.text.len());
        self.start.map_or_else(|| self.span.clone(), |start| start + at..start + end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dollars_before_a_brace_are_one_and_no_reference() {
        let read = |text: &str| {
            let mut read = String::new();
            for part in parts(text) {
                match part {
                    Ok(Part::Literal(literal)) => read.push_str(literal),
                    Ok(Part::Reference(name, at)) => {
                        assert_eq!(&text[at..at + 2], "${");
                        read.extend(["<", name, ">"]);
                    }
                    Err(at) => read.extend(["<unclosed at ", &at.to_string(), ">"]),
                }
            }
            read
        };
        for (text, expected) in [
            ("", ""),
            ("a", "a"),
            ("$", "$"),
            ("$$", "$$"),
            ("{$}$", "{$}$"),
            ("${A}", "<A>"),
            ("a${A}b${B}", "a<A>b<B>"),
            ("$${A}", "${A}"),
            ("$$${A}", "$<A>"),
            ("$$$${A}", "$${A}"),
            ("$$$$${A}${B}", "$$<A><B>"),
            ("x$$y${A}", "x$$y<A>"),
            ("${${A}}", "<${A>}"),
            ("${}", "<>"),
            ("é${A", "é<unclosed at 2>"),
            ("$${", "${"),
            ("$${${A}", "${<A>"),
            ("$${a}$${b}", "${a}${b}"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
