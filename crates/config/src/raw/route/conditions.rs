//! Reads the conditions of a route besides host, path and method.

use std::path::PathBuf;
use std::sync::Arc;

use model::{CertificatePart, Condition, ConditionOn, FieldMatch, Pattern, Test, Text};
use toml::de::DeValue;

use super::is_empty_list;
use crate::diagnostic::{At, Diagnostic, Wrong};
use crate::raw::table::{Entry, Table, choose};
use crate::raw::{http, net, paths};
use crate::schema::spec::Kind;

/// Reads the conditions besides host, path and method: exact fields, exact parameters, all others.
pub(super) fn conditions(
    table: &mut Table<'_>,
) -> (Vec<FieldMatch>, Vec<FieldMatch>, Vec<Condition>) {
    let named = |text: &str| match http::field_name(text)?.as_str() {
        "host" => Err(Wrong::new("Host is matched by itself").help("write host = \"…\" beside it")),
        name => Ok(name.to_owned()),
    };
    let any_text = |_: &str, text: &str| Ok(text.to_owned());
    let mut conditions = Vec::new();
    let header = tested(table, "header", named, |_, text| http::field_value(text));
    let fields = exact(header, ConditionOn::Field, &mut conditions);
    let query = tested(table, "query", parameter_name, any_text);
    let query = exact(query, ConditionOn::Query, &mut conditions);
    for (name, tested) in tested(table, "cookie", cookie_name, any_text) {
        conditions.push(tested.of(ConditionOn::Cookie(name)));
    }
    for (part, tested) in tested(table, "client_certificate", certificate_part, certificate_name) {
        if let Ok(part) = part.parse() {
            conditions.push(tested.of(ConditionOn::Certificate(part)));
        }
    }
    if let Some(pattern) = table.text("path_regex", pattern) {
        let test = Test::Pattern(pattern.value);
        conditions.push(Condition { on: ConditionOn::Path, test, negated: false });
    }
    for (key, negated) in [("client", false), ("client_not", true)] {
        let Some(networks) = table.texts(key, net::network) else { continue };
        if is_empty_list(table.peek(key)) {
            table.problems.report(
                Diagnostic::error("a list of no networks", table.span_of(key), "empty")
                    .help(format!("leave `{key}` out to match any client")),
            );
        }
        let test = Test::Among(Arc::new(networks.into_iter().map(|at| at.value).collect()));
        conditions.push(Condition { on: ConditionOn::Client, test, negated });
    }
    conditions.sort_unstable();
    (fields, query, conditions)
}

pub(super) fn client_files(table: &mut Table<'_>) -> Vec<(bool, At<PathBuf>)> {
    let mut files = Vec::new();
    for (key, negated) in [("client_file", false), ("client_not_file", true)] {
        files.extend(table.text(key, paths::file_path).map(|path| (negated, path)));
    }
    files
}

/// A test in the file.
enum Tested {
    /// A text by itself.
    Text(Text),
    /// A table.
    Table { test: Test, negated: bool },
}

impl Tested {
    fn of(self, on: ConditionOn) -> Condition {
        match self {
            Tested::Text(text) => Condition { on, test: Test::Exact(text), negated: false },
            Tested::Table { test, negated } => Condition { on, test, negated },
        }
    }
}

/// Reads a table of names with texts or tests, sorted by name. `value` reads an exact value of a name.
fn tested(
    table: &mut Table<'_>,
    key: &'static str,
    name: impl Fn(&str) -> Result<String, Wrong>,
    value: impl Fn(&str, &str) -> Result<String, Wrong>,
) -> Vec<(String, Tested)> {
    let Kind::Map(_, Kind::Either([text, Kind::Table(spec)])) = table.key_spec(key).kind else {
        return Vec::new();
    };
    let mut tests = Vec::new();
    for Entry { name, written, value: raw } in table.entries(key, name) {
        let value = |text: &str| value(&name.value, text);
        let test = match raw.get_ref() {
            DeValue::Table(toml) => test(table.below(toml, raw.span(), spec), &value),
            _ => table
                .parse(written, text, raw, value)
                .map(|at| Tested::Text(table.problems.text(at))),
        };
        tests.extend(test.map(|test| (name.value, test)));
    }
    tests
}

