//! The same short conversation in everything that TCP comes wrapped in.

use crate::packets::{ACK, Frame, PSH, SYN, Segment, ethernet, ipv4, ipv6, udp};

/// The conversation, with something to say about it: data sent twice, and a keep-alive.
fn conversation(port: u16) -> Vec<Segment> {
    let segment = |from: usize, sequence, acknowledged, flags, length| Segment {
        from,
        ports: [port, 80],
        sequence,
        acknowledged,
        flags,
        window: 500,
        length,
        ..Segment::default()
    };
    vec![
        segment(0, 100, 0, SYN, 0),
        segment(1, 700, 101, SYN | ACK, 0),
        segment(0, 101, 701, ACK, 0),
        segment(0, 101, 701, ACK | PSH, 300),
        segment(0, 101, 701, ACK | PSH, 300),
        segment(1, 701, 401, ACK, 0),
        segment(0, 400, 701, ACK, 0),
        segment(1, 701, 401, ACK, 0),
    ]
}

/// Each wrapping with its name, in the order of the frames' ports.
pub fn all() -> Vec<(&'static str, Vec<Frame>)> {
    let mut port = 20_000;
    let mut time_ns = 1_600_000_000_000_000_000;
    let mut wrapped: Vec<(&'static str, Vec<Frame>)> = Vec::new();
    for (name, link, wrap) in wrappings().into_iter().chain(carried()) {
        port += 1;
        let mut frames = Vec::new();
        for segment in conversation(port) {
            for bytes in wrap(&segment) {
                time_ns += 50_000_000;
                frames.push(Frame::new(time_ns, link, bytes));
            }
        }
        wrapped.push((name, frames));
    }
    wrapped
}

type Wrap = fn(&Segment) -> Vec<Vec<u8>>;

fn wrappings() -> Vec<(&'static str, u16, Wrap)> {
    vec![
        ("Ethernet", 1, |one| vec![ethernet(0x0800, &one.ipv4())]),
        ("Ethernet, IPv6", 1, |one| vec![ethernet(0x86dd, &one.ipv6(6, &[]))]),
        ("a VLAN tag", 1, |one| vec![ethernet(0x8100, &[&[0, 5, 8, 0], &one.ipv4()[..]].concat())]),
        ("two VLAN tags", 1, |one| {
            vec![ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0], &one.ipv4()[..]].concat())]
        }),
        ("SNAP", 1, |one| {
            let body = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &one.ipv4()[..]].concat();
            vec![ethernet(body.len() as u16, &body)]
        }),
        ("MPLS, two labels", 1, |one| {
            vec![ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], &one.ipv4()[..]].concat())]
        }),
        ("PPPoE", 1, |one| {
            let body = [&[0, 0x21], &one.ipv4()[..]].concat();
            let length = (body.len() as u16).to_be_bytes();
            vec![ethernet(0x8864, &[&[0x11, 0, 0, 1], &length[..], &body].concat())]
        }),
        ("raw IP", 101, |one| vec![one.ipv4()]),
        ("raw IPv6", 101, |one| vec![one.ipv6(6, &[])]),
        ("raw IPv4", 228, |one| vec![one.ipv4()]),
        ("raw IPv6 by its own type", 229, |one| vec![one.ipv6(6, &[])]),
        ("Linux cooked", 113, |one| {
            vec![[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], &one.ipv4()[..]].concat()]
        }),
        ("Linux cooked, version 2", 276, |one| {
            let header = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
            vec![[&header, &one.ipv4()[..]].concat()]
        }),
        ("null, little-endian", 0, |one| vec![[&[2, 0, 0, 0], &one.ipv4()[..]].concat()]),
        ("null, IPv6 of FreeBSD", 0, |one| vec![[&[28, 0, 0, 0], &one.ipv6(6, &[])[..]].concat()]),
        ("loopback of OpenBSD", 108, |one| vec![[&[0, 0, 0, 2], &one.ipv4()[..]].concat()]),
        ("PPP", 9, |one| vec![[&[0xff, 3, 0, 0x21], &one.ipv4()[..]].concat()]),
        ("VXLAN", 1, |one| {
            let inner = ethernet(0x0800, &one.ipv4());
            let outer = udp(4_789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &inner[..]].concat());
            vec![ethernet(0x0800, &ipv4([192, 0, 2, 1], [192, 0, 2, 2], 17, 1, 0, &outer))]
        }),
        ("Geneve with an option", 1, |one| {
            let inner = ethernet(0x0800, &one.ipv4());
            let header = [1, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 0, 0, 0];
            let outer = udp(6_081, &[&header, &inner[..]].concat());
            vec![ethernet(0x0800, &ipv4([192, 0, 2, 1], [192, 0, 2, 2], 17, 1, 0, &outer))]
        }),
        ("GRE", 101, |one| {
            let inner = [&[0, 0, 8, 0], &one.ipv4()[..]].concat();
            vec![ipv4([192, 0, 2, 1], [192, 0, 2, 2], 47, 1, 0, &inner)]
        }),
        ("GRE with checksum, key and sequence", 101, |one| {
            let header = [0xb0, 0, 0x86, 0xdd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1];
            let inner = [&header, &one.ipv6(6, &[])[..]].concat();
            vec![ipv4([192, 0, 2, 1], [192, 0, 2, 2], 47, 1, 0, &inner)]
        }),
        ("IPv4 in IPv4", 101, |one| {
            vec![ipv4([192, 0, 2, 1], [192, 0, 2, 2], 4, 1, 0, &one.ipv4())]
        }),
        ("IPv6 in IPv4", 101, |one| {
            vec![ipv4([192, 0, 2, 1], [192, 0, 2, 2], 41, 1, 0, &one.ipv6(6, &[]))]
        }),
        ("IPv4 in IPv6", 101, |one| vec![ipv6([0xfd; 16], [0xfc; 16], 4, &one.ipv4())]),
        ("IPv6 with extension headers", 101, |one| {
            let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
            let destination = [6, 0, 1, 4, 0, 0, 0, 0];
            vec![one.ipv6(0, &[hop_by_hop, destination].concat())]
        }),
        ("IPv4 in fragments", 101, |one| {
            let tcp = one.tcp();
            let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
            let (from, to) = (ends[one.from], ends[1 - one.from]);
            let id = (one.sequence ^ one.acknowledged) as u16 ^ one.flags ^ one.length as u16;
            let (first, second) = tcp.split_at(8);
            vec![ipv4(from, to, 6, id, 0x2000, first), ipv4(from, to, 6, id, 1, second)]
        }),
        ("IPv4 in fragments, the last first", 101, |one| {
            let tcp = one.tcp();
            let ends = [[10, 0, 0, 3], [10, 0, 0, 4]];
            let (from, to) = (ends[one.from], ends[1 - one.from]);
            let id = (one.sequence ^ one.acknowledged) as u16 ^ one.flags ^ one.length as u16;
            let (first, second) = tcp.split_at(16);
            vec![ipv4(from, to, 6, id, 2, second), ipv4(from, to, 6, id, 0x2000, first)]
        }),
        ("IPv6 in fragments", 101, |one| {
            let tcp = one.tcp();
            let (first, second) = tcp.split_at(16);
            let id = one.sequence ^ one.acknowledged ^ u32::from(one.flags) ^ one.length as u32;
            let piece = |offset: u16, bytes: &[u8]| {
                let header = [&[6, 0], &offset.to_be_bytes()[..], &id.to_be_bytes()].concat();
                let end =
                    |host: usize| std::array::from_fn(|at| if at == 15 { host as u8 } else { 9 });
                ipv6(end(one.from), end(1 - one.from), 44, &[header, bytes.to_vec()].concat())
            };
            vec![piece(1, first), piece(16, second)]
        }),
        ("a length of nothing, as segmentation offload leaves it", 101, |one| {
            let mut bytes = one.ipv4();
            bytes[2..4].copy_from_slice(&[0, 0]);
            vec![bytes]
        }),
        ("quoted by ICMP", 101, |one| {
            let quoted = &one.ipv4()[..40];
            let error = [&[3, 4, 0, 0, 0, 0, 5, 0], quoted].concat();
            vec![one.ipv4(), ipv4([10, 0, 0, 9], [10, 0, 0, 1], 1, 9, 0, &error)]
        }),
    ]
}

