//! Reads the conditions of a route besides host, path and method.

use std::path::PathBuf;

use model::{CertificatePart, Condition, ConditionOn, FieldMatch, Pattern, Test};
use toml::de::DeValue;

use crate::diagnostic::{At, Diagnostic, Wrong};
use crate::raw::table::{Entry, Table, choose};
use crate::raw::{http, net, tls};
use crate::schema::spec::Kind;

/// Reads the conditions besides host, path and method: exact fields, exact parameters, all others.
pub(super) fn conditions(
    table: &mut Table<'_>,
) -> (Vec<FieldMatch>, Vec<FieldMatch>, Vec<Condition>) {
    let named = |text: &str| match http::field_name(text)?.as_str() {
        "host" => Err(Wrong::new("Host is matched by itself").help("write host = \"…\" beside it")),
        name => Ok(name.to_owned()),
    };
    let any_text = |text: &str| Ok(text.to_owned());
    let mut others = Vec::new();
    let header = tested(table, "header", named, http::field_value);
    let fields = exact(header, ConditionOn::Field, &mut others);
    let query = tested(table, "query", parameter_name, any_text);
    let query = exact(query, ConditionOn::Query, &mut others);
    for (name, test) in tested(table, "cookie", cookie_name, any_text) {
        others.push(test.of(ConditionOn::Cookie(name)));
    }
    for (part, test) in tested(table, "client_certificate", certificate_part, any_text) {
        if let Ok(part) = part.parse() {
            others.push(test.of(ConditionOn::Certificate(part)));
        }
    }
    if let Some(pattern) = table.text("path_regex", pattern) {
        let test = Test::Pattern(pattern.value);
        others.push(Condition { on: ConditionOn::Path, test, negated: false });
    }
    for (key, negated) in [("client", false), ("client_not", true)] {
        if let Some(networks) = table.texts(key, net::network) {
            let test = Test::Among(networks.into_iter().map(|at| at.value).collect());
            others.push(Condition { on: ConditionOn::Client, test, negated });
        }
    }
    others.sort_unstable();
    (fields, query, others)
}

pub(super) fn client_files(table: &mut Table<'_>) -> Vec<(bool, At<PathBuf>)> {
    let mut files = Vec::new();
    for (key, negated) in [("client_file", false), ("client_not_file", true)] {
        files.extend(table.text(key, tls::file_path).map(|path| (negated, path)));
    }
    files
}

/// A test in the file.
struct Tested {
    test: Test,
    negated: bool,
}

impl Tested {
    fn of(self, on: ConditionOn) -> Condition {
        Condition { on, test: self.test, negated: self.negated }
    }
}

/// Reads a table of names with texts or tests, sorted by name.
fn tested(
    table: &mut Table<'_>,
    key: &'static str,
    name: impl Fn(&str) -> Result<String, Wrong>,
    value: impl Fn(&str) -> Result<String, Wrong>,
) -> Vec<(String, Tested)> {
    let Kind::Map(_, Kind::Either([text, Kind::Table(spec)])) = table.key_spec(key).kind else {
        return Vec::new();
    };
    let mut tests = Vec::new();
    for Entry { name, written, value: raw } in table.entries(key, name) {
        let test = match raw.get_ref() {
            DeValue::Table(toml) => test(table.below(toml, raw.span(), spec), &value),
            _ => table
                .parse(written, text, raw, &value)
                .map(|at| Tested { test: Test::Exact(at.value), negated: false }),
        };
        tests.extend(test.map(|test| (name.value, test)));
    }
    tests
}

fn test(mut table: Table<'_>, value: &impl Fn(&str) -> Result<String, Wrong>) -> Option<Tested> {
    let exact = table.text("exact", value).map(|at| at.map(Test::Exact));
    let regex = table.text("regex", pattern).map(|at| at.map(Test::Pattern));
    let is_present = table.boolean("present");
    let present = table.key_span("present").map(|span| At { value: Test::Present, span });
    let not = table.boolean("not");
    let is_absent = present.is_some() && !is_present;
    let is_complete = !table.strange;
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
    Some(Tested { test: first.value, negated: not != is_absent })
}

/// Returns the exact values, which the router looks up; moves all other tests to `others`.
fn exact(
    tests: Vec<(String, Tested)>,
    on: impl Fn(String) -> ConditionOn,
    others: &mut Vec<Condition>,
) -> Vec<FieldMatch> {
    let mut exact = Vec::new();
    for (name, test) in tests {
        match test {
            Tested { test: Test::Exact(value), negated: false } => {
                exact.push(FieldMatch { name, value });
            }
            test => others.push(test.of(on(name))),
        }
    }
    exact
}

fn pattern(text: &str) -> Result<Pattern, Wrong> {
    Pattern::parse(text).map_err(Wrong::new)
}

fn cookie_name(text: &str) -> Result<String, Wrong> {
    // A token (RFC 6265 section 4.1.1), which is case-sensitive.
    http::field_name(text).map_err(|_| Wrong::new("not a cookie name")).map(|_| text.to_owned())
}

fn certificate_part(text: &str) -> Result<String, Wrong> {
    choose(text, CertificatePart::WORDS).map(str::to_owned)
}

fn parameter_name(text: &str) -> Result<String, Wrong> {
    match text {
        "" => Err(Wrong::new("a parameter's name is missing")),
        _ => Ok(text.to_owned()),
    }
}
