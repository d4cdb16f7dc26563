//! The bodies of requests, and the token for them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::json;

use crate::ROWS_MAX;
use crate::row::reason;

/// The maximum length of a token. JSON Web Tokens of etcd are shorter than 1 KiB.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Returns the body of `POST /v3/kv/range` for all keys of a prefix, up to one more than is accepted.
pub fn range_body(prefix: &str) -> Vec<u8> {
    let (key, range_end) = range(prefix);
    json!({ "key": key, "range_end": range_end, "limit": (ROWS_MAX + 1).to_string() })
        .to_string()
        .into_bytes()
}

/// Returns the body of `POST /v3/watch` for the events of a prefix, beginning with those of `from_revision`.
pub fn watch_body(prefix: &str, from_revision: i64) -> Vec<u8> {
    let (key, range_end) = range(prefix);
    let start_revision = from_revision.to_string();
    json!({
        "create_request": { "key": key, "range_end": range_end, "start_revision": start_revision }
    })
    .to_string()
    .into_bytes()
}

/// Returns the body of `POST /v3/auth/authenticate`.
pub fn credentials_body(user: &str, password: &str) -> Vec<u8> {
    json!({ "name": user, "password": password }).to_string().into_bytes()
}

/// Reads the token from the answer to [`credentials_body`]. It is the value of the field `Authorization`.
///
/// # Errors
/// There is no token, or it cannot be the value of a field, or is longer than 8 KiB. The error has no part of
/// the token.
pub fn token(bytes: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Authenticated {
        #[serde(default)]
        token: String,
    }
    let token = serde_json::from_slice::<Authenticated>(bytes)
        // The answer is a secret, so only the kind of the problem and the place.
        .map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            reason(&format!("not an answer with a token ({place})"))
        })?
        .token;
    if token.is_empty() {
        return Err("etcd's answer has no token".to_owned());
    }
    if token.len() > TOKEN_BYTES_MAX {
        return Err(format!("etcd's token is longer than {TOKEN_BYTES_MAX} bytes"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("etcd's token has characters that a field must not have".to_owned());
    }
    Ok(token)
}

/// Returns the first key of a prefix and the first one after it, in Base64.
fn range(prefix: &str) -> (String, String) {
    if prefix.is_empty() {
        // A zero byte is the first key; as the end of a range, it means all keys.
        return (BASE64_STANDARD.encode([0]), BASE64_STANDARD.encode([0]));
    }
    (BASE64_STANDARD.encode(prefix), BASE64_STANDARD.encode(after(prefix.as_bytes())))
}

/// Returns the first key after all those that begin with `prefix`.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn the_bodies_of_requests() {
        assert_eq!(
            text(range_body("/web/")),
            r#"{"key":"L3dlYi8=","range_end":"L3dlYjA=","limit":"16385"}"#
        );
        assert_eq!(
            text(watch_body("/web/", 8)),
            r#"{"create_request":{"key":"L3dlYi8=","range_end":"L3dlYjA=","start_revision":"8"}}"#
        );
        assert_eq!(text(range_body("")), r#"{"key":"AA==","range_end":"AA==","limit":"16385"}"#);
        assert_eq!(
            text(credentials_body("we\"ir", "s\u{e9}\n")),
            "{\"name\":\"we\\\"ir\",\"password\":\"s\u{e9}\\n\"}"
        );
    }

    #[test]
    fn the_end_of_a_prefix_carries() {
        for (prefix, end) in [
            (&b"a"[..], &b"b"[..]),
            (b"a\xff", b"b"),
            (b"a\xff\xff", b"b"),
            (b"a\xfeb", b"a\xfec"),
            (b"\xff\xff", b"\0"),
        ] {
            assert_eq!(after(prefix), end);
        }
    }

    #[test]
    fn a_token_is_the_value_of_a_field_or_is_refused() {
        let good = br#"{"header":{"cluster_id":"1"},"token":"sssvIpwfnLAcWAQH.9"}"#;
        assert_eq!(token(good).unwrap(), "sssvIpwfnLAcWAQH.9");
        let of_length = |length| format!("{{\"token\":\"{}\"}}", "s".repeat(length));
        assert!(token(of_length(TOKEN_BYTES_MAX).as_bytes()).is_ok());
        for bad in [
            r#"{"token":"secret\r\nHost: x"}"#,
            r#"{"token":"secret with space"}"#,
            r#"{"token":"secr\u00e9t"}"#,
            r#"{"token":""}"#,
            r#"{"header":{}}"#,
            r#"{"token":["secret"]}"#,
            r#"{"token":"secret"#,
            "",
            &of_length(TOKEN_BYTES_MAX + 1),
        ] {
            let why = token(bad.as_bytes()).unwrap_err();
            assert!(why.len() < 100 && !why.contains("secr"), "{why}");
        }
    }
}
