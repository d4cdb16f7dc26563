//! Reads pcapng (draft-ietf-opsawg-pcapng): blocks, each with its type and length.
//!
//! Reads section headers (byte order), interfaces (link type, resolution and offset of times), enhanced,
//! simple and obsolete packets, and interface statistics (drops). Skips all other blocks, such as names,
//! secrets, comments and unknown ones, whatever their length.

use crate::found::{Found, PACKET_MAX_BYTES};
use crate::pcap::{half, word};

/// Interfaces of a section that are remembered. A file with more is refused.
pub const INTERFACES_MAX: usize = 4_096;
/// Longest description of an interface that is read, in bytes.
const DESCRIPTION_MAX_BYTES: usize = 65_536;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;
const JOURNAL: u32 = 9;
const CUSTOM: u32 = 0x0bad;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    snaplen: u32,
    /// Units per second.
    units: u128,
    offset_s: i64,
}

/// What the blocks so far have said.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    is_little: bool,
    has_section: bool,
    interfaces: Vec<Interface>,
    /// The newest statistics by interface of this section, and the sum of earlier sections.
    drops: Vec<Option<u64>>,
    drops_before: Option<u64>,
}

impl Pcapng {
    pub(crate) fn dropped(&self) -> Option<u64> {
        let here = self.drops.iter().flatten().copied();
        let all: Vec<u64> = here.chain(self.drops_before).collect();
        (!all.is_empty()).then(|| all.iter().fold(0_u64, |sum, one| sum.saturating_add(*one)))
    }

