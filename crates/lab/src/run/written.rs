//! The output of commands as one JSON value.

use serde_json::Value;

/// What a command has written: one JSON value, or several, one after the other.
pub(super) fn read(text: &str) -> Option<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let values: Vec<Value> = values.map(|value| value.map(slim)).collect::<Result<_, _>>().ok()?;
    (!values.is_empty()).then(|| one_or_all(values))
}

/// A value alone, or a list of several.
pub(super) fn one_or_all(mut values: Vec<Value>) -> Value {
    if values.len() == 1 { values.pop().unwrap_or_default() } else { Value::Array(values) }
}

/// Without the distributions, which nothing here reads and which are most of a file.
fn slim(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|name, _| name != "histogram");
            map.values_mut().for_each(|one| *one = slim(one.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|one| *one = slim(one.take())),
        _ => {}
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_stands_alone_and_several_are_a_list() {
        let one = serde_json::json!({ "a": 1, "histogram": [1, 2] });
        assert_eq!(read(&one.to_string()), Some(serde_json::json!({ "a": 1 })));
        assert_eq!(read("1\n[2]\n"), Some(serde_json::json!([1, [2]])));
        for text in ["", "well", "{\"a\": 1} and more"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
