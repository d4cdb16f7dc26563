//! The configuration as JSON Schema (draft 2020-12), for completion, hover text and validation in
//! editors. Bounds that need arithmetic on units are only given in words.

use serde_json::{Map, Value, json};

use super::keys::TOP;
use super::names::Renamed;
use super::spec::{Absent, Form, KeySpec, Kind, TableSpec};
use model::units::{show_duration, show_size};

/// The pattern of a duration.
pub(crate) const DURATION: &str = "^([0-9]+[.]?[0-9]*|[.][0-9]+) *(us|µs|ms|s|m|h|d)$";
/// The pattern of a size that is a text.
pub(crate) const SIZE: &str = "^([0-9]+[.]?[0-9]*|[.][0-9]+) *(B|kB|MB|GB|KiB|MiB|GiB)$";

/// Returns the schema of the whole file.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    for table in TOP.tables().into_iter().skip(1) {
        definitions.insert(table.path.to_owned(), table_schema(table));
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Weir",
    });
    if let (Some(schema), Value::Object(top)) = (schema.as_object_mut(), table_schema(&TOP)) {
        schema.extend(top);
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

fn table_schema(table: &TableSpec) -> Value {
    let mut properties = Map::new();
    for key in table.keys {
        properties.insert(key.name.to_owned(), key_schema(key));
        if let Some(renamed) = Renamed::to_new(table, key.name) {
            let mut old = kind_schema(&key.kind);
            old["description"] = json!(format!("Renamed to {}.", renamed.new));
            old["deprecated"] = json!(true);
            properties.insert(renamed.old.to_owned(), old);
        }
    }
    let required: Vec<_> = table
        .keys
        .iter()
        .filter(|key| matches!(key.absent, Absent::Required))
        .map(|key| key.name)
        .collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc,
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn key_schema(key: &KeySpec) -> Value {
    let mut schema = kind_schema(&key.kind);
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    let description = match key.absent {
        Absent::Then(words) => format!("{} Default: {words}.", key.doc),
        _ => key.doc.to_owned(),
    };
    object.insert("description".to_owned(), Value::String(description));
    let default = match key.absent {
        Absent::Required | Absent::Then(_) => None,
        Absent::Boolean(value) => Some(json!(value)),
        Absent::Duration(value) => Some(json!(show_duration(value))),
        Absent::Integer(value) => Some(json!(value)),
        Absent::Number(value) => Some(json!(value)),
        Absent::Size(value) => Some(json!(show_size(value))),
        Absent::Text(value) => Some(json!(value)),
        Absent::Texts(values) => Some(json!(values)),
    };
    if let Some(default) = default {
        object.insert("default".to_owned(), default);
    }
    schema
}

fn kind_schema(kind: &Kind) -> Value {
    match *kind {
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "anyOf": [
            { "enum": words },
            { "type": "string", "pattern": SUBSTITUTED },
        ]}),
        Kind::OneOf(numbers) => json!({ "enum": numbers }),
        Kind::Duration { .. } => text(DURATION),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Size { .. } => json!({ "anyOf": [
            text(SIZE),
            { "type": "integer", "minimum": 0 },
        ]}),
        Kind::Text(form) => form_schema(&form),
        Kind::List(of) => json!({ "type": "array", "items": kind_schema(of) }),
        Kind::OneOrMore(of) => json!({ "anyOf": [
            kind_schema(of),
            { "type": "array", "items": kind_schema(of), "minItems": 1 },
        ]}),
        Kind::Either(kinds) => {
            json!({ "anyOf": kinds.iter().map(kind_schema).collect::<Vec<_>>() })
        }
        Kind::Map(names, values) => json!({
            "type": "object",
            "propertyNames": name_schema(&names),
            "additionalProperties": kind_schema(values),
        }),
        Kind::Table(table) => reference(table),
        Kind::Tables(table) => json!({ "type": "array", "items": reference(table), "minItems": 1 }),
        Kind::Defaults { of, without, .. } => {
            let keys = of.keys.iter().filter(|key| !without.contains(&key.name));
            let properties: Map<_, _> = keys
                .map(|key| {
                    let of = format!("#/$defs/{}/properties/{}", of.path, key.name);
                    (key.name.to_owned(), json!({ "$ref": of }))
                })
                .collect();
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Kind::NamedTables(table) => {
            json!({ "type": "object", "additionalProperties": reference(table) })
        }
    }
}

fn reference(table: &TableSpec) -> Value {
    json!({ "$ref": format!("#/$defs/{}", table.path) })
}

fn form_schema(form: &Form) -> Value {
    match form.pattern {
        Some(pattern) => text(pattern),
        None => json!({ "type": "string" }),
    }
}

/// Returns the schema of a key: in keys, nothing is substituted.
fn name_schema(form: &Form) -> Value {
    match form.pattern {
        Some(pattern) => json!({ "type": "string", "pattern": pattern }),
        None => json!({ "type": "string" }),
    }
}

/// A text in which something is substituted may become anything.
const SUBSTITUTED: &str = "[$][{]";

/// Returns the schema of a text that matches `pattern` unless something is substituted in it.
fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("({pattern})|{SUBSTITUTED}") })
}
