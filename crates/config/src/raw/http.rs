//! Parses names and values of HTTP in the configuration: methods, paths, fields, cookies.

use model::{PathMatch, has_field_meaning, hyphened_field};

use crate::diagnostic::Wrong;
use crate::diagnostic::quote;

/// Fields that control message framing or the connection. They belong to each hop, and Weir sets
/// them itself (RFC 9110 section 7.6.1, RFC 9112 section 6).
const HOP_FIELDS: &[&str] = &[
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

/// `token` of RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// A field's name (RFC 9110 section 5.1), in lower case.
pub(crate) fn field_name(text: &str) -> Result<String, Wrong> {
    if is_token(text) {
        return Ok(text.to_ascii_lowercase());
    }
    let wrong = Wrong::new("not a field name");
    Err(match text.split_once(':') {
        Some((name, _)) if is_token(name) => {
            wrong.help(format!("write {} and the value apart", quote(name)))
        }
        _ => wrong.help("a name has letters, digits and hyphens, as in \"X-Request-Id\""),
    })
}

/// Parses the name of a field that may be changed.
pub(crate) fn changeable_field_name(text: &str) -> Result<String, Wrong> {
    let name = field_name(text)?;
    if HOP_FIELDS.iter().any(|hop| is_same_field(hop, &name)) {
        return Err(Wrong::new("Weir writes this field itself")
            .help("it says where the message ends or what the connection does; a change would let two readers read two messages"));
    }
    if is_same_field(&name, "cdn-loop") {
        return Err(Wrong::new("Weir writes this field itself")
            .help("it is how requests that run in circles are found (RFC 8586)"));
    }
    if is_same_field(&name, "host") {
        return Err(Wrong::new("Host is part of the target, not a field to change")
            .help("write rewrite = { host = \"…\" }"));
    }
    Ok(name)
}

/// Parses the name of a field that is for this use alone.
pub(crate) fn own_field_name(text: &str) -> Result<String, Wrong> {
    let name = changeable_field_name(text)?;
    if has_field_meaning(&name) {
        return Err(Wrong::new("this field has a meaning of its own")
            .help("write a name that nothing else uses, as in \"Shop-Session\""));
    }
    Ok(name)
}

/// Returns whether two names, in any case, are one name to a server that reads some character, most
/// often `_`, as `-`.
pub(crate) fn is_same_field(one: &str, other: &str) -> bool {
    one.len() == other.len() && hyphened_field(one) == hyphened_field(other)
}

/// A field's value (RFC 9110 section 5.5), visible ASCII with spaces inside.
pub(crate) fn field_value(text: &str) -> Result<String, Wrong> {
    if let Some(c) = text.chars().find(|&c| !matches!(c, ' '..='~' | '\t')) {
        return Err(Wrong::new(format!(
            "{} may not stand in a field's value",
            quote(&c.to_string())
        )));
    }
    if text.trim() != text {
        return Err(Wrong::new("a field's value neither begins nor ends with a space"));
    }
    Ok(text.to_owned())
}

/// A protocol to upgrade to, with or without a version (RFC 9110 section 7.8).
pub(crate) fn upgrade_protocol(text: &str) -> Result<String, Wrong> {
    let (name, version) = text.split_once('/').unwrap_or((text, "0"));
    if !is_token(name) || !is_token(version) {
        return Err(Wrong::new("not a protocol").help("write one, as in \"websocket\""));
    }
    if name.eq_ignore_ascii_case("h2c") {
        return Err(Wrong::new("h2c never passes")
            .help("a tunnel of HTTP/2 would take requests past every route; clients that speak HTTP/2 in clear text do so from the first byte"));
    }
    Ok(text.to_owned())
}

/// A cookie's name (RFC 6265 section 4.1.1).
pub(crate) fn cookie_name(text: &str) -> Result<String, Wrong> {
    if is_token(text) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new("not a cookie name").help("a name has letters, digits, hyphens and underscores"))
}

/// A method (RFC 9110 section 9.1).
pub(crate) fn method(text: &str) -> Result<String, Wrong> {
    const KNOWN: &[&str] =
        &["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"];
    let upper = text.to_ascii_uppercase();
    if !is_token(text) {
        return Err(Wrong::new("not a method").help("write one, as in \"GET\""));
    }
    if text != upper && KNOWN.contains(&upper.as_str()) {
        return Err(Wrong::new("methods are case-sensitive").help(format!("write \"{upper}\"")));
    }
    if text == "CONNECT" {
        return Err(Wrong::new("Weir is no forward proxy and answers CONNECT with 501"));
    }
    Ok(text.to_owned())
}

