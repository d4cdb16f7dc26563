//! Packets and capture files, byte by byte: what the cases and the random conversations are made of.

/// One end of a made-up connection.
pub type Port = u16;

/// TCP's flags by their letters.
pub const FIN: u16 = 0x01;
pub const SYN: u16 = 0x02;
pub const RST: u16 = 0x04;
pub const PSH: u16 = 0x08;
pub const ACK: u16 = 0x10;

/// A TCP segment between 10.0.0.1 (direction 0) and 10.0.0.2.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    pub from: usize,
    pub ports: [Port; 2],
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u16,
    pub window: u16,
    pub options: Vec<u8>,
    pub length: usize,
    pub ip_id: u16,
}

impl Segment {
    /// Header, options and data.
    pub fn tcp(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        while !options.len().is_multiple_of(4) {
            options.push(1);
        }
        let offset = (5 + options.len() / 4) as u16;
        let mut out = Vec::new();
        out.extend(self.ports[self.from].to_be_bytes());
        out.extend(self.ports[1 - self.from].to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.acknowledged.to_be_bytes());
        out.extend((offset << 12 | self.flags).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        out.extend(options);
        out.resize(out.len() + self.length, b'x');
        out
    }

    /// In IPv4.
    pub fn ipv4(&self) -> Vec<u8> {
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        ipv4(ends[self.from], ends[1 - self.from], 6, self.ip_id, 0, &self.tcp())
    }

    /// In IPv6, behind `headers`: extension headers, the first of kind `next`.
    pub fn ipv6(&self, next: u8, headers: &[u8]) -> Vec<u8> {
        let end = |host: usize| {
            let mut address = [0; 16];
            (address[0], address[1], address[15]) = (0xfd, 0, host as u8 + 1);
            address
        };
        let body = [headers, &self.tcp()].concat();
        ipv6(end(self.from), end(1 - self.from), next, &body)
    }
}

/// An IPv4 packet. `fragment` is the field of flags and offset.
pub fn ipv4(
    from: [u8; 4],
    to: [u8; 4],
    protocol: u8,
    id: u16,
    fragment: u16,
    body: &[u8],
) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((20 + body.len() as u16).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend(fragment.to_be_bytes());
    out.extend([64, protocol, 0, 0]);
    out.extend(from);
    out.extend(to);
    out.extend(body);
    out
}

/// An IPv6 packet.
pub fn ipv6(from: [u8; 16], to: [u8; 16], next: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, 0, 0, 0];
    out.extend((body.len() as u16).to_be_bytes());
    out.extend([next, 64]);
    out.extend(from);
    out.extend(to);
    out.extend(body);
    out
}

/// Ethernet around `body`.
pub fn ethernet(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    out.extend(kind.to_be_bytes());
    out.extend(body);
    // The shortest frame is padded.
    out.resize(out.len().max(60), 0);
    out
}

/// UDP around `body`.
pub fn udp(port: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(40_000_u16.to_be_bytes());
    out.extend(port.to_be_bytes());
    out.extend((8 + body.len() as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(body);
    out
}

/// A frame of a capture.
#[derive(Clone, Debug)]
pub struct Frame {
    pub time_ns: u64,
    /// The kind of link: 101 is raw IP, 1 Ethernet.
    pub link: u16,
    pub bytes: Vec<u8>,
    /// How many of them were captured.
    pub captured: usize,
}

impl Frame {
    pub fn new(time_ns: u64, link: u16, bytes: Vec<u8>) -> Frame {
        Frame { time_ns, link, captured: bytes.len(), bytes }
    }
}

/// A classic capture of raw IP, nanoseconds or microseconds, in either byte order.
pub fn pcap(frames: &[Frame], is_little: bool, is_nano: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let word = |out: &mut Vec<u8>, value: u32| {
        out.extend(if is_little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    let half = |out: &mut Vec<u8>, value: u16| {
        out.extend(if is_little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    word(&mut out, if is_nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    half(&mut out, 2);
    half(&mut out, 4);
    for value in [0, 0, 65_535, u32::from(frames.first().map_or(101, |frame| frame.link))] {
        word(&mut out, value);
    }
    for frame in frames {
        let fraction = frame.time_ns % 1_000_000_000;
        word(&mut out, (frame.time_ns / 1_000_000_000) as u32);
        word(&mut out, (if is_nano { fraction } else { fraction / 1_000 }) as u32);
        word(&mut out, frame.captured as u32);
        word(&mut out, frame.bytes.len() as u32);
        out.extend(&frame.bytes[..frame.captured]);
    }
    out
}

/// A pcapng of frames of any links, each link an interface, with blocks in between that are not
/// packets. `resolution` is `if_tsresol`.
pub fn pcapng(frames: &[Frame], is_little: bool, resolution: u8) -> Vec<u8> {
    let word = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let half = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = word(12 + body.len() as u32);
        [&word(kind)[..], &length, &body, &length].concat()
    };
    let unknown = [0xff; 8];
    let version = [half(1), half(0)].concat();
    let mut out = block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &version, &unknown].concat());
    // A name resolution block, and one of an unknown type.
    out.extend(block(4, &[0, 0, 0, 0]));
    out.extend(block(0x7abc, &[]));
    let mut links: Vec<u16> = frames.iter().map(|frame| frame.link).collect();
    links.sort_unstable();
    links.dedup();
    for link in &links {
        let name = [&half(2)[..], &half(3), b"if0\0"].concat();
        let units = [&half(9)[..], &half(1), &[resolution, 0, 0, 0]].concat();
        let end = [0; 4];
        let body = [&half(*link)[..], &[0, 0], &word(0), &name, &units, &end].concat();
        out.extend(block(1, &body));
    }
    let scale = |time_ns: u64| -> u64 {
        let units = match resolution {
            power if power & 0x80 == 0 => 10_u128.pow(power.into()),
            power => 2_u128.pow((power & 0x7f).into()),
        };
        (u128::from(time_ns) * units / 1_000_000_000) as u64
    };
    for frame in frames {
        let at = links.binary_search(&frame.link).unwrap_or(0) as u32;
        let time = scale(frame.time_ns);
        let mut body = Vec::new();
        for value in
            [at, (time >> 32) as u32, time as u32, frame.captured as u32, frame.bytes.len() as u32]
        {
            body.extend(word(value));
        }
        body.extend(&frame.bytes[..frame.captured]);
        body.resize(body.len().next_multiple_of(4), 0);
        // A comment.
        body.extend([&half(1)[..], &half(2), b"ok\0\0", &[0; 4]].concat());
        out.extend(block(6, &body));
    }
    // tshark gives a custom block a frame number: here the last.
    out.extend(block(0xbad, &[1, 2, 3, 4, 5, 6, 7]));
    out
}