fn test(mut table: Table<'_>, value: &impl Fn(&str) -> Result<String, Wrong>) -> Option<Tested> {
    let exact = table.text("exact", value).map(|at| {
        let span = at.span.clone();
        At { value: Test::Exact(table.problems.text(at)), span }
    });
    let regex = table.text("regex", pattern).map(|at| at.map(Test::Pattern));
    let is_present = table.boolean("present");
    let present = table.key_span("present").map(|span| At { value: Test::Present, span });
    let not = table.boolean("not");
    let is_absent = present.is_some() && !is_present;
    let is_given = |key| table.key_span(key).is_some();
    let is_complete = !table.strange && !["exact", "regex", "present"].into_iter().any(is_given);
    let (problems, span) = (table.problems, table.span.clone());
    table.finish();
    let mut given = [exact, regex, present].into_iter().flatten();
    let Some(first) = given.next() else {
        if is_complete {
            problems.report_absence(
                Diagnostic::error("a test of nothing", span, "empty")
                    .help("write exact = \"…\", regex = \"…\" or present = true"),
            );
        }
        return None;
    };
    if let Some(second) = given.next() {
        problems.report(
            Diagnostic::error(
                "a test has one of `exact`, `regex` and `present`",
                second.span,
                "and this",
            )
            .other(first.span.clone(), "this"),
        );
    }
    Some(Tested::Table { test: first.value, negated: not != is_absent })
}

/// Returns the exact values, which the router looks up; moves all tests to `conditions`.
fn exact(
    tests: Vec<(String, Tested)>,
    on: impl Fn(String) -> ConditionOn,
    conditions: &mut Vec<Condition>,
) -> Vec<FieldMatch> {
    let mut exact = Vec::new();
    for (name, tested) in tests {
        match tested {
            Tested::Text(value) => exact.push(FieldMatch { name, value }),
            tested @ Tested::Table { .. } => conditions.push(tested.of(on(name))),
        }
    }
    exact
}

/// Reads a regular expression.
pub(in crate::raw) fn pattern(text: &str) -> Result<Pattern, Wrong> {
    Pattern::parse(text).map_err(|why| {
        let help = if why.contains("look-around") {
            "write a second condition, with `not = true` for what must not occur"
        } else if why.contains("Unicode") {
            "expressions match bytes: write ASCII classes such as [A-Za-z]"
        } else if why.contains("too large") {
            "use smaller counted repetitions, or several rules"
        } else {
            "the syntax: https://docs.rs/regex/latest/regex/#syntax"
        };
        Wrong::new(why).help(help)
    })
}

fn cookie_name(text: &str) -> Result<String, Wrong> {
    // A token (RFC 6265 section 4.1.1), which is case-sensitive.
    http::field_name(text).map(|_| text.to_owned()).map_err(|_| {
        Wrong::new("not a cookie name").help("one has letters, digits and !#$%&'*+-.^_`|~ only")
    })
}

fn certificate_part(text: &str) -> Result<String, Wrong> {
    let parts = CertificatePart::WORDS;
    choose(text, parts).map(str::to_owned).map_err(|wrong| match wrong.help {
        None => wrong.help(format!("write one of {}", parts.join(", "))),
        Some(_) => wrong,
    })
}

/// An exact name in a certificate, in the form in which Weir compares it.
fn certificate_name(part: &str, text: &str) -> Result<String, Wrong> {
    const DIGITS: usize = 64;
    match part.parse() {
        // Not case-sensitive (RFC 5890 section 2.3.2.4).
        Ok(CertificatePart::Dns) => Ok(text.to_ascii_lowercase()),
        Ok(CertificatePart::Fingerprint) => {
            let digits: String = text.split(':').collect::<String>().to_ascii_lowercase();
            if digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Ok(digits);
            }
            let command = "openssl x509 -in FILE -noout -fingerprint -sha256";
            Err(Wrong::new(format!("a SHA-256 fingerprint has {DIGITS} hexadecimal digits"))
                .help(format!("print it with: {command}")))
        }
        _ => Ok(text.to_owned()),
    }
}

fn parameter_name(text: &str) -> Result<String, Wrong> {
    match text {
        "" => Err(Wrong::new("a parameter's name is missing")),
        _ => Ok(text.to_owned()),
    }
}
