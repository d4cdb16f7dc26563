//! Detects client requests that the `h2` crate refused. It answers or resets some streams itself
//! (malformed heads, heads that are too large, more streams than allowed) without reporting them;
//! the frames on the wire show it.

use std::cell::RefCell;
use std::collections::VecDeque;

use h2::Reason;
use wire::http2::frames::{Frame, FrameScanner, HEADERS, RST_STREAM};

use super::PREFACE;

/// Maximum number of streams that have begun and were neither handed over nor refused. `h2` reads a
/// few kB at a time and decides on each stream at once, so there are never as many.
const UNDECIDED_MAX: usize = 4096;

/// Why a request was refused before it was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its head breaks the rules of HTTP/2 (RFC 9113 section 8.1.1); the stream was reset.
    Malformed,
    /// Its head is too large; it was answered with 431.
    HeadTooLarge,
    /// The client already had its maximum number of streams; the stream was reset.
    TooManyStreams,
    /// The client causes excessive load (RFC 9113 section 10.5); the stream was reset.
    Flood,
}

/// Watches a connection to a client.
#[derive(Debug)]
pub(super) struct Watch(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    from_client: FrameScanner,
    to_client: FrameScanner,
    /// IDs in ascending order, as clients must choose them (RFC 9113 section 5.1.1).
    undecided: VecDeque<u32>,
    last_begun: u32,
    refused: VecDeque<Refusal>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch(RefCell::new(Inner {
            from_client: FrameScanner::after(PREFACE.len()),
            to_client: FrameScanner::after(0),
            undecided: VecDeque::new(),
            last_begun: 0,
            refused: VecDeque::new(),
        }))
    }

    /// Processes bytes from the client.
    pub(super) fn came(&self, bytes: &[u8]) {
        let Inner { from_client, undecided, last_begun, .. } = &mut *self.0.borrow_mut();
        from_client.feed(bytes, |frame| {
            // Trailers are HEADERS frames too.
            if frame.kind == HEADERS && frame.stream > *last_begun {
                *last_begun = frame.stream;
                if undecided.len() == UNDECIDED_MAX {
                    undecided.pop_front();
                }
                undecided.push_back(frame.stream);
            }
        });
    }

    /// Processes bytes sent to the client.
    pub(super) fn went(&self, bytes: &[u8]) {
        let Inner { to_client, undecided, refused, .. } = &mut *self.0.borrow_mut();
        to_client.feed(bytes, |frame| {
            if matches!(frame.kind, HEADERS | RST_STREAM) && decided(undecided, frame.stream) {
                refused.push_back(refusal(frame));
            }
        });
    }

    /// Records that the stream with this ID was handed over.
    pub(super) fn accepted(&self, stream: u32) {
        decided(&mut self.0.borrow_mut().undecided, stream);
    }

    /// Returns the next refusal that has not been reported.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        self.0.borrow_mut().refused.pop_front()
    }
}

/// Removes a stream from the undecided ones; returns whether it was among them.
fn decided(undecided: &mut VecDeque<u32>, stream: u32) -> bool {
    match undecided.binary_search(&stream) {
        Ok(at) => undecided.remove(at).is_some(),
        Err(_) => false,
    }
}

fn refusal(frame: Frame) -> Refusal {
    match Reason::from(frame.number) {
        // The only response that `h2` sends itself.
        _ if frame.kind != RST_STREAM => Refusal::HeadTooLarge,
        Reason::REFUSED_STREAM => Refusal::TooManyStreams,
        Reason::ENHANCE_YOUR_CALM => Refusal::Flood,
        _ => Refusal::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        wire::http2::frames::frame_bytes(kind, 4, stream, payload)
    }

    fn reset(stream: u32, reason: Reason) -> Vec<u8> {
        frame(RST_STREAM, stream, &u32::from(reason).to_be_bytes())
    }

    #[test]
    fn only_what_was_not_handed_over_is_refused() {
        let watch = Watch::new();
        watch.came(PREFACE);
        for stream in [1, 3, 5, 7, 9, 11] {
            watch.came(&frame(HEADERS, stream, b"head"));
        }
        watch.accepted(1);
        watch.accepted(9);
        // A response, a reset of a stream that has ended by itself, and trailers of one.
        watch.went(&frame(HEADERS, 1, b"response"));
        watch.went(&reset(9, Reason::CANCEL));
        watch.came(&frame(HEADERS, 9, b"trailers"));
        assert_eq!(watch.take_refusal(), None);
        watch.went(&reset(3, Reason::PROTOCOL_ERROR));
        watch.went(&frame(HEADERS, 5, b"431"));
        watch.went(&reset(5, Reason::PROTOCOL_ERROR));
        watch.went(&reset(7, Reason::REFUSED_STREAM));
        watch.went(&reset(11, Reason::ENHANCE_YOUR_CALM));
        let refused: Vec<_> = std::iter::from_fn(|| watch.take_refusal()).collect();
        assert_eq!(
            refused,
            [Refusal::Malformed, Refusal::HeadTooLarge, Refusal::TooManyStreams, Refusal::Flood]
        );
    }
}
