//! Decodes tunnels over IP and UDP: the inner protocol and where it begins.

use super::{Around, Next, Undecoded, View};

/// VXLAN (RFC 7348).
const VXLAN: u16 = 4_789;
/// Geneve (RFC 8926).
const GENEVE: u16 = 6_081;
/// GTP-U (3GPP TS 29.281).
const GTP_U: u16 = 2_152;
/// CAPWAP's data channel (RFC 5415).
const CAPWAP: u16 = 5_247;

/// UDP: the tunnels that are known by their ports, on either side.
pub(super) fn udp(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    let ports = [view.half(0)?, view.half(2)?];
    view.limit(usize::from(view.half(4)?).max(8));
    view.pass(8)?;
    let mut tunnel = |port: u16, name: &'static str| {
        let is_it = ports.contains(&port);
        if is_it {
            around.undecoded = Some(Undecoded::Tunnel(name));
        }
        is_it
    };
    if tunnel(VXLAN, "VXLAN") {
        view.pass(8)?;
        return Some(Next::Ethernet);
    }
    if tunnel(GENEVE, "Geneve") {
        let header = 8 + usize::from(view.byte(0)? & 0x3f) * 4;
        let kind = view.half(2)?;
        view.pass(header)?;
        return Some(Next::Ether(kind));
    }
    if tunnel(GTP_U, "GTP-U") {
        return gtp_u(view);
    }
    if tunnel(CAPWAP, "CAPWAP") {
        return capwap(view, around);
    }
    around.undecoded = Some(Undecoded::Udp(ports[0].min(ports[1])));
    None
}

/// A T-PDU of GTP version 1. As in tshark, its first byte says what it holds: IPv4 with a
/// header shorter than 60 bytes, or IPv6. PPP is not followed there.
fn gtp_u(view: &mut View<'_>) -> Option<Next> {
    const T_PDU: u8 = 0xff;
    let flags = view.byte(0)?;
    // Version 1 of GTP, and not of GTP'.
    if flags & 0xf0 != 0x30 || view.byte(1)? != T_PDU {
        return None;
    }
    view.pass(8)?;
    // A sequence number, an N-PDU number and an extension come together, in four bytes.
    if flags & 0x07 != 0 {
        let mut extension = view.byte(3)?;
        view.pass(4)?;
        while flags & 0x04 != 0 && extension != 0 {
            // In units of four bytes; the last byte is the next one's type.
            let length = usize::from(view.byte(0)?) * 4;
            extension = view.byte(length.checked_sub(1)?)?;
            view.pass(length)?;
        }
    }
    matches!(view.byte(0)?, 0x45..=0x4e | 0x60..=0x6f).then_some(Next::Ip)
}

/// CAPWAP's data (RFC 5415 section 4.3): an Ethernet frame, or one of IEEE 802.11 with its frame
/// control's bytes swapped, as access points send it and as tshark takes it. What is encrypted or
/// comes in fragments is named.
fn capwap(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    const PLAIN: u8 = 0;
    const DTLS: u8 = 1;
    const FRAGMENT: u8 = 0x80;
    const KEEP_ALIVE: u8 = 0x08;
    let mut named = |what| around.undecoded = Some(Undecoded::TunnelPart(what));
    let preamble = view.byte(0)?;
    if preamble == DTLS {
        named("CAPWAP, encrypted (DTLS)");
        return None;
    }
    let header = usize::from(view.byte(1)? >> 3) * 4;
    let binding = view.byte(2)?;
    let flags = view.byte(3)?;
    if preamble != PLAIN || header < 8 {
        return None;
    }
    if flags & (FRAGMENT | KEEP_ALIVE) != 0 {
        let is_fragment = flags & FRAGMENT != 0;
        named(if is_fragment { "CAPWAP, fragments" } else { "CAPWAP, keep-alives" });
        return None;
    }
    view.pass(header)?;
    let is_native = binding & 1 == 1;
    match (is_native, binding >> 1 & 0x1f) {
        (false, _) => Some(Next::Ethernet),
        (true, 1) => wireless(view, around),
        (true, _) => None,
    }
}

/// A data frame of IEEE 802.11 that is not encrypted.
fn wireless(view: &mut View<'_>, around: &mut Around) -> Option<Next> {
    const PROTECTED: u8 = 0x40;
    let mut named = |what| around.undecoded = Some(Undecoded::TunnelPart(what));
    let (flags, kind) = (view.byte(0)?, view.byte(1)?);
    let is_data = kind & 0x0f == 0x08 && kind & 0x40 == 0;
    if !is_data {
        named("CAPWAP, 802.11 without data");
        return None;
    }
    if flags & PROTECTED != 0 {
        named("CAPWAP, 802.11 encrypted");
        return None;
    }
    // A fourth address between access points, QoS, and HT control behind it.
    let mut header = if flags & 3 == 3 { 30 } else { 24 };
    if kind & 0x80 != 0 {
        let is_aggregate = view.byte(header)? & 0x80 != 0;
        if is_aggregate {
            named("CAPWAP, 802.11 aggregated");
            return None;
        }
        header += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    view.pass(header)?;
    Some(Next::Llc)
}

/// GRE (RFC 2784, 2890) and ERSPAN type II in it.
pub(super) fn gre(view: &mut View<'_>) -> Option<Next> {
    let flags = view.half(0)?;
    // Version 1 is PPTP's; source routes are long gone.
    if flags & 0x4007 != 0 {
        return None;
    }
    let kind = view.half(2)?;
    let has = |bit: u16| usize::from(flags & bit != 0) * 4;
    let sequence = has(0x1000);
    view.pass(4 + has(0x8000) + has(0x2000) + sequence)?;
    if kind != 0x88be {
        return Some(Next::Ether(kind));
    }
    if sequence > 0 {
        view.pass(8)?;
    }
    Some(Next::Ethernet)
}
