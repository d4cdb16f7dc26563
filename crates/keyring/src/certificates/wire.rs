//! Messages on certificates as bytes.
//!
//! ```text
//! message  version (1)  flags (1)  catalogue (16)  challenges (8)  answer × 0..=16
//! answer   start (16)  challenges (8)
//! ```
//!
//! Numbers are little-endian. Flags: bit 0, the sender's last orders failed for a reason that others may not have; bit 1, it
//! has an order under way.

use model::ByteReader;

use crate::Malformed;

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum number of members whose challenges one member says that it answers. One orders at a time, normally.
pub const ANSWERS_MAX: usize = 16;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = 26 + ANSWERS_MAX * 24;

const UNABLE: u8 = 1;
const ORDERING: u8 = 2;

/// What a member says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its last orders failed for a reason that others may not have.
    pub is_unable: bool,
    /// It has an order under way.
    pub is_ordering: bool,
    /// The digest of its catalogue.
    pub catalogue: [u8; 16],
    /// The number of its challenges that are pending; 0: none are.
    pub challenges: u64,
    /// The members whose challenges it answers, by the starts of their processes, with the challenges' numbers.
    pub answers: Vec<([u8; 16], u64)>,
}

/// Returns the bytes of a message, with the first [`ANSWERS_MAX`] answers.
pub fn write(message: &Message) -> Vec<u8> {
    let Message { is_unable, is_ordering, catalogue, challenges, answers } = message;
    let flag = |is: &bool, flag| if *is { flag } else { 0 };
    let mut bytes = vec![VERSION, flag(is_unable, UNABLE) | flag(is_ordering, ORDERING)];
    bytes.extend(catalogue);
    bytes.extend(challenges.to_le_bytes());
    for (start, number) in answers.iter().take(ANSWERS_MAX) {
        bytes.extend(start);
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Returns the message in these bytes. Flags of later versions are ignored.
///
/// # Errors
///
/// If the bytes are no message.
pub fn read(bytes: &[u8]) -> Result<Message, Malformed> {
    if bytes.len() > MESSAGE_MAX_BYTES {
        return Err(Malformed);
    }
    parse(&mut ByteReader::new(bytes)).ok_or(Malformed)
}

fn parse(from: &mut ByteReader<'_>) -> Option<Message> {
    (from.u8()? == VERSION).then_some(())?;
    let flags = from.u8()?;
    let (is_unable, is_ordering) = (flags & UNABLE != 0, flags & ORDERING != 0);
    let (catalogue, challenges) = (from.array()?, from.u64()?);
    let mut answers = Vec::new();
    while !from.is_empty() {
        answers.push((from.array()?, from.u64()?));
    }
    Some(Message { is_unable, is_ordering, catalogue, challenges, answers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let answers: Vec<_> = (0..ANSWERS_MAX as u8).map(|n| ([n; 16], u64::MAX)).collect();
        let message = Message {
            is_unable: true,
            is_ordering: true,
            catalogue: [7; 16],
            challenges: 1 << 40,
            answers,
        };
        let bytes = write(&message);
        assert_eq!(bytes.len(), MESSAGE_MAX_BYTES);
        assert_eq!(read(&bytes), Ok(message.clone()));
        let least =
            Message { is_unable: false, is_ordering: false, answers: Vec::new(), ..message };
        assert_eq!(read(&write(&least)), Ok(least));
    }

    #[test]
    fn other_bytes_are_refused() {
        let message = Message {
            is_unable: false,
            is_ordering: false,
            catalogue: [1; 16],
            challenges: 0,
            answers: vec![([2; 16], 3)],
        };
        let bytes = write(&message);
        for len in (0..bytes.len()).filter(|len| *len != 26) {
            assert_eq!(read(&bytes[..len]), Err(Malformed), "{len} bytes");
        }
        let mut other = bytes.clone();
        other[0] = 2;
        assert_eq!(read(&other), Err(Malformed));
        let mut long = bytes;
        long.resize(MESSAGE_MAX_BYTES + 24, 0);
        assert_eq!(read(&long), Err(Malformed));
    }
}
