//! Decodes IPv4, IPv6 and its extension headers, and their payload: TCP, IP in IP, tunnels, and ICMP
//! errors, which quote the packet that caused them.

use super::fragments::{Fragments, Piece};
use super::{Address, Around, Layer, Next, Undecoded, View, tunnel};

/// IPv4 (RFC 791). The header's checksum is not looked at, as in tshark: a sender's is often
/// computed by the card, after the capture.
pub(super) fn version_4(
    view: &mut View<'_>,
    around: &mut Around,
    fragments: &mut Fragments,
) -> Option<Layer> {
    let header = usize::from(view.byte(0)? & 0x0f) * 4;
    let total = usize::from(view.half(2)?);
    // 0 is what a segmentation offload leaves there: the packet goes to the end of the frame.
    if total != 0 {
        view.limit(total);
    }
    if header < 20 || (total != 0 && total < header) {
        return None;
    }
    let (source, destination) = (view.word(12)?, view.word(16)?);
    let offset_word = view.half(6)?;
    let identification = view.half(4)?;
    let protocol = view.byte(9)?;
    *around = Around {
        source: Address::v4(source),
        destination: Address::v4(destination),
        // RFC 6864: of a packet that is not to be fragmented it means nothing, and Linux writes 0 into
        // what has none (SYN with ACK, resets).
        ip_id: (identification != 0).then_some(identification),
        ttl: view.byte(8)?,
        ..*around
    };
    view.pass(header)?;
    let offset = usize::from(offset_word & 0x1fff) * 8;
    let has_more = offset_word & 0x2000 != 0;
    if offset == 0 && !has_more {
        return Some(Layer::Inside(Next::Protocol(protocol)));
    }
    let piece = Piece { id: u32::from(identification), protocol, offset, has_more };
    fragment(piece, *view, around, fragments)
}

/// IPv6 (RFC 8200).
pub(super) fn version_6(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    let length = usize::from(view.half(4)?);
    let address = |at: usize| view.data.get(at..)?.first_chunk().map(|bytes| Address::v6(*bytes));
    *around = Around {
        source: address(8)?,
        destination: address(24)?,
        ip_id: None,
        ttl: view.byte(7)?,
        ..*around
    };
    let next = Next::Protocol(view.byte(6)?);
    view.pass(40)?;
    // 0 is a jumbogram or what a segmentation offload leaves: to the end of the frame.
    if length != 0 {
        view.limit(length);
    }
    Some(next)
}

/// IPv6's fragment header.
pub(super) fn fragment_6(
    view: &mut View<'_>,
    around: &mut Around,
    fragments: &mut Fragments,
) -> Option<Layer> {
    let offset_word = view.half(2)?;
    let piece = Piece {
        id: view.word(4)?,
        protocol: view.byte(0)?,
        offset: usize::from(offset_word & 0xfff8),
        has_more: offset_word & 1 == 1,
    };
    view.pass(8)?;
    if piece.offset == 0 && !piece.has_more {
        return Some(Layer::Inside(Next::Protocol(piece.protocol)));
    }
    fragment(piece, *view, around, fragments)
}

fn fragment(
    piece: Piece,
    rest: View<'_>,
    around: &mut Around,
    fragments: &mut Fragments,
) -> Option<Layer> {
    let next = Next::Protocol(piece.protocol);
    around.undecoded = Some(Undecoded::Fragment);
    if rest.data.len() < rest.wire_bytes {
        // Cut off by the capture: it cannot be put together. The first piece has TCP's header,
        // and that is all that can be said.
        around.is_fragment = true;
        return (piece.offset == 0).then_some(Layer::Inside(next));
    }
    fragments.add(around.source, around.destination, piece, rest.data).then_some(Layer::Whole(next))
}

/// What is inside an IP packet; TCP is not asked for.
pub(super) fn by_protocol(number: u8, view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    match number {
        4 | 41 => Some(Next::Ip),
        17 => tunnel::udp(view, around),
        47 => tunnel::gre(view),
        // An ICMP error quotes the packet that it is about, behind eight bytes.
        1 if matches!(view.byte(0)?, 3 | 4 | 5 | 11 | 12) => quoted(view, around),
        58 if matches!(view.byte(0)?, 1..=4) => quoted(view, around),
        // Hop-by-hop, routing, destination options, mobility, HIP, Shim6: length in 8 bytes.
        0 | 43 | 60 | 135 | 139 | 140 => extension(view, 8, 1),
        // The authentication header counts in 4 bytes.
        51 => extension(view, 4, 2),
        _ => None,
    }
}

fn extension(view: &mut View<'_>, unit_bytes: usize, more: usize) -> Option<Next> {
    let length = (usize::from(view.byte(1)?) + more) * unit_bytes;
    let next = Next::Protocol(view.byte(0)?);
    view.pass(length)?;
    Some(next)
}

fn quoted(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    around.is_quoted = true;
    view.pass(8)?;
    Some(Next::Ip)
}
