//! The send buffer: stream frames in order; control frames are inserted before the next frame.

use crate::frame::{HEAD_BYTES, Head, flag};
use crate::hpack::Encoder;

/// Bytes waiting for the peer to take them.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// PING, `WINDOW_UPDATE`, GOAWAY: sent before any of `frames` that has not begun.
    control: Vec<u8>,
    control_sent: usize,
    /// Frames of streams and acknowledgements of SETTINGS, in order.
    frames: Vec<u8>,
    frames_sent: usize,
    /// Unsent bytes at the start whose order is fixed: the frame that was sent in part, and all that
    /// was committed.
    cut: usize,
    /// Start of the last frame in `frames`.
    last: usize,
}

/// Buffers up to this size are kept when they become empty, larger ones are freed.
pub(crate) const KEPT_MAX_BYTES: usize = 4096;

impl Output {
    /// Returns the bytes to send, in order.
    pub(crate) fn slices(&self) -> [&[u8]; 3] {
        let (cut, rest) = self.frames[self.frames_sent..].split_at(self.cut);
        [cut, &self.control[self.control_sent..], rest]
    }

    /// Removes bytes that were sent.
    pub(crate) fn advance(&mut self, mut count: usize) {
        let of_cut = count.min(self.cut);
        self.frames_sent += of_cut;
        self.cut -= of_cut;
        count -= of_cut;
        if self.cut == 0 {
            let of_control = count.min(self.control.len() - self.control_sent);
            self.control_sent += of_control;
            count -= of_control;
        }
        if self.control_sent == self.control.len() {
            clear(&mut self.control, &mut self.control_sent);
            self.advance_frames(count);
        }
        if self.frames_sent == self.frames.len() {
            clear(&mut self.frames, &mut self.frames_sent);
            self.last = 0;
        }
    }

    fn advance_frames(&mut self, mut count: usize) {
        while count > 0 {
            let length = self.next_len();
            if length == 0 {
                return;
            }
            let taken = length.min(count);
            self.frames_sent += taken;
            self.cut = length - taken;
            count -= taken;
        }
    }

    /// Returns the length of the next frame; of a header block, with all its CONTINUATION frames,
    /// since no other frame may come between them (RFC 9113 section 6.10).
    fn next_len(&self) -> usize {
        use crate::frame::kind::{CONTINUATION, HEADERS};
        let bytes = &self.frames[self.frames_sent..];
        let mut length = 0;
        while let Some(head) = bytes[length..].first_chunk::<HEAD_BYTES>() {
            let head = Head::parse(head);
            length += HEAD_BYTES + head.length;
            if !matches!(head.kind, HEADERS | CONTINUATION) || head.has(flag::END_HEADERS) {
                break;
            }
        }
        length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.frames.is_empty()
    }

    /// Returns the number of unsent bytes in `frames`.
    pub(crate) fn frames_len(&self) -> usize {
        self.frames.len() - self.frames_sent
    }

    pub(crate) fn control_len(&self) -> usize {
        self.control.len() - self.control_sent
    }

    /// Appends a control frame.
    pub(crate) fn put_control(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        crate::frame::put(&mut self.control, kind, flags, stream, payload);
    }

    /// Appends a control frame after the frames of streams that are waiting. For acknowledgements of
    /// settings: the peer applies them to all that follows, and those frames were written before.
    pub(crate) fn put_ordered(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        if self.frames_len() == 0 {
            self.put_control(kind, flags, stream, payload);
        } else {
            self.put(kind, flags, stream, payload);
        }
    }

    /// Appends raw bytes before all frames: the preface.
    pub(crate) fn put_raw(&mut self, bytes: &[u8]) {
        self.control.extend_from_slice(bytes);
    }

