//! The claims of a verified token, as text.

use std::borrow::Cow;
use std::fmt;

use crate::header_value::{self, Unfit};
use crate::json::{Json, Object};

/// Integers up to this size are exact in JSON numbers with fraction or exponent (RFC 8259 section 6).
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// The claims of a verified token. `Debug` shows only their names.
#[derive(Clone, PartialEq)]
pub struct Claims {
    object: Object,
    pub(super) expires_at_s: Option<u64>,
}

/// The value of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claim<'a> {
    /// A string as it is; an integer in decimal digits; `true` or `false`.
    Text(Cow<'a, str>),
    /// An array of such values, with at least one.
    List(Vec<Cow<'a, str>>),
}

impl Claims {
    pub(super) fn new(object: Object) -> Claims {
        Claims { object, expires_at_s: None }
    }

    /// Returns the claim at `path`: a name, or names of nested claims joined by dots
    /// (`realm_access.roles`). Names may have dots themselves (`https://example.org/roles`): the
    /// longest name that exists is taken at each level.
    ///
    /// None if it is missing or has no text: `null`, an empty string or array, a number that is not
    /// an exact integer, an object, an array with one of these in it.
    pub fn claim(&self, path: &str) -> Option<Claim<'_>> {
        match find(&self.object, path)? {
            Json::List(items) if !items.is_empty() => {
                items.iter().map(text).collect::<Option<_>>().map(Claim::List)
            }
            other => text(other).map(Claim::Text),
        }
    }

    /// Returns the claim at `path` as the value of a header field. None if the token does not have it: it
    /// is missing, `null`, or an empty list.
    ///
    /// # Errors
    ///
    /// It is unfit, see [`header_value`], or has no text; the request must be denied. A server would
    /// take the absence of the field for that of the claim.
    pub fn header_value(&self, path: &str) -> Result<Option<Cow<'_, str>>, Unfit> {
        match (self.claim(path), find(&self.object, path)) {
            (Some(claim), _) => claim.into_header_value().map(Some),
            (None, None | Some(Json::Null)) => Ok(None),
            (None, Some(Json::List(items))) if items.is_empty() => Ok(None),
            (None, Some(_)) => Err(Unfit::NoText),
        }
    }

    /// Whether the claim at `path` is `value` or a list with `value` in it.
    pub fn contains(&self, path: &str, value: &str) -> bool {
        match self.claim(path) {
            Some(Claim::Text(text)) => text == value,
            Some(Claim::List(items)) => items.iter().any(|item| item == value),
            None => false,
        }
    }

    /// Returns the subject (`sub`), if it is a text that fits a header field and so a line of a log.
    pub fn subject(&self) -> Option<&str> {
        match self.object.get("sub")? {
            Json::Text(text) => header_value::check(text).ok(),
            _ => None,
        }
    }

    /// Returns when the token expires (`exp`), in seconds since 1970, without leeway. Results that
    /// depend on the token must not be kept longer.
    pub fn expires_at_s(&self) -> Option<u64> {
        self.expires_at_s
    }

    pub(super) fn member(&self, name: &str) -> Option<&Json> {
        self.object.get(name)
    }
}

impl<'a> Claim<'a> {
    /// Returns the claim as the value of a header field; elements of a list are joined by commas.
    fn into_header_value(self) -> Result<Cow<'a, str>, Unfit> {
        match self {
            Claim::Text(text) => {
                header_value::check(&text)?;
                Ok(text)
            }
            Claim::List(items) => header_value::join(items.iter().map(Cow::as_ref)).map(Cow::Owned),
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.object.keys()).finish()
    }
}

/// Visits each value below `object` at most once, so it ends however many dots `path` has.
fn find<'a>(object: &'a Object, path: &str) -> Option<&'a Json> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    path.rmatch_indices('.').find_map(|(dot, _)| match object.get(&path[..dot])? {
        Json::Object(inner) => find(inner, &path[dot + 1..]),
        _ => None,
    })
}

