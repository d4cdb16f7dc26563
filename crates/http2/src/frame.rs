//! Frames (RFC 9113 sections 4 and 6).

/// Length, type, flags and stream identifier (RFC 9113 section 4.1).
pub(crate) const HEAD_BYTES: usize = 9;

/// The payload that every endpoint accepts (section 4.2). This engine announces no other limit: a
/// larger frame would hold others up.
pub(crate) const PAYLOAD_MAX_BYTES: usize = 16_384;

/// The preface of a client (section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The highest stream identifier, and the largest window.
pub(crate) const MAX_31: u32 = 0x7fff_ffff;

/// Frame types.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    /// RFC 9218 section 7.1.
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// Frame flags.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    #[inline]
    pub(crate) fn parse(bytes: &[u8; HEAD_BYTES]) -> Head {
        let [l2, l1, l0, kind, flags, s3, s2, s1, s0] = *bytes;
        Head {
            length: u32::from_be_bytes([0, l2, l1, l0]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes([s3, s2, s1, s0]) & MAX_31,
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, l2, l1, l0] = (self.length as u32).to_be_bytes();
        let [s3, s2, s1, s0] = self.stream.to_be_bytes();
        [l2, l1, l0, self.kind, self.flags, s3, s2, s1, s0]
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame (RFC 9113 section 4.1). `payload` is shorter than 2^24 bytes.
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&Head { length: payload.len(), kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Returns the payload without its padding (section 6.1); `None` if the padding is longer than the
/// frame.
pub(crate) fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}

/// Reads a number of 32 bits without its reserved highest bit.
pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?) & MAX_31)
}
