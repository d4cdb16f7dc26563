//! Writes the JSON of a policy as tables of the configuration, and records which of their bytes came from where.
//!
//! Only keys of the schema become keys, as the schema writes them. Names and values that people choose become quoted
//! texts, whatever is in them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::keys::{self, Limit, Own, PolicyKey};
use super::{BackendRef, Mistake};
use crate::diagnostic::quote;
use crate::schema::AUTHENTICATION;
use crate::schema::spec::{Kind, TableSpec};

/// Maximum length of all names and texts of a policy. With [`ALL_ENTRIES_MAX`], it bounds how long reading takes: those who
/// write policies share the balancer with others.
const ALL_TEXT_MAX_BYTES: usize = 64 * 1024;
/// Maximum number of entries of all lists and objects of a policy.
const ALL_ENTRIES_MAX: usize = 4096;
/// Maximum number of entries of a list or object.
pub(super) const ENTRIES_MAX: usize = 64;
/// Maximum length of a text.
pub(super) const TEXT_MAX_CHARS: usize = 4096;
/// Maximum number of mistakes that are reported. Nothing is read after the last one.
pub(super) const MISTAKES_MAX: usize = 16;
/// Larger whole numbers are not exact as JSON numbers with a fraction.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The name of the service and of the authentication in the tables.
pub(super) const NAME: &str = "policy";
/// The service that stands for a [`BackendRef`].
pub(super) const BACKEND: &str = "backend";

/// How long a policy is.
#[derive(Default)]
struct Length {
    /// Of all lists and objects.
    entries: usize,
    /// Of all names and texts.
    text_bytes: usize,
}

