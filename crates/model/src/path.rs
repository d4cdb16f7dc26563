//! Path comparison: when two paths are equal, and which paths programs interpret differently.
//!
//! Rules match paths in *canonical form*, so that `/%61dmin` cannot bypass a rule for `/admin`:
//! every percent-encoded byte counts as the byte it stands for, except `%2F`, which is data and not
//! a separator (RFC 3986 section 2.2), and bytes that no target can contain unencoded. Nothing here
//! changes a path that is sent: servers get what the client sent.

/// Returns the bytes of `path` in canonical form: percent-encoding is decoded for printable ASCII
/// other than `/` and `%`; every other byte is percent-encoded with upper-case digits. A `%` that
/// starts no percent-encoding stands for itself. Canonicalising twice changes nothing.
pub fn canonical_bytes(path: &str) -> CanonicalBytes<'_> {
    CanonicalBytes { rest: path.as_bytes(), pending: [0; 2], pending_len: 0 }
}

/// Returns `path` in canonical form; see [`canonical_bytes`].
pub fn canonical(path: &str) -> String {
    canonical_bytes(path).map(char::from).collect()
}

/// Returns whether `path` is certainly in canonical form: cheap, and false for some that are.
pub fn is_canonical(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%')
}

/// Returns whether the path contains a segment `.` or `..` as *some* server would interpret it:
/// plain, with dots or slashes percent-encoded, with backslashes for slashes, or followed by a path
/// parameter (`..;x`). Clients remove dot segments before they send (RFC 3986 section 5.2.4), and
/// servers disagree on what remains when they do not: `/public/../admin` is under `/public` to one
/// and under `/admin` to the next. Weir refuses such a request.
pub fn has_dot_segments(path: &str) -> bool {
    // Nearly every path returns here.
    if !path.bytes().any(|byte| matches!(byte, b'.' | b'%')) {
        return false;
    }
    let mut segment = Segment::Empty;
    let mut decoder = canonical_bytes(path);
    while let Some(byte) = decoder.next_decoded() {
        segment = match (segment, byte) {
            (Segment::Dot | Segment::DotDot, b'/' | b'\\' | b';') => return true,
            (_, b'/' | b'\\') => Segment::Empty,
            (Segment::Empty, b'.') => Segment::Dot,
            (Segment::Dot, b'.') => Segment::DotDot,
            _ => Segment::Other,
        };
    }
    matches!(segment, Segment::Dot | Segment::DotDot)
}

/// Returns what follows `prefix`, a canonical prefix that matches `path`: empty, or beginning with
/// `/`. Counted in segments, since `path` may be encoded differently from `prefix`.
pub fn behind_prefix<'p>(path: &'p str, prefix: &str) -> &'p str {
    let segments = prefix.bytes().filter(|&byte| byte == b'/').count();
    path.match_indices('/').nth(segments).map_or("", |(at, _)| &path[at..])
}

/// The state of a segment so far, as far as dots matter.
#[derive(Clone, Copy)]
enum Segment {
    Empty,
    Dot,
    DotDot,
    Other,
}

/// Iterator over a path's canonical bytes.
#[derive(Clone, Debug)]
pub struct CanonicalBytes<'a> {
    rest: &'a [u8],
    /// The remaining hexadecimal digits of a byte that stays encoded, the next one last.
    pending: [u8; 2],
    pending_len: u8,
}

impl CanonicalBytes<'_> {
    /// Returns the next byte, decoded whatever it is.
    fn next_decoded(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        if let (b'%', [high, low, rest @ ..]) = (first, rest)
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            self.rest = rest;
            return Some(high << 4 | low);
        }
        self.rest = rest;
        Some(first)
    }
}

impl Iterator for CanonicalBytes<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.pending_len > 0 {
            self.pending_len -= 1;
            return Some(self.pending[usize::from(self.pending_len)]);
        }
        let &first = self.rest.first()?;
        let decoded = self.next_decoded()?;
        let was_encoded = first == b'%';
        let plain =
            decoded.is_ascii_graphic() && decoded != b'%' && !(was_encoded && decoded == b'/');
        if plain {
            return Some(decoded);
        }
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        self.pending = [DIGITS[usize::from(decoded & 15)], DIGITS[usize::from(decoded >> 4)]];
        self.pending_len = 2;
        Some(b'%')
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_form_undoes_needless_encoding_only() {
        let cases = [
            ("/admin", "/admin"),
            ("/%61dmin", "/admin"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%252Fb", "/a%252Fb"),
            ("/100%", "/100%25"),
            ("/100%25", "/100%25"),
            ("/%zz", "/%25zz"),
            ("/%2", "/%252"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a b", "/a%20b"),
            ("/%00%7F", "/%00%7F"),
            ("/a%2Cb;c%3Dd", "/a,b;c=d"),
            ("", ""),
        ];
        for (path, expected) in cases {
            assert_eq!(canonical(path), expected, "{path}");
            assert_eq!(canonical(expected), expected, "{expected} is canonical");
            assert!(!is_canonical(path) || path == expected, "{path}");
        }
    }

    #[test]
    fn dot_segments_are_seen_in_every_disguise() {
        for path in [
            "/.",
            "/..",
            "/./",
            "/../",
            "/a/../b",
            "/a/./b",
            "/a/..",
            "/public/../admin",
            "/public/%2e%2e/admin",
            "/public/.%2E/admin",
            "/public/..%2fadmin",
            "/public%2F..",
            "/public\\..\\admin",
            "/public/..%5cadmin",
            "/public/..;/admin",
            "/a/..;x=1",
            "/.;",
            "..",
            "/a/..%2fb",
            "/a/..;x/b",
        ] {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in [
            "/",
            "*",
            "",
            "/a.b",
            "/.well-known/x",
            "/..a",
            "/a..",
            "/...",
            "/a/.b/c",
            "/v1.2/x",
            "/%252e%252e/",
            // Bytes that only an incorrect decoder reads as dots and slashes: see docs/routing.md.
            "/a/%25252e%25252e/b",
            "/a/%c0%ae%c0%ae/b",
            "/a/..%c0%afb",
            "/a/%e0%80%ae/b",
            "/a/%ef%bc%8e%ef%bc%8e/b",
            "/a/%u002e%u002e/b",
            "/a;..",
            "/a;.",
            "/.a;b",
            "/%2Fa.",
            "/;..",
        ] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn behind_a_prefix_is_counted_in_segments() {
        for (path, prefix, rest) in [
            ("/a/b", "/a", "/b"),
            ("/%61/b/c", "/a", "/b/c"),
            ("/a", "/a", ""),
            ("/a/", "/a", "/"),
            ("/a/b", "", "/a/b"),
            ("*", "", ""),
        ] {
            assert_eq!(behind_prefix(path, prefix), rest, "{path} {prefix}");
        }
    }
}
