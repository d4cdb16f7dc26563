//! The shared key, its public id, and the key of one sender that is derived from it.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

use crate::start::StartId;

/// Version, key id, start id and counter.
pub(super) const HEADER_BYTES: usize = 1 + KeyId::BYTES + StartId::BYTES + 8;
/// The tag of AES-256-GCM.
pub(super) const TAG_BYTES: usize = 16;
/// The only version of the layout.
pub(super) const VERSION: u8 = 1;
/// Counters are below this. At a million datagrams a second, it takes 292,000 years.
pub(super) const COUNTER_END: u64 = 1 << 63;

/// The shortest text that is accepted as a secret: 32 bytes, 128 bits as hexadecimal digits.
pub const SECRET_BYTES_MIN: usize = 32;
/// The longest text that is accepted as a secret.
pub const SECRET_BYTES_MAX: usize = 4_096;

/// Why a text is not accepted as a fleet's secret. Never contains the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRefused {
    /// Shorter than [`SECRET_BYTES_MIN`]: its length.
    Short(usize),
    /// Longer than [`SECRET_BYTES_MAX`]: its length.
    Long(usize),
    /// The cryptographic library failed.
    Library,
}

impl fmt::Display for KeyRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRefused::Short(len) => write!(
                f,
                "the fleet's key has {len} bytes; at least {SECRET_BYTES_MIN} are needed, as from `openssl rand -hex 32`"
            ),
            KeyRefused::Long(len) => {
                write!(
                    f,
                    "the fleet's key has {len} bytes; at most {SECRET_BYTES_MAX} are accepted"
                )
            }
            KeyRefused::Library => {
                f.write_str("the cryptographic library could not derive the fleet's key")
            }
        }
    }
}

impl std::error::Error for KeyRefused {}

/// Names a key in datagrams and in logs. Derived from the secret, but reveals nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(super) [u8; KeyId::BYTES]);

impl KeyId {
    pub(super) const BYTES: usize = 4;
}

/// Hexadecimal digits.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The key that all members of a fleet share. Its memory is cleared when the last copy is dropped.
#[derive(Clone)]
pub struct Key {
    id: KeyId,
    derived: Prk,
}

impl Key {
    /// Derives the key from a secret's text, as a file contains it: white space around it is ignored.
    ///
    /// # Errors
    /// If the text has fewer than [`SECRET_BYTES_MIN`] or more than [`SECRET_BYTES_MAX`] bytes.
    pub fn from_secret(text: &[u8]) -> Result<Key, KeyRefused> {
        let secret = text.trim_ascii();
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeyRefused::Short(secret.len()));
        }
        if secret.len() > SECRET_BYTES_MAX {
            return Err(KeyRefused::Long(secret.len()));
        }
        let derived = Salt::new(HKDF_SHA256, b"weir fleet key v1").extract(secret);
        let id = derive_id(&derived).map_err(|Unspecified| KeyRefused::Library)?;
        Ok(Key { id, derived })
    }

    /// Returns its public id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns a key for another purpose, which `label` names.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn derive(&self, label: &str) -> Result<[u8; 32], KeyRefused> {
        let info = [b"weir fleet ".as_slice(), label.as_bytes()];
        let mut key = [0; 32];
        let filled = self.derived.expand(&info, HKDF_SHA256).and_then(|okm| okm.fill(&mut key));
        filled.map_err(|Unspecified| KeyRefused::Library)?;
        Ok(key)
    }

    /// Returns the key with which this start of a member seals.
    pub(super) fn of_start(&self, start: StartId) -> Result<LessSafeKey, Unspecified> {
        let info = [b"weir fleet datagram v1".as_slice(), &start.0];
        let subkey = self.derived.expand(&info, &AES_256_GCM)?;
        Ok(LessSafeKey::new(UnboundKey::from(subkey)))
    }
}

/// Shows the id, never the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.id)
    }
}

fn derive_id(derived: &Prk) -> Result<KeyId, Unspecified> {
    struct IdLength;
    impl KeyType for IdLength {
        fn len(&self) -> usize {
            KeyId::BYTES
        }
    }
    let mut id = [0; KeyId::BYTES];
    derived.expand(&[b"weir fleet key id v1"], IdLength)?.fill(&mut id)?;
    Ok(KeyId(id))
}

/// Returns the 96-bit nonce of a counter.
pub(super) fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    if let Some((_, low)) = bytes.split_last_chunk_mut() {
        *low = counter.to_be_bytes();
    }
    Nonce::assume_unique_for_key(bytes)
}
