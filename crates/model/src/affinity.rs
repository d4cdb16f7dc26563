//! Session affinity by cookie, and the key of its tokens.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Session affinity by a cookie that Weir sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The cookie's name.
    pub cookie: String,
    /// Max-Age; `None` is a session cookie.
    pub max_age: Option<Duration>,
    /// The file with the key of the tokens; `None`: the key of this instance.
    pub key_file: Option<AffinityKeyFile>,
}

/// A file that contains an [`AffinityKey`], as read with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityKeyFile {
    /// Its path.
    pub path: PathBuf,
    /// The key in it.
    pub key: AffinityKey,
}

/// The secret that turns a server's address into the token of an affinity cookie: 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AffinityKey([u8; AffinityKey::LENGTH]);

impl AffinityKey {
    /// Bytes of a key.
    pub const LENGTH: usize = 16;

    /// Maximum length of a key file, in bytes.
    pub const FILE_MAX_BYTES: u64 = 128;

    /// Returns the key with these bytes.
    pub fn new(bytes: [u8; AffinityKey::LENGTH]) -> AffinityKey {
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