/// Parses a path as in a request, before the `?`.
pub(crate) fn path(text: &str) -> Result<String, Wrong> {
    if !text.starts_with('/') {
        let wrong = Wrong::new("a path begins with a slash");
        let is_url = text.contains("://") || text.contains(' ');
        return Err(if is_url {
            wrong
        } else {
            wrong.help(format!("write {}", quote(&format!("/{text}"))))
        });
    }
    if let Some((before, _)) = text.split_once('?') {
        return Err(Wrong::new("a path ends before the \"?\"").help(format!(
            "write {}; a route matches parameters with query = {{ name = \"value\" }}",
            quote(before)
        )));
    }
    origin_form(text)
}

/// Parses a path with an optional query: the target of a probe.
pub(crate) fn path_and_query(text: &str) -> Result<String, Wrong> {
    match text.split_once('?') {
        Some((before, _)) => path(before).and_then(|_| origin_form(text)),
        None => path(text),
    }
}

fn origin_form(text: &str) -> Result<String, Wrong> {
    if let Some(c) = text.chars().find(|&c| !matches!(c, '!'..='~') || c == '#') {
        let encoded = match c {
            '#' => "%23".to_owned(),
            c => model::path::canonical(c.encode_utf8(&mut [0; 4])),
        };
        return Err(Wrong::new(format!(
            "{} never stands in a path as sent",
            quote(&c.to_string())
        ))
        .help(format!("write it as {encoded}")));
    }
    Ok(text.to_owned())
}

/// Parses a path to match, in canonical form, so that it may be written with or without encoding.
fn path_to_match(text: &str) -> Result<String, Wrong> {
    // Canonical form encodes non-ASCII characters; everything else is checked as written.
    let ascii: String = text.chars().filter(char::is_ascii).collect();
    path(&ascii)?;
    if model::path::has_dot_segments(text) {
        return Err(Wrong::new("no request has dots for a segment: Weir refuses those that do")
            .help("write the path that is meant, without \".\" and \"..\""));
    }
    Ok(model::path::canonical(text))
}

/// A whole path to match.
pub(crate) fn path_exact(text: &str) -> Result<String, Wrong> {
    path_to_match(text)
}

/// A prefix to match on segment boundaries, without its trailing slash.
pub(crate) fn path_prefix(text: &str) -> Result<PathMatch, Wrong> {
    let path = path_to_match(text)?;
    if let Some(start) = path.strip_suffix('*') {
        let start = start.trim_end_matches('/');
        let start = if start.is_empty() { "/" } else { start };
        return Err(Wrong::new("a prefix needs no wildcard")
            .help(format!("write {}: it matches itself and every path below it", quote(start))));
    }
    Ok(PathMatch::Prefix(path.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_framing_cannot_be_changed() {
        for name in ["Content-Length", "TRANSFER-ENCODING", "connection", "Upgrade", "Host", "TE"] {
            assert!(changeable_field_name(name).is_err(), "{name}");
        }
        for value in ["a\r\nb: c", "a\0", " a", "a\u{7f}", "é"] {
            assert!(field_value(value).is_err(), "{value:?}");
        }
        assert_eq!(field_value("max-age=1; x=\"y z\"").unwrap(), "max-age=1; x=\"y z\"");
        assert_eq!(changeable_field_name("X-A").unwrap(), "x-a");
    }

    #[test]
    fn paths_are_as_sent() {
        assert_eq!(path_prefix("/").unwrap(), PathMatch::Prefix(String::new()));
        assert_eq!(path_prefix("/a/").unwrap(), PathMatch::Prefix("/a".into()));
        assert_eq!(
            path_prefix("/a/*").unwrap_err().help.unwrap(),
            "write \"/a\": it matches itself and every path below it"
        );
        assert_eq!(path_prefix("/ü/%61").unwrap(), PathMatch::Prefix("/%C3%BC/a".into()));
        assert!(path_exact("/a/../b").is_err() && path_exact("/a/%2e").is_err());
        assert_eq!(path("/ü").unwrap_err().help.unwrap(), "write it as %C3%BC");
        assert_eq!(path_and_query("/a?b=c").unwrap(), "/a?b=c");
        for text in ["", "a", "/a?b", "/a b", "/a#b", "*"] {
            assert!(path(text).is_err(), "{text}");
        }
        assert!(method("get").is_err() && method("CONNECT").is_err() && method("G T").is_err());
        assert_eq!(method("PURGE").unwrap(), "PURGE");
    }
}
