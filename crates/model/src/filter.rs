//! Filters: what happens to a route's requests and responses besides forwarding.
//!
//! Each kind is a variant, and a route lists its filters in the order in which they run
//! (`config::build` alone decides it). A route without filters has empty lists.

use std::sync::Arc;

use crate::{AuthenticationId, Cors, RateLimit};

/// A filter applied to a request before the route's action. Each may answer the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFilter {
    /// Refuses requests beyond any of these rates.
    RateLimits(Vec<RateLimit>),
    /// Answers the questions of browsers about pages of other origins. The responses to other requests
    /// get its fields too, also those to requests that another filter refuses.
    Cors(Arc<Cors>),
    /// Refuses requests that do not prove who sends them.
    Authenticate(AuthenticationId),
}

/// A filter applied to a server's response before it is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseFilter {
    /// Compresses the body.
    Compress(Compression),
}

/// Which responses are compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// In order of preference, for clients that accept several equally.
    pub codings: Vec<ContentCoding>,
    /// Media types that are compressed.
    pub types: Vec<MediaRange>,
    /// A body known to be shorter is not compressed.
    pub length_min_bytes: u64,
}

crate::words! {
    /// A content coding that Weir can apply (RFC 9110 section 8.4.1, RFC 7932, RFC 8878).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ContentCoding {
        /// Zstandard.
        Zstd = "zstd",
        /// Brotli.
        Brotli = "br",
        /// Deflate in a gzip file.
        Gzip = "gzip",
    }
}

/// A media type or a range of them, by type or by suffix; in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MediaRange {
    /// `application/json`.
    One(String),
    /// `text/*`, kept as `text/`.
    Type(String),
    /// `*/*+json`, kept as `+json` (RFC 6838 section 4.2.8).
    Suffix(String),
}

impl MediaRange {
    /// Parses `type/subtype`, `type/*` or `*/*+suffix`; `None` for anything else.
    pub fn parse(text: &str) -> Option<MediaRange> {
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
        };
        let text = text.to_ascii_lowercase();
        if let Some(suffix) = text.strip_prefix("*/*") {
            let is_suffix = suffix.strip_prefix('+').is_some_and(is_token);
            return is_suffix.then(|| MediaRange::Suffix(suffix.to_owned()));
        }
        let (kind, subtype) = text.split_once('/')?;
        match subtype {
            _ if !is_token(kind) => None,
            "*" => Some(MediaRange::Type(format!("{kind}/"))),
            _ => is_token(subtype).then_some(MediaRange::One(text)),
        }
    }

    /// Returns whether it covers `media_type`, ignoring case and parameters.
    pub fn covers(&self, media_type: &[u8]) -> bool {
        match self {
            MediaRange::One(one) => media_type.eq_ignore_ascii_case(one.as_bytes()),
            MediaRange::Type(kind) => media_type
                .get(..kind.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(kind.as_bytes())),
            MediaRange::Suffix(suffix) => media_type
                .len()
                .checked_sub(suffix.len())
                .and_then(|at| media_type.get(at..))
                .is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes())),
        }
    }
}

impl std::fmt::Display for MediaRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MediaRange::One(one) => f.write_str(one),
            MediaRange::Type(kind) => write!(f, "{kind}*"),
            MediaRange::Suffix(suffix) => write!(f, "*/*{suffix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MediaRange;

    #[test]
    fn a_range_covers_its_types() {
        for (range, covered, not) in [
            ("application/json", "Application/JSON", "application/json5"),
            ("text/*", "text/html", "texts/html"),
            ("*/*+json", "application/problem+json", "application/json"),
            ("image/svg+xml", "image/svg+xml", "image/svg"),
        ] {
            let read = MediaRange::parse(range).expect(range);
            assert_eq!(read.to_string(), range);
            assert!(read.covers(covered.as_bytes()), "{range} {covered}");
            assert!(!read.covers(not.as_bytes()), "{range} {not}");
            assert!(!read.covers(b""), "{range}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "text", "text/", "/html", "*/*", "*/html", "*/*+", "a b/c", "text/h;q=1"] {
            assert_eq!(MediaRange::parse(text), None, "{text}");
        }
    }
}