    /// The block at the beginning of `bytes`.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Found {
        if bytes.len() < 12 {
            return Found::Need(12);
        }
        let is_section = bytes[..4] == [0x0a, 0x0d, 0x0d, 0x0a];
        if is_section {
            let is_little = match bytes[8..12] {
                [0x4d, 0x3c, 0x2b, 0x1a] => true,
                [0x1a, 0x2b, 0x3c, 0x4d] => false,
                _ => return Found::Broken("a pcapng section without its byte-order mark".into()),
            };
            self.begin_section(is_little);
        } else if !self.has_section {
            return Found::Broken("a pcapng block before any section".into());
        }
        let kind = word(bytes, 0, self.is_little);
        let length = word(bytes, 4, self.is_little) as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Found::Broken(format!("a pcapng block of {length} bytes, which cannot be"));
        }
        // tshark gives these frame numbers, though they are no packets.
        if matches!(kind, JOURNAL | CUSTOM | CUSTOM_NOT_COPIED) {
            return Found::NoPacket { consumed: length };
        }
        let known = matches!(kind, INTERFACE | PACKET | SIMPLE | STATISTICS | ENHANCED);
        if !known || kind == SECTION {
            return Found::Passed { consumed: length };
        }
        let is_packet = matches!(kind, PACKET | SIMPLE | ENHANCED);
        // A packet's options may hold comments.
        let most = if is_packet { PACKET_MAX_BYTES + 65_536 } else { DESCRIPTION_MAX_BYTES };
        if length > most {
            return Found::Broken(format!(
                "a pcapng block of type {kind} with {length} bytes; at most {most} are read"
            ));
        }
        if bytes.len() < length {
            return Found::Need(length);
        }
        let body = &bytes[8..length - 4];
        match kind {
            INTERFACE => self.interface(body, length),
            STATISTICS => {
                self.statistics(body);
                Found::Passed { consumed: length }
            }
            SIMPLE => self.simple(body, length),
            _ => self.packet(kind, body, length),
        }
    }

    fn begin_section(&mut self, is_little: bool) {
        self.drops_before = self.dropped();
        self.drops.clear();
        self.interfaces.clear();
        self.has_section = true;
        self.is_little = is_little;
    }

    fn interface(&mut self, body: &[u8], length: usize) -> Found {
        if body.len() < 8 {
            return Found::Broken("a pcapng interface of too few bytes".into());
        }
        if self.interfaces.len() >= INTERFACES_MAX {
            return Found::Broken(format!("more than {INTERFACES_MAX} interfaces"));
        }
        let (mut units, mut offset_s) = (1_000_000, 0);
        for (code, value) in options(&body[8..], self.is_little) {
            match (code, value) {
                (9, [resolution, ..]) => units = units_per_second(*resolution),
                (14, value) if value.len() >= 8 => {
                    let (one, two) =
                        (word(value, 0, self.is_little), word(value, 4, self.is_little));
                    let (high, low) = if self.is_little { (two, one) } else { (one, two) };
                    offset_s = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                }
                _ => {}
            }
        }
        let link = u32::from(half(body, 0, self.is_little));
        let snaplen = word(body, 4, self.is_little);
        self.interfaces.push(Interface { link, snaplen, units, offset_s });
        self.drops.push(None);
        Found::Passed { consumed: length }
    }

    fn statistics(&mut self, body: &[u8]) {
        if body.len() < 12 {
            return;
        }
        let id = word(body, 0, self.is_little) as usize;
        for (code, value) in options(&body[12..], self.is_little) {
            // isb_ifdrop and isb_osdrop: 64 bits, of which the lower 32 are enough to tell.
            if matches!(code, 5 | 7) && value.len() >= 8 {
                let at = if self.is_little { 0 } else { 4 };
                if let Some(drops) = self.drops.get_mut(id) {
                    let more = u64::from(word(value, at, self.is_little));
                    *drops = Some(drops.unwrap_or(0).max(more));
                }
            }
        }
    }

    fn simple(&self, body: &[u8], length: usize) -> Found {
        let Some(interface) = self.interfaces.first() else {
            return Found::Broken("a simple packet before any interface".into());
        };
        let wire_bytes = word(body, 0, self.is_little);
        let mut captured = (wire_bytes as usize).min(body.len().saturating_sub(4));
        if interface.snaplen != 0 {
            captured = captured.min(interface.snaplen as usize);
        }
        let link = interface.link;
        Found::Record {
            time_ns: 0,
            link,
            wire_bytes,
            start: 12,
            end: 12 + captured,
            consumed: length,
        }
    }

    fn packet(&self, kind: u32, body: &[u8], length: usize) -> Found {
        if body.len() < 20 {
            return Found::Broken("a pcapng packet of too few bytes".into());
        }
        let id = match kind {
            ENHANCED => word(body, 0, self.is_little),
            _ => u32::from(half(body, 0, self.is_little)),
        };
        let Some(interface) = self.interfaces.get(id as usize) else {
            return Found::Broken(format!("a packet of interface {id}, which was not described"));
        };
        let field = |at| word(body, at, self.is_little);
        let captured = field(12) as usize;
        if captured > PACKET_MAX_BYTES || captured > body.len() - 20 {
            return Found::Broken(format!("a packet of {captured} bytes in a block of {length}"));
        }
        let units = u64::from(field(4)) << 32 | u64::from(field(8));
        Found::Record {
            time_ns: interface.time_ns(units),
            link: interface.link,
            wire_bytes: field(16),
            start: 28,
            end: 28 + captured,
            consumed: length,
        }
    }
}

impl Interface {
    /// Nanoseconds since 1970, cut off as tshark does.
    fn time_ns(&self, units: u64) -> i64 {
        let ns = if self.units == 1_000_000 {
            units.wrapping_mul(1_000).cast_signed()
        } else {
            (u128::from(units) * 1_000_000_000 / self.units) as i64
        };
        ns.wrapping_add(self.offset_s.wrapping_mul(1_000_000_000))
    }
}

/// `if_tsresol`: a power of ten, or of two when its highest bit is set.
fn units_per_second(resolution: u8) -> u128 {
    let power = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(power).unwrap_or(u128::MAX).max(1)
}

/// A block's options: code and value, up to the first that does not fit.
fn options(bytes: &[u8], is_little: bool) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let code = (rest.len() >= 4).then(|| half(rest, 0, is_little)).filter(|code| *code != 0)?;
        let length = usize::from(half(rest, 2, is_little));
        let value = rest.get(4..4 + length)?;
        rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}
