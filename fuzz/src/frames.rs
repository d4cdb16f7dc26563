//! The input of the HTTP/2 targets: the bytes of one side of a connection, so that a recording of a
//! real peer is an input. Some unassigned frame types have a meaning of their own here: they stand
//! for frames that bytes would rarely form (header blocks of known fields, long content), or for an
//! action of the engine's owner.
//!
//! An input that starts with the client's preface goes to a server, any other to a client.

use http2::{PREFACE, put_frame};

pub mod kind {
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
    pub const PRIORITY_UPDATE: u8 = 0x10;
    /// A header block of known fields: a layout, then a byte for each field.
    pub const FIELDS: u8 = 0xe0;
    /// DATA of a length.
    pub const CONTENT: u8 = 0xe1;
    /// From here on, actions of the owner.
    pub const SENT: u8 = 0xe8;
    pub const COMMIT: u8 = 0xe9;
    pub const SEND_HEAD: u8 = 0xea;
    pub const SEND_DATA: u8 = 0xeb;
    pub const SEND_TRAILERS: u8 = 0xec;
    pub const CONSUMED: u8 = 0xed;
    pub const RESET: u8 = 0xee;
    pub const RELEASE: u8 = 0xef;
    pub const GO_AWAY: u8 = 0xf0;
    pub const SHRINK: u8 = 0xf1;
    pub const FAIL: u8 = 0xf2;
    pub const WRITABLE: u8 = 0xf3;
    pub const WAIT: u8 = 0xf4;
    pub const ACTIONS: std::ops::RangeInclusive<u8> = SENT..=WAIT;
}

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const WITH_PRIORITY: u8 = 0x20;

pub const PAYLOAD_MAX_BYTES: usize = 16_384;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame(out, self.kind, self.flags, self.stream, &self.payload);
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the number of 16 bits at the start of the payload; 0 if there is none.
    pub fn small(&self) -> usize {
        self.payload.first_chunk().map_or(0, |&bytes| usize::from(u16::from_be_bytes(bytes)))
    }

    /// Returns the number of 32 bits at a position of the payload, without its highest bit.
    pub fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes) & 0x7fff_ffff)
    }
}

/// Takes the first frame off `bytes`, if it is whole.
pub fn take(bytes: &mut &[u8]) -> Option<Frame> {
    let &[l2, l1, l0, kind, flags, s3, s2, s1, s0] = bytes.first_chunk()?;
    let length = u32::from_be_bytes([0, l2, l1, l0]) as usize;
    let payload = bytes.get(9..9 + length)?.to_vec();
    *bytes = &bytes[9 + length..];
    let stream = u32::from_be_bytes([s3, s2, s1, s0]) & 0x7fff_ffff;
    Some(Frame { kind, flags, stream, payload })
}

/// Splits an input into its preface and its frames. A last frame that is cut off becomes shorter; a
/// rest that is no frame is dropped.
pub fn parse(input: &[u8]) -> (bool, Vec<Frame>) {
    let (has_preface, mut rest) = match input.strip_prefix(PREFACE) {
        Some(rest) => (true, rest),
        None => (false, input),
    };
    let mut frames = Vec::new();
    while let Some(frame) = take(&mut rest) {
        frames.push(frame);
    }
    if let Some((head, payload)) = rest.split_at_checked(9) {
        let length = (payload.len() as u32).to_be_bytes();
        let whole = [&length[1..], &head[3..], payload].concat();
        frames.extend(take(&mut &whole[..]));
    }
    (has_preface, frames)
}

/// Fields of header blocks, valid and invalid.
pub const FIELDS: [(&[u8], &[u8]); 64] = [
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":method", b"HEAD"),
    (b":method", b"CONNECT"),
    (b":method", b"OPTIONS"),
    (b":method", b"G T"),
    (b":scheme", b"https"),
    (b":scheme", b"http"),
    (b":scheme", b"1a"),
    (b":authority", b"a"),
    (b":authority", b"a:443"),
    (b":authority", b"u@a"),
    (b":authority", b""),
    (b":path", b"/"),
    (b":path", b"/a?b=%20"),
    (b":path", b"*"),
    (b":path", b""),
    (b":path", b"a"),
    (b":path", b"/a b"),
    (b":protocol", b"websocket"),
    (b":protocol", b"a b"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"304"),
    (b":status", b"100"),
    (b":status", b"103"),
    (b":status", b"101"),
    (b":status", b"2000"),
    (b":other", b"x"),
    (b"host", b"a"),
    (b"host", b"b"),
    (b"content-length", b"0"),
    (b"content-length", b"5"),
    (b"content-length", b"16384"),
    (b"content-length", b"-1"),
    (b"content-length", b"5, 5"),
    (b"content-length", b"99999999999999999999"),
    (b"transfer-encoding", b"chunked"),
    (b"connection", b"close"),
    (b"keep-alive", b"5"),
    (b"proxy-connection", b"x"),
    (b"upgrade", b"h2c"),
    (b"http2-settings", b"AAAA"),
    (b"te", b"trailers"),
    (b"te", b"gzip"),
    (b"cookie", b"a=1"),
    (b"cookie", b"b=2; c=3"),
    (b"cookie", b""),
    (b"priority", b"u=1, i"),
    (b"priority", b"u=7"),
    (b"x-a", b"plain"),
    (b"x-a", b""),
    (b"x-a", b" around "),
    (b"x-a", b"a\0b"),
    (b"x-a", b"a\r\nb: c"),
    (b"x-a", b"\xe9\xff"),
    (b"X-Upper", b"x"),
    (b"a b", b"x"),
    (b"", b"x"),
    (b"trailer", b"x-sum"),
    (b"x-sum", b"9"),
    (b"expect", b"100-continue"),
    (b"sec-websocket-key", b"k"),
    (
        b"x-long",
        b"0123456789012345678901234567890123456789012345678901234567890123456789\
          0123456789012345678901234567890123456789012345678901234567890123456789",
    ),
];

