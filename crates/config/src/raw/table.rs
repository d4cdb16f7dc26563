//! Typed reading of one TOML table against its [`TableSpec`]: every key is requested by name,
//! mistakes are reported at their position, and reading continues with the default.
//!
//! Knows no keys itself; the readers in the other files do.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::diagnostic::{At, Diagnostic, Problems, Span, Wrong, nearest, quote};
use crate::include;
use crate::schema::names::{self, Renamed};
use crate::schema::spec::{Absent, KeySpec, Kind, TableSpec};
use crate::schema::{INCLUDED, TOP};

/// Defaults of the tables of a kind.
#[derive(Clone, Copy)]
pub(super) struct DefaultKeys<'t> {
    pub(super) toml: &'t DeTable<'t>,
    /// Keys that have none.
    pub(super) without: &'static [&'static str],
}

/// A table being read.
pub(crate) struct Table<'t> {
    pub(crate) problems: &'t Problems,
    pub(crate) spec: &'static TableSpec,
    /// The start of the table: its heading, or the braces of an inline table.
    pub(crate) span: Span,
    /// Its name in the file, or that of its parent table: the NAME of the spec's heading.
    name: Option<&'t str>,
    toml: &'t DeTable<'t>,
    /// Applies to keys that the table does not have.
    defaults: Option<DefaultKeys<'t>>,
    /// Only filled in debug builds, for [`Table::finish`].
    asked: HashSet<&'static str>,
    /// Keys that unknown ones were probably meant to be.
    meant: Vec<&'static str>,
    /// It contains an unknown key.
    pub(super) strange: bool,
}

type Value<'t> = Spanned<DeValue<'t>>;

/// An entry of a table of names.
pub(super) struct Entry<'t> {
    pub(super) name: At<String>,
    /// The name as in the file.
    pub(super) written: &'t str,
    pub(super) value: &'t Value<'t>,
}

impl<'t> Table<'t> {
    pub(crate) fn new(
        toml: &'t DeTable<'t>,
        span: Span,
        spec: &'static TableSpec,
        name: Option<&'t str>,
        problems: &'t Problems,
    ) -> Self {
        let mut table = Table::quiet(toml, span, spec, name, problems);
        table.report_unknown();
        table
    }

    /// As [`Table::new`], without reporting unknown keys.
    pub(super) fn quiet(
        toml: &'t DeTable<'t>,
        span: Span,
        spec: &'static TableSpec,
        name: Option<&'t str>,
        problems: &'t Problems,
    ) -> Self {
        Table {
            problems,
            spec,
            span,
            name,
            toml,
            defaults: None,
            asked: HashSet::new(),
            meant: Vec::new(),
            strange: false,
        }
    }

    /// Reports keys that the spec does not know, except old names of keys.
    fn report_unknown(&mut self) {
        for (key, value) in self.toml {
            if self.spec.key(key.get_ref()).is_some() {
                continue;
            }
            let is_main_only = || {
                TOP.key(key.get_ref()).is_some() || Renamed::from_old(&TOP, key.get_ref()).is_some()
            };
            if std::ptr::eq(self.spec, &raw const INCLUDED) && is_main_only() {
                self.problems.report(include::main_only(key.get_ref(), key.span()));
                continue;
            }
            if let Some(renamed) = Renamed::from_old(self.spec, key.get_ref()) {
                let new = self.toml.get_key_value(renamed.new).map(|(key, _)| key.span());
                self.problems.report(renamed.diagnostic(key.span(), new));
            } else {
                let place = names::Place { spec: self.spec, name: self.name };
                let (diagnostic, meant) = names::unknown_key(place, key, value.get_ref());
                self.problems.report(diagnostic);
                self.meant.extend(meant);
                self.strange = true;
            }
        }
    }

    /// Reads keys that this table does not have from `defaults`.
    pub(super) fn with_defaults(self, defaults: Option<DefaultKeys<'t>>) -> Self {
        Table { defaults, ..self }
    }

    /// Returns the file's entry for `key`: the table's own, or the default.
    fn entry(&self, key: &str) -> Option<(&'t Spanned<DeString<'t>>, &'t Value<'t>)> {
        self.entry_in(self.toml, key).or_else(|| {
            let DefaultKeys { toml, without } = self.defaults?;
            if without.contains(&key) { None } else { self.entry_in(toml, key) }
        })
    }

