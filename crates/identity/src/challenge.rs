//! Values of the `WWW-Authenticate` field of a response that asks for an identity.

use std::fmt::Write as _;

/// The most characters of a realm or description that are sent.
const TEXT_MAX_CHARS: usize = 200;

/// Returns the challenge for Basic credentials in UTF-8 (RFC 7617).
pub fn basic(realm: &str) -> String {
    format!("Basic realm={}, charset=\"UTF-8\"", quoted(realm))
}

/// What was wrong with a Bearer token (RFC 6750 section 3.1), with a description for the client's
/// developers: [`Denied::description`](crate::Denied::description).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BearerError<'a> {
    /// The request is malformed, for example by two tokens. Status 400.
    InvalidRequest(&'a str),
    /// The token is malformed, expired or otherwise not accepted. Status 401.
    InvalidToken(&'a str),
    /// The token is valid, but its claims do not allow the request. Status 403.
    InsufficientScope(&'a str),
}

/// Returns the challenge for a Bearer token (RFC 6750). Without `error` for a request that had no
/// token at all.
pub fn bearer(realm: &str, error: Option<BearerError<'_>>) -> String {
    let mut text = format!("Bearer realm={}", quoted(realm));
    let (code, description) = match error {
        None => return text,
        Some(BearerError::InvalidRequest(description)) => ("invalid_request", description),
        Some(BearerError::InvalidToken(description)) => ("invalid_token", description),
        Some(BearerError::InsufficientScope(description)) => ("insufficient_scope", description),
    };
    // RFC 6750 section 3 allows neither quotes nor backslashes in a description, even escaped.
    let description = description.replace('"', "'").replace('\\', "/");
    let _ = write!(text, ", error=\"{code}\", error_description={}", quoted(&description));
    text
}

/// Returns `text` as a quoted-string (RFC 9110 section 5.6.4), with `?` for characters that are not
/// printable ASCII, which clients read in various ways.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars().take(TEXT_MAX_CHARS) {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_read_as_in_the_specifications() {
        assert_eq!(basic("foo"), r#"Basic realm="foo", charset="UTF-8""#);
        assert_eq!(bearer("example", None), r#"Bearer realm="example""#);
        assert_eq!(
            bearer("example", Some(BearerError::InvalidToken("The access token expired"))),
            r#"Bearer realm="example", error="invalid_token", error_description="The access token expired""#
        );
        let scope = bearer("a", Some(BearerError::InsufficientScope("b")));
        assert!(scope.contains("error=\"insufficient_scope\""));
        let request = bearer("a", Some(BearerError::InvalidRequest("b")));
        assert!(request.contains("error=\"invalid_request\""));
    }

    #[test]
    fn texts_cannot_leave_their_quotes() {
        assert_eq!(
            basic("a\"b\\c\r\nSet-Cookie: x=y\0é"),
            r#"Basic realm="a\"b\\c??Set-Cookie: x=y??", charset="UTF-8""#
        );
        assert_eq!(
            bearer("a", Some(BearerError::InvalidToken("x\", y=\"z\\\n"))),
            r#"Bearer realm="a", error="invalid_token", error_description="x', y='z/?""#
        );
        assert!(basic(&"\"".repeat(10_000)).len() < 500);
    }
}
