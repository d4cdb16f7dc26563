//! The syntax of text that Weir writes to connections: names and values of fields, paths and hosts.
//!
//! The API server checks only some of it. A line break in it would add fields or messages to a connection.

use model::HostPattern;

use crate::hosts;
use crate::resolve::status::Problem;

/// Fields that control message framing or the connection (RFC 9110 section 7.6.1, RFC 9112 section 6), and `CDN-Loop`
/// (RFC 8586).
const OWN_FIELDS: &[&str] = &[
    "cdn-loop",
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a text is a `token` (RFC 9110 section 5.6.2).
pub fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Reads the name of a field, and returns it in lower case.
///
/// # Errors
///
/// Why it is none.
pub fn field_name(text: &str) -> Result<String, Problem> {
    if is_token(text) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Problem::unsupported(format!(
        "{text:?} is not the name of a header field. Use letters, digits and hyphens."
    )))
}

/// Reads the name of a field that filters may change.
///
/// # Errors
///
/// Why they may not.
pub fn changeable_field(text: &str) -> Result<String, Problem> {
    let name = field_name(text)?;
    // Some servers read an underscore as a hyphen.
    let read = name.replace('_', "-");
    if OWN_FIELDS.contains(&read.as_str()) {
        return Err(Problem::unsupported(format!(
            "The header field {text} cannot be changed: it belongs to the connection, and Weir \
             writes it. Remove it from the filter."
        )));
    }
    if read == "host" {
        return Err(Problem::unsupported(format!(
            "The header field {text} cannot be changed as a field. Use the filter URLRewrite with \
             a hostname."
        )));
    }
    Ok(name)
}

/// Reads the value of a field, without spaces at its ends.
///
/// # Errors
///
/// Why it is none.
pub fn field_value(name: &str, text: &str) -> Result<String, Problem> {
    if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(Problem::unsupported(format!(
            "The value of the header field {name} has a control character. Remove it."
        )));
    }
    Ok(text.trim_matches([' ', '\t']).to_owned())
}

/// Reads a path. `what` begins the message.
///
/// # Errors
///
/// Why it is none.
pub fn path(what: &str, text: &str) -> Result<String, Problem> {
    if !text.starts_with('/') {
        return Err(Problem::unsupported(format!("{what} {text:?} does not begin with a slash.")));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-/._~!$&'()*+,;=:@".contains(&byte);
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(text.to_owned()),
            [b'%', a, b, after @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
            [byte, after @ ..] if is_plain(*byte) => after,
            [..] => {
                return Err(Problem::unsupported(format!(
                    "{what} {text:?} has a character that is not allowed in paths. Write it as \
                     %XX. A query is not supported."
                )));
            }
        };
    }
}

/// Reads a host that is no pattern. `what` begins the message.
///
/// # Errors
///
/// Why it is none.
pub fn exact_host(what: &str, text: &str) -> Result<String, Problem> {
    match hosts::host(text) {
        Ok(HostPattern::Exact(host)) => Ok(host),
        Ok(HostPattern::Wildcard(_)) => Err(Problem::unsupported(format!(
            "{what} {text} has a wildcard. Use the name of one host."
        ))),
        Err(why) => Err(Problem::unsupported(format!("{what} {text:?} {why}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_connection_cannot_be_changed() {
        for (text, expected) in [
            ("X-A", Some("x-a")),
            ("Set-Cookie", Some("set-cookie")),
            ("Content-Length", None),
            ("transfer_encoding", None),
            ("TE", None),
            ("Host", None),
            ("", None),
            ("a b", None),
            ("a:", None),
            (":path", None),
            ("a\r\nb", None),
            ("ä", None),
        ] {
            assert_eq!(changeable_field(text).ok().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn values_have_no_control_characters() {
        for (text, expected) in [
            ("a", Some("a")),
            ("", Some("")),
            (" a\tb ", Some("a\tb")),
            ("ä", Some("ä")),
            ("a\r\nb: c", None),
            ("a\n", None),
            ("a\0", None),
            ("a\x7f", None),
        ] {
            assert_eq!(field_value("x", text).ok().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn paths_have_only_what_a_request_line_may_have() {
        for (text, is_path) in [
            ("/", true),
            ("/a/b~(c);d=e%2f", true),
            ("", false),
            ("a", false),
            ("/a b", false),
            ("/a\r\nb", false),
            ("/a?b", false),
            ("/a#b", false),
            ("/a%2", false),
            ("/a%zz", false),
            ("/ä", false),
        ] {
            assert_eq!(path("The path", text).is_ok(), is_path, "{text:?}");
        }
    }

    #[test]
    fn hosts_are_names_of_one_host() {
        for (text, is_host) in [
            ("a.example.com", true),
            ("*.example.com", false),
            ("a.example.com:80", false),
            ("a\r\nb", false),
            ("", false),
        ] {
            assert_eq!(exact_host("The hostname", text).is_ok(), is_host, "{text:?}");
        }
    }
}