fn text(value: &Json) -> Option<Cow<'_, str>> {
    match value {
        Json::Text(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
        Json::Bool(true) => Some(Cow::Borrowed("true")),
        Json::Bool(false) => Some(Cow::Borrowed("false")),
        Json::Integer(integer) => Some(Cow::Owned(integer.to_string())),
        Json::Float(float) if float.fract() == 0.0 && float.abs() <= EXACT_MAX => {
            Some(Cow::Owned((*float as i64).to_string()))
        }
        Json::Text(_) | Json::Float(_) | Json::Null | Json::List(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_object;

    fn claims(text: &str) -> Claims {
        Claims::new(parse_object(text.as_bytes()).unwrap())
    }

    fn shown(claims: &Claims, path: &str) -> String {
        match claims.claim(path) {
            Some(Claim::Text(text)) => text.into_owned(),
            Some(Claim::List(items)) => format!("[{}]", items.join("|")),
            None => "-".to_owned(),
        }
    }

    #[test]
    fn each_kind_of_value_has_one_text_or_none() {
        let claims = claims(
            r#"{"text":"anna","empty":"","null":null,"yes":true,"no":false,"zero":0,"minus":-5,
            "large":18446744073709551615,"larger":18446744073709551616,"exact":1e3,"half":1.5,
            "inexact":9007199254740993.0,"negative_zero":-0.0,"list":["a",1,true],"none":[],
            "mixed":["a",null],"nested":["a",["b"]],"blank":["a",""],"object":{}}"#,
        );
        for (path, text) in [
            ("text", "anna"),
            ("empty", "-"),
            ("null", "-"),
            ("yes", "true"),
            ("no", "false"),
            ("zero", "0"),
            ("minus", "-5"),
            ("large", "18446744073709551615"),
            ("larger", "-"),
            ("exact", "1000"),
            ("half", "-"),
            ("inexact", "-"),
            ("negative_zero", "0"),
            ("list", "[a|1|true]"),
            ("none", "-"),
            ("mixed", "-"),
            ("nested", "-"),
            ("blank", "-"),
            ("object", "-"),
            ("missing", "-"),
            ("", "-"),
        ] {
            assert_eq!(shown(&claims, path), text, "{path}");
        }
    }

    #[test]
    fn paths_follow_dots_and_names_may_have_dots() {
        let claims = claims(
            r#"{"realm_access":{"roles":["x"]},"https://example.org/roles":"y","a.b":1,"a":{"b":2,"c":3},
            "resource_access":{"my.client":{"roles":["z"]},"my":{"client":"w"}}}"#,
        );
        for (path, text) in [
            ("realm_access.roles", "[x]"),
            ("https://example.org/roles", "y"),
            ("a.b", "1"),
            ("a.c", "3"),
            ("resource_access.my.client.roles", "[z]"),
            ("resource_access.my.client", "-"),
            ("realm_access.roles.0", "-"),
            (".", "-"),
            ("a.", "-"),
            (".a", "-"),
        ] {
            assert_eq!(shown(&claims, path), text, "{path}");
        }
        assert_eq!(shown(&claims, &"a.".repeat(100_000)), "-");
    }

    #[test]
    fn a_list_contains_its_elements_and_a_text_is_itself() {
        let claims = claims(r#"{"groups":["admins","users"],"sub":"anna","scope":"read write"}"#);
        assert!(claims.contains("groups", "admins") && claims.contains("sub", "anna"));
        assert!(!claims.contains("groups", "admin") && !claims.contains("scope", "read"));
        assert!(!claims.contains("missing", ""));
    }

    #[test]
    fn a_claim_cannot_add_header_fields() {
        let claims = claims(
            r#"{"a":"x\r\nX-Admin: 1","b":["ok","x\nX-Admin: 1"],"c":"x\u0000","d":"  x","e":["users,admins"],
            "f":"J\u00f6rg","g":["a","b"],"h":"x\u2028"}"#,
        );
        let value = |path| claims.header_value(path).map(|value| value.unwrap().into_owned());
        for (path, unfit) in [
            ("a", Unfit::ControlCharacter),
            ("b", Unfit::ControlCharacter),
            ("c", Unfit::ControlCharacter),
            ("d", Unfit::OuterSpace),
            ("e", Unfit::Comma),
            ("h", Unfit::ControlCharacter),
        ] {
            assert_eq!(value(path), Err(unfit), "{path}");
        }
        assert_eq!(value("f").unwrap(), "Jörg");
        assert_eq!(value("g").unwrap(), "a,b");
    }

    #[test]
    fn a_claim_without_text_is_not_a_missing_one() {
        let claims = claims(
            r#"{"empty":"","half":1.5,"object":{"a":"b"},"blank":["a",""],"mixed":["a",null],
            "null":null,"none":[]}"#,
        );
        for path in ["empty", "half", "object", "blank", "mixed"] {
            assert!(claims.header_value(path).is_err(), "{path}");
        }
        for path in ["null", "none", "missing", "object.b"] {
            assert_eq!(claims.header_value(path), Ok(None), "{path}");
        }
    }

    #[test]
    fn debug_output_has_no_values() {
        assert_eq!(format!("{:?}", claims(r#"{"sub":"anna"}"#)), r#"{"sub"}"#);
    }
}