    /// Returns the entry for `key` in `toml`, under its name or its old one; the name takes precedence.
    fn entry_in(
        &self,
        toml: &'t DeTable<'t>,
        key: &str,
    ) -> Option<(&'t Spanned<DeString<'t>>, &'t Value<'t>)> {
        let old = || toml.get_key_value(Renamed::to_new(self.spec, key)?.old);
        toml.get_key_value(key).or_else(old)
    }

    /// A table below this one.
    pub(super) fn below(
        &self,
        toml: &'t DeTable<'t>,
        span: Span,
        spec: &'static TableSpec,
    ) -> Table<'t> {
        Table::new(toml, span, spec, self.name, self.problems)
    }

    /// Returns its heading, as in the file.
    fn heading(&self) -> String {
        names::Place { spec: self.spec, name: self.name }.heading()
    }

    /// Returns whether an unknown key was probably meant to be this one.
    pub(super) fn means(&self, key: &str) -> bool {
        self.meant.contains(&key)
    }

    /// Returns whether the key is present, or another that was probably meant to be it.
    pub(super) fn has_or_means(&self, key: &str) -> bool {
        self.entry(key).is_some() || self.means(key)
    }

    /// Asserts that reader and schema know the same keys.
    pub(crate) fn finish(self) {
        for key in self.spec.keys {
            debug_assert!(
                self.asked.contains(key.name),
                "{}.{} not read",
                self.spec.path,
                key.name
            );
        }
    }

    fn note_asked(&mut self, key: &'static str) {
        if cfg!(debug_assertions) {
            self.asked.insert(key);
        }
    }

    pub(super) fn key_spec(&mut self, key: &'static str) -> &'static KeySpec {
        self.note_asked(key);
        const UNKNOWN: &KeySpec =
            &KeySpec { name: "", kind: Kind::Boolean, absent: Absent::Then(""), doc: "" };
        let spec = self.spec.key(key);
        debug_assert!(spec.is_some(), "{}.{key} is not in the schema", self.spec.path);
        spec.unwrap_or(UNKNOWN)
    }

    /// Returns the raw value; reports a missing required key.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'t Value<'t>> {
        let spec = self.key_spec(key);
        let value = self.entry(key).map(|(_, value)| value);
        // `check` reports better that nothing listens at all.
        let required = matches!(spec.absent, Absent::Required) && !self.spec.path.is_empty();
        if required && !self.has_or_means(key) {
            self.problems.report_absence(Diagnostic::error(
                format!("`{key}` is missing in {}", self.heading()),
                self.span.clone(),
                format!("needs `{key}`, {}", spec.kind.words()),
            ));
        }
        value
    }

    /// Returns the raw value, if present, without consuming it.
    pub(crate) fn peek(&mut self, key: &'static str) -> Option<&'t DeValue<'t>> {
        self.note_asked(key);
        self.entry(key).map(|(_, value)| value.get_ref())
    }

    /// Returns the position of the key's value, or of the table.
    pub(crate) fn span_of(&self, key: &'static str) -> Span {
        self.entry(key).map_or_else(|| self.span.clone(), |(_, value)| value.span())
    }

    /// Returns the position of the key, if present.
    pub(crate) fn key_span(&self, key: &'static str) -> Option<Span> {
        self.entry(key).map(|(key, _)| key.span())
    }

    /// Returns the position of the key, if the table has it itself. Where a key has no effect, only such a
    /// one is a mistake: a default applies to the tables that it has an effect on.
    pub(crate) fn own_key_span(&self, key: &'static str) -> Option<Span> {
        self.entry_in(self.toml, key).map(|(key, _)| key.span())
    }

    /// Reports a value of the wrong type.
    pub(crate) fn mismatch(&mut self, key: &'static str, value: &Value<'_>) {
        let kind = self.key_spec(key).kind;
        self.problems.report(mismatch(key, &kind, value));
    }

    pub(super) fn report_wrong(&self, key: &str, kind: &Kind, span: Span, wrong: Wrong) {
        let title = match kind {
            Kind::OneOrMore(Kind::Text(form)) | Kind::List(Kind::Text(form)) | Kind::Text(form) => {
                match form.name {
                    "text" => format!("invalid value of `{key}`"),
                    name if name == key => format!("invalid `{key}`"),
                    name => format!("invalid {name} in `{key}`"),
                }
            }
            kind => format!("`{key}` must be {}", kind.words()),
        };
        self.problems.report(wrong.at(title, span));
    }

    /// Reads text in the form that `parse` accepts.
    pub(crate) fn text<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<At<T>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        self.parse(key, &kind, value, parse)
    }

    pub(super) fn parse<T>(
        &self,
        key: &str,
        kind: &Kind,
        value: &Value<'_>,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<At<T>> {
        let DeValue::String(text) = value.get_ref() else {
            self.problems.report(mismatch(key, kind, value));
            return None;
        };
        match parse(text) {
            Ok(read) => Some(At { value: read, span: value.span() }),
            Err(wrong) => {
                self.report_wrong(key, kind, value.span(), wrong);
                None
            }
        }
    }

    /// Reads a list of texts, or (if the spec allows one) a single text. `None` if absent.
    pub(crate) fn texts<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Vec<At<T>>> {
        let kind = self.key_spec(key).kind;
        let value = self.value(key)?;
        match (value.get_ref(), kind) {
            (DeValue::Array(items), Kind::OneOrMore(one) | Kind::List(one)) => {
                Some(items.iter().filter_map(|item| self.parse(key, one, item, &parse)).collect())
            }
            (DeValue::String(text), Kind::List(_)) => {
                self.problems.report(
                    Diagnostic::error(
                        format!("`{key}` must be a list"),
                        value.span(),
                        "this is text",
                    )
                    .help(format!("write {key} = [{}]", quote(text))),
                );
                None
            }
            _ => Some(self.parse(key, &kind, value, parse).into_iter().collect()),
        }
    }

    /// Reads one of the spec's words; the default if absent or wrong.
    pub(crate) fn choice(&mut self, key: &'static str) -> At<&'static str> {
        self.choice_if(key).unwrap_or_else(|| {
            let value = match self.key_spec(key).absent {
                Absent::Text(text) => text,
                _ => "",
            };
            At { value, span: self.span_of(key) }
        })
    }

    /// Reads one of the spec's words.
    pub(crate) fn choice_if(&mut self, key: &'static str) -> Option<At<&'static str>> {
        let kind = self.key_spec(key).kind;
        let Kind::Choice(words) = kind else {
            return None;
        };
        self.text(key, |text| choose(text, words))
    }

    /// Reads the variant of one of the spec's words; `otherwise` only if there is none.
    pub(crate) fn word<T: FromStr>(&mut self, key: &'static str, otherwise: T) -> T {
        self.word_at(key, otherwise).value
    }

    /// As [`Table::word`], with its position.
    pub(crate) fn word_at<T: FromStr>(&mut self, key: &'static str, otherwise: T) -> At<T> {
        self.choice(key).map(|word| word.parse().unwrap_or(otherwise))
    }

    /// Reads a table of names and values, sorted by name; names are compared as `name` parses them.
    pub(crate) fn map<T>(
        &mut self,
        key: &'static str,
        name: impl Fn(&str) -> Result<String, Wrong>,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Vec<(At<String>, At<T>)> {
        let Kind::Map(_, of) = self.key_spec(key).kind else {
            return Vec::new();
        };
        let mut read: Vec<(At<String>, At<T>)> = Vec::new();
        for Entry { name, written, value } in self.entries(key, name) {
            let (values, one) = match (value.get_ref(), of) {
                (DeValue::Array(items), Kind::OneOrMore(one)) => (items.iter().collect(), *one),
                _ => (vec![value], of),
            };
            for value in values {
                if let Some(parsed) = self.parse(written, one, value, &parse) {
                    read.push((name.clone(), parsed));
                }
            }
        }
        read
    }

    /// Returns the entries of a table of names, sorted by name.
    pub(super) fn entries(
        &mut self,
        key: &'static str,
        name: impl Fn(&str) -> Result<String, Wrong>,
    ) -> Vec<Entry<'t>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let kind = self.key_spec(key).kind;
        let (DeValue::Table(entries), Kind::Map(form, _)) = (value.get_ref(), kind) else {
            self.mismatch(key, value);
            return Vec::new();
        };
        let mut read: Vec<Entry<'t>> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        for (entry, value) in entries {
            let read_name = match name(entry.get_ref()) {
                Ok(name) => At { value: name, span: entry.span() },
                Err(wrong) => {
                    self.report_wrong(key, &Kind::Text(form), entry.span(), wrong);
                    continue;
                }
            };
            if let Some(first) = seen.get(&read_name.value) {
                self.problems.report(
                    Diagnostic::error(
                        format!("`{}` stands twice in `{key}`", read_name.value),
                        entry.span(),
                        "again here; case does not matter",
                    )
                    .other(first.clone(), "first here"),
                );
            } else {
                seen.insert(read_name.value.clone(), read_name.span.clone());
            }
            read.push(Entry { name: read_name, written: entry.get_ref(), value });
        }
        read.sort_by(|one, other| one.name.value.cmp(&other.name.value));
        read
    }
}

