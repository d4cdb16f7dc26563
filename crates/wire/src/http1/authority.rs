//! The authority of a request: `host [":" port]` (RFC 3986 section 3.2), as in Host and in
//! absolute-form targets. User information is refused (RFC 9110 section 4.2.4).

/// Returns the length of the host part if `bytes` is a host with an optional port. The host must
/// not be empty: an http URI with an empty host is invalid (RFC 9110 section 4.2.1).
pub(super) fn host_len(bytes: &[u8]) -> Option<usize> {
    let len = if bytes.first() == Some(&b'[') { literal_len(bytes)? } else { name_len(bytes)? };
    match &bytes[len..] {
        [] => Some(len),
        [b':', port @ ..] if is_port(port) => Some(len),
        _ => None,
    }
}

/// `*DIGIT`, at most 65535. Empty is allowed by the grammar and means the scheme's default.
fn is_port(bytes: &[u8]) -> bool {
    const PORT_DIGITS_MAX: usize = 5;
    let value = |digits: &[u8]| digits.iter().fold(0_u32, |n, b| n * 10 + u32::from(b - b'0'));
    bytes.len() <= PORT_DIGITS_MAX
        && bytes.iter().all(u8::is_ascii_digit)
        && u16::try_from(value(bytes)).is_ok()
}

/// `"[" IPv6address "]"`. Zone identifiers and `IPvFuture` are refused: neither can be a public host.
fn literal_len(bytes: &[u8]) -> Option<usize> {
    const LITERAL_MAX_BYTES: usize = 47; // brackets and the longest textual IPv6 address
    let close = bytes.iter().take(LITERAL_MAX_BYTES).position(|&b| b == b']')?;
    let address = std::str::from_utf8(&bytes[1..close]).ok()?;
    address.parse::<std::net::Ipv6Addr>().ok().map(|_| close + 1)
}

/// `reg-name` (an IPv4 address is one too): unreserved, sub-delims or percent-encoded, not empty.
fn name_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        match b {
            b':' => break,
            b'%' => {
                let hex = bytes.get(at + 1..at + 3)?;
                if !hex.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                at += 3;
            }
            _ if b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&b) => at += 1,
            _ => return None,
        }
    }
    (at > 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_port() {
        for (good, host) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com:8080", "EXAMPLE.com"),
            ("example.com.", "example.com."),
            ("example.com:", "example.com"),
            ("127.0.0.1:65535", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[2001:db8::1]:80", "[2001:db8::1]"),
            (
                "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:1",
                "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]",
            ),
            ("my_service", "my_service"),
            ("a%2Fb", "a%2Fb"),
        ] {
            assert_eq!(host_len(good.as_bytes()).map(|len| &good[..len]), Some(host), "{good}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for bad in [
            "",
            ":80",
            "a b",
            "a:65536",
            "a:123456",
            "a:8 0",
            "a:-1",
            "a:http",
            "a:80:80",
            "user@host",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a\0",
            "a\x7f",
            "é",
            "a%",
            "a%2",
            "a%zz",
            "[]",
            "[::1",
            "::1",
            "[::1]x",
            "[fe80::1%eth0]",
            "[v1.x]",
            "[1.2.3.4]",
            "<a>",
            "a\"",
            "a^b",
            "a|b",
            "{a}",
        ] {
            assert_eq!(host_len(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
