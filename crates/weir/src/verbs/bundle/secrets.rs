//! Removes from a bundle what looks like a secret: values in the configuration that are compared with or sent in a
//! field, a cookie or a parameter with a telling name. They are removed wherever they occur, because names of routes,
//! probes and receipts quote them. Values from `${file:…}` are not in the answers anyway.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What stands in their place.
const REMOVED: &str = "(removed)";

/// Names with secrets, in part.
const NAMES: [&str; 10] =
    ["auth", "cookie", "cred", "key", "pass", "pwd", "secret", "session", "sig", "token"];

/// A shorter value would be removed where it means something else. It stays in names, but not as a value.
const BYTES_MIN: usize = 4;

/// Removes them from all answers.
pub(super) fn remove(answers: &mut BTreeMap<String, Value>) {
    let mut secrets = BTreeSet::new();
    for path in ["configuration", "checks"] {
        if let Some(answer) = answers.get_mut(path) {
            take(answer, &mut secrets);
        }
    }
    if let Some(reloads) = answers.get_mut("reloads") {
        remove_excerpts(reloads);
    }
    // A secret that contains another one goes first.
    let mut secrets: Vec<String> =
        secrets.into_iter().filter(|secret| secret.len() >= BYTES_MIN).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    if !secrets.is_empty() {
        for answer in answers.values_mut() {
            replace(answer, &secrets);
        }
    }
}

/// Takes the secrets out of a configuration.
fn take(value: &mut Value, secrets: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let is_secret = members.get("name").and_then(Value::as_str).is_some_and(is_telling);
            if is_secret && let Some(Value::String(value)) = members.get_mut("value") {
                secrets.insert(std::mem::replace(value, REMOVED.to_owned()));
            }
            members.values_mut().for_each(|member| take(member, secrets));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|one| take(one, secrets)),
        Value::String(text) => {
            take_of_condition(text, secrets);
            take_of_query(text, secrets);
        }
        _ => {}
    }
}

fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// Takes what a condition compares with: `not header x-api-key = 1234`. Every cookie is one of a client.
fn take_of_condition(text: &mut String, secrets: &mut BTreeSet<String>) {
    let condition = text.strip_prefix("not ").unwrap_or(text);
    let words: Vec<&str> = condition.splitn(4, ' ').collect();
    let [on, name, "=" | "~", value] = words[..] else { return };
    let is_secret = match on {
        "cookie" => true,
        "header" | "query" => is_telling(name),
        _ => false,
    };
    if is_secret {
        let (value, kept) = (value.to_owned(), text.len() - value.len());
        text.truncate(kept);
        text.push_str(REMOVED);
        secrets.insert(value);
    }
}

/// Takes values of a path's query: `/status?token=1234`.
fn take_of_query(text: &str, secrets: &mut BTreeSet<String>) {
    let Some((_, query)) = text.split_once('?') else { return };
    let query = query.split([' ', '#']).next().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    secrets.extend(pairs.filter(|(name, _)| is_telling(name)).map(|(_, value)| value.to_owned()));
}

/// Removes the excerpts of files from the receipts of refused reloads: the file is not the configuration in force,
/// so that its secrets are not known.
fn remove_excerpts(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "why" || name == "warnings" => {
                        let is_excerpt = |line: &&str| line.contains(" | ");
                        let kept: Vec<&str> =
                            text.lines().filter(|line| !is_excerpt(line)).collect();
                        *text = kept.join("\n");
                    }
                    member => remove_excerpts(member),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_excerpts),
        _ => {}
    }
}

fn replace(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets {
                if text.contains(secret) {
                    *text = text.replace(secret, REMOVED);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|one| replace(one, secrets)),
        Value::Object(members) => members.values_mut().for_each(|one| replace(one, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_removed_wherever_they_occur() {
        let pair = |name: &str, value: &str| json!({ "name": name, "value": value });
        let mut answers = BTreeMap::from([
            (
                "configuration".to_owned(),
                json!({ "routes": [{
                    "name": "/b x-api-key:12345",
                    "request_header": { "set": [pair("X-Api-Key", "12345"), pair("X-Team", "shop")] },
                    "header": [pair("Authorization", "Basic eA==")],
                    "conditions": [
                        "not header x-api-key ~ ^1234 5$", "cookie id = 7", "header accept = a b c", "path = /key",
                    ],
                }] }),
            ),
            (
                "checks".to_owned(),
                json!([{ "what": "GET /status?a=1&token=S17SECRET, authorization: Basic eA==" }]),
            ),
            (
                "reloads".to_owned(),
                json!([{ "why": "error: no\n --> weir.toml:3\n3 | password = \"new\"\n  | ^^^ here" }]),
            ),
            ("changes".to_owned(), json!(["Route /b x-api-key:12345 was put into maintenance."])),
        ]);
        remove(&mut answers);
        let text = json!(answers).to_string();
        for secret in ["12345", "1234 5", "eA==", "S17SECRET", "password"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let route = &answers["configuration"]["routes"][0];
        assert_eq!(route["request_header"]["set"][1]["value"], "shop");
        let expected = json!([
            format!("not header x-api-key ~ {REMOVED}"),
            format!("cookie id = {REMOVED}"),
            "header accept = a b c",
            "path = /key",
        ]);
        assert_eq!(route["conditions"], expected);
    }
}
