//! Field lines and their classification. Each is classified and checked once: when it is decoded or
//! added to a table.

use wire::http1::{is_token_byte, is_value_byte};

/// A field as a line of HTTP/1.1: `name: value` and CRLF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) name_len: usize,
    pub(crate) kind: Kind,
}

/// `: ` and CRLF.
pub(crate) const LINE_EXTRA_BYTES: usize = 4;

/// The overhead per field that sizes include (RFC 7541 section 4.1, RFC 9113 section 6.5.2).
pub(crate) const FIELD_EXTRA_BYTES: usize = 32;

impl<'a> Line<'a> {
    pub(crate) fn name(&self) -> &'a [u8] {
        &self.bytes[..self.name_len]
    }

    pub(crate) fn value(&self) -> &'a [u8] {
        &self.bytes[self.name_len + 2..self.bytes.len() - 2]
    }

    /// Returns the size as tables and limits count it.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() - LINE_EXTRA_BYTES + FIELD_EXTRA_BYTES
    }
}

/// The role of a field in HTTP/2 (RFC 9113 section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:status`
    Status,
    /// `:protocol` (RFC 8441 section 4)
    Protocol,
    Host,
    Cookie,
    ContentLength,
    Te,
    /// RFC 9218 section 5
    Priority,
    /// `sec-websocket-key` and `sec-websocket-accept`, which have no meaning in an extended CONNECT
    /// (RFC 8441 section 5).
    WebSocketHandshake,
    /// Concerns a connection: must not occur in HTTP/2 (RFC 9113 section 8.2.2).
    OfConnection,
    /// Concerns a connection, and is ignored.
    Ignored,
    /// Any other field.
    Plain,
    /// A name or value that HTTP/2 forbids (RFC 9113 section 8.2.1), or an unknown pseudo-header
    /// field.
    Invalid,
}

impl Kind {
    /// Returns the kind of field that a name denotes.
    pub(crate) const fn of_name(name: &[u8]) -> Kind {
        match name {
            b":method" => Kind::Method,
            b":scheme" => Kind::Scheme,
            b":authority" => Kind::Authority,
            b":path" => Kind::Path,
            b":status" => Kind::Status,
            b":protocol" => Kind::Protocol,
            b"host" => Kind::Host,
            b"cookie" => Kind::Cookie,
            b"content-length" => Kind::ContentLength,
            b"te" => Kind::Te,
            b"priority" => Kind::Priority,
            b"sec-websocket-key" | b"sec-websocket-accept" => Kind::WebSocketHandshake,
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Kind::OfConnection,
            b"http2-settings" => Kind::Ignored,
            _ if is_name(name) => Kind::Plain,
            _ => Kind::Invalid,
        }
    }

    pub(crate) fn is_pseudo(self) -> bool {
        matches!(
            self,
            Kind::Method
                | Kind::Scheme
                | Kind::Authority
                | Kind::Path
                | Kind::Status
                | Kind::Protocol
        )
    }
}

/// A token without upper-case letters (RFC 9113 section 8.2.1).
const fn is_name(name: &[u8]) -> bool {
    let mut index = 0;
    while index < name.len() {
        if !is_token_byte(name[index]) || name[index].is_ascii_uppercase() {
            return false;
        }
        index += 1;
    }
    index > 0
}

/// Without SP and HTAB at its ends (RFC 9113 section 8.2.1).
pub(crate) fn is_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // Without an early exit, so that the compiler can check many bytes at a time.
    value.iter().fold(true, |valid, &byte| valid & is_value_byte(byte))
        && !is_space(value.first())
        && !is_space(value.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_in_lower_case() {
        for (name, kind) in [
            (&b"accept"[..], Kind::Plain),
            (b"x_y.z~1", Kind::Plain),
            (b":path", Kind::Path),
            (b"upgrade", Kind::OfConnection),
            (b"", Kind::Invalid),
            (b":", Kind::Invalid),
            (b":other", Kind::Invalid),
            (b"Accept", Kind::Invalid),
            (b"a b", Kind::Invalid),
            (b"a:", Kind::Invalid),
            (b"a\r\nb", Kind::Invalid),
            (b"a\0", Kind::Invalid),
            ("é".as_bytes(), Kind::Invalid),
        ] {
            assert_eq!(Kind::of_name(name), kind, "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn values_have_no_line_ends_and_no_space_around_them() {
        for good in ["", "a", "a b\tc", "é", "\u{80}"] {
            assert!(is_value(good.as_bytes()), "{good:?}");
        }
        for bad in ["\r", "a\nb", "a\0", " a", "a\t", " ", "\x7f", "\x1b[0m"] {
            assert!(!is_value(bad.as_bytes()), "{bad:?}");
        }
    }
}
