//! Writes the JSON of a policy as tables of the configuration, and records which of their bytes came from where.
//!
//! Only keys of the schema become keys, as the schema writes them. Names and values that people choose become quoted
//! texts, whatever is in them.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::keys::{self, Own, PolicyKey};
use super::{BackendRef, Mistake};
use crate::diagnostic::quote;
use crate::schema::AUTHENTICATION;
use crate::schema::spec::{Kind, TableSpec};

/// Maximum length of the tables.
const TEXT_MAX_BYTES: usize = 256 * 1024;
/// Maximum number of entries of a list or object.
const ENTRIES_MAX: usize = 1024;
/// Maximum number of mistakes that are reported.
pub(super) const MISTAKES_MAX: usize = 16;
/// Larger whole numbers are not exact as JSON numbers with a fraction.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The name of the service and of the authentication in the tables.
pub(super) const NAME: &str = "policy";
/// The service that stands for a [`BackendRef`].
pub(super) const BACKEND: &str = "backend";

/// The tables of a policy.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) text: String,
    pub(super) mistakes: Vec<Mistake>,
    /// Paths of objects with keys that are not in the tables, so that something may seem missing there.
    pub(super) strange: Vec<String>,
    pub(super) users_secret: Option<String>,
    pub(super) keys_config_map: Option<String>,
    pub(super) backend: Option<BackendRef>,
    /// Bytes of the text, and the paths that they came from. Of two that overlap, the inner one comes first.
    places: Vec<(Range<usize>, String)>,
    is_too_long: bool,
}

impl Tables {
    /// Writes the entries of an object as lines.
    pub(super) fn lines(&mut self, spec: &TableSpec, json: &Map<String, Value>, path: &str) {
        for (name, value) in json {
            self.entry(spec, name, value, path, "\n");
        }
    }

