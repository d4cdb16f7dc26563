//! Every configuration in the documentation is valid. An example shows only what its text is about, so what it needs
//! besides is added here: a listener, a route, the services that it names.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use config::{Found, Surroundings, Unreadable};
use toml::{Table, Value};

/// Folders of included files are empty; there are no files.
struct Nothing;

impl Surroundings for Nothing {
    fn file(&self, path: &Path) -> Result<Found, Unreadable> {
        ().file(path)
    }

    fn names(&self, _folder: &Path, _pattern: &str) -> Result<Vec<OsString>, Unreadable> {
        Ok(Vec::new())
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

/// A block of TOML in a document.
struct Example {
    /// `FILE:LINE`.
    at: String,
    text: String,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn examples(path: &Path) -> Vec<Example> {
    let document = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let mut found: Vec<Example> = Vec::new();
    // The indentation of the block that is being read.
    let mut inside: Option<usize> = None;
    for (index, line) in document.lines().enumerate() {
        let indentation = line.len() - line.trim_start().len();
        match inside {
            None if line.trim() == "```toml" => {
                inside = Some(indentation);
                found.push(Example { at: format!("{name}:{}", index + 2), text: String::new() });
            }
            Some(_) if line.trim() == "```" => inside = None,
            Some(by) => {
                let text = &mut found.last_mut().unwrap().text;
                text.push_str(line.get(by..).unwrap_or_default());
                text.push('\n');
            }
            None => {}
        }
    }
    found
}

/// Collects the texts at keys with this name, at any depth.
fn texts_at<'v>(value: &'v Value, name: &str, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                if key == name
                    && let Value::String(text) = value
                {
                    found.insert(text);
                }
                texts_at(value, name, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts_at(value, name, found)),
        _ => {}
    }
}

/// Returns what an example needs besides.
fn additions(example: &Table) -> String {
    let mut added = String::new();
    let whole = Value::Table(example.clone());
    let services = example.get("service").and_then(Value::as_table);
    for (name, service) in services.into_iter().flatten() {
        if service.get("server").is_none() && service.get("discover").is_none() {
            let _ = writeln!(added, "[[service.{name:?}.server]]\naddress = \"10.0.1.5:8080\"");
        }
    }
    let mut named = BTreeSet::new();
    for top in ["listener", "route", "authentication"] {
        if let Some(value) = example.get(top) {
            texts_at(value, "service", &mut named);
        }
    }
    for listener in example.get("listener").and_then(Value::as_array).into_iter().flatten() {
        let by_name = listener.get("server_names").and_then(Value::as_table);
        named.extend(by_name.into_iter().flatten().filter_map(|(_, service)| service.as_str()));
    }
    let has_route = example.contains_key("route");
    if !has_route && services.is_none() {
        named.insert("added");
    }
    for name in &named {
        if services.is_none_or(|services| !services.contains_key(*name)) {
            let _ =
                writeln!(added, "[service.{name:?}]\nserver = [{{ address = \"10.0.1.9:8080\" }}]");
        }
    }
    let mut listeners = example.get("listener").and_then(Value::as_array).into_iter().flatten();
    let has_http = listeners.clone().any(|listener| listener.get("service").is_none());
    let mut routed = BTreeSet::new();
    texts_at(&whole, "listener", &mut routed);
    if listeners.next().is_none() || has_route && !has_http {
        let name = routed.first().map(|name| format!("name = {name:?}\n")).unwrap_or_default();
        let _ = writeln!(added, "[[listener]]\n{name}address = \"127.0.0.1:8080\"");
    }
    if !has_route {
        let own = services.and_then(|services| services.keys().next()).map(String::as_str);
        let service = own.or(named.first().copied()).unwrap_or("added");
        let _ = writeln!(added, "[[route]]\nservice = {service:?}");
    }
    let mut required = BTreeSet::new();
    texts_at(&whole, "authenticate", &mut required);
    if !example.contains_key("authentication") {
        for name in required {
            let _ =
                writeln!(added, "[authentication.{name:?}]\njwt = {{ keys_file = \"jwks.json\" }}");
        }
    }
    let mut scopes = BTreeSet::new();
    texts_at(&whole, "scope", &mut scopes);
    texts_at(&whole, "in_flight_scope", &mut scopes);
    if scopes.contains("fleet") && !example.contains_key("fleet") {
        added.push_str("[fleet]\naddress = \"10.0.0.5:7946\"\nkeys = [\"${file:fleet.key}\"]\n");
    }
    added
}

#[test]
fn every_configuration_in_the_documentation_is_valid() {
    let mut mistakes = Vec::new();
    let mut count = 0;
    for path in documents() {
        for Example { at, text } in examples(&path) {
            count += 1;
            let added = match text.parse::<Table>() {
                Ok(table) => additions(&table),
                Err(_) => String::new(),
            };
            if let Err(report) = config::check_text(&format!("{text}{added}"), &at, &Nothing) {
                mistakes.push(format!("{at}\n{}", report.render(false)));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 100, "only {count} examples were found");
}
