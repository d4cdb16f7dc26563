//! Session affinity of services and routes, and the key of its values.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Session affinity of a service, by a cookie that Weir sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The cookie's name.
    pub cookie: String,
    /// Max-Age; `None` is a session cookie.
    pub max_age: Option<Duration>,
    /// The file with the key of the tokens; `None`: the key of this instance.
    pub key_file: Option<AffinityKeyFile>,
}

/// Session affinity of a route, in place of that of its services: a session stays with a service and a
/// server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteAffinity {
    /// What carries a session.
    pub carrier: SessionCarrier,
    /// Routes with equal scopes accept each other's sessions. It is part of what the key protects.
    pub scope: Arc<str>,
    /// How long a session lasts; `None`: as long as the client keeps it.
    pub lifetime_max: Option<Duration>,
    /// How long it lasts without requests; `None`: not limited.
    pub idle_max: Option<Duration>,
    /// The file with the key; `None`: the key of this instance.
    pub key_file: Option<AffinityKeyFile>,
}

/// What carries a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCarrier {
    /// A cookie.
    Cookie {
        /// Its name.
        name: String,
        /// Whether the client keeps it for the session's lifetime, also when the browser is closed.
        is_permanent: bool,
    },
    /// A field of this name, in lower case: Weir adds it to a response, and the client repeats it in its
    /// requests.
    Field(String),
}

impl SessionCarrier {
    /// Returns the scope of routes that do not state another: one for all that have this carrier.
    pub fn scope(&self) -> Arc<str> {
        match self {
            SessionCarrier::Cookie { name, .. } => format!("cookie {name}").into(),
            SessionCarrier::Field(name) => format!("header {name}").into(),
        }
    }

    /// Returns whether browsers keep such a cookie only if its path is `/`: RFC 6265bis, section "The `__Host-` Prefix".
    pub fn needs_root(&self) -> bool {
        self.has_prefix("__Host-")
    }

    /// Returns whether browsers keep such a cookie only if it came over HTTPS.
    pub fn needs_https(&self) -> bool {
        self.needs_root() || self.has_prefix("__Secure-")
    }

    fn has_prefix(&self, prefix: &str) -> bool {
        match self {
            SessionCarrier::Cookie { name, .. } => {
                name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            }
            SessionCarrier::Field(_) => false,
        }
    }
}

impl RouteAffinity {
    /// The shortest lifetime and idle time: times of sessions are whole seconds.
    pub const TIME_MIN: Duration = Duration::from_secs(1);
}

/// A file that contains an [`AffinityKey`], as read with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityKeyFile {
    /// Its path.
    pub path: PathBuf,
    /// The key in it.
    pub key: AffinityKey,
}

/// The secret that turns a server's address into the token of an affinity cookie, and that encrypts sessions
/// of routes: 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AffinityKey([u8; AffinityKey::LENGTH]);

impl AffinityKey {
    /// Bytes of a key.
    pub const LENGTH: usize = 16;

    /// Maximum length of a key file, in bytes.
    pub const FILE_MAX_BYTES: u64 = 128;

    /// Returns the key with these bytes.
    pub const fn new(bytes: [u8; AffinityKey::LENGTH]) -> AffinityKey {
        AffinityKey(bytes)
    }

    /// Parses the contents of a key file: 32 hexadecimal digits, with optional white space around
    /// them.
    pub fn parse(text: &[u8]) -> Option<AffinityKey> {
        let digits = text.trim_ascii();
        if digits.len() != 2 * AffinityKey::LENGTH {
            return None;
        }
        let mut bytes = [0; AffinityKey::LENGTH];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(AffinityKey(bytes))
    }

    /// Returns the key as a file contains it, without a line end.
    pub fn to_text(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8; AffinityKey::LENGTH] {
        &self.0
    }
}

/// It is a secret.
impl fmt::Debug for AffinityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AffinityKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_hexadecimal_digits() {
        let text = b"000102030405060708090A0b0c0d0e0f\n";
        let key = AffinityKey::parse(text).unwrap();
        assert_eq!(key.bytes()[10], 10);
        assert_eq!(AffinityKey::parse(key.to_text().as_bytes()), Some(key));
        assert!(!format!("{key:?}").contains("01"));
        let wrong = [0, 2, 31, 33, 64].map(|length| "0".repeat(length));
        for other in wrong.iter().chain([&"g".repeat(32)]) {
            assert_eq!(AffinityKey::parse(other.as_bytes()), None, "{other}");
        }
    }
}
