//! Compares the body of a response to a probe with what its check expects.

use model::BodyExpectation;
use serde_json::{Map, Value};

/// Returns whether a body, of which `truncated` tells that more followed, is as expected.
///
/// # Errors
///
/// What is not as expected, without any of the body.
pub(super) fn judge(
    expected: &BodyExpectation,
    body: &[u8],
    truncated: bool,
) -> Result<(), &'static str> {
    let BodyExpectation { pattern, json } = expected;
    if pattern.as_ref().is_some_and(|pattern| !pattern.matches(body)) {
        return Err("the body does not match expect_body");
    }
    if json.is_empty() {
        return Ok(());
    }
    if truncated {
        return Err("the body is too long for expect_json");
    }
    let Ok(Value::Object(object)) = serde_json::from_slice(body) else {
        return Err("the body is not a JSON object");
    };
    for (path, text) in json {
        match find(&object, path) {
            None => return Err("the body lacks a member of expect_json"),
            Some(value) if !is(value, text) => {
                return Err("a member of the body is not as in expect_json");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns the member at `path`: a name, or names of nested members joined by dots. Names may have dots
/// themselves: the longest name that exists is taken at each level. Visits each value at most once.
fn find<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    path.rmatch_indices('.').find_map(|(dot, _)| match object.get(&path[..dot])? {
        Value::Object(inner) => find(inner, &path[dot + 1..]),
        _ => None,
    })
}

/// Returns whether a value is `text`, or a list that has it.
fn is(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Array(items) => items.iter().any(|item| !item.is_array() && is(item, text)),
        Value::Object(_) => false,
        Value::Null => text == "null",
        Value::Bool(value) => text == if *value { "true" } else { "false" },
        Value::Number(number) => text == number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use model::Pattern;

    use super::*;

    #[test]
    fn a_body_is_compared() {
        let body = br#"{"status":"UP","ready":true,"load":0.5,"n":3,"gone":null,
            "roles":["a","b",["c"]],"db":{"main.eu":{"up":1},"main":{"eu":{"up":2}}}}"#;
        let json = |path: &str, text: &str| BodyExpectation {
            pattern: None,
            json: vec![("status".into(), "UP".into()), (path.into(), text.into())],
        };
        for (path, text) in [
            ("ready", "true"),
            ("load", "0.5"),
            ("n", "3"),
            ("gone", "null"),
            ("roles", "b"),
            ("db.main.eu.up", "1"),
        ] {
            assert_eq!(judge(&json(path, text), body, false), Ok(()), "{path}");
        }
        let differs = Err("a member of the body is not as in expect_json");
        let lacks = Err("the body lacks a member of expect_json");
        for (path, text, result) in [
            ("ready", "True", differs),
            ("roles", "c", differs),
            ("db", "", differs),
            ("db.main.up", "1", lacks),
            ("roles.a", "a", lacks),
            ("nothing", "", lacks),
            ("status.", "UP", lacks),
        ] {
            assert_eq!(judge(&json(path, text), body, false), result, "{path}");
        }
        let any = json("ready", "true");
        let not_json = Err("the body is not a JSON object");
        for body in [&b""[..], b"[1]", b"{\"status\":", b"\xff", b"{\"status\":\"UP\"} {}"] {
            assert_eq!(judge(&any, body, false), not_json);
        }
        // Nested lists end at the depth that the parser allows.
        let deep = "[".repeat(60_000);
        assert_eq!(judge(&any, format!("{{\"a\":{deep}").as_bytes(), false), not_json);
        assert_eq!(judge(&any, body, true), Err("the body is too long for expect_json"));
    }

    #[test]
    fn a_pattern_matches_anywhere() {
        let of = |text: &str| BodyExpectation {
            pattern: Some(Pattern::parse(text).unwrap()),
            json: Vec::new(),
        };
        assert_eq!(judge(&of("ready"), b"is ready now", true), Ok(()));
        assert!(judge(&of("^ready"), b"is ready", false).is_err());
        assert!(judge(&of("ready"), b"", false).is_err());
        assert_eq!(judge(&BodyExpectation::default(), b"", true), Ok(()));
    }
}