/// Appends an integer (RFC 7541 section 5.1).
fn put_integer(value: usize, prefix: u32, first: u8, out: &mut Vec<u8>) {
    let max = (1 << prefix) - 1;
    if value < max {
        out.push(first | value as u8);
        return;
    }
    out.push(first | max as u8);
    let mut rest = value - max;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_string(text: &[u8], out: &mut Vec<u8>) {
    put_integer(text.len(), 7, 0, out);
    out.extend_from_slice(text);
}

/// Appends one field of a block, as the two highest bits of its byte say: a literal, a literal with
/// indexing, one never indexed, or an entry of the dynamic table.
fn put_known(byte: u8, out: &mut Vec<u8>) {
    let (name, value) = FIELDS[usize::from(byte & 63)];
    let first = match byte >> 6 {
        0 => 0,
        1 => 0x40,
        2 => 0x10,
        _ => return put_integer(62 + usize::from(byte & 7), 7, 0x80, out),
    };
    out.push(first);
    put_string(name, out);
    put_string(value, out);
}

/// What a frame of an input stands for.
pub enum Step {
    /// Frames that arrive.
    Arrives(Vec<Frame>),
    /// An action of the owner.
    Acts(Frame),
}

/// Expands a frame of the input. `to_server`: header blocks are those of requests.
pub fn expand(frame: Frame, to_server: bool) -> Step {
    match frame.kind {
        kind::FIELDS => Step::Arrives(block(&frame, to_server)),
        kind::CONTENT => {
            let mut payload = Vec::new();
            if frame.has(PADDED) {
                payload.push(frame.payload.get(2).copied().unwrap_or(0));
            }
            let length = frame.small() % (PAYLOAD_MAX_BYTES + 1);
            payload.resize(length.max(payload.len()), b'x');
            Step::Arrives(vec![Frame { kind: kind::DATA, payload, ..frame }])
        }
        kind if kind::ACTIONS.contains(&kind) => Step::Acts(frame),
        _ => Step::Arrives(vec![frame]),
    }
}

fn block(frame: &Frame, to_server: bool) -> Vec<Frame> {
    let (&layout, fields) = frame.payload.split_first().unwrap_or((&0x80, &[]));
    let mut bytes = Vec::new();
    match (layout >> 6, to_server) {
        (1, true) => bytes.extend_from_slice(&[0x83, 0x87, 0x84, 0x41, 1, b'a']),
        (2, true) => bytes.extend_from_slice(&[0x82, 0x87, 0x84, 0x41, 1, b'a']),
        (1, false) => bytes.push(0x88),
        (2, false) => bytes.extend_from_slice(&[8, 3, b'1', b'0', b'3']),
        _ => {}
    }
    for &field in fields.iter().take(100) {
        put_known(field, &mut bytes);
    }
    // One frame, or several of equal length.
    let parts = usize::from(layout & 3) + 1;
    let length = bytes.len().div_ceil(parts).clamp(1, 10_000);
    let mut pieces: Vec<&[u8]> = bytes.chunks(length).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let count = pieces.len();
    let mut frames = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        let mut flags = if at + 1 == count { END_HEADERS } else { 0 };
        let mut payload = Vec::new();
        if at == 0 {
            flags |= frame.flags & (END_STREAM | PADDED | WITH_PRIORITY);
            if frame.has(PADDED) {
                payload.push(4);
            }
            if frame.has(WITH_PRIORITY) {
                payload.extend_from_slice(&[0, 0, 0, layout & 0x3c, 9]);
            }
        }
        payload.extend_from_slice(piece);
        if flags & PADDED != 0 {
            payload.extend_from_slice(&[0; 4]);
        }
        let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
        frames.push(Frame { kind, flags, stream: frame.stream, payload });
    }
    frames
}
