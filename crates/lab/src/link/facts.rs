//! The facts about a packet that a link's decisions use.

use std::net::IpAddr;

/// Protocol numbers and TCP flags of RFC 9293.
const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A packet as the decisions see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its length, from IP's header on.
    pub bytes: u32,
    /// Where it comes from; `None` when it is no IP packet.
    pub source: Option<IpAddr>,
    /// It asks for a new TCP connection: SYN without ACK.
    pub opens: bool,
}

impl Facts {
    /// Reads them from a packet. What is cut off or strange is a packet without a source.
    pub fn of(packet: &[u8]) -> Facts {
        let bytes = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let (source, tcp) = match packet.first().map(|first| first >> 4) {
            Some(4) => version_4(packet),
            Some(6) => version_6(packet),
            _ => (None, None),
        };
        let flags = tcp.and_then(|tcp| tcp.get(13)).copied().unwrap_or(0);
        Facts { bytes, source, opens: flags & (SYN | ACK) == SYN }
    }
}

/// The source, and the TCP segment if it is one's beginning.
fn version_4(packet: &[u8]) -> (Option<IpAddr>, Option<&[u8]>) {
    let four = packet.get(12..16).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    let length = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    let is_first = packet.get(6..8).is_some_and(|word| [word[0] & 0x1f, word[1]] == [0, 0]);
    let is_tcp = is_first && packet.get(9) == Some(&TCP);
    (four.map(IpAddr::from), is_tcp.then(|| packet.get(length..)).flatten())
}

/// The same. TCP behind extension headers is not looked for.
fn version_6(packet: &[u8]) -> (Option<IpAddr>, Option<&[u8]>) {
    let sixteen = packet.get(8..24).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    let is_tcp = packet.get(6) == Some(&TCP);
    (sixteen.map(IpAddr::from), is_tcp.then(|| packet.get(40..)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[12..16].copy_from_slice(&[10, 0, 0, 7]);
        packet[33] = flags;
        packet
    }

    #[test]
    fn a_new_connection_is_seen_and_whose_it_is() {
        let facts = Facts::of(&segment(SYN));
        assert!(facts.opens);
        assert_eq!((facts.bytes, facts.source), (40, Some(IpAddr::from([10, 0, 0, 7]))));
        assert!(!Facts::of(&segment(SYN | ACK)).opens);
        assert!(!Facts::of(&segment(ACK)).opens);
        let mut six = vec![0; 60];
        six[0] = 0x60;
        six[6] = TCP;
        six[23] = 1;
        six[53] = SYN;
        assert!(Facts::of(&six).opens);
        assert_eq!(Facts::of(&six).source, Some("::1".parse().unwrap()));
    }

    #[test]
    fn a_later_fragment_and_what_is_cut_off_open_nothing() {
        let mut later = segment(SYN);
        later[7] = 1;
        assert!(!Facts::of(&later).opens);
        let whole = segment(SYN);
        for length in 0..whole.len() {
            let facts = Facts::of(&whole[..length]);
            assert!(length > 33 || !facts.opens);
        }
        assert_eq!(Facts::of(&[0xff; 64]).source, None);
    }
}
