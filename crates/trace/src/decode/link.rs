//! What is below IP: the links that captures are made on, and the tags and labels on them.

use super::{Next, View};
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
pub(super) fn ethernet(view: &mut View<'_>) -> Option<Next> {
    let kind = view.half(12)?;
    view.pass(14)?;
    if kind > 1_500 {
        return Some(Next::Ether(kind));
    }
    // A length: IP stands behind a SNAP header of eight bytes whose organisation is 0.
    view.limit(usize::from(kind));
    if view.data.first_chunk::<6>() != Some(&[0xaa, 0xaa, 3, 0, 0, 0]) {
        return None;
    }
    let kind = view.half(6)?;
    view.pass(8)?;
    Some(Next::Ether(kind))
}

/// By Ethernet's type.
pub(super) fn by_type(kind: u16, view: &mut View<'_>) -> Option<Next> {
    let (next, header) = match kind {
        0x0800 | 0x86dd => return Some(Next::Ip),
        // VLAN tags: priority and number, then the type of what is inside.
        0x8100 | 0x88a8 | 0x9100 => (Next::Ether(view.half(2)?), 4),
        0x6558 => return Some(Next::Ethernet),
        // MPLS: labels up to the one with the bottom bit.
        0x8847 | 0x8848 => {
            let is_bottom = view.byte(2)? & 1 == 1;
            (if is_bottom { Next::Ip } else { Next::Ether(kind) }, 4)
        }
        // A PPPoE session.
        0x8864 => {
            let length = usize::from(view.half(4)?);
            view.pass(6)?;
            view.limit(length);
            return Some(Next::Ppp);
        }
        _ => return None,
    };
    view.pass(header)?;
    Some(next)
}

/// Behind PPP's address and control, where there were any.
pub(super) fn ppp(view: &mut View<'_>) -> Option<Next> {
    let is_ip = matches!(view.half(0)?, 0x0021 | 0x0057);
    view.pass(2)?;
    is_ip.then_some(Next::Ip)
}
