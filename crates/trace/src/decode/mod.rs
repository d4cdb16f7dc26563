//! A packet's bytes → its TCP segment, through all encapsulations.
//!
//! Lengths are taken from headers, so that packets truncated by the capture count with their full size.
//! Nesting, fragments and options are bounded; an unreadable packet has no segment.

mod fragments;
mod ip;
mod link;
mod options;
mod tcp;
mod tunnel;
mod undecoded;

pub use fragments::{FRAGMENTED_MAX_BYTES, FRAGMENTED_MAX_PACKETS};
pub use options::{FastOpen, Options, SACK_BLOCKS_MAX};
pub use tcp::{Address, Segment, bits};
pub use undecoded::{Tally, UNDECODED_KINDS_MAX, Undecoded};

use crate::reader::Record;
use fragments::Fragments;

/// Headers around each other that are followed: tags, tunnels and extension headers.
pub const LAYERS_MAX: usize = 16;

/// What a record holds.
#[derive(Clone, Copy, Debug)]
pub enum Decoded {
    /// A TCP segment of which everything is known that its analysis needs.
    Segment(Segment),
    /// The header of a TCP segment whose length is not known, or which an ICMP error quotes. It
    /// tells which connection it belongs to, and nothing of sequence numbers.
    Mention(Segment),
    /// No TCP, or too little of it.
    Other(Undecoded),
}

/// Bytes at hand, and how many there were on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    data: &'a [u8],
    wire_bytes: usize,
}

impl<'a> View<'a> {
    pub(crate) fn new(data: &'a [u8], wire_bytes: usize) -> Self {
        View { data, wire_bytes: wire_bytes.max(data.len()) }
    }

    /// Without the first `count` bytes; `None` if so many are not at hand.
    fn after(self, count: usize) -> Option<Self> {
        let data = self.data.get(count..)?;
        Some(View { data, wire_bytes: self.wire_bytes - count })
    }

    /// Passes over `count` bytes; `None` if so many are not at hand.
    fn pass(&mut self, count: usize) -> Option<()> {
        *self = self.after(count)?;
        Some(())
    }

    /// Cuts it to what a header says; never longer than before.
    fn limit(&mut self, wire_bytes: usize) {
        if wire_bytes < self.wire_bytes {
            self.wire_bytes = wire_bytes;
            self.data = &self.data[..wire_bytes.min(self.data.len())];
        }
    }

    fn byte(self, at: usize) -> Option<u8> {
        self.data.get(at).copied()
    }

    fn half(self, at: usize) -> Option<u16> {
        self.data.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
    }

    fn word(self, at: usize) -> Option<u32> {
        self.data.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
    }
}

/// What is inside a header.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// By its Ethernet type.
    Ether(u16),
    /// A whole Ethernet frame.
    Ethernet,
    /// IPv4 or IPv6, as the first four bits say.
    Ip,
    /// By its IP protocol number.
    Protocol(u8),
    /// By the number of the Point-to-Point Protocol.
    Ppp,
    /// IEEE 802.2.
    Llc,
}

/// What is known from the IP header around what is being read.
#[derive(Clone, Copy, Debug)]
struct Around {
    source: Address,
    destination: Address,
    ip_id: Option<u16>,
    ttl: u8,
    /// The rest of it is in other packets, so its length is not known.
    is_fragment: bool,
    /// It is quoted by an ICMP error.
    is_quoted: bool,
    /// What is not decoded if decoding ends here, where the header being read does not tell.
    undecoded: Option<Undecoded>,
}

impl Default for Around {
    fn default() -> Self {
        let nowhere = Address::default();
        Around {
            source: nowhere,
            destination: nowhere,
            ip_id: None,
            ttl: 0,
            is_fragment: false,
            is_quoted: false,
            undecoded: None,
        }
    }
}

/// One header read.
enum Layer {
    /// The view is now at what is inside.
    Inside(Next),
    /// A packet has been put together from its fragments: [`Fragments::whole`].
    Whole(Next),
    /// The view is at TCP's header.
    Tcp,
}

/// Decodes records. It remembers fragments, and nothing else.
#[derive(Debug, Default)]
pub struct Decoder {
    fragments: Fragments,
    unknown_link: Option<u32>,
    too_deep: u64,
}

impl Decoder {
    /// One that has seen nothing.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Fragments that were thrown away because too many were waiting for others.
    pub fn fragments_dropped(&self) -> u64 {
        self.fragments.dropped()
    }

    /// A kind of link that packets had and that is not known here.
    pub fn unknown_link(&self) -> Option<u32> {
        self.unknown_link
    }

    /// Packets with more headers around each other than [`LAYERS_MAX`]: what is inside them was not
    /// looked at.
    pub fn too_deep(&self) -> u64 {
        self.too_deep
    }

    /// What `record` holds.
    pub fn decode(&mut self, record: &Record<'_>) -> Decoded {
        let view = View::new(record.data, record.wire_bytes as usize);
        match link::begin(record.link, view) {
            Ok(Some((next, view))) => self.follow(next, view, Around::default(), LAYERS_MAX),
            Ok(None) => Decoded::Other(Undecoded::Cut),
            Err(link::Unknown) => {
                self.unknown_link = Some(record.link);
                Decoded::Other(Undecoded::Link(record.link))
            }
        }
    }

    fn follow(&mut self, next: Next, view: View<'_>, around: Around, layers_max: usize) -> Decoded {
        let (mut next, mut view, mut around) = (next, view, around);
        for left in (0..layers_max).rev() {
            around.undecoded = None;
            match self.layer(next, &mut view, &mut around) {
                Some(Layer::Inside(inner)) => next = inner,
                Some(Layer::Whole(inner)) => {
                    let bytes = self.fragments.whole();
                    return self.follow(inner, View::new(&bytes, bytes.len()), around, left);
                }
                Some(Layer::Tcp) => return tcp::segment(view, &around),
                None => return Decoded::Other(around.undecoded.unwrap_or(ended_at(next))),
            }
        }
        self.too_deep += 1;
        Decoded::Other(Undecoded::TooDeep)
    }

    /// Reads one header and moves `view` behind it.
    fn layer(&mut self, next: Next, view: &mut View<'_>, around: &mut Around) -> Option<Layer> {
        let inside = match next {
            Next::Ethernet => link::ethernet(view)?,
            Next::Ether(kind) => link::by_type(kind, view)?,
            Next::Ppp => link::ppp(view, around)?,
            Next::Llc => link::llc(view, around)?,
            Next::Ip => match view.byte(0)? >> 4 {
                4 => return ip::version_4(view, around, &mut self.fragments),
                6 => ip::version_6(view, around)?,
                _ => return None,
            },
            Next::Protocol(6) => return Some(Layer::Tcp),
            Next::Protocol(44) => return ip::fragment_6(view, around, &mut self.fragments),
            Next::Protocol(number) => ip::by_protocol(number, view, around)?,
        };
        Some(Layer::Inside(inside))
    }
}

/// What a packet held whose decoding ended at `next`, by that alone.
fn ended_at(next: Next) -> Undecoded {
    match next {
        Next::Ether(kind) if !matches!(kind, 0x0800 | 0x86dd) => Undecoded::Ether(kind),
        Next::Protocol(number) if !matches!(number, 6 | 17) => Undecoded::Protocol(number),
        // What is followed: too little of it was there.
        _ => Undecoded::Cut,
    }
}
