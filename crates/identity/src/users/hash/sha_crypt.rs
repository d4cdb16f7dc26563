//! SHA-crypt (Drepper 2008): `$5$` (SHA-256) or `$6$` (SHA-512), an optional `rounds=N$`, a salt of
//! up to 16 characters, and the hash in crypt's own base64 with its bytes in an order of their own.

use sha_crypt::{Params, sha256_crypt, sha512_crypt};

use super::super::PASSWORD_MAX_BYTES;
use super::{CostBounds, damaged, same};

/// Every round hashes the password once or twice, so a long one multiplies the cost. The most bytes
/// that all rounds together hash because of it; passwords of 128 bytes are accepted in any case.
const PASSWORD_WORK_MAX_BYTES: usize = 128 * 1_000_000;
const PASSWORD_ALWAYS_BYTES: usize = 128;

/// The rounds of a hash that does not say how many.
const ROUNDS_DEFAULT: u32 = 5_000;

/// Longer salts are cut off, so no tool writes one.
const SALT_MAX_BYTES: usize = 16;

/// A SHA-crypt hash.
pub(crate) struct ShaCryptHash {
    is_sha512: bool,
    rounds: u32,
    params: Params,
    salt: String,
    /// As in the file: comparing texts saves decoding this base64.
    hash: String,
}

impl ShaCryptHash {
    /// Parses the text of a hash.
    pub(super) fn parse(text: &str, bounds: &CostBounds) -> Result<ShaCryptHash, String> {
        let is_sha512 = text.starts_with("$6$");
        let mut rest = text.get(3..).unwrap_or_default();
        let mut rounds = ROUNDS_DEFAULT;
        if let Some(after) = rest.strip_prefix("rounds=") {
            let (digits, after) = after.split_once('$').ok_or_else(|| damaged("SHA-crypt"))?;
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(damaged("SHA-crypt"));
            }
            rounds = digits.parse().unwrap_or(u32::MAX);
            rest = after;
        }
        let CostBounds { sha_crypt_rounds_max: max, why, .. } = bounds;
        if rounds > *max {
            return Err(format!(
                "the SHA-crypt hash asks for more than the maximum of {max} rounds{why}; make the \
                 hash again with fewer (`mkpasswd -m sha512crypt -R 100000`)"
            ));
        }
        let (salt, hash) = rest.split_once('$').ok_or_else(|| damaged("SHA-crypt"))?;
        let length = if is_sha512 { 86 } else { 43 };
        let is_whole = salt.len() <= SALT_MAX_BYTES
            && hash.len() == length
            && hash.bytes().all(super::is_crypt_letter);
        match Params::new(rounds) {
            Ok(params) if is_whole => Ok(ShaCryptHash {
                is_sha512,
                rounds,
                params,
                salt: salt.to_owned(),
                hash: hash.to_owned(),
            }),
            _ => Err(damaged("SHA-crypt")),
        }
    }

    /// Returns the length of the longest password that is verified.
    pub(super) fn password_max_bytes(&self) -> usize {
        let bytes = PASSWORD_WORK_MAX_BYTES / self.rounds as usize;
        bytes.clamp(PASSWORD_ALWAYS_BYTES, PASSWORD_MAX_BYTES)
    }

    /// Whether `password` has this hash.
    pub(super) fn matches(&self, password: &[u8]) -> bool {
        let salt = self.salt.as_bytes();
        let text = if self.is_sha512 {
            letters(&sha512_crypt(password, salt, self.params))
        } else {
            letters(&sha256_crypt(password, salt, self.params))
        };
        same(text.as_bytes(), self.hash.as_bytes())
    }
}

/// Returns the letters that crypt writes for a digest. Three bytes at a time, a third of the digest
/// apart, make four letters, lowest bits first; from one group to the next the three bytes change
/// places and each moves on by one.
fn letters(digest: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let third = digest.len() / 3;
    let mut text = String::with_capacity(86);
    let mut put = |bytes: [u8; 3], count: usize| {
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        text.extend((0..count).map(|at| char::from(ALPHABET[(bits >> (6 * at)) as usize & 63])));
    };
    // SHA-256 rotates to the right, SHA-512 to the left.
    let turn = if digest.len() == 64 { 1 } else { 2 };
    for group in 0..third {
        let at = |place: usize| digest[(place + group * turn) % 3 * third + group];
        put([at(0), at(1), at(2)], 4);
    }
    match &digest[3 * third..] {
        [last] => put([0, 0, *last], 2),
        [before, last] => put([0, *last, *before], 3),
        _ => {}
    }
    text
}
