//! Messages as bytes.
//!
//! ```text
//! message  version (1)  turn (4)   row × 0..=44
//! row      key (8)  limit (4)  total (4)  recent (4)  demand, requests per 1,000 s (4)
//! ```
//!
//! Numbers are little-endian.

use model::ByteReader;

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum number of rows in a message.
pub const ROWS_MAX: usize = 44;
/// Maximum length of a message, in bytes.
pub const MESSAGE_MAX_BYTES: usize = HEADER_BYTES + ROWS_MAX * ROW_BYTES;

const HEADER_BYTES: usize = 5;
const ROW_BYTES: usize = 24;

/// What one member says about one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: u64,
    /// The number of its limit.
    pub limit: u32,
    /// Requests that have passed at the sender since the key came into use there; wraps around.
    pub total: u32,
    /// Those since its last row about this key.
    pub recent: u32,
    /// Requests per 1,000 s, those that were refused included.
    pub demand: u32,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Too short, too long, or its last row is incomplete.
    Length,
    /// Another version of the format.
    Version(u8),
}

/// Returns the message with these rows, of which the first [`ROWS_MAX`] fit.
pub fn write(turn: u32, rows: &[Row]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + rows.len() * ROW_BYTES);
    bytes.push(VERSION);
    bytes.extend(turn.to_le_bytes());
    for row in rows.iter().take(ROWS_MAX) {
        bytes.extend(row.key.to_le_bytes());
        for number in [row.limit, row.total, row.recent, row.demand] {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

/// Returns the turn of the sender, and its rows.
///
/// # Errors
///
/// If the bytes are no message.
pub fn read(bytes: &[u8]) -> Result<(u32, Vec<Row>), Malformed> {
    match bytes.first() {
        Some(&VERSION) => {}
        Some(&other) => return Err(Malformed::Version(other)),
        None => return Err(Malformed::Length),
    }
    let (header, rows) = bytes.split_at_checked(HEADER_BYTES).ok_or(Malformed::Length)?;
    let turn = header.last_chunk().map_or(0, |turn| u32::from_le_bytes(*turn));
    if bytes.len() > MESSAGE_MAX_BYTES || rows.len() % ROW_BYTES != 0 {
        return Err(Malformed::Length);
    }
    Ok((turn, rows.chunks_exact(ROW_BYTES).filter_map(row).collect()))
}

fn row(bytes: &[u8]) -> Option<Row> {
    let mut from = ByteReader::new(bytes);
    Some(Row {
        key: from.u64()?,
        limit: from.u32()?,
        total: from.u32()?,
        recent: from.u32()?,
        demand: from.u32()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let row = |n: u32| Row {
            key: u64::MAX - u64::from(n),
            limit: n,
            total: n + 1,
            recent: n + 2,
            demand: u32::MAX - n,
        };
        let rows: Vec<Row> = (0..ROWS_MAX as u32).map(row).collect();
        let bytes = write(7, &rows);
        assert_eq!(bytes.len(), MESSAGE_MAX_BYTES);
        assert_eq!(read(&bytes), Ok((7, rows)));
        assert_eq!(read(&write(u32::MAX, &[])), Ok((u32::MAX, Vec::new())));
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = write(1, &[Row::default()]);
        for length in (1..bytes.len()).filter(|&length| length != HEADER_BYTES) {
            assert_eq!(read(&bytes[..length]), Err(Malformed::Length), "{length}");
        }
        assert_eq!(read(&[]), Err(Malformed::Length));
        assert_eq!(read(&[2, 0, 0, 0, 0]), Err(Malformed::Version(2)));
        let long = [&write(1, &[Row::default(); ROWS_MAX])[..], &[0; ROW_BYTES]].concat();
        assert_eq!(read(&long), Err(Malformed::Length));
    }
}
