//! Scans HTTP/2 frames (RFC 9113 section 4.1) without decoding them: for observers of a connection
//! that another component reads and writes, which need to know which streams begin, which are reset
//! and how windows grow. Payloads are not examined.

/// DATA (RFC 9113 section 6.1).
pub const DATA: u8 = 0;
/// HEADERS (RFC 9113 section 6.2).
pub const HEADERS: u8 = 1;
/// `RST_STREAM` (section 6.4).
pub const RST_STREAM: u8 = 3;
/// `WINDOW_UPDATE` (section 6.9).
pub const WINDOW_UPDATE: u8 = 8;

/// Length, type, flags and stream id (RFC 9113 section 4.1).
const HEAD_BYTES: usize = 9;
/// The error code of `RST_STREAM`, the increment of `WINDOW_UPDATE`.
const NUMBER_BYTES: usize = 4;

/// The start of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its stream; 0: the connection.
    pub stream: u32,
    /// The error code of `RST_STREAM`, the increment of `WINDOW_UPDATE` with its reserved bit, the
    /// length of DATA in bytes, including padding; 0 for all others.
    pub number: u32,
}

/// Finds frames in one direction of a connection, which is fed in pieces of any size.
#[derive(Debug)]
pub struct FrameScanner {
    /// The part of the current frame seen so far: its head, and its number.
    seen: [u8; HEAD_BYTES + NUMBER_BYTES],
    seen_len: usize,
    /// Bytes to skip before the next frame.
    skip: usize,
}

impl FrameScanner {
    /// Returns a scanner for a direction whose first frame begins after `skip` bytes.
    pub fn after(skip: usize) -> FrameScanner {
        FrameScanner { seen: [0; HEAD_BYTES + NUMBER_BYTES], seen_len: 0, skip }
    }

    /// Processes the next bytes; calls `found` for each DATA, HEADERS, `RST_STREAM` and
    /// `WINDOW_UPDATE` among them, as soon as it is known.
    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Frame)) {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return;
            }
            let wanted = self.wanted();
            let taken = (wanted - self.seen_len).min(bytes.len());
            self.seen[self.seen_len..self.seen_len + taken].copy_from_slice(&bytes[..taken]);
            self.seen_len += taken;
            bytes = &bytes[taken..];
            // Once the head is complete, more of the frame may be needed.
            if self.seen_len < self.wanted() {
                continue;
            }
            let frame = self.frame();
            self.skip = self.length() - (self.seen_len - HEAD_BYTES);
            self.seen_len = 0;
            if matches!(frame.kind, DATA | HEADERS | RST_STREAM | WINDOW_UPDATE) {
                found(frame);
            }
        }
    }

    /// Returns how much of the current frame must be examined, as far as known.
    fn wanted(&self) -> usize {
        // A shorter one is a connection error, which ends the connection.
        let has_number = self.seen_len >= HEAD_BYTES
            && matches!(self.seen[3], RST_STREAM | WINDOW_UPDATE)
            && self.length() >= NUMBER_BYTES;
        HEAD_BYTES + if has_number { NUMBER_BYTES } else { 0 }
    }

    fn length(&self) -> usize {
        self.seen[..3].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    }

    fn frame(&self) -> Frame {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        // The highest bit of a stream id is reserved.
        let stream = number(&self.seen[5..HEAD_BYTES]) & 0x7fff_ffff;
        let kind = self.seen[3];
        let number = match kind {
            DATA => self.length() as u32,
            _ => number(&self.seen[HEAD_BYTES..self.seen_len]),
        };
        Frame { kind, stream, number }
    }
}

/// Returns a frame's bytes (RFC 9113 section 4.1). For tests that speak HTTP/2 frame by frame: of a
/// payload longer than 2²⁴ - 1 bytes the length does not fit.
pub fn frame_bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        frame_bytes(kind, 0xff, stream, payload)
    }

    #[test]
    fn frames_are_found_however_the_bytes_are_split() {
        let bytes = [
            b"preface".to_vec(),
            frame(4, 0, &[0; 18]),
            frame(HEADERS, 1, &[0x82; 300]),
            frame(DATA, 1, &vec![1; 70_000]),
            frame(RST_STREAM, 1, &7_u32.to_be_bytes()),
            frame(RST_STREAM, 0x8000_0003, &1_u32.to_be_bytes()),
            frame(4, 0, &[]),
            frame(HEADERS, 5, &[]),
            frame(WINDOW_UPDATE, 0, &20_u32.to_be_bytes()),
        ]
        .concat();
        let expected = [
            Frame { kind: HEADERS, stream: 1, number: 0 },
            Frame { kind: DATA, stream: 1, number: 70_000 },
            Frame { kind: RST_STREAM, stream: 1, number: 7 },
            Frame { kind: RST_STREAM, stream: 3, number: 1 },
            Frame { kind: HEADERS, stream: 5, number: 0 },
            Frame { kind: WINDOW_UPDATE, stream: 0, number: 20 },
        ];
        for size in (1..40).chain([1_000, 16_384, bytes.len()]) {
            let mut scanner = FrameScanner::after(7);
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                scanner.feed(piece, |frame| found.push(frame));
            }
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_broken_reset_is_passed_over() {
        let bytes = [frame(RST_STREAM, 1, &[1, 2]), frame(HEADERS, 3, b"x")].concat();
        let mut found = Vec::new();
        FrameScanner::after(0).feed(&bytes, |frame| found.push((frame.kind, frame.stream)));
        assert_eq!(found, [(RST_STREAM, 1), (HEADERS, 3)]);
    }
}