    /// Appends a frame of a stream.
    pub(crate) fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.make_room();
        self.last = self.frames.len();
        crate::frame::put(&mut self.frames, kind, flags, stream, payload);
    }

    /// Appends a header block of any length, which `write` writes, as one HEADERS frame and as many
    /// CONTINUATION frames as it takes. If `write` fails, nothing is appended and the encoder is as
    /// if nothing had been encoded.
    pub(crate) fn put_block<T, E>(
        &mut self,
        encoder: &mut Encoder,
        (stream, ended): (u32, bool),
        payload_max: usize,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<T, E>,
    ) -> Result<T, E> {
        use crate::frame::kind::{CONTINUATION, HEADERS};
        self.make_room();
        let start = self.frames.len();
        self.frames.extend_from_slice(&[0; HEAD_BYTES]);
        encoder.begin(&mut self.frames);
        let written = write(encoder, &mut self.frames).inspect_err(|_| {
            self.frames.truncate(start);
            encoder.abandon_block();
        })?;
        self.last = start;
        let length = self.frames.len() - start - HEAD_BYTES;
        let ends = if ended { flag::END_STREAM } else { 0 };
        let whole = if length <= payload_max { flag::END_HEADERS } else { 0 };
        let head =
            Head { length: length.min(payload_max), kind: HEADERS, flags: ends | whole, stream };
        self.frames[start..start + HEAD_BYTES].copy_from_slice(&head.bytes());
        if whole == 0 {
            let rest = self.frames.split_off(start + HEAD_BYTES + payload_max);
            let count = rest.len().div_ceil(payload_max);
            for (index, part) in rest.chunks(payload_max).enumerate() {
                let flags = if index + 1 == count { flag::END_HEADERS } else { 0 };
                crate::frame::put(&mut self.frames, CONTINUATION, flags, stream, part);
            }
        }
        Ok(written)
    }

    /// Sets `END_STREAM` on the last frame, if that belongs to this stream and has not been sent in
    /// part. Returns whether it did.
    pub(crate) fn end_with_last(&mut self, stream: u32) -> bool {
        use crate::frame::kind::{DATA, HEADERS};
        let Some(mut head) = self.last_of(stream) else { return false };
        if !matches!(head.kind, DATA | HEADERS) {
            return false;
        }
        head.flags |= flag::END_STREAM;
        self.change_last(head);
        true
    }

    /// Appends content to the last frame, if that is DATA of this stream, has not been sent in part
    /// and does not become longer than `payload_max`. Returns whether it did.
    pub(crate) fn extend_last(&mut self, stream: u32, content: &[u8], payload_max: usize) -> bool {
        let Some(mut head) = self.last_of(stream) else { return false };
        head.length += content.len();
        if head.kind != crate::frame::kind::DATA || head.length > payload_max {
            return false;
        }
        self.change_last(head);
        self.frames.extend_from_slice(content);
        true
    }

    /// Returns the head of the last frame, if that belongs to this stream and has not been sent in
    /// part.
    fn last_of(&self, stream: u32) -> Option<Head> {
        let head = Head::parse(self.frames[self.last..].first_chunk::<HEAD_BYTES>()?);
        let has_begun = self.last < self.frames_sent + self.cut;
        (head.stream == stream && !has_begun).then_some(head)
    }

    fn change_last(&mut self, head: Head) {
        self.frames[self.last..self.last + HEAD_BYTES].copy_from_slice(&head.bytes());
    }

    /// Drops unsent stream frames, because the connection has failed. Keeps control frames and the
    /// rest of a frame that was sent in part.
    pub(crate) fn drop_frames(&mut self) {
        self.frames.truncate(self.frames_sent + self.cut);
        self.last = self.frames.len();
    }

    /// Fixes the order of the present bytes: later control frames go after them.
    pub(crate) fn commit(&mut self) {
        self.make_room();
        if self.control_len() > 0 {
            if self.cut == self.frames_len() {
                // All of it was committed before.
                self.frames.extend_from_slice(&self.control[self.control_sent..]);
            } else {
                let [cut, control, rest] = self.slices();
                self.frames = [cut, control, rest].concat();
                self.frames_sent = 0;
            }
            self.last = self.frames.len();
            clear(&mut self.control, &mut self.control_sent);
        }
        self.cut = self.frames_len();
    }

    /// Removes sent bytes from the buffer once they are most of it.
    fn make_room(&mut self) {
        if self.frames_sent > KEPT_MAX_BYTES && self.frames_sent * 2 > self.frames.len() {
            self.frames.drain(..self.frames_sent);
            self.last = self.last.saturating_sub(self.frames_sent);
            self.frames_sent = 0;
        }
    }

    /// Frees unused memory.
    pub(crate) fn shrink(&mut self) {
        self.control.shrink_to_fit();
        self.frames.shrink_to_fit();
    }
}

