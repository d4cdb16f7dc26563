//! Bcrypt (Provos and Mazières 1999): `$2y$COST$` and 53 letters of its own base64, 22 of salt and
//! 31 of hash.

use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::NO_PAD};

use super::{CostBounds, damaged, same};

/// Bcrypt ignores what follows these bytes. Two passwords that differ only after them would have
/// one hash, so longer ones are refused.
pub(super) const PASSWORD_MAX_BYTES: usize = 72;

/// The smallest cost that bcrypt defines.
const COST_MIN_LOG2: u32 = 4;

/// The last letter of the salt has four bits and that of the hash two bits that count for nothing.
/// Some tools leave them set.
const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
const LETTERS: GeneralPurpose = GeneralPurpose::new(&BCRYPT, LENIENT);

const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 23;

/// A bcrypt hash.
pub(crate) struct BcryptHash {
    cost_log2: u32,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl BcryptHash {
    /// Parses `$2a$`, `$2b$` or `$2y$`, which differ in the faults of the tools that wrote them and
    /// not in the hash.
    pub(super) fn parse(text: &str, bounds: &CostBounds) -> Result<BcryptHash, String> {
        BcryptHash::split(text).ok_or_else(|| damaged("bcrypt"))?.bounded(bounds)
    }

    fn split(text: &str) -> Option<BcryptHash> {
        let mut parts = text.split('$').skip(2);
        let (cost, rest, None) = (parts.next()?, parts.next()?, parts.next()) else {
            return None;
        };
        if cost.len() != 2 || !cost.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (salt, hash) = rest.split_at_checked(22)?;
        let cost_log2 = cost.parse().ok()?;
        let salt = LETTERS.decode(salt).ok()?.try_into().ok()?;
        let hash = LETTERS.decode(hash).ok()?.try_into().ok()?;
        Some(BcryptHash { cost_log2, salt, hash })
    }

    fn bounded(self, bounds: &CostBounds) -> Result<BcryptHash, String> {
        let cost = self.cost_log2;
        if cost < COST_MIN_LOG2 {
            return Err(damaged("bcrypt"));
        }
        let CostBounds { bcrypt_cost_max_log2: max, why, .. } = bounds;
        if cost > *max {
            return Err(format!(
                "the bcrypt cost {cost} is above the maximum of {max}{why}; make the hash again with \
                 a lower cost (`htpasswd -B -C 12`)"
            ));
        }
        Ok(self)
    }

    /// Whether `password` has this hash. False without any work for one that is longer than
    /// [`PASSWORD_MAX_BYTES`] or has a NUL, with which several passwords have one hash.
    pub(super) fn matches(&self, password: &[u8]) -> bool {
        if password.len() > PASSWORD_MAX_BYTES || password.contains(&0) {
            return false;
        }
        // The terminating NUL of C counts, if it fits.
        let mut terminated = [0; PASSWORD_MAX_BYTES];
        terminated[..password.len()].copy_from_slice(password);
        let length = (password.len() + 1).min(PASSWORD_MAX_BYTES);
        let hash = bcrypt::bcrypt(self.cost_log2, self.salt, &terminated[..length]);
        same(&hash[..HASH_BYTES], &self.hash)
    }
}
