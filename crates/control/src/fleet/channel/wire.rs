//! Requests, and the answer with the keys of session tickets, as bytes.
//!
//! ```text
//! request  version (1)  what: 1 the keys of session tickets, 2 certificates (1)
//! answer   version (1)  key × 0..=16
//! key      generation (8)  id (16)  age, s (4)  secret (32)
//! ```
//!
//! Numbers are little-endian.

use std::time::Duration;

use keyring::{KEYS_MAX, KeyName};
use model::{ByteReader, Moment};
use tls::TicketKey;
use zeroize::Zeroizing;

use super::{Secret, SecretKey};

const VERSION: u8 = 1;

pub(super) const REQUEST_BYTES: usize = 2;
/// The request for the keys of session tickets.
pub(super) const TICKET_KEYS: [u8; REQUEST_BYTES] = [VERSION, 1];
/// The request for certificates.
pub(super) const CERTIFICATES: [u8; REQUEST_BYTES] = [VERSION, 2];
/// Maximum length of an answer.
pub(super) const ANSWER_MAX_BYTES: usize = 1 + KEYS_MAX * KEY_BYTES;

const KEY_BYTES: usize = 60;

/// Returns the answer with these keys, the first [`KEYS_MAX`] of them.
pub(super) fn answer(keys: &[SecretKey], now: Moment) -> Zeroizing<Vec<u8>> {
    // Its capacity is fixed: growing would leave copies of secrets behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(ANSWER_MAX_BYTES));
    bytes.push(VERSION);
    for one in keys.iter().take(KEYS_MAX) {
        bytes.extend(one.name.generation.to_le_bytes());
        bytes.extend(one.name.id);
        let age = one.key().age(now).as_secs();
        bytes.extend(u32::try_from(age).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(*one.secret.0);
    }
    bytes
}

/// Returns the keys in an answer; `None`: malformed, or an id is not that of its secret.
pub(super) fn read(bytes: &[u8], now: Moment) -> Option<Vec<SecretKey>> {
    let mut from = ByteReader::new(bytes);
    if from.u8() != Some(VERSION) || bytes.len() > ANSWER_MAX_BYTES {
        return None;
    }
    let mut keys = Vec::with_capacity(KEYS_MAX);
    while !from.is_empty() {
        let name = KeyName { generation: from.u64()?, id: from.array()? };
        let age = (Duration::from_secs(from.u32()?.into()), now);
        let secret = Secret(Zeroizing::new(from.array()?));
        (TicketKey::id(&secret.0) == name.id).then_some(())?;
        keys.push(SecretKey { name, age, secret });
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_millis(50_000);

    fn key(n: u8) -> SecretKey {
        SecretKey {
            name: KeyName { generation: u64::from(n), id: TicketKey::id(&[n; 32]) },
            age: (Duration::from_secs(n.into()), NOW),
            secret: Secret(Zeroizing::new([n; 32])),
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let keys: Vec<SecretKey> = (0..KEYS_MAX as u8).map(key).collect();
        let bytes = answer(&keys, NOW);
        assert_eq!(bytes.len(), ANSWER_MAX_BYTES);
        assert_eq!(read(&bytes, NOW), Some(keys));
        assert_eq!(read(&answer(&[], NOW), NOW), Some(Vec::new()));
        assert_eq!(format!("{:?}", key(7).secret), "Secret(..)");
    }

    #[test]
    fn other_bytes_are_none() {
        let bytes = answer(&[key(1)], NOW);
        for len in (0..bytes.len()).filter(|len| *len != 1) {
            assert_eq!(read(&bytes[..len], NOW), None, "{len} bytes");
        }
        assert_eq!(read(&[2], NOW), None);
        let other = KeyName { generation: 1, id: [1; 16] };
        assert_eq!(read(&answer(&[SecretKey { name: other, ..key(1) }], NOW), NOW), None);
        let long = [&[VERSION][..], &[0; (KEYS_MAX + 1) * KEY_BYTES]].concat();
        assert_eq!(read(&long, NOW), None);
    }
}
