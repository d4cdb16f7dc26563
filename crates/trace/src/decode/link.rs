//! What is below IP: the links that captures are made on, and the tags and labels on them.

use super::{Layer, Next, View};
use crate::pcap::word;

/// A kind of link that is not known.
pub(super) struct Unknown;

/// Where a packet of `link` begins to be IP, by tcpdump.org's list of link types.
pub(super) fn begin(link: u32, view: View<'_>) -> Result<Option<(Next, View<'_>)>, Unknown> {
    Ok(match link {
        1 => Some((Next::Ethernet, view)),
        // Null and OpenBSD's loopback: the address family, in the byte order of whoever captured.
        0 | 108 => view.after(4).and_then(|rest| {
            let family = word(view.data, 0, true).min(word(view.data, 0, false));
            matches!(family, 2 | 10 | 24 | 28 | 30).then_some((Next::Ip, rest))
        }),
        9 => Some((Next::Ppp, if view.half(0) == Some(0xff03) { after(view, 2) } else { view })),
        12 | 14 | 101 | 228 | 229 => Some((Next::Ip, view)),
        // Linux cooked: the protocol is at the end of a header of 16 bytes, or at the beginning
        // of one of 20.
        113 => view.half(14).zip(view.after(16)).map(|(kind, rest)| (Next::Ether(kind), rest)),
        276 => view.half(0).zip(view.after(20)).map(|(kind, rest)| (Next::Ether(kind), rest)),
        _ => return Err(Unknown),
    })
}

fn after(view: View<'_>, count: usize) -> View<'_> {
    view.after(count).unwrap_or(view)
}

/// Ethernet, and what IEEE 802.3 put in the place of its type.
pub(super) fn ethernet(view: View<'_>) -> Option<(Next, View<'_>)> {
    let kind = view.half(12)?;
    let rest = view.after(14)?;
    if kind > 1_500 {
        return Some((Next::Ether(kind), rest));
    }
    // A length: IP stands behind a SNAP header of eight bytes whose organisation is 0.
    let rest = rest.limit(usize::from(kind));
    let is_snap = rest.data.first_chunk::<6>() == Some(&[0xaa, 0xaa, 3, 0, 0, 0]);
    is_snap.then(|| Some((Next::Ether(rest.half(6)?), rest.after(8)?)))?
}

/// By Ethernet's type.
pub(super) fn by_type(kind: u16, view: View<'_>) -> Option<Layer<'_>> {
    let (next, rest) = match kind {
        0x0800 | 0x86dd => (Next::Ip, view),
        // VLAN tags: priority and number, then the type of what is inside.
        0x8100 | 0x88a8 | 0x9100 => (Next::Ether(view.half(2)?), view.after(4)?),
        0x6558 => (Next::Ethernet, view),
        // MPLS: labels up to the one with the bottom bit.
        0x8847 | 0x8848 => {
            let is_bottom = view.byte(2)? & 1 == 1;
            (if is_bottom { Next::Ip } else { Next::Ether(kind) }, view.after(4)?)
        }
        // A PPPoE session.
        0x8864 => (Next::Ppp, view.after(6)?.limit(usize::from(view.half(4)?))),
        _ => return None,
    };
    Some(Layer::Inside(next, rest))
}

/// Behind PPP's address and control, where there were any.
pub(super) fn ppp(view: View<'_>) -> Option<(Next, View<'_>)> {
    match view.half(0)? {
        0x0021 | 0x0057 => Some((Next::Ip, view.after(2)?)),
        _ => None,
    }
}
