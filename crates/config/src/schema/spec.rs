//! Describes the configuration's keys: once, for the reader (known keys, bounds, defaults), for the
//! JSON Schema and for the reference documentation.

use std::time::Duration;

use model::units::{show_duration, show_size};

/// A table of the configuration.
#[derive(Debug)]
pub(crate) struct TableSpec {
    /// Its heading as written: `[admin]`, `[[listener]]`, `check`.
    pub(crate) heading: &'static str,
    /// From the top: `service.NAME.check`; empty for the top level.
    pub(crate) path: &'static str,
    /// Its purpose.
    pub(crate) doc: &'static str,
    /// A short example configuration.
    pub(crate) example: &'static str,
    /// Its keys, in the usual order.
    pub(crate) keys: &'static [KeySpec],
}

impl TableSpec {
    pub(crate) fn key(&self, name: &str) -> Option<&'static KeySpec> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Returns whether its heading ends with a user-chosen name.
    pub(crate) fn is_named(&self) -> bool {
        self.heading.ends_with(".NAME]") && self.heading.starts_with('[')
    }

    /// Returns its keys in one line.
    pub(crate) fn names(&self) -> String {
        self.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
    }

    /// Returns the only required key, if a text alone could stand for the table.
    pub(crate) fn required_text(&self) -> Option<&'static str> {
        let mut required = self.keys.iter().filter(|key| matches!(key.absent, Absent::Required));
        let first = required.next()?;
        (required.next().is_none() && matches!(first.kind, Kind::Text(_))).then_some(first.name)
    }

    /// Returns this table and every table below it, in order.
    pub(crate) fn tables(&'static self) -> Vec<&'static TableSpec> {
        let below = self.keys.iter().filter_map(|key| key.kind.tables());
        let mut tables = vec![self];
        for table in below.flat_map(TableSpec::tables) {
            // Several keys may have tables of one kind.
            if tables.iter().all(|known| known.path != table.path) {
                tables.push(table);
            }
        }
        tables
    }
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct KeySpec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) absent: Absent,
    /// Its meaning, in Markdown.
    pub(crate) doc: &'static str,
}

pub(crate) const fn key(
    name: &'static str,
    kind: Kind,
    absent: Absent,
    doc: &'static str,
) -> KeySpec {
    KeySpec { name, kind, absent, doc }
}