impl Length {
    /// Counts until it is too long.
    fn of(spec: &Map<String, Value>) -> Length {
        let mut length = Length::default();
        let mut rest = Vec::new();
        length.add_object(spec, &mut rest);
        while !length.is_too_long()
            && let Some(value) = rest.pop()
        {
            match value {
                Value::String(text) => length.text_bytes += text.len(),
                Value::Object(entries) => length.add_object(entries, &mut rest),
                Value::Array(items) => {
                    length.entries += items.len();
                    if !length.is_too_long() {
                        rest.extend(items);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        length
    }

    fn add_object<'a>(&mut self, object: &'a Map<String, Value>, rest: &mut Vec<&'a Value>) {
        self.entries += object.len();
        if !self.is_too_long() {
            self.text_bytes += object.keys().map(String::len).sum::<usize>();
            rest.extend(object.values());
        }
    }

    fn is_too_long(&self) -> bool {
        self.entries > ALL_ENTRIES_MAX || self.text_bytes > ALL_TEXT_MAX_BYTES
    }
}

/// Returns the mistake that a policy is too long to be read.
pub(super) fn too_long(spec: &Map<String, Value>) -> Option<Mistake> {
    let problem = format!(
        "the policy is too long: at most {ALL_ENTRIES_MAX} entries of lists and objects, and {} KiB of text",
        ALL_TEXT_MAX_BYTES / 1024
    );
    Length::of(spec).is_too_long().then(|| Mistake { path: "spec".to_owned(), problem })
}

/// The tables of a policy.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) text: String,
    pub(super) mistakes: Vec<Mistake>,
    /// Paths of objects with keys that are not in the tables, so that something may seem missing there.
    pub(super) strange: BTreeSet<String>,
    pub(super) users_secret: Option<String>,
    pub(super) keys_config_map: Option<String>,
    pub(super) backend: Option<BackendRef>,
    /// Bytes of the text, and the paths that they came from. Of two that overlap, the inner one comes first.
    places: Vec<(Range<usize>, String)>,
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
        if !self.is_full() {
            self.mistakes.push(Mistake { path, problem });
        }
    }

    /// Returns whether there are so many mistakes that nothing more is read: the tables are not complete.
    pub(super) fn is_full(&self) -> bool {
        self.mistakes.len() >= MISTAKES_MAX
    }

    fn entry(&mut self, spec: &TableSpec, name: &str, value: &Value, path: &str, end: &str) {
        // As the API server has it: null is the same as absent.
        if value.is_null() || self.is_full() {
            return;
        }
        let at = below(path, name);
        let PolicyKey { key, own, .. } = match keys::find(spec, name) {
            Ok(known) => known,
            Err(problem) => {
                self.strange.insert(path.to_owned());
                return self.mistake(at, problem);
            }
        };
        if let Some(limit) = Limit::of(spec, key)
            && !limit.permits(value)
        {
            self.mistake(at.clone(), format!("must be {} in a policy", limit.words()));
        }
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
                    self.strange.insert(path.to_owned());
                    return;
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
        if self.is_full() {
            return;
        }
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
        if text.chars().nth(TEXT_MAX_CHARS).is_none() {
            return self.text.push_str(&quoted(text));
        }
        self.text.push_str("\"\"");
        self.mistake(path.to_owned(), format!("too long: at most {TEXT_MAX_CHARS} characters"));
    }

    fn is_bounded(&mut self, entries: usize, path: &str) -> bool {
        let is_bounded = entries <= ENTRIES_MAX;
        if !is_bounded {
            self.strange.insert(path.to_owned());
            let problem = format!("at most {ENTRIES_MAX} entries, not {entries}");
            self.mistake(path.to_owned(), problem);
        }
        is_bounded
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::SERVICE;

    fn object(entries: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
        entries.into_iter().collect()
    }

    #[test]
    fn counting_stops_where_a_policy_is_too_long() {
        let many = object((0..100_000).map(|n| (format!("key-{n:08}"), json!(n))));
        let nested = object([("check".to_owned(), json!(vec![vec![1; 100]; 5000]))]);
        let lists = object([("check".to_owned(), json!(vec![vec![1; 100]; 1000]))]);
        let long = object([("check".to_owned(), json!({ "expectBody": "x".repeat(1_500_000) }))]);
        let name = object([("x".repeat(1_500_000), Value::Null)]);
        for (spec, entries, text_bytes) in [
            (many, 100_000, 0),
            (nested, 5001, 5),
            (lists, 4101, 5),
            (long, 2, 1_500_015),
            (name, 1, 1_500_000),
        ] {
            let length = Length::of(&spec);
            assert_eq!((length.entries, length.text_bytes), (entries, text_bytes));
            assert_eq!(too_long(&spec).unwrap().path, "spec");
        }
        assert!(
            too_long(&object((0..ALL_ENTRIES_MAX).map(|n| (n.to_string(), json!(1))))).is_none()
        );
    }

    #[test]
    fn nothing_is_read_after_the_last_mistake() {
        let unknown = (0..MISTAKES_MAX).map(|n| (format!("a{n:02}"), json!(1)));
        let known = [("queue".to_owned(), json!({ "lengthMax": 1 }))];
        let more = (0..4000).map(|n| (format!("z{n}"), json!("x")));
        let spec = object(unknown.chain(known).chain(more));
        let mut tables = Tables::default();
        tables.lines(&SERVICE, &spec, "spec");
        assert_eq!((tables.mistakes.len(), tables.strange.len()), (MISTAKES_MAX, 1));
        assert!(tables.is_full() && tables.text.is_empty() && tables.places.is_empty());
    }

    #[test]
    fn the_last_mistake_in_a_list_ends_it() {
        let spec = object([
            ("check".to_owned(), json!({ "expect": vec![Value::Null; ENTRIES_MAX] })),
            ("slowStart".to_owned(), json!("3s")),
        ]);
        let mut tables = Tables::default();
        tables.lines(&SERVICE, &spec, "spec");
        assert_eq!(tables.mistakes.len(), MISTAKES_MAX);
        assert_eq!(tables.text.matches("false").count(), MISTAKES_MAX);
        assert!(!tables.text.contains("slow_start"), "{}", tables.text);
    }
}
