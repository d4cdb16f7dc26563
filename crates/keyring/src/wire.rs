//! Messages as bytes.
//!
//! ```text
//! message  version (1)   key × 0..=16
//! key      generation (8)  id (16)  age, s (4)
//! ```
//!
//! Numbers are little-endian.

use std::time::Duration;

use model::ByteReader;

use crate::key::{GENERATION_MAX, KEYS_MAX, KeyName};

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 1 + KEYS_MAX * KEY_BYTES;

const KEY_BYTES: usize = 28;

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns the message of a member that has these keys, the first [`KEYS_MAX`] of them.
pub fn write(keys: impl IntoIterator<Item = (KeyName, Duration)>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for (name, age) in keys.into_iter().take(KEYS_MAX) {
        bytes.extend(name.generation.to_le_bytes());
        bytes.extend(name.id);
        bytes.extend(u32::try_from(age.as_secs()).unwrap_or(u32::MAX).to_le_bytes());
    }
    bytes
}

/// Returns the keys that the sender has, and how old they are.
///
/// # Errors
///
/// If the bytes are no message.
pub fn read(bytes: &[u8]) -> Result<Vec<(KeyName, Duration)>, Malformed> {
    let mut from = ByteReader::new(bytes);
    if from.u8() != Some(VERSION) || bytes.len() > MESSAGE_MAX_BYTES {
        return Err(Malformed);
    }
    let mut keys = Vec::new();
    while !from.is_empty() {
        keys.push(key(&mut from).ok_or(Malformed)?);
    }
    Ok(keys)
}

fn key(from: &mut ByteReader<'_>) -> Option<(KeyName, Duration)> {
    let name = KeyName { generation: from.u64()?, id: from.array()? };
    let age = Duration::from_secs(from.u32()?.into());
    (name.generation <= GENERATION_MAX).then_some((name, age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let key = |n: u8| {
            let name = KeyName { generation: u64::from(n) << 40, id: [n; 16] };
            (name, Duration::from_secs(n.into()))
        };
        let keys: Vec<_> = (0..KEYS_MAX as u8).map(key).collect();
        let bytes = write(keys.clone());
        assert_eq!(bytes.len(), MESSAGE_MAX_BYTES);
        assert_eq!(read(&bytes), Ok(keys));
        assert_eq!(read(&write([])), Ok(Vec::new()));
    }

    #[test]
    fn other_bytes_are_refused() {
        let name = KeyName { generation: 1, id: [1; 16] };
        let bytes = write([(name, Duration::ZERO)]);
        for len in (0..bytes.len()).filter(|len| *len != 1) {
            assert_eq!(read(&bytes[..len]), Err(Malformed), "{len} bytes");
        }
        assert_eq!(read(&[2]), Err(Malformed));
        let long = [&[VERSION][..], &[0; (KEYS_MAX + 1) * KEY_BYTES]].concat();
        assert_eq!(read(&long), Err(Malformed));
        let far = KeyName { generation: GENERATION_MAX + 1, id: [1; 16] };
        assert_eq!(read(&write([(far, Duration::ZERO)])), Err(Malformed));
    }
}
