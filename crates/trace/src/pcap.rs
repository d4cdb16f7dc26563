//! Reads libpcap's classic format: a header of 24 bytes, then packets, each with its own header.
//!
//! Supports both byte orders, microseconds and nanoseconds, and the longer packet headers of the "modified"
//! format (magic a1b2cd34).

use crate::found::{Found, PACKET_MAX_BYTES};

/// What the file's header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pcap {
    is_little: bool,
    /// Nanoseconds per unit of the fraction.
    fraction_ns: i64,
    link: u32,
    header_bytes: usize,
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

impl Pcap {
    /// Whether a file that begins so is one.
    pub(crate) fn knows(magic: [u8; 4]) -> bool {
        let known = |number| matches!(number, MICROSECONDS | NANOSECONDS | MODIFIED);
        known(u32::from_le_bytes(magic)) || known(u32::from_be_bytes(magic))
    }

    /// Reads the file's header.
    pub(crate) fn open(header: &[u8; 24]) -> Result<Pcap, String> {
        let is_little = header[3] == 0xa1;
        let word = |at: usize| word(header, at, is_little);
        let magic = word(0);
        let major = if is_little { header[4] } else { header[5] };
        if major != 2 {
            return Err(format!("pcap of version {major}, of which only 2 is known"));
        }
        Ok(Pcap {
            is_little,
            fraction_ns: if magic == NANOSECONDS { 1 } else { 1_000 },
            // The upper bits tell of the frame check sequence.
            link: word(20) & 0xffff,
            header_bytes: if magic == MODIFIED { 24 } else { 16 },
        })
    }

    /// The packet at the beginning of `bytes`.
    pub(crate) fn next(&self, bytes: &[u8]) -> Found {
        if bytes.len() < self.header_bytes {
            return Found::Need(self.header_bytes);
        }
        let word = |at: usize| word(bytes, at, self.is_little);
        let captured = word(8) as usize;
        if captured > PACKET_MAX_BYTES {
            return Found::Broken(format!(
                "a packet of {captured} bytes, more than the {PACKET_MAX_BYTES} that a capture \
                 holds at most: the file is damaged here"
            ));
        }
        let consumed = self.header_bytes + captured;
        if bytes.len() < consumed {
            return Found::Need(consumed);
        }
        let seconds = i64::from(word(0));
        let fraction = i64::from(word(4)) * self.fraction_ns;
        Found::Record {
            time_ns: seconds * 1_000_000_000 + fraction,
            link: self.link,
            wire_bytes: word(12),
            start: self.header_bytes,
            end: consumed,
            consumed,
        }
    }
}

/// The 32 bits at `at`; 0 beyond the end, which callers have excluded.
pub(crate) fn word(bytes: &[u8], at: usize, is_little: bool) -> u32 {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or([0; 4]);
    if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
}

/// The 16 bits at `at`; 0 beyond the end.
pub(crate) fn half(bytes: &[u8], at: usize, is_little: bool) -> u16 {
    let two = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).copied().unwrap_or([0; 2]);
    if is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) }
}
