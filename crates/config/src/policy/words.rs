//! Turns what the checks of a configuration say into the words of policies.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::keys::{RULES, camel_case};
use crate::diagnostic::Diagnostic;
use crate::schema::spec::TableSpec;
use crate::schema::{AUTHENTICATION, ROUTE, SERVICE};

/// Labels that mean something only beside the text that they point at.
const POINTERS: &[&str] = &["and this", "this", "this one", "again here", "has none of them"];

/// How help begins that is about what policies do not have.
const HELP_FOR_FILES: &[&str] =
    &["a key with dots in it", "install the package ca-certificates", "write rewrite = "];

/// Phrases about files and tables, and what they are in policies. In this order, before single words are converted.
const PHRASES: &[(&str, &str)] = &[
    ("write a second [authentication.NAME] for the other", "leave one of them out"),
    (
        "basic = { users_file = \"…\" }, jwt = { keys_file = \"…\" } or forward = { service = \"…\", path = \"/…\" }",
        "basic = { users_file = … }, jwt = { keys_file = … } or forward = { backendRef = …, path = … }",
    ),
    ("write keys_file = \"…\" or keys_url", "write keys_file = … or keys_url"),
    ("wait_max, by, scope, headers", "wait_max, by, headers"),
    ("write symmetric_keys = true, or leave it out", "leave it out"),
    ("`service` is missing", "`backendRef` is missing"),
    ("needs `service`, a name", "needs `backendRef`, a Service with its port"),
    ("needs `users_file`, a file path", "needs `users_file`, the name of a Secret"),
    ("write authenticate = \"…\", or by", "write `authentication`, or by"),
    (
        "write in_flight_max in the service, or in_flight_target here",
        "write in_flight_max, or in_flight_target in `scaling`",
    ),
    (
        "write http = \"2\" beside `check` (requests go to the servers by it, too) or in it",
        "write http = \"2\" in `check`, or leave `http` out",
    ),
    ("service \"policy\"", "the service"),
    ("authentication \"policy\"", "`authentication`"),
    (" of [service.policy]", ""),
    (" of [authentication.policy]", ""),
    (" of [[route]]", ""),
    ("[service.policy]", "the policy"),
    ("[authentication.policy]", "`authentication`"),
    ("[[route]]", "the policy"),
    ("[service.NAME]", "a ServicePolicy"),
    ("[authentication.NAME]", "`authentication`"),
    ("must be a table", "must be an object"),
    ("this is a table", "this is an object"),
    ("a table of ", "an object of "),
    ("or a table", "or an object"),
    ("a table or", "an object or"),
    ("a table, or", "an object, or"),
    ("a table alone", "an object alone"),
    ("write one of HS256, HS384, HS512, ", "write one of "),
    (", and with `symmetric_keys` `HS256`, `HS384`, `HS512`", ""),
];

/// Keys with several words, or with another name in policies.
static KEYS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let tables = [&SERVICE, &ROUTE, &AUTHENTICATION].into_iter().flat_map(TableSpec::tables);
    let keys = tables.flat_map(|table| table.keys).map(|key| key.name);
    keys.filter(|key| key.contains('_')).collect()
});

/// Returns a mistake in one line, in the words of policies.
pub(super) fn problem(diagnostic: &Diagnostic) -> String {
    let mut problem = in_policy(&diagnostic.title);
    let label = &diagnostic.primary.text;
    if !label.is_empty() && !POINTERS.contains(&label.as_str()) {
        problem.push_str(": ");
        problem.push_str(&in_policy(label));
    }
    let is_for_files = |help: &&String| HELP_FOR_FILES.iter().any(|start| help.starts_with(start));
    for help in diagnostic.help.iter().filter(|help| !is_for_files(help)) {
        problem.push_str(if problem.ends_with('?') { " " } else { "; " });
        problem.push_str(&in_policy(help));
    }
    one_line(&problem)
}

/// Returns a text without control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns a text with the names and the syntax of policies. What is in quotes stays as it is.
pub(super) fn in_policy(text: &str) -> String {
    let mut text = text.to_owned();
    for (phrase, new) in PHRASES {
        if text.contains(phrase) {
            text = text.replace(phrase, new);
        }
    }
    let mut new = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted_length(rest),
            c if is_of_word(c) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if is_of_word(first) {
            new.push_str(&in_camel_case(token));
        } else {
            new.push_str(token);
        }
        if (is_of_word(first) || first == '"')
            && let Some(value) = rest.strip_prefix(" = ")
        {
            new.push_str(": ");
            rest = value;
        }
    }
    new
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of the quoted text that `text` begins with.
fn quoted_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn in_camel_case(word: &str) -> String {
    let mut own = RULES.iter().flat_map(|rules| rules.own);
    // `service` is a plain word, too: see the phrases.
    match own.find(|(key, _)| *key == word && *key != "service") {
        Some((_, own)) => own.name().to_owned(),
        None if KEYS.contains(word) => camel_case(word),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_assignments_are_those_of_policies_and_quoted_texts_stay() {
        for (text, expected) in [
            ("`in_flight_max` must be a whole number", "`inFlightMax` must be a whole number"),
            (
                "write retries = { body_kept_max = \"1 = 2\" }",
                "write retries: { bodyKeptMax: \"1 = 2\" }",
            ),
            (
                "unknown \"in_flight_max = \\\" slow_start\"",
                "unknown \"in_flight_max = \\\" slow_start\"",
            ),
            (
                "`cookie` is missing in affinity of [service.policy]",
                "`cookie` is missing in affinity",
            ),
            (
                "X_user is written by authentication \"policy\"",
                "X_user is written by `authentication`",
            ),
            ("write users_file, é and \"open", "write usersSecret, é and \"open"),
        ] {
            assert_eq!(in_policy(text), expected);
        }
    }
}
