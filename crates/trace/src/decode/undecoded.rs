//! Counts packets without a readable TCP segment, by their content.

use std::collections::BTreeMap;
use std::fmt;

/// Kinds that are counted separately; further ones are counted together.
pub const UNDECODED_KINDS_MAX: usize = 64;

/// Where decoding a packet ended, and at what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Undecoded {
    /// A link type that is not known here (a LINKTYPE number).
    Link(u32),
    /// An Ethernet type.
    Ether(u16),
    /// IEEE 802.2 that is neither IP nor SNAP with an Ethernet type.
    Llc,
    /// A protocol number of PPP.
    Ppp(u16),
    /// An IP protocol number.
    Protocol(u8),
    /// UDP: the lower of its two ports, or the port of a known tunnel.
    Udp(u16),
    /// A known tunnel's packet that holds no payload, or one that cannot be read: its name.
    Tunnel(&'static str),
    /// A packet of a tunnel that can be named, but not read: what it is.
    TunnelPart(&'static str),
    /// More headers around each other than [`super::LAYERS_MAX`].
    TooDeep,
    /// The packet ends, or was cut off by the capture, within its headers.
    Cut,
    /// A fragment of an IP packet. What it is part of is decoded once all fragments are there.
    Fragment,
    /// Any kind beyond the first [`UNDECODED_KINDS_MAX`].
    Further,
}

impl Undecoded {
    /// Its name in the field, where the number alone says little.
    fn known(self) -> Option<&'static str> {
        Some(match self {
            Undecoded::Ether(0x0806) => "ARP",
            Undecoded::Ether(0x8035) => "RARP",
            Undecoded::Ether(0x8809) => "LACP",
            Undecoded::Ether(0x8863) => "PPPoE discovery",
            Undecoded::Ether(0x888e) => "EAPOL",
            Undecoded::Ether(0x88cc) => "LLDP",
            Undecoded::Ether(0x88e5) => "MACsec",
            Undecoded::Ether(0x88f7) => "PTP",
            Undecoded::Ppp(0xc021) => "LCP",
            Undecoded::Ppp(0x8021 | 0x8057) => "IPCP",
            Undecoded::Ppp(0x00fd) => "compressed",
            Undecoded::Ppp(0x0053) => "encrypted",
            Undecoded::Protocol(1 | 58) => "ICMP",
            Undecoded::Protocol(2) => "IGMP",
            Undecoded::Protocol(47) => "GRE",
            Undecoded::Protocol(50) => "ESP",
            Undecoded::Protocol(89) => "OSPF",
            Undecoded::Protocol(103) => "PIM",
            Undecoded::Protocol(112) => "VRRP",
            Undecoded::Protocol(132) => "SCTP",
            Undecoded::Udp(53) => "DNS",
            Undecoded::Udp(67 | 68) => "DHCP",
            Undecoded::Udp(123) => "NTP",
            Undecoded::Udp(443) => "QUIC",
            Undecoded::Udp(500 | 4_500) => "IPsec",
            Undecoded::Udp(514) => "syslog",
            Undecoded::Udp(1_194) => "OpenVPN",
            Undecoded::Protocol(115) | Undecoded::Udp(1_701) => "L2TP",
            Undecoded::Udp(5_353) => "mDNS",
            Undecoded::Udp(5_246) => "CAPWAP control",
            Undecoded::Udp(51_820) => "WireGuard",
            _ => return None,
        })
    }
}

impl fmt::Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecoded::Link(number) => write!(f, "link type {number}"),
            Undecoded::Ether(number) => write!(f, "Ethernet type 0x{number:04x}"),
            Undecoded::Llc => f.write_str("LLC"),
            Undecoded::Ppp(number) => write!(f, "PPP protocol 0x{number:04x}"),
            Undecoded::Protocol(number) => write!(f, "IP protocol {number}"),
            Undecoded::Udp(port) => write!(f, "UDP port {port}"),
            Undecoded::Tunnel(name) => write!(f, "{name} without a readable payload"),
            Undecoded::TunnelPart(name) => f.write_str(name),
            Undecoded::TooDeep => f.write_str("too many headers around each other"),
            Undecoded::Cut => f.write_str("headers cut off"),
            Undecoded::Fragment => f.write_str("IP fragments"),
            Undecoded::Further => f.write_str("other kinds"),
        }?;
        match self.known() {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

/// How many packets there were of each kind, and their bytes on the wire.
#[derive(Debug, Default)]
pub struct Tally {
    kinds: BTreeMap<Undecoded, (u64, u64)>,
}

impl Tally {
    /// Counts a packet of `kind`. A fragment is not counted: it is part of another packet.
    pub(crate) fn take(&mut self, kind: Undecoded, wire_bytes: u32) {
        if kind == Undecoded::Fragment {
            return;
        }
        let is_full = self.kinds.len() >= UNDECODED_KINDS_MAX;
        let kind =
            if is_full && !self.kinds.contains_key(&kind) { Undecoded::Further } else { kind };
        let (packets, bytes) = self.kinds.entry(kind).or_default();
        *packets += 1;
        *bytes += u64::from(wire_bytes);
    }

    /// Each kind with its packets and bytes, the one with the most bytes first.
    pub fn kinds(&self) -> Vec<(Undecoded, u64, u64)> {
        let kinds = self.kinds.iter();
        let mut kinds: Vec<_> =
            kinds.map(|(kind, (packets, bytes))| (*kind, *packets, *bytes)).collect();
        kinds.sort_by_key(|(_, packets, bytes)| std::cmp::Reverse((*bytes, *packets)));
        kinds
    }

    /// Packets and bytes of all kinds.
    pub fn sum(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        self.kinds.values().fold((0, 0), add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_bounded_and_nothing_is_lost() {
        let mut tally = Tally::default();
        for port in 0..200 {
            tally.take(Undecoded::Udp(port), 100);
        }
        tally.take(Undecoded::Udp(0), 100);
        tally.take(Undecoded::Fragment, 100);
        assert_eq!(tally.sum(), (201, 20_100));
        let kinds = tally.kinds();
        assert_eq!(kinds.len(), UNDECODED_KINDS_MAX + 1);
        assert_eq!(kinds[0].0, Undecoded::Further, "the most bytes first");
        assert_eq!(Undecoded::Udp(53).to_string(), "UDP port 53 (DNS)");
    }
}
