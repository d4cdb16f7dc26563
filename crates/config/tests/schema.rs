//! The JSON Schema, the reader and the documentation know the same keys, since all three derive
//! from one description: checked here on real files.

mod files;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(here(path)).unwrap_or_default()
}

/// Returns the schema that a reference points to.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(path) => root.pointer(path.trim_start_matches('#')).unwrap_or(&Value::Null),
        None => schema,
    }
}

/// Collects violations in `value`, as far as the parts of JSON Schema that are used here tell
/// (except patterns).
fn violations(value: &Value, schema: &Value, root: &Value, at: &str, found: &mut Vec<String>) {
    let schema = resolved(schema, root);
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let fits = options.iter().any(|option| {
            let mut inner = Vec::new();
            violations(value, option, root, at, &mut inner);
            inner.is_empty()
        });
        if !fits {
            found.push(format!("{at}: none of the alternatives"));
        }
        return;
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        found.push(format!("{at}: not in enum"));
    }
    let type_fits = match schema.get("type").and_then(Value::as_str) {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !type_fits {
        found.push(format!("{at}: not {}", schema["type"]));
        return;
    }
    let number = value.as_f64().unwrap_or_default();
    if schema.get("minimum").and_then(Value::as_f64).is_some_and(|min| number < min)
        || schema.get("maximum").and_then(Value::as_f64).is_some_and(|max| number > max)
    {
        found.push(format!("{at}: out of bounds"));
    }
    for item in value.as_array().into_iter().flatten() {
        violations(item, &schema["items"], root, at, found);
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(property), _) => violations(value, property, root, &at, found),
            (None, Value::Bool(false)) => found.push(format!("{at}: unknown")),
            (None, rest) => violations(value, rest, root, &at, found),
        }
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if required.as_str().is_none_or(|name| value.get(name).is_none()) {
            found.push(format!("{at}: {required} is missing"));
        }
    }
}

fn as_json(toml: &str) -> Value {
    let table: Option<toml::Table> = toml.parse().ok();
    serde_json::to_value(table).unwrap_or_default()
}

#[test]
fn every_valid_case_fits_the_schema() {
    let schema = config::schema();
    let mut seen = 0;
    for entry in std::fs::read_dir(here("tests/cases")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if config::check(&text, "case", files::made()).is_err() {
            continue;
        }
        let mut found = Vec::new();
        violations(&as_json(&text), &schema, &schema, "", &mut found);
        assert!(found.is_empty(), "{}: {found:?}", path.display());
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} valid cases");
}

#[test]
fn an_unknown_key_fits_no_schema() {
    let schema = config::schema();
    let text = read("tests/cases/full.toml").replace("interval =", "intervall =");
    let mut found = Vec::new();
    violations(&as_json(&text), &schema, &schema, "", &mut found);
    assert!(found.iter().any(|f| f.ends_with("check.intervall: unknown")), "{found:?}");
}

/// Collects the keys in `value`, each with the path of its table.
fn written(value: &Value, schema: &Value, root: &Value, path: &str, keys: &mut HashSet<String>) {
    // A table that several keys share counts as one.
    let of = schema.get("$ref").and_then(Value::as_str);
    let path = &of.map_or(path.to_owned(), |of| of.replace("#/$defs/", "."));
    let schema = resolved(schema, root);
    for option in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        written(value, option, root, path, keys);
    }
    for item in value.as_array().into_iter().flatten() {
        written(item, &schema["items"], root, path, keys);
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(key) {
            Some(property) => {
                let path = format!("{path}.{key}");
                keys.insert(path.clone());
                written(value, property, root, &path, keys);
            }
            None if schema["additionalProperties"].is_object() => {
                let path = format!("{path}.NAME");
                written(value, &schema["additionalProperties"], root, &path, keys);
            }
            None => {}
        }
    }
}