/// What applies when a key is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    /// It is required.
    Required,
    /// Described in words.
    Then(&'static str),
    Boolean(bool),
    Duration(Duration),
    Integer(u64),
    Number(f64),
    Size(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
}

/// The permitted values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    Duration {
        min: Duration,
        max: Duration,
    },
    Integer {
        min: u64,
        max: u64,
    },
    /// One of these whole numbers.
    OneOf(&'static [u64]),
    Number {
        min: f64,
        max: f64,
    },
    /// In bytes.
    Size {
        min: u64,
        max: u64,
    },
    /// Text of a certain form.
    Text(Form),
    List(&'static Kind),
    OneOrMore(&'static Kind),
    /// Any of several.
    Either(&'static [Kind]),
    /// A table of names of a form, with values.
    Map(Form, &'static Kind),
    Table(&'static TableSpec),
    Tables(&'static TableSpec),
    NamedTables(&'static TableSpec),
    /// A table of defaults: the keys of a table, some of them excepted.
    Defaults {
        heading: &'static str,
        of: &'static TableSpec,
        without: &'static [&'static str],
    },
}

/// A form of text: its name and, if a regular expression can describe it, a pattern for editors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) pattern: Option<&'static str>,
    /// It may be a secret: nothing shows it.
    pub(crate) may_be_secret: bool,
}

impl Kind {
    fn tables(&self) -> Option<&'static TableSpec> {
        match self {
            Kind::Table(spec) | Kind::Tables(spec) | Kind::NamedTables(spec) => Some(spec),
            Kind::Either(kinds) => kinds.iter().find_map(Kind::tables),
            Kind::OneOrMore(kind) => kind.tables(),
            Kind::Map(_, values) => values.tables(),
            _ => None,
        }
    }

    /// Returns whether a text may be a secret here.
    pub(crate) fn may_be_secret(&self) -> bool {
        match self {
            Kind::Text(form) => form.may_be_secret,
            Kind::OneOrMore(kind) | Kind::List(kind) => kind.may_be_secret(),
            Kind::Either(kinds) => kinds.iter().any(Kind::may_be_secret),
            _ => false,
        }
    }

    /// Returns it in words, for a title ("must be …") and for the reference.
    pub(crate) fn words(&self) -> String {
        match self {
            Kind::Boolean => "true or false".to_owned(),
            Kind::Choice(names) => {
                let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
                crate::diagnostic::either(&quoted.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Kind::Duration { .. } => "a duration".to_owned(),
            Kind::Integer { .. } => "a whole number".to_owned(),
            Kind::OneOf(numbers) => {
                let shown: Vec<_> = numbers.iter().map(u64::to_string).collect();
                crate::diagnostic::either(&shown.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Kind::Number { .. } => "a number".to_owned(),
            Kind::Size { .. } => "a size".to_owned(),
            Kind::Text(form) => with_article(form.name),
            Kind::List(kind) => format!("a list ({} each)", kind.words()),
            Kind::OneOrMore(kind) => format!("{} or a list of them", kind.words()),
            Kind::Either(kinds) => kinds.iter().map(Kind::words).collect::<Vec<_>>().join(", or "),
            Kind::Map(names, values) if values.tables().is_some() => {
                format!("a table of {}s and values, or tests", names.name)
            }
            Kind::Map(names, _) => format!("a table of {}s and values", names.name),
            Kind::Table(_) | Kind::Defaults { .. } => "a table".to_owned(),
            Kind::Tables(_) => "tables".to_owned(),
            Kind::NamedTables(_) => "named tables".to_owned(),
        }
    }

    /// Returns the bounds in words, if a user could plausibly exceed them.
    pub(crate) fn bounds(&self) -> Option<String> {
        match *self {
            Kind::Duration { min, max } => {
                Some(format!("{} to {}", show_duration(min), show_duration(max)))
            }
            Kind::Integer { min, max } => Some(match max {
                max if max == u64::from(u32::MAX) => format!("{min} or more"),
                max => format!("{min} to {max}"),
            }),
            Kind::Number { min, max } if max.is_finite() => Some(format!("{min} to {max}")),
            Kind::Number { min, .. } => Some(format!("{min} or more")),
            Kind::Size { min, max } => Some(match max {
                u64::MAX => format!("{} or more", show_size(min)),
                max => format!("{} to {}", show_size(min), show_size(max)),
            }),
            _ => None,
        }
    }
}

fn with_article(noun: &str) -> String {
    match noun {
        "text" => "text".to_owned(),
        n if n.starts_with(['a', 'e', 'i', 'o', 'I']) => format!("an {n}"),
        n => format!("a {n}"),
    }
}

impl Absent {
    /// Returns it as written in the file, or in words.
    pub(crate) fn words(&self) -> String {
        match *self {
            Absent::Required => "required".to_owned(),
            Absent::Then(words) => words.to_owned(),
            Absent::Boolean(value) => format!("`{value}`"),
            Absent::Duration(value) => format!("`\"{}\"`", show_duration(value)),
            Absent::Integer(value) => format!("`{value}`"),
            Absent::Number(value) => format!("`{value}`"),
            Absent::Size(value) => format!("`\"{}\"`", show_size(value)),
            Absent::Text(value) => format!("`\"{value}\"`"),
            Absent::Texts(values) => {
                let quoted: Vec<_> = values.iter().map(|v| format!("\"{v}\"")).collect();
                format!("`[{}]`", quoted.join(", "))
            }
        }
    }
}