/// Returns one of `words`, or suggests the one that was probably meant.
pub(crate) fn choose(text: &str, words: &[&'static str]) -> Result<&'static str, Wrong> {
    if let Some(word) = words.iter().find(|word| **word == text) {
        return Ok(word);
    }
    let wrong = Wrong::new("not one of them");
    Err(match names::alias_of_word(text, words).or_else(|| nearest(text, words.iter().copied())) {
        Some(word) => wrong.help(format!("did you mean {}?", quote(word))),
        None => wrong,
    })
}

/// Returns whether a value is a list without members.
pub(super) fn is_empty_list(value: Option<&DeValue<'_>>) -> bool {
    matches!(value, Some(DeValue::Array(items)) if items.is_empty())
}

pub(super) fn mismatch(key: &str, kind: &Kind, value: &Value<'_>) -> Diagnostic {
    let is = match value.get_ref() {
        DeValue::String(_) => "this is text",
        DeValue::Integer(_) => "this is a whole number",
        DeValue::Float(_) => "this is a number with a fraction",
        DeValue::Boolean(_) => "this is true or false",
        DeValue::Datetime(_) => "this is a date or time",
        DeValue::Array(_) => "this is a list",
        DeValue::Table(_) => "this is a table",
    };
    let must = match kind {
        Kind::Text(form) if form.name == key => "text".to_owned(),
        kind => kind.words(),
    };
    let diagnostic = Diagnostic::error(format!("`{key}` must be {must}"), value.span(), is);
    match (kind, value.get_ref()) {
        (Kind::Duration { .. }, DeValue::Integer(n)) => {
            diagnostic.help(format!("a duration has a unit: write \"{n}s\" or \"{n}ms\""))
        }
        (Kind::Boolean, DeValue::String(text)) if matches!(text.as_ref(), "true" | "false") => {
            diagnostic.help(format!("write {key} = {text}, without quotes"))
        }
        (Kind::Integer { .. } | Kind::OneOf(_), DeValue::String(text))
            if text.parse::<u64>().is_ok() =>
        {
            diagnostic.help(format!("write {key} = {text}, without quotes"))
        }
        (Kind::Number { .. }, DeValue::String(text)) => match text.strip_suffix('%') {
            Some(percent) => match percent.parse::<f64>() {
                Ok(percent) => diagnostic.help(format!("write {key} = {}", percent / 100.0)),
                Err(_) => diagnostic,
            },
            None if text.parse::<f64>().is_ok() => {
                diagnostic.help(format!("write {key} = {text}, without quotes"))
            }
            None => diagnostic,
        },
        (Kind::Text(form), DeValue::Integer(n)) if matches!(form.name, "name" | "text") => {
            diagnostic.help(format!("write {key} = \"{n}\""))
        }
        (Kind::Either(_), DeValue::String(text))
            if matches!(text.to_ascii_lowercase().as_str(), "off" | "no" | "false" | "none") =>
        {
            diagnostic.help(format!("write {key} = false"))
        }
        (Kind::Table(spec), DeValue::String(text)) => match spec.required_text() {
            Some(required) => diagnostic.help(format!("write {{ {required} = {} }}", quote(text))),
            None => diagnostic.help(format!("write {key} = {{ … }} with {}", spec.names())),
        },
        (Kind::Table(spec) | Kind::OneOrMore(Kind::Table(spec)), DeValue::Integer(_)) => {
            diagnostic.help(format!("write {key} = {{ … }} with {}", spec.names()))
        }
        (Kind::Choice([first, .., last]), DeValue::Integer(_) | DeValue::Float(_)) => diagnostic
            .help(format!("in quotes: {key} = {} or {key} = {}", quote(first), quote(last))),
        (Kind::Text(_), DeValue::Table(_)) => {
            diagnostic.help("a key with dots in it stands in quotes: \"a.example.com\" = …")
        }
        _ => diagnostic,
    }
}
