//! The schemas of policies for a `CustomResourceDefinition`: structural, as apiextensions.k8s.io/v1 requires.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::keys::{Limit, Own, PolicyKey, permitted};
use super::tables::{ENTRIES_MAX, TEXT_MAX_CHARS, table_of};
use super::words::in_policy;
use crate::schema::spec::{Absent, Kind as KeyKind, TableSpec};
use crate::schema::{AUTHENTICATION, DURATION, ROUTE, SERVICE, SIZE};

/// A kind of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ServicePolicy`.
    Service,
    /// `RoutePolicy`.
    Route,
}

/// Returns the structural schema of the `spec` of a kind, without `targetRefs` and `podLimits`.
///
/// It has no defaults: those of the balancer apply.
pub fn schema(kind: Kind) -> Value {
    match kind {
        Kind::Service => table(&SERVICE),
        Kind::Route => table(&ROUTE),
    }
}

fn table(spec: &TableSpec) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for known in permitted(spec) {
        let mut schema = match known.own {
            None => of_kind(&known.key.kind),
            Some(own) => of_own(own),
        };
        if let Some(max) = Limit::of(spec, known.key).and_then(Limit::number_max) {
            schema["maximum"] = json!(max);
        }
        let is_required = matches!(known.key.absent, Absent::Required);
        schema["description"] = Value::String(description(spec, &known));
        if is_required {
            required.push(known.name.clone());
        }
        properties.insert(known.name, schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns what a key means, in a few words.
fn description(spec: &TableSpec, known: &PolicyKey) -> String {
    if let Some(own) = known.own {
        return of_own_in_words(own).to_owned();
    }
    let key = known.key;
    let mut description = first_sentence(&in_policy(key.doc));
    if let (KeyKind::Either(_) | KeyKind::OneOrMore(_), Some(below)) =
        (key.kind, table_of(&key.kind))
    {
        let names: Vec<_> = permitted(below).map(|known| known.name).collect();
        let _ = write!(description, " Keys: {}.", names.join(", "));
    }
    let default = match (spec.path, key.name, key.absent) {
        ("authentication.NAME", "realm", _) => "the name of the policy".to_owned(),
        (_, _, Absent::Required) => return description,
        (_, _, Absent::Then(words)) if words.starts_with("see ") => return description,
        (_, _, absent) => in_policy(&absent.words()),
    };
    // Writing to a string cannot fail.
    let _ = write!(description, " Default: {default}.");
    if let Some(limit) = Limit::of(spec, key) {
        let _ = write!(description, " Must be {}.", limit.words());
    }
    description
}

fn of_kind(kind: &KeyKind) -> Value {
    match *kind {
        KeyKind::Boolean => json!({ "type": "boolean" }),
        KeyKind::Choice(words) => json!({ "type": "string", "enum": words }),
        KeyKind::Duration { .. } => {
            json!({ "type": "string", "pattern": DURATION, "maxLength": TEXT_MAX_CHARS })
        }
        KeyKind::Integer { min, max } => {
            json!({ "type": "integer", "format": "int64", "minimum": min, "maximum": max })
        }
        KeyKind::OneOf(numbers) => json!({ "type": "integer", "enum": numbers }),
        KeyKind::Number { min, max } if max.is_finite() => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        KeyKind::Number { min, .. } => json!({ "type": "number", "minimum": min }),
        KeyKind::Size { .. } => {
            json!({ "x-kubernetes-int-or-string": true, "pattern": SIZE, "maxLength": TEXT_MAX_CHARS })
        }
        KeyKind::Text(form) => match form.pattern {
            Some(pattern) => {
                json!({ "type": "string", "pattern": pattern, "maxLength": TEXT_MAX_CHARS })
            }
            None => json!({ "type": "string", "maxLength": TEXT_MAX_CHARS }),
        },
        KeyKind::List(of) => {
            json!({ "type": "array", "items": of_kind(of), "maxItems": ENTRIES_MAX })
        }
        KeyKind::Map(_, of) => {
            json!({ "type": "object", "additionalProperties": of_kind(of), "maxProperties": ENTRIES_MAX })
        }
        KeyKind::Table(spec) => table(spec),
        // Several forms: a schema that is structural cannot tell them apart.
        KeyKind::OneOrMore(_)
        | KeyKind::Either(_)
        | KeyKind::Tables(_)
        | KeyKind::NamedTables(_)
        | KeyKind::Defaults { .. } => json!({ "x-kubernetes-preserve-unknown-fields": true }),
    }
}

fn of_own(own: Own) -> Value {
    let name = || json!({ "type": "string", "minLength": 1, "maxLength": 253 });
    match own {
        Own::Authentication => table(&AUTHENTICATION),
        Own::UsersSecret | Own::KeysConfigMap => name(),
        Own::BackendRef => backend_ref(&name()),
    }
}

fn backend_ref(name: &Value) -> Value {
    let described = |mut schema: Value, description: &str| {
        schema["description"] = description.into();
        schema
    };
    let port = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": 65_535 });
    let only = |word: &str| json!({ "type": "string", "enum": [word] });
    json!({
        "type": "object",
        "properties": {
            "name": described(name.clone(), "The name of the Service."),
            "namespace": described(name.clone(), "Its namespace. Default: that of the policy."),
            "port": described(port, "A port of the Service."),
            "group": described(only(""), "The group of Services."),
            "kind": described(only("Service"), "Only a Service can be asked."),
        },
        "required": ["name", "port"],
    })
}

fn of_own_in_words(own: Own) -> &'static str {
    match own {
        Own::Authentication => {
            "How requests must prove who sends them: by exactly one of `basic`, `jwt` and `forward`."
        }
        Own::UsersSecret => {
            "The name of a Secret whose key `auth` has a line with `USER:HASH` for each user, as htpasswd writes it."
        }
        Own::KeysConfigMap => {
            "The name of a ConfigMap whose key `jwks.json` is a key set (JWKS). Exactly one of this and `keysUrl` is required."
        }
        Own::BackendRef => {
            "The Service that is asked. One of another namespace needs a ReferenceGrant there."
        }
    }
}

/// Returns a text up to the end of its first sentence.
fn first_sentence(text: &str) -> String {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}
