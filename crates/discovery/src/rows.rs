//! Servers as rows of a file in TOML, with the keys of `[[service.NAME.server]]`:
//!
//! ```toml
//! [[server]]
//! address = "10.0.1.5:8080"
//! zone = "eu-west-1a"
//! weight = 2
//! in_flight_max = 4
//! backup = true
//! version = "v2"
//! ```
//!
//! Only `address` is required. A row with another key, or with a value of another kind than in the
//! configuration, is refused. A file that is not of this format is an error as a whole, as is an empty one: a
//! file is empty while it is being written.
//!
//! A server that is listed again with the same values is one server. With other values, the first one counts
//! and the other is refused.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use config::{ServerTexts, listed_server, nearest, quote};
use model::ServerSpec;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use crate::address::with_port;
use crate::merged::Distinct;
use crate::row::{check_count, object_name, reason};
use crate::{Answer, Readiness, Row};

/// Reads a file of rows. `object` names the file in rows and refused entries, such as its path. `port` replaces
/// the port of each server.
///
/// # Errors
/// The file is not of this format, is empty, or has more than [`ROWS_MAX`](crate::ROWS_MAX) servers. One line
/// with the place, bounded and escaped.
pub fn toml(bytes: &[u8], object: &str, port: Option<u16>) -> Result<Answer, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    let lines = Lines::of(text);
    let file: File = toml::from_str(text).map_err(|error| lines.error(&error))?;
    let rows = file.server.ok_or("empty; write `server = []` for no servers")?;
    check_count(rows.len())?;
    let mut answer = Answer::default();
    let mut distinct = Distinct::default();
    let name: Arc<str> = object_name(object).into();
    for row in &rows {
        let added = row.get_ref().server(port).and_then(|server| {
            let row = Row { server, readiness: Readiness::Ready, object: Arc::clone(&name) };
            distinct.add(row, &mut answer)
        });
        if let Err(why) = added {
            answer.refuse(object, &format!("line {}: {why}", lines.line(&row.span())));
        }
    }
    Ok(answer)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    server: Option<Vec<Spanned<Fields>>>,
}

/// Where the lines of a text begin, in bytes.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(after).collect() }
    }

    /// Returns the line where `span` begins, from 1.
    fn line(&self, span: &Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }

    /// Returns the line and the column (in characters) where `span` begins, from 1.
    fn place(&self, span: Range<usize>) -> (usize, usize) {
        let line = self.line(&span);
        let start = line.checked_sub(1).and_then(|line| self.starts.get(line)).copied();
        let before = start.and_then(|start| self.text.get(start..span.start));
        (line, before.map_or(0, |before| before.chars().count()) + 1)
    }

    fn error(&self, error: &toml::de::Error) -> String {
        let Some(span) = error.span() else { return reason(error.message()) };
        let (line, column) = self.place(span);
        reason(&format!("line {line}, column {column}: {}", error.message()))
    }
}

/// The keys and values of a row, in any format.
pub(crate) struct Fields(Vec<(String, Value)>);

/// A value of a row.
pub(crate) enum Value {
    String(String),
    /// In decimal digits, perhaps with a sign.
    Integer(String),
    Boolean(bool),
    /// No value of a row is of this kind.
    Other,
}

impl Fields {
    /// Returns the value of a key, if there is one.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the server. `port` replaces its port.
    ///
    /// # Errors
    /// A key is unknown or repeated, a value is not valid, or there is no address.
    pub(crate) fn server(&self, port: Option<u16>) -> Result<ServerSpec, String> {
        let [mut address, mut zone, mut weight, mut backup, mut in_flight_max, mut version] =
            [const { None }; 6];
        for (key, value) in &self.0 {
            let slot = match key.as_str() {
                "address" => &mut address,
                "zone" => &mut zone,
                "weight" => &mut weight,
                "backup" => &mut backup,
                "in_flight_max" => &mut in_flight_max,
                "version" => &mut version,
                other => return Err(unknown(other)),
            };
            if slot.replace(value.text(key)?).is_some() {
                return Err(format!("{key} is stated more than once"));
            }
        }
        let address = address.ok_or("no address")?;
        listed_server(&ServerTexts {
            address: &with_port(address, port),
            zone,
            weight,
            backup,
            in_flight_max,
            version,
        })
    }
}

impl Value {
    /// Returns the value as text.
    ///
    /// # Errors
    /// It is of another kind than `key` has.
    fn text(&self, key: &str) -> Result<&str, String> {
        match (key, self) {
            ("weight" | "in_flight_max", Value::Integer(text)) => Ok(text),
            ("weight" | "in_flight_max", _) => Err(format!("{key} is not an integer")),
            ("backup", Value::Boolean(true)) => Ok("true"),
            ("backup", Value::Boolean(false)) => Ok("false"),
            ("backup", _) => Err(format!("{key} is neither true nor false")),
            (_, Value::String(text)) => Ok(text),
            _ => Err(format!("{key} is not a string")),
        }
    }
}

fn unknown(key: &str) -> String {
    const KEYS: [&str; 6] = ["address", "zone", "weight", "backup", "in_flight_max", "version"];
    // A long key is not a mistyped one, and the comparison takes time.
    let near = Some(key).filter(|key| key.len() <= 64).and_then(|key| nearest(key, KEYS));
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("unknown key {}{hint}", quote(key))
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a server with its keys and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Integer(number.to_string()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}
