//! Tracks a connection's send window (RFC 9113 section 6.9): how much the peer still accepts on all
//! streams together.
//!
//! The `h2` crate does not expose it, but it decides whether a connection can be shared: uploads
//! that the peer does not read use the window up, and every other upload on that connection then
//! waits for them. So the `WINDOW_UPDATE` frames that arrive are parsed here as well.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wire::http1::RequestBody;
use wire::http2::frames::{DATA, FrameScanner, WINDOW_UPDATE};

use super::PREFACE;

/// Initial window of a connection (RFC 9113 section 6.9.2). SETTINGS do not change it.
const WINDOW_AT_FIRST_BYTES: i64 = 65_535;
/// Reserved for a body of unknown length: these are mostly single gRPC messages.
const UNKNOWN_LENGTH_BYTES: i64 = 256;
/// Maximum reserved for one body: a longer one moves on as the peer reads. A quarter of the initial
/// window, since peers send updates only after half of the window.
const PROMISED_MAX_BYTES: i64 = 16 * 1024;

/// The send window of one connection to a server.
pub(super) struct SendWindow {
    open: Cell<i64>,
    /// Bytes still needed by bodies that have begun.
    promised: Cell<i64>,
    /// Taken from bodies and not sent yet.
    queued: Cell<i64>,
    received: RefCell<FrameScanner>,
    sent: RefCell<FrameScanner>,
}

impl Default for SendWindow {
    fn default() -> SendWindow {
        SendWindow {
            open: Cell::new(WINDOW_AT_FIRST_BYTES),
            promised: Cell::new(0),
            queued: Cell::new(0),
            received: RefCell::new(FrameScanner::after(0)),
            sent: RefCell::new(FrameScanner::after(PREFACE.len())),
        }
    }
}

impl SendWindow {
    /// Returns whether a request with such a body could be sent without waiting for other bodies.
    /// `idle`: no exchange is in progress.
    pub(super) fn has_room_for(&self, body: RequestBody, idle: bool) -> bool {
        if idle {
            // What streams had queued when they were reset was never sent.
            self.queued.set(0);
        }
        needed(body) <= self.open.get() - self.queued.get() - self.promised.get()
    }

    /// Processes bytes that arrived on the connection.
    pub(super) fn received(&self, bytes: &[u8]) {
        self.received.borrow_mut().feed(bytes, |frame| {
            if frame.kind == WINDOW_UPDATE && frame.stream == 0 {
                // The highest bit is reserved.
                self.open.set(self.open.get() + i64::from(frame.number & 0x7fff_ffff));
            }
        });
    }

    /// Processes bytes that were sent on the connection.
    pub(super) fn sent(&self, bytes: &[u8]) {
        self.sent.borrow_mut().feed(bytes, |frame| {
            if frame.kind == DATA {
                let count = i64::from(frame.number);
                self.open.set(self.open.get() - count);
                self.queued.set((self.queued.get() - count).max(0));
            }
        });
    }
}

fn needed(body: RequestBody) -> i64 {
    match body {
        // Heads are not subject to flow control.
        RequestBody::None => i64::MIN / 2,
        RequestBody::Length(length) => {
            i64::try_from(length).unwrap_or(i64::MAX).min(PROMISED_MAX_BYTES)
        }
        RequestBody::Chunked => UNKNOWN_LENGTH_BYTES,
    }
}

/// A body's reserved part of its connection's window, until it is sent or dropped.
pub(super) struct Promise {
    window: Rc<SendWindow>,
    left: Cell<i64>,
}

impl Promise {
    pub(super) fn new(window: &Rc<SendWindow>, body: RequestBody) -> Promise {
        let left = needed(body).max(0);
        window.promised.set(window.promised.get() + left);
        Promise { window: Rc::clone(window), left: Cell::new(left) }
    }

    /// Records that this much of the body was taken for sending.
    pub(super) fn taken(&self, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.window.queued.set(self.window.queued.get() + count);
        self.release(count.min(self.left.get()));
    }

    fn release(&self, count: i64) {
        self.left.set(self.left.get() - count);
        self.window.promised.set(self.window.promised.get() - count);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.release(self.left.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        wire::http2::frames::frame_bytes(kind, 0, stream, payload)
    }

    #[test]
    fn updates_of_the_connection_count_however_they_are_cut() {
        let mut bytes = frame(4, 0, &[0; 12]);
        bytes.extend(frame(WINDOW_UPDATE, 0, &1_000_u32.to_be_bytes()));
        bytes.extend(frame(WINDOW_UPDATE, 3, &5_000_u32.to_be_bytes()));
        bytes.extend(frame(0, 3, &[8; 300]));
        bytes.extend(frame(1, 5, b""));
        bytes.extend(frame(WINDOW_UPDATE, 0, &20_u32.to_be_bytes()));
        for size in [1, 2, 3, 7, 9, 13, 50, bytes.len()] {
            let window = SendWindow::default();
            bytes.chunks(size).for_each(|piece| window.received(piece));
            assert_eq!(window.open.get(), WINDOW_AT_FIRST_BYTES + 1_020, "pieces of {size}");
        }
    }

    #[test]
    fn unread_bodies_leave_no_room_until_the_peer_reads_or_they_are_given_up() {
        let window = Rc::new(SendWindow::default());
        let long = RequestBody::Length(69_000);
        let short = RequestBody::Length(1_000);
        assert!(window.has_room_for(long, false));
        let first = Promise::new(&window, long);
        first.taken(65_535);
        window.sent(PREFACE);
        window.sent(&frame(DATA, 1, &vec![0; 65_535]));
        assert!(
            !window.has_room_for(short, false) && !window.has_room_for(RequestBody::Chunked, false)
        );
        assert!(window.has_room_for(RequestBody::None, false));
        window.received(&frame(WINDOW_UPDATE, 0, &17_000_u32.to_be_bytes()));
        assert!(window.has_room_for(short, false));
        let second = Promise::new(&window, long);
        assert!(
            !window.has_room_for(short, false) && window.has_room_for(RequestBody::Chunked, false)
        );
        drop(second);
        assert!(window.has_room_for(short, false));
        // Reset before it was sent.
        let third = Promise::new(&window, long);
        third.taken(17_000);
        drop(third);
        assert!(!window.has_room_for(short, false) && window.has_room_for(short, true));
    }
}