/// UDP to `port` between two hosts, in Ethernet.
fn over_udp(port: u16, body: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4([192, 0, 2, 1], [192, 0, 2, 2], 17, 1, 0, &udp(port, body)))
}

/// An attribute of netfilter's log.
fn attribute(kind: u16, value: &[u8], is_little: bool) -> Vec<u8> {
    let half = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut out = [half(4 + value.len() as u16), half(kind)].concat();
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A packet hook, a prefix of odd length, and the packet.
fn nflog(one: &Segment, is_little: bool) -> Vec<u8> {
    let hook = attribute(1, &[8, 0, 1, 0], is_little);
    let prefix = attribute(10, b"drop\0", is_little);
    let payload = attribute(9, &one.ipv4(), is_little);
    [&[2, 0, 0, 5][..], &hook, &prefix, &payload].concat()
}

/// A log of netfilter's from a big-endian machine. Its attributes are in the byte order of the file,
/// which has to be big-endian too.
pub fn big_endian() -> Vec<Frame> {
    let frames = conversation(19_000).into_iter().zip(1..);
    frames.map(|(one, number)| Frame::new(number * 50_000_000, 239, nflog(&one, false))).collect()
}

/// A data frame of IEEE 802.11 to an access point, its frame control's bytes swapped.
fn wireless(kind: u8, after: &[u8], one: &Segment) -> Vec<u8> {
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    [&[1, kind, 0, 0], &[2; 18][..], &[0, 0], after, &snap, &one.ipv4()].concat()
}

/// What carriers, data centres and capturing programs put around packets.
fn carried() -> Vec<(&'static str, u16, Wrap)> {
    vec![
        ("PPPoE, the protocol in one byte", 1, |one| {
            let body = [&[0x21], &one.ipv4()[..]].concat();
            let length = (body.len() as u16).to_be_bytes();
            vec![ethernet(0x8864, &[&[0x11, 0, 0, 1], &length[..], &body].concat())]
        }),
        ("PPPoE, IPv6, the protocol in one byte", 1, |one| {
            let body = [&[0x57], &one.ipv6(6, &[])[..]].concat();
            let length = (body.len() as u16).to_be_bytes();
            vec![ethernet(0x8864, &[&[0x11, 0, 0, 1], &length[..], &body].concat())]
        }),
        ("PPP, the protocol in one byte", 9, |one| {
            vec![[&[0xff, 3, 0x21], &one.ipv4()[..]].concat()]
        }),
        ("PPP, neither address nor control", 9, |one| vec![[&[0x21], &one.ipv4()[..]].concat()]),
        ("PPP as HDLC frames it", 50, |one| vec![[&[0xff, 3, 0, 0x21], &one.ipv4()[..]].concat()]),
        ("PPP with MPLS", 9, |one| {
            vec![[&[0xff, 3, 2, 0x81, 0, 2, 1, 64], &one.ipv4()[..]].concat()]
        }),
        ("PPPoE without Ethernet", 51, |one| {
            let body = [&[0, 0x21], &one.ipv4()[..]].concat();
            let length = (body.len() as u16).to_be_bytes();
            vec![[&[0x11, 0, 0, 1], &length[..], &body].concat()]
        }),
        ("VN-tag", 1, |one| {
            vec![ethernet(0x8926, &[&[0, 5, 0, 7, 8, 0], &one.ipv4()[..]].concat())]
        }),
        ("VN-tag and VLAN", 1, |one| {
            let tags = [0x80, 5, 0, 7, 0x81, 0, 0, 9, 8, 0];
            vec![ethernet(0x8926, &[&tags, &one.ipv4()[..]].concat())]
        }),
        ("PBB", 1, |one| {
            vec![ethernet(0x88e7, &[&[0, 0, 1, 0], &ethernet(0x0800, &one.ipv4())[..]].concat())]
        }),
        ("PBB behind its backbone's tag", 1, |one| {
            let tags = [0, 5, 0x88, 0xe7, 0, 0, 1, 0];
            vec![ethernet(0x88a8, &[&tags, &ethernet(0x0800, &one.ipv4())[..]].concat())]
        }),
        ("IP in LLC without SNAP", 1, |one| {
            let body = [&[6, 6, 3], &one.ipv4()[..]].concat();
            vec![ethernet(body.len() as u16, &body)]
        }),
        ("SNAP of a bridge", 1, |one| {
            let body = [&[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0], &one.ipv4()[..]].concat();
            vec![ethernet(body.len() as u16, &body)]
        }),
        ("FDDI", 10, |one| {
            let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
            vec![[&[0x50], &[2; 12][..], &snap, &one.ipv4()].concat()]
        }),
        ("NFLOG", 239, |one| vec![nflog(one, true)]),
        ("NFLOG, IPv6", 239, |one| {
            let payload = attribute(9, &one.ipv6(6, &[]), true);
            vec![[&[10, 0, 0, 5][..], &payload].concat()]
        }),
        ("GTP-U", 1, |one| {
            let inner = one.ipv4();
            let length = (inner.len() as u16).to_be_bytes();
            vec![over_udp(2_152, &[&[0x30, 0xff], &length[..], &[0, 0, 0, 9], &inner].concat())]
        }),
        ("GTP-U with a sequence number", 1, |one| {
            let inner = one.ipv6(6, &[]);
            let length = (4 + inner.len() as u16).to_be_bytes();
            let header = [&[0x32, 0xff], &length[..], &[0, 0, 0, 9, 0, 1, 0, 0]].concat();
            vec![over_udp(2_152, &[&header, &inner[..]].concat())]
        }),
        ("GTP-U with two extensions", 1, |one| {
            let inner = one.ipv4();
            let length = (12 + inner.len() as u16).to_be_bytes();
            // A PDU session container, then a PDCP number.
            let extensions = [0, 0, 0, 0x85, 1, 0x10, 0, 0xc0, 1, 0, 1, 0];
            let header = [&[0x34, 0xff], &length[..], &[0, 0, 0, 9], &extensions].concat();
            vec![over_udp(2_152, &[&header, &inner[..]].concat())]
        }),
        ("GTP-U with PPP, which tshark does not follow", 1, |one| {
            let inner = [&[0xff, 3, 0, 0x21], &one.ipv4()[..]].concat();
            let length = (inner.len() as u16).to_be_bytes();
            vec![over_udp(2_152, &[&[0x30, 0xff], &length[..], &[0, 0, 0, 9], &inner].concat())]
        }),
        ("CAPWAP with Ethernet", 1, |one| {
            let header = [0, 2 << 3, 1 << 1, 0, 0, 0, 0, 0];
            vec![over_udp(5_247, &[&header, &ethernet(0x0800, &one.ipv4())[..]].concat())]
        }),
        ("CAPWAP with 802.11", 1, |one| {
            let header = [0, 2 << 3, 1 << 1 | 1, 0, 0, 0, 0, 0];
            vec![over_udp(5_247, &[&header, &wireless(0x08, &[], one)[..]].concat())]
        }),
        ("CAPWAP with 802.11 and QoS, a radio's address before it", 1, |one| {
            let header = [0, 4 << 3, 1 << 1 | 1, 0x10, 0, 0, 0, 0, 6, 2, 2, 2, 2, 2, 2, 0];
            vec![over_udp(5_247, &[&header, &wireless(0x88, &[5, 0], one)[..]].concat())]
        }),
    ]
}
