//! The field `Forwarded` (RFC 7239).

use std::borrow::Cow;

use super::grammar::is_token;

/// Returns the node of each element's `for` parameter in the value of one field line, in order; `None`
/// for an element that is malformed or has no such parameter, or two. A malformed element may include
/// what follows it.
pub fn nodes(value: &[u8]) -> Vec<Option<Cow<'_, [u8]>>> {
    split(value, b',').filter(|element| !element.is_empty()).map(node).collect()
}

/// Returns the value of an element's only `for` parameter.
fn node(element: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut node = None;
    for pair in split(element, b';').filter(|pair| !pair.is_empty()) {
        let at = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&pair[..at], &pair[at + 1..]);
        let value = match value {
            [b'"', quoted @ .., b'"'] => unquoted(quoted)?,
            _ if is_token(value) => Cow::Borrowed(value),
            _ => return None,
        };
        if !is_token(name) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"for") && node.replace(value).is_some() {
            return None;
        }
    }
    node
}

/// Splits at `separator` outside of quoted strings; the parts are without white space around them.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |&byte| {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && byte == b'\\' {
            is_escaped = true;
        } else if byte == b'"' {
            is_quoted = !is_quoted;
        } else {
            return !is_quoted && byte == separator;
        }
        false
    })
    .map(<[u8]>::trim_ascii)
}

/// Removes the escapes of a quoted string (RFC 9110 section 5.6.4); `None` if it ends early.
fn unquoted(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !text.iter().any(|byte| b"\\\"".contains(byte)) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => out.push(*bytes.next()?),
            _ => out.push(byte),
        }
    }
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::nodes;

    fn read(value: &str) -> Vec<Option<String>> {
        let nodes = nodes(value.as_bytes()).into_iter();
        nodes.map(|node| Some(String::from_utf8_lossy(&node?).into_owned())).collect()
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (value, expected) in [
            ("for=\"_gazonk\"", vec![Some("_gazonk")]),
            ("For=\"[2001:db8:cafe::17]:4711\"", vec![Some("[2001:db8:cafe::17]:4711")]),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", vec![Some("192.0.2.60")]),
            ("for=192.0.2.43, for=198.51.100.17", vec![Some("192.0.2.43"), Some("198.51.100.17")]),
            (
                "for=192.0.2.43,for=\"[2001:db8::17]\"",
                vec![Some("192.0.2.43"), Some("[2001:db8::17]")],
            ),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|node| node.map(str::to_owned)).collect();
            assert_eq!(read(value), expected, "{value}");
        }
    }

    #[test]
    fn malformed_elements_have_no_node() {
        for value in [
            "for",
            "for=",
            "for= 1.1.1.1",
            "for=a b",
            "for=[::1]",
            "for=\"a",
            "for=a\"",
            "for=\"a\"b\"",
            "for=a;for=b",
            "=a",
            "f or=a",
            "for=\"a\\\"",
            "proto=https",
            "for=a;x=\", for=\"b\"",
        ] {
            assert_eq!(read(value), vec![None], "{value}");
        }
        assert_eq!(read(""), vec![]);
        assert_eq!(read("for=a;, ;for=b"), vec![Some("a".to_owned()), Some("b".to_owned())]);
        assert_eq!(read("for=\"a\\\"b\\,\""), vec![Some("a\"b,".to_owned())]);
    }
}
