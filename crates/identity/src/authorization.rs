//! The `Authorization` field of a request: Basic credentials (RFC 7617) and Bearer tokens
//! (RFC 6750).
//!
//! A request may have one such field. The caller refuses a request with several, since a server
//! behind might read another one than Weir.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::users::USER_MAX_BYTES;

/// The longest field that is read as Basic credentials.
pub const BASIC_MAX_BYTES: usize = 2048;

/// A user's name and password as a client sent them.
///
/// Neither has control characters, the name is neither empty nor has a colon. `Debug` shows the
/// name only.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: Vec<u8>,
}

impl Credentials {
    /// Returns credentials that were sent in another way than in a field.
    ///
    /// # Errors
    ///
    /// The name is empty, longer than [`USER_MAX_BYTES`], or has a colon; or either has a control
    /// character (RFC 7617 section 2).
    pub fn new(user: &str, password: &[u8]) -> Result<Credentials, Unusable> {
        if user.is_empty() || user.len() > USER_MAX_BYTES || user.contains(':') {
            return Err(Unusable::Malformed("the user's name is empty, too long or has a colon"));
        }
        if user.chars().any(char::is_control) || password.iter().any(u8::is_ascii_control) {
            return Err(Unusable::Malformed("the credentials have a control character"));
        }
        Ok(Credentials { user: user.to_owned(), password: password.to_owned() })
    }

    /// Returns the user's name. Before a verification it is only a claim.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the password: bytes, as it may have been made in another encoding than UTF-8.
    pub fn password(&self) -> &[u8] {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a field yields no credentials. Contains nothing of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The field is of another scheme.
    OtherScheme,
    /// The field is longer than the bound.
    TooLong,
    /// The field breaks a rule of its scheme: says which.
    Malformed(&'static str),
}

impl Unusable {
    /// Returns a word for logs and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Unusable::OtherScheme => "other_scheme",
            Unusable::TooLong => "credentials_too_long",
            Unusable::Malformed(_) => "credentials_malformed",
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unusable::OtherScheme => "the Authorization field has another scheme",
            Unusable::TooLong => "the credentials are too long",
            Unusable::Malformed(why) => why,
        })
    }
}

/// Returns the Basic credentials of an `Authorization` field.
///
/// The name must be UTF-8, as the challenge asks (RFC 7617 section 2.1), because it is logged and
/// passed on; the password may be any bytes. Names and passwords are compared as they are, without
/// Unicode normalisation.
///
/// # Errors
///
/// See [`Unusable`]. Base64 must be padded and canonical, so that credentials have one spelling.
pub fn basic(value: &[u8]) -> Result<Credentials, Unusable> {
    let encoded = after_scheme(value, b"basic")?;
    if value.len() > BASIC_MAX_BYTES {
        return Err(Unusable::TooLong);
    }
    let Ok(mut decoded) = BASE64_STANDARD.decode(encoded) else {
        return Err(Unusable::Malformed("the Basic credentials are not base64"));
    };
    let Some(colon) = decoded.iter().position(|&byte| byte == b':') else {
        return Err(Unusable::Malformed("the Basic credentials have no colon"));
    };
    let password = decoded.split_off(colon + 1);
    match std::str::from_utf8(&decoded[..colon]) {
        Ok(user) => Credentials::new(user, &password),
        Err(_) => Err(Unusable::Malformed("the user's name is not UTF-8")),
    }
}

/// Returns the token of a Bearer `Authorization` field. It is not verified: see
/// [`verify`](crate::token::verify).
///
/// # Errors
///
/// See [`Unusable`]. The longest token is [`TOKEN_MAX_BYTES`](crate::token::TOKEN_MAX_BYTES).
pub fn bearer(value: &[u8]) -> Result<&str, Unusable> {
    let token = after_scheme(value, b"bearer")?;
    if token.len() > crate::token::TOKEN_MAX_BYTES {
        return Err(Unusable::TooLong);
    }
    let body = token.trim_ascii_end();
    let letters = body.iter().rposition(|&b| b != b'=').map_or(0, |last| last + 1);
    let is_token68 = |b: &u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(b);
    // The syntax of RFC 6750 section 2.1.
    if body.len() != token.len() || letters == 0 || !body[..letters].iter().all(is_token68) {
        return Err(Unusable::Malformed("the Bearer token has characters that no token has"));
    }
    std::str::from_utf8(body).map_err(|_| Unusable::Malformed("the Bearer token is not ASCII"))
}