fn clear(buffer: &mut Vec<u8>, sent: &mut usize) {
    *sent = 0;
    if buffer.capacity() > KEPT_MAX_BYTES { *buffer = Vec::new() } else { buffer.clear() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::kind::{DATA, HEADERS, PING};

    fn all(output: &Output) -> Vec<u8> {
        output.slices().concat()
    }

    fn heads(mut bytes: &[u8]) -> Vec<(u8, u8, u32, usize)> {
        let mut heads = Vec::new();
        while let Some(head) = bytes.first_chunk::<HEAD_BYTES>() {
            let head = Head::parse(head);
            heads.push((head.kind, head.flags, head.stream, head.length));
            bytes = &bytes[HEAD_BYTES + head.length..];
        }
        heads
    }

    #[test]
    fn control_frames_go_before_the_next_frame_and_never_into_one() {
        for sent in 0..60 {
            let mut output = Output::default();
            output.put(DATA, 0, 1, &[1; 20]);
            output.put(DATA, 0, 3, &[3; 20]);
            let before = all(&output)[..sent.min(58)].to_vec();
            output.advance(before.len());
            output.put_control(PING, 0, 0, &[9; 8]);
            let bytes = [before, all(&output)].concat();
            let at = match sent {
                0 => 0,
                1..=29 => 1,
                _ => 2,
            };
            let kinds: Vec<u8> = heads(&bytes).iter().map(|head| head.0).collect();
            assert_eq!(kinds.iter().position(|&kind| kind == PING), Some(at), "after {sent}");
            for step in all(&output).chunks(7) {
                output.advance(step.len());
            }
            assert!(output.is_empty());
        }
    }

    #[test]
    fn control_frames_never_go_into_a_header_block() {
        let block = |_: &mut Encoder, out: &mut Vec<u8>| {
            out.resize(out.len() + 50, 7);
            Ok::<_, ()>(())
        };
        for sent in 0..110 {
            let mut output = Output::default();
            output.put_block(&mut Encoder::default(), (1, true), 20, block).unwrap();
            output.put(DATA, 0, 3, &[3; 20]);
            let before = all(&output)[..sent.min(106)].to_vec();
            output.advance(before.len());
            output.put_control(PING, 0, 0, &[9; 8]);
            let found = heads(&[before, all(&output)].concat());
            let at = found.iter().position(|head| head.0 == PING).unwrap();
            assert!([0, 3, 4].contains(&at), "after {sent}: {found:?}");
            let committed = all(&output);
            output.commit();
            output.put_control(PING, 0, 0, &[8; 8]);
            assert!(all(&output).starts_with(&committed), "after {sent}");
            output.commit();
            assert!(all(&output).starts_with(&committed), "after {sent}");
        }
    }

    /// A peer that causes control frames and never reads all of the output.
    #[test]
    fn sent_bytes_are_removed_from_a_committed_buffer_too() {
        let mut output = Output::default();
        output.put(DATA, 0, 1, &[1; 100]);
        for _ in 0..10_000 {
            output.put_control(PING, 0, 0, &[9; 8]);
            output.commit();
            output.advance(17);
            assert!(!output.is_empty());
        }
        assert!(output.frames.capacity() < 8 * KEPT_MAX_BYTES, "{}", output.frames.capacity());
    }

    #[test]
    fn content_joins_the_frame_before_it() {
        let mut output = Output::default();
        output.put(HEADERS, 4, 1, b"abc");
        assert!(!output.extend_last(1, b"d", 10), "no content");
        output.put(DATA, 0, 1, b"abc");
        assert!(!output.extend_last(3, b"d", 10), "another stream");
        assert!(output.extend_last(1, b"defg", 10));
        assert!(!output.extend_last(1, b"hijk", 10), "too long");
        assert!(output.end_with_last(1));
        assert_eq!(heads(&all(&output)), [(1, 4, 1, 3), (0, 1, 1, 7)]);
        assert!(all(&output).ends_with(b"abcdefg"));
        output.advance(13);
        assert!(!output.extend_last(1, b"x", 10), "on its way");
    }

    #[test]
    fn committed_bytes_keep_their_order() {
        let mut output = Output::default();
        output.put(DATA, 0, 1, &[1; 20]);
        output.advance(12);
        output.put_control(PING, 0, 0, &[9; 8]);
        output.put(DATA, 0, 3, &[3; 20]);
        let committed = all(&output);
        output.commit();
        output.put_control(PING, 0, 0, &[8; 8]);
        assert!(!output.end_with_last(3), "its flags may have been encrypted");
        output.put(DATA, 0, 5, &[5; 20]);
        assert_eq!(all(&output)[..committed.len()], committed);
        let after = heads(&all(&output)[committed.len()..]);
        assert_eq!(after, [(PING, 0, 0, 8), (DATA, 0, 5, 20)]);
        output.drop_frames();
        assert_eq!(all(&output).len(), committed.len() + HEAD_BYTES + 8);
    }

    #[test]
    fn long_blocks_continue() {
        let mut output = Output::default();
        let block = |bytes: usize| {
            move |_: &mut Encoder, out: &mut Vec<u8>| {
                out.resize(out.len() + bytes, 7);
                Ok::<_, ()>(())
            }
        };
        let encoder = &mut Encoder::default();
        output.put_block(encoder, (1, true), 100, block(100)).unwrap();
        output.put_block(encoder, (3, true), 100, block(250)).unwrap();
        let found = heads(&all(&output));
        assert_eq!(found, [(1, 5, 1, 100), (1, 1, 3, 100), (9, 0, 3, 100), (9, 4, 3, 50)]);
        let failed: Result<(), ()> = output.put_block(encoder, (5, true), 100, |_, _| Err(()));
        assert!(failed.is_err() && heads(&all(&output)).len() == 4);
    }

    #[test]
    fn the_last_frame_ends_its_stream_unless_it_is_on_its_way() {
        let mut output = Output::default();
        assert!(!output.end_with_last(1));
        output.put(HEADERS, 4, 1, b"abc");
        assert!(!output.end_with_last(3));
        assert!(output.end_with_last(1));
        assert_eq!(heads(&all(&output)), [(1, 5, 1, 3)]);
        output.put(DATA, 0, 3, b"abc");
        output.advance(12);
        output.advance(1);
        assert!(!output.end_with_last(3));
        output.advance(11);
        assert!(output.is_empty() && !output.end_with_last(3));
    }
}
