//! Decodes the link layers of captures, and their tags and labels (VLAN, MPLS).

use super::{Around, Next, Undecoded, View};
use crate::pcap::{half, word};

/// A kind of link that is not known.
pub(super) struct Unknown;

/// Where a packet of `link` begins to be IP, by tcpdump.org's list of link types.
pub(super) fn begin(link: u32, view: View<'_>) -> Result<Option<(Next, View<'_>)>, Unknown> {
    Ok(match link {
        1 => Some((Next::Ethernet, view)),
        // Null and OpenBSD's loopback: the address family, in the capturing machine's byte order.
        0 | 108 => view.after(4).and_then(|rest| {
            let family = word(view.data, 0, true).min(word(view.data, 0, false));
            matches!(family, 2 | 10 | 24 | 28 | 30).then_some((Next::Ip, rest))
        }),
        9 | 50 => {
            Some((Next::Ppp, if view.half(0) == Some(0xff03) { after(view, 2) } else { view }))
        }
        // FDDI: only frames with LLC in them, behind the frame control and two addresses.
        10 if view.byte(0).is_none_or(|control| control & 0xf0 != 0x50) => None,
        10 => view.after(13).map(|rest| (Next::Llc, rest)),
        // PPPoE without Ethernet before it.
        51 => Some((Next::Ether(0x8864), view)),
        239 => nflog(view).map(|rest| (Next::Ip, rest)),
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
    // A length: IEEE 802.2 follows.
    view.limit(usize::from(kind));
    Some(Next::Llc)
}

/// IEEE 802.2: a SNAP header of eight bytes whose organisation's types are Ethernet's (RFC 1042, and
/// IEEE 802.1H's for bridges), or IP's own service access point.
pub(super) fn llc(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    around.undecoded = Some(Undecoded::Llc);
    match view.data.first_chunk::<6>() {
        Some([0xaa, 0xaa, 3, 0, 0, 0 | 0xf8]) => {
            let kind = view.half(6)?;
            view.pass(8)?;
            Some(Next::Ether(kind))
        }
        Some([6, 6, 3, ..]) => {
            view.pass(3)?;
            Some(Next::Ip)
        }
        _ => None,
    }
}

/// The packet in a record of netfilter's log (`LINKTYPE_NFLOG`): attributes, in the byte order of
/// the capturing machine. Their types are small numbers, which reveals the order.
fn nflog(view: View<'_>) -> Option<View<'_>> {
    const PAYLOAD: u16 = 9;
    /// More attributes than netfilter has; bounds the walk.
    const ATTRIBUTES_MAX: usize = 64;
    // IPv4 or IPv6, as `AF_INET` and `AF_INET6` of Linux.
    if !matches!(view.byte(0)?, 2 | 10) {
        return None;
    }
    let mut rest = view.after(4)?;
    for _ in 0..ATTRIBUTES_MAX {
        let is_little = half(rest.data, 2, true) <= half(rest.data, 2, false);
        let (length, kind) = (half(rest.data, 0, is_little), half(rest.data, 2, is_little));
        let length = usize::from(length);
        // The upper bits of a type are flags of netlink's.
        if kind & 0x3fff == PAYLOAD {
            let mut payload = rest.after(4)?;
            payload.limit(length.checked_sub(4)?);
            return Some(payload);
        }
        if length < 4 {
            return None;
        }
        rest = rest.after(length.next_multiple_of(4))?;
    }
    None
}

/// By Ethernet's type.
pub(super) fn by_type(kind: u16, view: &mut View<'_>) -> Option<Next> {
    let (next, header) = match kind {
        0x0800 | 0x86dd => return Some(Next::Ip),
        // VLAN tags: priority and number, then the type of what is inside.
        0x8100 | 0x88a8 | 0x9100 => (Next::Ether(view.half(2)?), 4),
        // VN-tag (802.1Qbh): four bytes, then the type.
        0x8926 => (Next::Ether(view.half(4)?), 6),
        // Provider backbone bridges (802.1ah): the service's tag, then the customer's frame.
        0x88e7 => (Next::Ethernet, 4),
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

/// Behind PPP's address and control, where there were any. A protocol number is odd in its last
/// byte and even in its first, so that one of a single byte can be recognised (RFC 1661, section
/// 6.5).
pub(super) fn ppp(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    let first = view.byte(0)?;
    let (number, length) = if first & 1 == 1 { (u16::from(first), 1) } else { (view.half(0)?, 2) };
    view.pass(length)?;
    around.undecoded = Some(Undecoded::Ppp(number));
    match number {
        0x0021 | 0x0057 => Some(Next::Ip),
        0x0281 | 0x0283 => Some(Next::Ether(0x8847)),
        _ => None,
    }
}