/// Returns what follows the scheme and at least one space.
fn after_scheme<'a>(value: &'a [u8], scheme: &[u8]) -> Result<&'a [u8], Unusable> {
    let (word, rest) = match value.iter().position(|&byte| byte == b' ') {
        Some(space) => value.split_at(space),
        None => (value, &b""[..]),
    };
    if !word.eq_ignore_ascii_case(scheme) {
        return Err(Unusable::OtherScheme);
    }
    let start = rest.iter().position(|&byte| byte != b' ').unwrap_or(rest.len());
    if start == rest.len() {
        return Err(Unusable::Malformed("the Authorization field has a scheme and nothing else"));
    }
    Ok(&rest[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        format!("Basic {}", BASE64_STANDARD.encode(text)).into_bytes()
    }

    fn read(value: &[u8]) -> Option<(String, Vec<u8>)> {
        basic(value).ok().map(|read| (read.user().to_owned(), read.password().to_owned()))
    }

    fn pair(user: &str, password: &[u8]) -> (String, Vec<u8>) {
        (user.to_owned(), password.to_owned())
    }

    #[test]
    fn the_examples_of_rfc_7617() {
        assert_eq!(
            read(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            Some(pair("Aladdin", b"open sesame"))
        );
        assert_eq!(read(b"Basic dGVzdDoxMjPCow=="), Some(pair("test", "123£".as_bytes())));
    }

    #[test]
    fn schemes_have_any_case_and_any_number_of_spaces() {
        for scheme in ["basic ", "BASIC ", "bAsIc    "] {
            let value = format!("{scheme}QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
            assert_eq!(read(value.as_bytes()), Some(pair("Aladdin", b"open sesame")), "{scheme}");
        }
        assert_eq!(bearer(b"BEARER  a.b.c"), Ok("a.b.c"));
        for value in
            [&b"Bearer abc"[..], b"Basic\tabc", b"Basicx abc", b"", b" Basic abc", b"Negotiate"]
        {
            assert_eq!(basic(value), Err(Unusable::OtherScheme), "{}", value.escape_ascii());
        }
        for value in [&b"Basic"[..], b"Basic ", b"basic    "] {
            assert!(matches!(basic(value), Err(Unusable::Malformed(_))));
        }
    }

    #[test]
    fn the_first_colon_ends_the_name() {
        assert_eq!(read(&encoded(b"anna:a:b:")), Some(pair("anna", b"a:b:")));
        assert_eq!(read(&encoded(b"anna:")), Some(pair("anna", b"")));
        assert_eq!(read(&encoded(b":x")), None);
        assert_eq!(read(&encoded(b"anna")), None);
        assert_eq!(read(&encoded(b"")), None);
    }

    #[test]
    fn names_are_utf8_and_passwords_any_bytes_but_controls() {
        assert_eq!(read(&encoded("jürgen:ü".as_bytes())), Some(pair("jürgen", "ü".as_bytes())));
        assert_eq!(read(&encoded(b"anna:\xe9\xff")), Some(pair("anna", b"\xe9\xff")));
        assert_eq!(read(&encoded(b"j\xfcrgen:x")), None);
        for text in
            [&b"an\nna:x"[..], b"an\0na:x", b"anna:a\r\nb", b"anna:\0", b"anna:\x7f", b"a\x1bb:x"]
        {
            assert_eq!(read(&encoded(text)), None, "{}", text.escape_ascii());
        }
        // C1 controls, which are two bytes in UTF-8.
        assert_eq!(read(&encoded("an\u{85}na:x".as_bytes())), None);
    }

    #[test]
    fn base64_has_one_spelling() {
        for value in [
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ===",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\t",
            "Basic QWxhZGRpbjpvcGVu IHNlc2FtZQ==",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==, Basic YTpi",
            "Basic realm=\"x\"",
            "Basic dXNlcjo_",
        ] {
            assert!(matches!(basic(value.as_bytes()), Err(Unusable::Malformed(_))), "{value}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(basic(&encoded(&[b'x'; 2000])), Err(Unusable::TooLong));
        assert!(basic(&encoded(&[&[b'u'; 256][..], b":x"].concat())).is_err());
        assert!(basic(&encoded(&[&[b'u'; 255][..], b":x"].concat())).is_ok());
        let token = format!("Bearer {}", "x".repeat(1 << 20));
        assert_eq!(bearer(token.as_bytes()), Err(Unusable::TooLong));
    }

    #[test]
    fn tokens_have_the_characters_of_tokens() {
        assert_eq!(bearer(b"Bearer mF_9.B5f-4.1JqM=="), Ok("mF_9.B5f-4.1JqM=="));
        for value in [
            "Bearer a b",
            "Bearer a,b",
            "Bearer a=b",
            "Bearer =",
            "Bearer é",
            "Bearer a\u{0}",
            "Bearer a ",
        ] {
            assert!(matches!(bearer(value.as_bytes()), Err(Unusable::Malformed(_))), "{value:?}");
        }
    }

    #[test]
    fn debug_output_has_no_password() {
        let shown = format!("{:?}", basic(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert!(shown.contains("Aladdin") && !shown.contains("sesame") && !shown.contains("111"));
    }
}