/// Returns every key of the schema in the same form; old names have separate cases.
fn keys_of(schema: &Value) -> Vec<String> {
    let tables = schema["$defs"].as_object().into_iter().flatten();
    let tables = tables.map(|(path, table)| (format!(".{path}"), table));
    let tables = std::iter::once((String::new(), schema)).chain(tables);
    let keys = tables.flat_map(|(path, table)| {
        let properties = table["properties"].as_object().into_iter().flatten();
        let current = properties.filter(|(_, property)| property["deprecated"] != true);
        current.map(|(key, _)| format!("{path}.{key}")).collect::<Vec<_>>()
    });
    keys.collect()
}

/// `full.toml` is read without complaint and contains every key of the schema, so the reader knows
/// each of them; the reader itself asserts that it requests no others.
#[test]
fn the_reader_knows_every_key_of_the_schema() {
    let schema = config::schema();
    let text = read("tests/cases/full.toml");
    assert!(config::check(&text, "full", files::made()).is_ok());
    let mut keys = HashSet::new();
    written(&as_json(&text), &schema, &schema, "", &mut keys);
    let all = keys_of(&schema);
    let missing: Vec<_> = all.iter().filter(|key| !keys.contains(*key)).collect();
    assert!(missing.is_empty(), "not in full.toml: {missing:?}");
    assert!(all.len() > 90, "{}", all.len());
}

#[test]
fn every_key_has_a_description_and_an_example_that_is_valid() {
    let schema = config::schema();
    for (path, table) in schema["$defs"].as_object().unwrap() {
        for (key, property) in table["properties"].as_object().unwrap() {
            assert!(!property["description"].as_str().unwrap_or("").is_empty(), "{path}.{key}");
        }
    }
    let reference = config::reference();
    let examples = reference.split("```toml\n").skip(1);
    let mut keys = HashSet::new();
    for example in examples.map(|rest| rest.split("```").next().unwrap()) {
        // What an example leaves out is added around it.
        let mut text = example.to_owned();
        if !text.contains("[[listener]]") {
            text.push_str("[[listener]]\naddress = \"0.0.0.0:8080\"\n");
        }
        for service in ["listings", "listings-next", "accounts", "database"] {
            let used = text.contains(&format!("\"{service}\""));
            if used && !text.contains(&format!("[service.{service}]")) {
                text.extend([
                    "[service.",
                    service,
                    "]\nserver = [{ address = \"10.0.9.9:80\" }]\n",
                ]);
            }
        }
        if let Err(report) = config::check(&text, "example", files::made()) {
            panic!("{example}\n{}", report.render(false));
        }
        written(&as_json(&text), &schema, &schema, "", &mut keys);
    }
    let all = keys_of(&schema);
    let missing: Vec<_> = all.iter().filter(|key| !keys.contains(*key)).collect();
    assert!(missing.is_empty(), "no example has: {missing:#?}");
}

/// Checks the documentation: its hand-written start, then the reference. `UPDATE_EXPECT=1` rewrites
/// the reference.
#[test]
fn the_documentation_is_current() {
    const MARK: &str =
        "<!-- What follows is generated: UPDATE_EXPECT=1 cargo test -p weir-config -->\n";
    let path = "../../docs/configuration.md";
    let text = read(path);
    let (start, reference) = text.split_once(MARK).expect("the mark in docs/configuration.md");
    let current = format!("\n{}", config::reference());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(here(path), format!("{start}{MARK}{current}")).unwrap();
    } else {
        assert!(reference == current, "docs/configuration.md is old: UPDATE_EXPECT=1 rewrites it");
    }
    for example in start.split("```toml\n").skip(1) {
        let example = example.split("```").next().unwrap();
        let mut example = example.to_owned();
        if !example.contains("[[listener]]") {
            // Of an included file.
            example.push_str("[[listener]]\naddress = \"0.0.0.0:8080\"\n");
        }
        if let Err(report) = config::check(&example, "documentation", files::made()) {
            panic!("{}", report.render(false));
        }
    }
}
