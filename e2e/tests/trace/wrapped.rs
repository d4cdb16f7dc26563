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
    for (name, link, wrap) in wrappings() {
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
