//! JSON (RFC 8259) as tokens and key sets need it: an object whose members are unique at every
//! level, of bounded depth.
//!
//! Most parsers keep the last of two members with one name, some the first; a token that two
//! programs read differently must not be accepted (RFC 7515 section 4, RFC 7519 section 4).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The deepest nesting accepted; the outermost object counts.
pub(crate) const DEPTH_MAX: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without fraction or exponent that fits into 64 bits.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A string
    Text(String),
    /// An array
    List(Vec<Json>),
    /// An object
    Object(Object),
}

/// The members of an object.
pub(crate) type Object = BTreeMap<String, Json>;

impl Json {
    /// Returns the text of a string.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            Json::Null
            | Json::Bool(_)
            | Json::Integer(_)
            | Json::Float(_)
            | Json::List(_)
            | Json::Object(_) => None,
        }
    }
}

/// Parses an object, with nothing but white space around it.
///
/// # Errors
///
/// What is wrong, without any of the text.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<Object, &'static str> {
    let fault = Cell::new("is not valid JSON");
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { depth: 0, fault: &fault }.deserialize(&mut reader);
    match value.and_then(|value| reader.end().map(|()| value)) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err("is not a JSON object"),
        Err(_) => Err(fault.get()),
    }
}

/// Reads one value. Serde's errors are texts, so the kind of fault is noted beside.
#[derive(Clone, Copy)]
struct Seed<'a> {
    depth: usize,
    fault: &'a Cell<&'static str>,
}

impl Seed<'_> {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth == DEPTH_MAX {
            return Err(self.fail("is nested too deeply"));
        }
        Ok(Seed { depth: self.depth + 1, ..self })
    }

    fn fail<E: Error>(self, fault: &'static str) -> E {
        self.fault.set(fault);
        E::custom(fault)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut object = Object::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if object.insert(name, value).is_some() {
                return Err(self.fail("has a member twice"));
            }
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_they_are() {
        let object = parse_object(
            br#" {"a":null,"b":true,"c":-7,"d":18446744073709551615,"e":1e3,"f":["x"],"g":{"a":"\u00e9"}} "#,
        )
        .unwrap();
        assert_eq!(object["a"], Json::Null);
        assert_eq!(object["b"], Json::Bool(true));
        assert_eq!(object["c"], Json::Integer(-7));
        assert_eq!(object["d"], Json::Integer(u64::MAX.into()));
        assert_eq!(object["e"], Json::Float(1000.0));
        assert_eq!(object["f"], Json::List(vec![Json::Text("x".into())]));
        assert_eq!(object["g"], Json::Object(Object::from([("a".into(), Json::Text("é".into()))])));
    }

    #[test]
    fn a_member_twice_is_refused_at_any_level_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{"x":[{"":1,"":2}]}"#,
        ] {
            assert_eq!(parse_object(text.as_bytes()), Err("has a member twice"), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| {
            format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth)).into_bytes()
        };
        assert!(parse_object(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(parse_object(&nested(DEPTH_MAX + 1)), Err("is nested too deeply"));
        assert!(parse_object(&nested(100_000)).is_err());
        let list = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse_object(list.as_bytes()).is_err());
        assert!(parse_object("{\"a\":".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn what_is_not_an_object_of_valid_json_is_refused() {
        for text in [
            &b""[..],
            b"1",
            b"\"a\"",
            b"[]",
            b"{",
            b"{}x",
            b"{} {}",
            b"{\"a\":1e999}",
            b"{\"a\":NaN}",
            b"{\"a\":01}",
            b"{\"a\":1,}",
            b"{a:1}",
            b"{\"a\":\"\\ud800\"}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":\"\n\"}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":1}\0",
        ] {
            assert!(parse_object(text).is_err(), "{}", text.escape_ascii());
        }
    }
}
