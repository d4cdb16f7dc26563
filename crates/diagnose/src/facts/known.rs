//! A fact, or the reason why it is not known. What can't be read is never taken for zero.

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A fact, or why it is not known. As JSON it is the fact itself, or `{"unknown": "reason"}`; a
/// field that is missing was not collected.
#[derive(Clone, Debug, PartialEq)]
pub enum Known<T> {
    /// The fact.
    Is(T),
    /// Why it could not be had: a file and an error, a right that is missing.
    Unknown(String),
}

const NOT_COLLECTED: &str = "not collected";
const UNKNOWN: &str = "unknown";

impl<T> Known<T> {
    /// Not known, for `reason`.
    pub fn unknown(reason: impl Into<String>) -> Known<T> {
        Known::Unknown(reason.into())
    }

    /// The fact, where it is known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Known::Is(fact) => Some(fact),
            Known::Unknown(_) => None,
        }
    }

    /// The fact, or the reason.
    ///
    /// # Errors
    /// The reason why the fact is not known.
    pub fn as_result(&self) -> Result<&T, &str> {
        match self {
            Known::Is(fact) => Ok(fact),
            Known::Unknown(reason) => Err(reason),
        }
    }

    /// What `f` makes of the fact.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Known::Is(fact) => Known::Is(f(fact)),
            Known::Unknown(reason) => Known::Unknown(reason),
        }
    }
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known::Unknown(NOT_COLLECTED.to_owned())
    }
}

impl<T> From<T> for Known<T> {
    fn from(fact: T) -> Known<T> {
        Known::Is(fact)
    }
}

impl<T, E: std::fmt::Display> From<Result<T, E>> for Known<T> {
    fn from(result: Result<T, E>) -> Known<T> {
        match result {
            Ok(fact) => Known::Is(fact),
            Err(error) => Known::Unknown(error.to_string()),
        }
    }
}

impl<T: Serialize> Serialize for Known<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Known::Is(fact) => fact.serialize(serializer),
            Known::Unknown(reason) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(UNKNOWN, reason)?;
                map.end()
            }
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Known<T>, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if let serde_json::Value::Object(map) = &value
            && let (1, Some(serde_json::Value::String(reason))) = (map.len(), map.get(UNKNOWN))
        {
            return Ok(Known::Unknown(reason.clone()));
        }
        T::deserialize(value).map(Known::Is).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Known;

    #[test]
    fn a_fact_stands_for_itself_and_a_reason_says_so() {
        let facts: Vec<Known<u64>> = vec![Known::Is(3), Known::unknown("/proc/x: not there")];
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"[3,{"unknown":"/proc/x: not there"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Known<u64>>>(&text).unwrap(), facts);
    }

    #[test]
    fn a_map_of_numbers_is_no_reason() {
        let map: Known<BTreeMap<String, u64>> = serde_json::from_str(r#"{"unknown":1}"#).unwrap();
        assert_eq!(map.get().unwrap()["unknown"], 1);
    }

    #[test]
    fn what_is_neither_is_refused() {
        let error = serde_json::from_str::<Known<u64>>(r#""three""#).unwrap_err();
        assert!(error.to_string().contains("invalid type: string"), "{error}");
    }
}
