//! Messages as bytes.
//!
//! ```text
//! message  version (1)  number (8)  got (8)  got before (8)
//!          offered (8)  offer (4)  seen (4)  committed (8)
//!          epoch (8)  seen epoch (8)  ends after, s (4)  flags (1)   row × 0..=23
//! row      server (8)  lent (8)  returned (8)  given back (8)  called back (8)  wanted (2)  of before (2)
//! ```
//!
//! Numbers are little-endian. Flags: 1 the sender's offer is complete, 2 it has servers.

use model::ByteReader;

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = HEADER_BYTES + ROWS_MAX * ROW_BYTES;
/// Maximum number of rows in a message.
pub const ROWS_MAX: usize = 23;

const HEADER_BYTES: usize = 70;
const ROW_BYTES: usize = 44;

const COMPLETE: u8 = 1;
const HAS_SERVERS: u8 = 2;

/// What one member tells another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Counts the messages to this receiver, from 1.
    pub number: u64,
    /// The highest number that was received from it, and which of the 64 before it (bit 0: the one before).
    pub got: (u64, u64),
    /// About its table.
    pub offer: Offer,
    /// Grows when the sender takes back all that it had lent to the receiver, and when it knew nothing of it any more.
    pub epoch: u64,
    /// The receiver's epoch that the sender has seen.
    pub seen_epoch: u64,
    /// Its process ends within so many seconds; 0: it does not end.
    pub ends_after_s: u32,
    /// The sender shares the limits of some servers: it wants to be answered.
    pub has_servers: bool,
    /// What has changed about servers.
    pub rows: Vec<Row>,
}

/// What a member says about its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The digest of the table that it offers; 0: none at present.
    pub offered: u64,
    /// Counts its offers.
    pub number: u32,
    /// The digest of the table that it committed last; 0: none yet.
    pub committed: u64,
    /// The number of the receiver's offer that it has seen.
    pub seen: u32,
    /// It has told the receiver all that it holds of the receiver's slots.
    pub is_complete: bool,
}

/// What one member tells another about the slots of one server. Totals are since both processes started,
/// within an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The hash of the server's name.
    pub server: u64,
    /// The total that the sender has lent to the receiver.
    pub lent: u64,
    /// How many of these it knows to be given back.
    pub returned: u64,
    /// The total that the sender has given back to the receiver.
    pub given_back: u64,
    /// The total that the sender wants back of what it has lent.
    pub called_back: u64,
    /// How many more slots the sender could use.
    pub wanted: u16,
    /// How many the sender still uses of those that an earlier process of the receiver had lent.
    pub of_before: u16,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short, too long, or its last row is incomplete.
    Length,
    /// Another version of the format.
    Version(u8),
}

/// Appends a message to `into`.
pub fn write(message: &Message, into: &mut Vec<u8>) {
    let Message { number, got, offer, epoch, seen_epoch, ends_after_s, has_servers, rows } =
        message;
    into.push(VERSION);
    for number in [*number, got.0, got.1] {
        into.extend(number.to_le_bytes());
    }
    into.extend(offer.offered.to_le_bytes());
    into.extend(offer.number.to_le_bytes());
    into.extend(offer.seen.to_le_bytes());
    into.extend(offer.committed.to_le_bytes());
    into.extend(epoch.to_le_bytes());
    into.extend(seen_epoch.to_le_bytes());
    into.extend(ends_after_s.to_le_bytes());
    into.push(u8::from(offer.is_complete) * COMPLETE + u8::from(*has_servers) * HAS_SERVERS);
    for row in rows.iter().take(ROWS_MAX) {
        into.extend(row.server.to_le_bytes());
        for number in [row.lent, row.returned, row.given_back, row.called_back] {
            into.extend(number.to_le_bytes());
        }
        into.extend(row.wanted.to_le_bytes());
        into.extend(row.of_before.to_le_bytes());
    }
}

/// Returns the message in `bytes`.
///
/// # Errors
///
/// If they are none.
pub fn read(bytes: &[u8]) -> Result<Message, Malformed> {
    match bytes.first() {
        Some(&VERSION) => {}
        Some(&other) => return Err(Malformed::Version(other)),
        None => return Err(Malformed::Length),
    }
    let mut from = ByteReader::new(bytes.get(1..).unwrap_or_default());
    let message = message(&mut from).ok_or(Malformed::Length)?;
    let is_whole = from.is_empty() && message.rows.len() <= ROWS_MAX;
    is_whole.then_some(message).ok_or(Malformed::Length)
}

fn message(from: &mut ByteReader<'_>) -> Option<Message> {
    let (number, got) = (from.u64()?, (from.u64()?, from.u64()?));
    let (offered, offer, seen, committed) = (from.u64()?, from.u32()?, from.u32()?, from.u64()?);
    let (epoch, seen_epoch, ends_after_s) = (from.u64()?, from.u64()?, from.u32()?);
    let flags = from.u8()?;
    let (is_complete, has_servers) = (flags & COMPLETE != 0, flags & HAS_SERVERS != 0);
    let offer = Offer { offered, number: offer, committed, seen, is_complete };
    let mut rows = Vec::new();
    while from.len() >= ROW_BYTES && rows.len() <= ROWS_MAX {
        rows.push(Row {
            server: from.u64()?,
            lent: from.u64()?,
            returned: from.u64()?,
            given_back: from.u64()?,
            called_back: from.u64()?,
            wanted: from.u16()?,
            of_before: from.u16()?,
        });
    }
    Some(Message { number, got, offer, epoch, seen_epoch, ends_after_s, has_servers, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let offer = Offer { offered: 1, number: 2, committed: 3, seen: 4, is_complete: true };
        let row = Row {
            server: u64::MAX,
            lent: 7,
            returned: 6,
            given_back: 8,
            called_back: 9,
            wanted: 10,
            of_before: 11,
        };
        for rows in [vec![], vec![row; ROWS_MAX]] {
            let message = Message {
                number: 5,
                got: (6, 7),
                offer,
                epoch: 8,
                seen_epoch: 9,
                ends_after_s: 10,
                has_servers: true,
                rows,
            };
            let mut bytes = Vec::new();
            write(&message, &mut bytes);
            assert!(bytes.len() <= MESSAGE_MAX_BYTES);
            assert_eq!(read(&bytes), Ok(message));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(read(cut), Err(Malformed::Length));
            bytes.push(0);
            assert_eq!(read(&bytes), Err(Malformed::Length));
            bytes.extend([0; ROW_BYTES - 1]);
            assert_eq!(read(&bytes).is_ok(), bytes.len() <= MESSAGE_MAX_BYTES);
            bytes[0] = 9;
            assert_eq!(read(&bytes), Err(Malformed::Version(9)));
        }
        assert_eq!(read(&[]), Err(Malformed::Length));
    }
}
