//! How the API server's front proxy authenticates, and how it names users: ConfigMap
//! `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::User;

/// The most groups of a user, and the most fields with what else is known of it.
const GROUPS_MAX: usize = 1_024;
const EXTRA_MAX: usize = 1_024;
/// The most bytes of the authorities.
const AUTHORITIES_MAX_BYTES: usize = 1 << 20;

/// What the ConfigMap says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontProxy {
    /// The authorities of its certificate, in PEM.
    pub authorities: String,
    allowed_names: Vec<String>,
    user_fields: Vec<String>,
    uid_fields: Vec<String>,
    group_fields: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Reads the ConfigMap.
    ///
    /// # Errors
    /// It does not say how the front proxy authenticates: one line.
    pub fn read(config_map: &Value) -> Result<FrontProxy, String> {
        let data = &config_map["data"];
        let authorities = data["requestheader-client-ca-file"].as_str().unwrap_or_default();
        if authorities.trim().is_empty() {
            return Err("it has no requestheader-client-ca-file; start kube-apiserver with \
                        --requestheader-client-ca-file, as API aggregation needs it"
                .to_owned());
        }
        if authorities.len() > AUTHORITIES_MAX_BYTES {
            return Err("its requestheader-client-ca-file is too long".to_owned());
        }
        let list = |key: &str| -> Result<Vec<String>, String> {
            match data[key].as_str().map(str::trim) {
                None | Some("") => Ok(Vec::new()),
                Some(text) => serde_json::from_str(text)
                    .map_err(|_| format!("its {key} is not a list of texts in JSON")),
            }
        };
        let user_fields = list("requestheader-username-headers")?;
        if user_fields.is_empty() {
            return Err("its requestheader-username-headers names no field".to_owned());
        }
        Ok(FrontProxy {
            authorities: authorities.to_owned(),
            allowed_names: list("requestheader-allowed-names")?,
            user_fields,
            uid_fields: list("requestheader-uid-headers")?,
            group_fields: list("requestheader-group-headers")?,
            extra_prefixes: list("requestheader-extra-headers-prefix")?,
        })
    }

    /// Returns whether a certificate with this common name may be the front proxy's. An empty list allows all that the
    /// authorities have signed, as in Kubernetes.
    pub(super) fn allows(&self, name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|one| one == name)
    }

    /// Returns the user that the fields name. `None`: they name none.
    pub(super) fn user(&self, fields: &[(&str, &[u8])]) -> Result<Option<User>, String> {
        let all = |names: &[String]| -> Result<Vec<String>, String> {
            let of = |own: &str| names.iter().any(|name| name.eq_ignore_ascii_case(own));
            fields.iter().filter(|(name, _)| of(name)).map(|(_, value)| text(value)).collect()
        };
        let first = |names: &[String]| -> Result<String, String> {
            Ok(all(names)?.into_iter().find(|value| !value.is_empty()).unwrap_or_default())
        };
        let name = first(&self.user_fields)?;
        if name.is_empty() {
            return Ok(None);
        }
        let groups = all(&self.group_fields)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut count = 0;
        for (field, value) in fields {
            let prefixes = &mut self.extra_prefixes.iter();
            let Some(key) = prefixes.find_map(|prefix| without(field, prefix)) else { continue };
            count += 1;
            extra.entry(decoded(&key.to_ascii_lowercase())).or_default().push(text(value)?);
        }
        if groups.len() > GROUPS_MAX || count > EXTRA_MAX {
            return Err("the front proxy names too many groups or extra fields".to_owned());
        }
        Ok(Some(User { name, uid: first(&self.uid_fields)?, groups, extra }))
    }
}

/// Returns the rest of a field's name after a prefix.
fn without<'a>(field: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = field.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn text(value: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(value);
    text.map(str::to_owned).map_err(|_| "a field of the front proxy is not UTF-8".to_owned())
}

/// Decodes percent signs in a key. What is invalid stays, as in Kubernetes.
fn decoded(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        // `from_str_radix` would also accept a sign.
        let digits = digits.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = digits.filter(|_| *first == b'%').and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = after.get(if byte.is_some() { 2.. } else { 0.. }).unwrap_or_default();
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_config_map_that_says_too_little_is_refused() {
        for (data, expected) in [
            (json!({}), "it has no requestheader-client-ca-file"),
            (json!({ "requestheader-client-ca-file": " " }), "it has no requestheader-client-ca"),
            (json!({ "requestheader-client-ca-file": "a" }), "its requestheader-username-headers"),
            (
                json!({
                    "requestheader-client-ca-file": "a",
                    "requestheader-username-headers": "X-Remote-User",
                }),
                "its requestheader-username-headers is not a list",
            ),
            (
                json!({
                    "requestheader-client-ca-file": "a",
                    "requestheader-username-headers": "[\"X-Remote-User\"]",
                    "requestheader-allowed-names": "{",
                }),
                "its requestheader-allowed-names is not a list",
            ),
        ] {
            let error = FrontProxy::read(&json!({ "data": data })).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(FrontProxy::read(&Value::Null).is_err());
    }

    #[test]
    fn keys_are_decoded() {
        for (key, expected) in [
            ("a%2fb", "a/b"),
            ("%", "%"),
            ("%2", "%2"),
            ("%zz", "%zz"),
            ("%+f", "%+f"),
            ("%ff", "%ff"),
            ("", ""),
        ] {
            assert_eq!(decoded(key), expected);
        }
    }
}