    /// Writes an authentication and that the route before it requires it. The route's lines must be complete.
    pub(super) fn authentication(&mut self, json: &Value, path: &str) {
        let start = self.text.len();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "authenticate = \"{NAME}\"\n[authentication.{NAME}]");
        match json {
            Value::Object(json) => self.lines(&AUTHENTICATION, json, path),
            _ => self.mistake(path.to_owned(), "`authentication` must be an object".to_owned()),
        }
        self.places.push((start..self.text.len(), path.to_owned()));
    }

    /// Returns the path that the bytes at `span` came from.
    pub(super) fn path_of(&self, span: Range<usize>) -> &str {
        let contains = |place: &Range<usize>| place.start <= span.start && span.end <= place.end;
        let found = self.places.iter().find(|(place, _)| contains(place));
        found.map_or("spec", |(_, path)| path)
    }

    pub(super) fn mistake(&mut self, path: String, problem: String) {
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(Mistake { path, problem });
        }
    }

    fn entry(&mut self, spec: &TableSpec, name: &str, value: &Value, path: &str, end: &str) {
        // As the API server has it: null is the same as absent.
        if value.is_null() {
            return;
        }
        let at = below(path, name);
        let PolicyKey { key, own, .. } = match keys::find(spec, name) {
            Ok(known) => known,
            Err(problem) => {
                self.strange.push(path.to_owned());
                return self.mistake(at, problem);
            }
        };
        let start = self.text.len();
        match own {
            None => {
                self.text.push_str(key.name);
                self.text.push_str(" = ");
                self.value(&key.kind, value, &at);
            }
            // After the lines of the route.
            Some(Own::Authentication) => return,
            Some(own) => {
                let Some(stand_in) = self.own(own, value, &at) else {
                    return self.strange.push(path.to_owned());
                };
                self.text.push_str(key.name);
                self.text.push_str(" = ");
                self.text.push_str(&quoted(&stand_in));
            }
        }
        self.places.push((start..self.text.len(), at));
        self.text.push_str(end);
    }

    fn value(&mut self, kind: &Kind, value: &Value, path: &str) {
        match value {
            Value::Null => {
                self.text.push_str("false");
                self.mistake(path.to_owned(), "null: leave it out".to_owned());
            }
            Value::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => {
                self.text.push_str(&number_as_text(number, matches!(kind, Kind::Number { .. })));
            }
            Value::String(text) => self.string(text, path),
            Value::Array(items) => {
                self.text.push('[');
                // In place of a single value, the list itself is the mistake.
                if let Some(of) = items_of(kind)
                    && self.is_bounded(items.len(), path)
                {
                    for (index, item) in items.iter().enumerate() {
                        let (start, at) = (self.text.len(), format!("{path}[{index}]"));
                        self.value(of, item, &at);
                        self.places.push((start..self.text.len(), at));
                        self.text.push_str(", ");
                    }
                }
                self.text.push(']');
            }
            Value::Object(entries) => {
                self.text.push_str("{ ");
                if self.is_bounded(entries.len(), path) {
                    let start = self.text.len();
                    if let Some(spec) = table_of(kind) {
                        for (name, value) in entries {
                            self.entry(spec, name, value, path, ", ");
                        }
                    } else if let Kind::Map(_, of) = kind {
                        self.map(of, entries, path);
                    }
                    // Some readers of TOML permit no comma after the last entry.
                    if self.text.len() > start {
                        self.text.truncate(self.text.len() - 2);
                    }
                }
                self.text.push_str(" }");
            }
        }
    }

    /// Writes the entries of an object with names that people choose.
    fn map(&mut self, of: &Kind, entries: &Map<String, Value>, path: &str) {
        for (name, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
            let (start, at) = (self.text.len(), below(path, name));
            self.string(name, &at);
            self.text.push_str(" = ");
            self.value(of, value, &at);
            self.places.push((start..self.text.len(), at));
            self.text.push_str(", ");
        }
    }

    fn string(&mut self, text: &str, path: &str) {
        if self.text.len() + text.len() <= TEXT_MAX_BYTES {
            return self.text.push_str(&quoted(text));
        }
        self.text.push_str("\"\"");
        self.too_long(path);
    }

    fn is_bounded(&mut self, entries: usize, path: &str) -> bool {
        let is_bounded = entries <= ENTRIES_MAX && self.text.len() <= TEXT_MAX_BYTES;
        if !is_bounded {
            self.too_long(path);
        }
        is_bounded
    }

    fn too_long(&mut self, path: &str) {
        if !std::mem::replace(&mut self.is_too_long, true) {
            self.mistake(path.to_owned(), "the policy is too long".to_owned());
        }
    }

    /// Returns what stands in the tables for a key of policies. `None`: it has a mistake.
    fn own(&mut self, own: Own, value: &Value, path: &str) -> Option<String> {
        match own {
            Own::UsersSecret => {
                let name = self.object_name("a Secret", value, path)?;
                self.users_secret = Some(name.clone());
                Some(format!("the Secret {name}"))
            }
            Own::KeysConfigMap => {
                let name = self.object_name("a ConfigMap", value, path)?;
                self.keys_config_map = Some(name.clone());
                Some(format!("the ConfigMap {name}"))
            }
            Own::BackendRef => {
                self.backend = Some(self.backend_ref(value, path)?);
                Some(BACKEND.to_owned())
            }
            Own::Authentication => None,
        }
    }

    fn object_name(&mut self, of: &str, value: &Value, path: &str) -> Option<String> {
        let is_valid = |name: &&str| {
            let is_part =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
            (1..=253).contains(&name.len()) && name.chars().all(is_part)
        };
        let name = value.as_str().filter(is_valid);
        if name.is_none() {
            let shown =
                value.as_str().map_or_else(String::new, |name| format!(", not {}", quote(name)));
            self.mistake(path.to_owned(), format!("must be the name of {of}{shown}"));
        }
        name.map(ToOwned::to_owned)
    }

    fn backend_ref(&mut self, value: &Value, path: &str) -> Option<BackendRef> {
        const KEYS: [&str; 5] = ["name", "namespace", "port", "group", "kind"];
        let Value::Object(json) = value else {
            let problem = "`backendRef` must be an object with the name and port of a Service";
            self.mistake(path.to_owned(), problem.to_owned());
            return None;
        };
        let before = self.mistakes.len();
        for name in json.keys().filter(|name| !KEYS.contains(&name.as_str())) {
            let problem = format!("unknown key {}; known keys: name, namespace, port", quote(name));
            self.mistake(below(path, name), problem);
        }
        let value = |key: &str| json.get(key).filter(|value| !value.is_null());
        for (key, only) in [("group", ""), ("kind", "Service")] {
            if value(key).is_some_and(|value| value.as_str() != Some(only)) {
                let problem = "only a Service can be asked; leave this out".to_owned();
                self.mistake(below(path, key), problem);
            }
        }
        let missing = Value::Null;
        let name = value("name").unwrap_or(&missing);
        let name = self.object_name("a Service", name, &below(path, "name"));
        let namespace = value("namespace")
            .map(|value| self.object_name("a namespace", value, &below(path, "namespace")));
        let port = value("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port > 0);
        if port.is_none() {
            self.mistake(
                below(path, "port"),
                "must be a port of the Service, 1 to 65535".to_owned(),
            );
        }
        if self.mistakes.len() > before {
            return None;
        }
        let (name, port, namespace) = (name?, port?, namespace.flatten());
        Some(BackendRef { namespace, name, port, path: path.to_owned() })
    }
}

/// Returns what the items of a list are, in one of the forms of `kind`.
fn items_of(kind: &Kind) -> Option<&'static Kind> {
    match kind {
        Kind::List(of) | Kind::OneOrMore(of) => Some(of),
        Kind::Either(kinds) => kinds.iter().find_map(items_of),
        _ => None,
    }
}

/// Returns the table that an object is, in one of the forms of `kind`.
pub(super) fn table_of(kind: &Kind) -> Option<&'static TableSpec> {
    match kind {
        Kind::Table(spec) => Some(spec),
        Kind::OneOrMore(of) => table_of(of),
        Kind::Either(kinds) => kinds.iter().find_map(table_of),
        _ => None,
    }
}

/// Returns the path of an entry. Names may contain anything.
pub(super) fn below(path: &str, name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        format!("{path}.{name}")
    } else {
        format!("{path}[{}]", quote(name))
    }
}

/// Returns a number as TOML has it. JSON does not tell 5 from 5.0.
fn number_as_text(number: &Number, may_have_fraction: bool) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, _) if number.is_u64() => i64::MAX.to_string(),
        (None, Some(float))
            if !may_have_fraction && float.fract() == 0.0 && float.abs() < EXACT_MAX =>
        {
            (float as i64).to_string()
        }
        (None, float) => format!("{:?}", float.filter(|it| it.is_finite()).unwrap_or(f64::MAX)),
    }
}

/// Returns a text as a basic string of TOML, on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
