//! Seals the datagrams of one start of a member.

use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey};
use aws_lc_rs::error::Unspecified;

use super::PAYLOAD_MAX;
use super::key::{COUNTER_END, HEADER_BYTES, Key, KeyId, KeyRefused, VERSION, nonce};
use crate::start::StartId;

/// Why a payload was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealRefused {
    /// The payload has more than [`PAYLOAD_MAX`] bytes: its length.
    TooLong(usize),
    /// Every counter of this start has been used. Restart the process.
    Exhausted,
    /// The cryptographic library failed.
    Library,
}

impl fmt::Display for SealRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealRefused::TooLong(len) => {
                write!(f, "a payload has {len} bytes; a datagram carries at most {PAYLOAD_MAX}")
            }
            SealRefused::Exhausted => f.write_str("all counters of this start were used"),
            SealRefused::Library => {
                f.write_str("the cryptographic library could not seal a datagram")
            }
        }
    }
}

impl std::error::Error for SealRefused {}

/// Seals datagrams. A process has one; with two of the same start id, nonces would repeat, so it cannot be
/// cloned.
pub struct Sealer {
    key: KeyId,
    start: StartId,
    subkey: LessSafeKey,
    counter: u64,
}

impl Sealer {
    /// Seals with this key for this start of the process. The start id must be random and new.
    ///
    /// # Errors
    /// If the cryptographic library fails.
    pub fn new(key: &Key, start: StartId) -> Result<Sealer, KeyRefused> {
        let subkey = key.of_start(start).map_err(|Unspecified| KeyRefused::Library)?;
        Ok(Sealer { key: key.id(), start, subkey, counter: 0 })
    }

    /// Seals with another key from now on. The counter continues, so the change is safe even back to a key
    /// that was used before.
    ///
    /// # Errors
    /// If the cryptographic library fails: the old key stays.
    pub fn set_key(&mut self, key: &Key) -> Result<(), KeyRefused> {
        self.subkey = key.of_start(self.start).map_err(|Unspecified| KeyRefused::Library)?;
        self.key = key.id();
        Ok(())
    }

    /// Writes the datagram with this payload into `into`, whose content is replaced.
    ///
    /// # Errors
    /// If the payload is too long, the counters are used up, or the library fails. `into` is then empty.
    pub fn seal(&mut self, payload: &[u8], into: &mut Vec<u8>) -> Result<(), SealRefused> {
        into.clear();
        if payload.len() > PAYLOAD_MAX {
            return Err(SealRefused::TooLong(payload.len()));
        }
        let counter = self.counter + 1;
        if counter >= COUNTER_END {
            return Err(SealRefused::Exhausted);
        }
        // Counted even if sealing fails: a nonce is never tried twice.
        self.counter = counter;
        into.push(VERSION);
        into.extend_from_slice(&self.key.0);
        into.extend_from_slice(&self.start.0);
        into.extend_from_slice(&counter.to_be_bytes());
        into.extend_from_slice(payload);
        let tag = into.split_at_mut_checked(HEADER_BYTES).and_then(|(header, body)| {
            self.subkey.seal_in_place_separate_tag(nonce(counter), Aad::from(&*header), body).ok()
        });
        let Some(tag) = tag else {
            into.clear();
            return Err(SealRefused::Library);
        };
        into.extend_from_slice(tag.as_ref());
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, counter: u64) {
        self.counter = counter;
    }
}

/// Shows the ids, never a key.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer(key {}, start {}, counter {})", self.key, self.start, self.counter)
    }
}
