//! Parses TCP headers, and the addresses of both ends.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Around, Decoded, Options, Undecoded, View};

/// The bits of TCP's flags.
pub mod bits {
    /// No more data will come.
    pub const FIN: u16 = 0x01;
    /// A connection begins.
    pub const SYN: u16 = 0x02;
    /// It is broken off.
    pub const RST: u16 = 0x04;
    /// Deliver what is there.
    pub const PSH: u16 = 0x08;
    /// The acknowledgement counts.
    pub const ACK: u16 = 0x10;
}

/// An IP address; IPv4 and IPv6 never compare equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    bits: u128,
    is_v6: bool,
}

impl Address {
    pub(super) fn v4(bits: u32) -> Address {
        Address { bits: u128::from(bits), is_v6: false }
    }

    pub(super) fn v6(bytes: [u8; 16]) -> Address {
        Address { bits: u128::from_be_bytes(bytes), is_v6: true }
    }

    /// As the standard library has it.
    pub fn ip(self) -> IpAddr {
        if self.is_v6 {
            Ipv6Addr::from_bits(self.bits).into()
        } else {
            Ipv4Addr::from_bits(self.bits as u32).into()
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Who sent it.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// From which port.
    pub source_port: u16,
    /// To which port.
    pub destination_port: u16,
    /// Number of its first byte.
    pub sequence: u32,
    /// The byte that its sender expects next, if [`bits::ACK`] is set.
    pub acknowledged: u32,
    /// See [`bits`].
    pub flags: u16,
    /// As it stands in the header, not scaled.
    pub window: u16,
    /// Its data's length by the headers around it, whatever the capture kept, in bytes.
    pub length: u32,
    /// The capture cut off its header or options. It counts for what comes after it, but tshark
    /// shows nothing of it.
    pub is_cut: bool,
    /// Its options.
    pub options: Options,
    /// IPv4's identification. `None` for IPv6, and for 0, which Linux writes into packets that have
    /// none.
    pub ip_id: Option<u16>,
    /// Time to live, or IPv6's hop limit.
    pub ttl: u8,
}

impl Segment {
    /// Whether any of `flags` is set.
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }
}

/// Reads the header. Without its first 16 bytes it is nothing; if its length is not known, a
/// mention.
pub(super) fn segment(view: View<'_>, around: &Around) -> Decoded {
    read(view, around).unwrap_or(Decoded::Other(Undecoded::Cut))
}

fn read(view: View<'_>, around: &Around) -> Option<Decoded> {
    let offset_and_flags = view.half(12)?;
    let header = usize::from(offset_and_flags >> 12) * 4;
    let mut segment = Segment {
        source: around.source,
        destination: around.destination,
        source_port: view.half(0)?,
        destination_port: view.half(2)?,
        sequence: view.word(4)?,
        acknowledged: view.word(8)?,
        flags: offset_and_flags & 0x0fff,
        window: view.half(14)?,
        length: 0,
        is_cut: false,
        options: Options::default(),
        ip_id: around.ip_id,
        ttl: around.ttl,
    };
    let Some(length) = view.wire_bytes.checked_sub(header) else {
        return Some(Decoded::Mention(segment));
    };
    if header < 20 || around.is_fragment || around.is_quoted {
        return Some(Decoded::Mention(segment));
    }
    let options = view.data.get(20..).unwrap_or_default();
    segment.options = Options::read(&options[..options.len().min(header - 20)]);
    segment.is_cut = view.data.len() < header;
    segment.length = u32::try_from(length).ok()?;
    Some(Decoded::Segment(segment))
}
