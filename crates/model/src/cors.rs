//! Cross-origin resource sharing (CORS): which pages of other origins may read a route's responses.

use std::fmt;
use std::time::Duration;

/// What browsers may do with a route's responses on pages of other origins (Fetch standard, "CORS
/// protocol").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// The origins of those pages. With [`CorsOrigin::Any`] the responses are the same for all origins,
    /// and there are no credentials.
    pub origins: Vec<CorsOrigin>,
    /// Methods allowed besides GET, HEAD and POST, which need no permission; as in the field's value,
    /// empty if there are none.
    pub methods: String,
    /// Request fields allowed besides those that need no permission; as in the field's value, empty if
    /// there are none.
    pub headers: String,
    /// Response fields that pages may read besides those that need no permission; as in the field's
    /// value, empty if there are none.
    pub expose: String,
    /// Whether requests with cookies and credentials are allowed.
    pub credentials: bool,
    /// How long browsers may remember the answer to a preflight. `None`: as long as they like (5 s).
    pub max_age: Option<Duration>,
}

impl Cors {
    /// Returns whether all origins are allowed, so that responses do not vary with the origin.
    pub fn allows_any_origin(&self) -> bool {
        !self.credentials && self.origins.contains(&CorsOrigin::Any)
    }
}

/// An origin or several, in the form in which browsers send it (RFC 6454 section 6.2): scheme and host
/// in lower case, and no port that is the scheme's default.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CorsOrigin {
    /// Every origin, `*`.
    Any,
    /// `null`: local files, sandboxed frames and others. Any page can make itself one of them.
    Null,
    /// One origin.
    Exact(String),
    /// Every origin that has one or more labels of a host name between the two:
    /// `https://*.example.com:8443` is kept as `https://` and `.example.com:8443`.
    Subdomains {
        /// Through `://`.
        before: String,
        /// From the dot.
        after: String,
    },
}

impl CorsOrigin {
    /// Parses `scheme://host`, `scheme://host:port`, `scheme://*.host`, `null` or `*`; `None` for
    /// anything else, such as an origin with a path.
    pub fn parse(text: &str) -> Option<CorsOrigin> {
        let text = text.to_ascii_lowercase();
        match &*text {
            "*" => return Some(CorsOrigin::Any),
            "null" => return Some(CorsOrigin::Null),
            _ => {}
        }
        let (scheme, authority) = text.split_once("://")?;
        // RFC 3986 section 3.1.
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let is_number = port.bytes().all(|b| b.is_ascii_digit());
                (host, Some(port.parse::<u16>().ok().filter(|_| is_number)?))
            }
            _ => (authority, None),
        };
        let port = port.filter(|port| match scheme {
            "http" | "ws" => *port != 80,
            "https" | "wss" => *port != 443,
            _ => true,
        });
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_address = name.len() == host.len()
            && host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).is_some_and(|host| {
                host.parse::<std::net::Ipv6Addr>().is_ok_and(|address| address.to_string() == host)
            });
        if !is_scheme || !is_address && !is_host_name(name.as_bytes()) {
            return None;
        }
        Some(if name.len() == host.len() {
            CorsOrigin::Exact(format!("{scheme}://{host}{port}"))
        } else {
            CorsOrigin::Subdomains {
                before: format!("{scheme}://"),
                after: format!(".{name}{port}"),
            }
        })
    }

    /// Returns whether it covers the value of an `Origin` field.
    pub fn covers(&self, origin: &[u8]) -> bool {
        match self {
            CorsOrigin::Any => true,
            CorsOrigin::Null => origin == b"null",
            CorsOrigin::Exact(exact) => origin == exact.as_bytes(),
            CorsOrigin::Subdomains { before, after } => origin
                .strip_prefix(before.as_bytes())
                .and_then(|rest| rest.strip_suffix(after.as_bytes()))
                .is_some_and(is_host_name),
        }
    }
}

/// Returns whether these are labels of a host name, in lower case and separated by dots.
fn is_host_name(name: &[u8]) -> bool {
    let is_in_label = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    name.split(|&b| b == b'.').all(|label| !label.is_empty() && label.iter().all(is_in_label))
}

impl fmt::Display for CorsOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CorsOrigin::Any => f.write_str("*"),
            CorsOrigin::Null => f.write_str("null"),
            CorsOrigin::Exact(exact) => f.write_str(exact),
            CorsOrigin::Subdomains { before, after } => write!(f, "{before}*{after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CorsOrigin;

    #[test]
    fn an_origin_is_kept_as_browsers_send_it() {
        for (text, kept) in [
            ("https://app.example.com", "https://app.example.com"),
            ("HTTPS://App.Example.com:443", "https://app.example.com"),
            ("http://localhost:80", "http://localhost"),
            ("https://localhost:80", "https://localhost:80"),
            ("http://192.0.2.1:3000", "http://192.0.2.1:3000"),
            ("http://[2001:db8::1]", "http://[2001:db8::1]"),
            ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
            ("https://*.example.com:8443", "https://*.example.com:8443"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("*", "*"),
            ("null", "null"),
        ] {
            let read = CorsOrigin::parse(text).expect(text);
            assert_eq!(read.to_string(), kept);
            assert_eq!(CorsOrigin::parse(kept), Some(read));
        }
        for text in [
            "",
            "example.com",
            "https://",
            "https://example.com/",
            "https://a.example.com/path",
            "https://*",
            "https://*example.com",
            "https://a.*.example.com",
            "https://example.com:",
            "https://example.com:99999",
            "https://example.com:+80",
            "https://user@example.com",
            "https://[2001:db8:0::1]",
            "https://*.[::1]",
            "https://a..b",
            "ht tp://a",
            "https://a\r\nb",
        ] {
            assert_eq!(CorsOrigin::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_is_meant_is_covered() {
        let covers = |pattern: &str, origin: &str| {
            CorsOrigin::parse(pattern).expect(pattern).covers(origin.as_bytes())
        };
        let (exact, below) = ("https://app.example.com", "https://*.example.com");
        for (pattern, origin) in [
            (exact, exact),
            (below, exact),
            (below, "https://a.b.example.com"),
            ("https://*.example.com:8443", "https://a.example.com:8443"),
            ("null", "null"),
            ("*", "https://anything"),
        ] {
            assert!(covers(pattern, origin), "{pattern} {origin}");
        }
        for (pattern, origin) in [
            (exact, ""),
            (exact, "null"),
            (exact, "http://app.example.com"),
            (exact, "https://app.example.com:8443"),
            (exact, "https://app.example.com.evil.test"),
            (exact, "https://app.example.comx"),
            (exact, "HTTPS://APP.EXAMPLE.COM"),
            (below, "https://example.com"),
            (below, "https://.example.com"),
            (below, "https://evilexample.com"),
            (below, "https://a..example.com"),
            (below, "http://a.example.com"),
            (below, "https://a.example.com:8443"),
            (below, "https://a.example.com.evil.test"),
            (below, "https://evil.test/.example.com"),
            (below, "https://evil.test?.example.com"),
            (below, "https://evil.test#.example.com"),
            (below, "https://evil.test\\.example.com"),
            (below, "https://evil.test:1@a.example.com"),
            (below, "https://evil.test%00.example.com"),
            (below, "https://a b.example.com"),
            (below, "https://x\r\nSet-Cookie: a.example.com"),
            (below, "https://.example.com.example.com"),
            ("null", "https://null"),
            ("null", "NULL"),
        ] {
            assert!(!covers(pattern, origin), "{pattern} {origin:?}");
        }
    }
}
