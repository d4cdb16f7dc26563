//! Conditions of routes that are evaluated one by one, unlike exact values, which the router looks up.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::{Networks, Text};

/// A condition: what is tested, and how. One that cannot be evaluated does not hold, negated or not: if
/// the client's address is unknown, or a certificate has a name that cannot be represented.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    /// What is tested.
    pub on: ConditionOn,
    /// It holds if one of the values passes this…
    pub test: Test,
    /// …or, if this is set, if none of them does; so it holds if there is no value at all.
    pub negated: bool,
}

/// A part of a request, or of its connection, that conditions test. Some can have several values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionOn {
    /// The client's address.
    Client,
    /// The path in canonical form ([`crate::path`]).
    Path,
    /// A field, by its name in lower case.
    Field(String),
    /// A query parameter, decoded.
    Query(String),
    /// A cookie.
    Cookie(String),
    /// A name in the client's verified certificate.
    Certificate(CertificatePart),
}

crate::words! {
    /// A part of a client certificate that conditions test.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CertificatePart {
        /// The subject, as RFC 4514 writes it: `CN=billing,O=Example`.
        Subject = "subject",
        /// The issuer, in the same form.
        Issuer = "issuer",
        /// A DNS name among the subject's alternative names.
        Dns = "dns",
        /// A URI among them, such as a SPIFFE ID.
        Uri = "uri",
        /// An email address among them.
        Email = "email",
        /// The SHA-256 fingerprint of the certificate, 64 hexadecimal digits in lower case.
        Fingerprint = "fingerprint",
    }
}

/// The names in a client's verified certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// By part, in order of [`CertificatePart::ALL`]; `None`: not all of its names are known.
    parts: [Option<Vec<String>>; CertificatePart::ALL.len()],
}

impl CertificateNames {
    /// Returns the names of a certificate in which none can be read.
    pub fn unreadable() -> CertificateNames {
        CertificateNames::default()
    }

    /// Sets the names of a part; `None`: they cannot all be read.
    pub fn set(&mut self, part: CertificatePart, names: Option<Vec<String>>) {
        self.parts[part as usize] = names;
    }

    /// Returns the names of a part; `None`: they cannot all be read.
    pub fn of(&self, part: CertificatePart) -> Option<&[String]> {
        self.parts[part as usize].as_deref()
    }
}

/// A test of one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Equality, byte by byte.
    Exact(Text),
    /// A match anywhere in the value.
    Pattern(Pattern),
    /// Any value passes.
    Present,
    /// An address in one of these networks.
    Among(Arc<Networks>),
}

/// A regular expression on bytes. Matching takes time linear in the value's length, whatever the
/// expression; the factor is at most proportional to its compiled size.
#[derive(Clone, Debug)]
pub struct Pattern(regex::bytes::Regex);

impl Pattern {
    /// The largest compiled expression. Most take a few kilobytes, a list of 200 words that ignores case
    /// 80; repetitions multiply (`(a{1000}){1000}`). Bounds the time per byte of a value: for the worst
    /// expressions of this size, 30 µs; for usual ones, a few nanoseconds.
    const SIZE_MAX_BYTES: usize = 256 * 1024;
    /// The size of each of the two caches (for matching forwards and backwards) that an expression
    /// keeps per thread that has used it.
    const CACHE_MAX_BYTES: usize = 128 * 1024;

    /// Parses an expression in the syntax of the `regex` crate, without Unicode: `.` matches any byte,
    /// `\w` and `(?i)` know ASCII.
    ///
    /// # Errors
    ///
    /// What is wrong with the expression, in one line.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let built = regex::bytes::RegexBuilder::new(text)
            // Values are bytes: a `.` that did not match all of them would be a way around a
            // condition.
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(Self::SIZE_MAX_BYTES)
            .dfa_size_limit(Self::CACHE_MAX_BYTES)
            .build();
        built.map(Pattern).map_err(|error| {
            if let regex::Error::CompiledTooBig(_) = error {
                return "it is too large when compiled".to_owned();
            }
            // The last line of several says what; the others draw the place.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })
    }

    /// Returns the expression.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether it matches anywhere in `value`.
    pub fn matches(&self, value: &[u8]) -> bool {
        self.0.is_match(value)
    }
}

/// Expressions are compared as text.
impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Pattern) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Pattern) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

/// As `weir check` prints it: `client in 10.0.0.0/8`, `header x-team ~ ^a`, `not cookie beta present`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("not ")?;
        }
        match &self.on {
            ConditionOn::Client => f.write_str("client")?,
            ConditionOn::Path => f.write_str("path")?,
            ConditionOn::Field(name) => write!(f, "header {name}")?,
            ConditionOn::Query(name) => write!(f, "query {name}")?,
            ConditionOn::Cookie(name) => write!(f, "cookie {name}")?,
            ConditionOn::Certificate(part) => write!(f, "certificate {}", part.as_str())?,
        }
        match &self.test {
            Test::Exact(value) => write!(f, " = {}", value.shown()),
            Test::Pattern(pattern) => write!(f, " ~ {}", pattern.as_str()),
            Test::Present => f.write_str(" present"),
            Test::Among(networks) => write!(f, " in {networks}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_bad_expression_is_explained_in_one_line() {
        for (text, why) in [
            ("a(", "unclosed group"),
            ("[z-a]", "invalid character class range"),
            ("(?=a)", "look-around"),
            ("(a{1000}){1000}", "too large"),
            ("\\p{L}", "Unicode"),
        ] {
            let error = Pattern::parse(text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn matching_is_anywhere_and_by_bytes() {
        let pattern = Pattern::parse("(?i)bot|^curl/[0-9]").unwrap();
        for (value, is_match) in
            [("Googlebot/2.1", true), ("curl/8", true), ("a curl/8", false), ("", false)]
        {
            assert_eq!(pattern.matches(value.as_bytes()), is_match, "{value}");
        }
        assert!(pattern.matches(b"\xff\xfebot"), "not all values are UTF-8");
        // No byte is a way around an expression.
        let pattern = Pattern::parse("^/private/.*$").unwrap();
        for value in [&b"/private/\xff"[..], b"/private/a\nb", b"/private/\xc3\xa9"] {
            assert!(pattern.matches(value), "{value:?}");
        }
        assert!(Pattern::parse("é").unwrap().matches("café".as_bytes()));
    }
}
