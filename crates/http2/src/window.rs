//! Receive windows (RFC 9113 section 5.2): those of streams grow with the bandwidth-delay product,
//! that of the connection covers them.
//!
//! A window smaller than the bandwidth-delay product limits throughput; a larger one only buffers
//! bodies that are not read. Streams therefore start with a small window. While a body is being
//! transferred, a PING measures how many bytes arrive in one round-trip time; if that is most of a
//! window, windows double.

use std::time::Duration;

use model::Moment;

use crate::frame::MAX_31;

/// After windows were made smaller because memory was short, they stay small for this long.
const SMALL_FOR: Duration = Duration::from_secs(10);

/// Windows are not made smaller than this: the default of RFC 9113 section 6.9.2.
const SMALL_BYTES: u32 = 65_535;

/// Chooses the window of all streams of a connection.
#[derive(Debug)]
pub(crate) struct WindowSize {
    window: u32,
    first: u32,
    max: u32,
    probe: Option<Probe>,
    /// No probe starts before this time: after each there is a pause of the same length.
    rests_until: Moment,
    /// Windows do not grow before this time.
    small_until: Moment,
}

#[derive(Debug)]
struct Probe {
    sent: Moment,
    received: u64,
}

/// Payload of the PING that measures.
pub(crate) const PROBE: [u8; 8] = *b"weir-bdp";

impl WindowSize {
    pub(crate) fn new(first: u32, max: u32) -> WindowSize {
        WindowSize {
            window: first,
            first,
            max: max.max(first),
            probe: None,
            rests_until: Moment::ZERO,
            small_until: Moment::ZERO,
        }
    }

    /// Returns the window that streams should have, in bytes.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Counts DATA.
    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        if let Some(probe) = &mut self.probe {
            probe.received += bytes as u64;
        }
    }

    /// Called when half of a stream's window was consumed. Returns whether to send a PING with
    /// [`PROBE`].
    pub(crate) fn begins_probe(&mut self, now: Moment) -> bool {
        let begins = self.probe.is_none()
            && self.window < self.max
            && now >= self.rests_until.max(self.small_until);
        if begins {
            self.probe = Some(Probe { sent: now, received: 0 });
        }
        begins
    }

    /// Called when a PING with [`PROBE`] was acknowledged. Returns whether one had been sent.
    pub(crate) fn ends_probe(&mut self, now: Moment) -> bool {
        let Some(probe) = self.probe.take() else { return false };
        self.rests_until = now + now.since(probe.sent);
        if probe.received >= u64::from(self.window) * 2 / 3 && now >= self.small_until {
            self.window = self.window.saturating_mul(2).min(self.max);
        }
        true
    }

    /// Returns to a small size for a while, because memory is short.
    pub(crate) fn shrink(&mut self, now: Moment) {
        self.window = self.first.min(SMALL_BYTES);
        self.small_until = now + SMALL_FOR;
    }
}

/// The receive window of a connection, which all its streams share.
#[derive(Debug)]
pub(crate) struct SharedWindow {
    /// How much the peer may still send, in bytes.
    left: i64,
    /// Consumed bytes that have not been credited to the peer.
    credit: i64,
    /// What `left` would be if everything had been consumed and credited.
    size: i64,
    /// The size to grow or shrink to.
    wanted: i64,
    /// Credit is announced once it reaches this.
    announced_at: i64,
}

impl SharedWindow {
    /// Returns a window of `size` bytes.
    pub(crate) fn new(size: u32) -> SharedWindow {
        let size = i64::from(size);
        SharedWindow { left: size, credit: 0, size, wanted: size, announced_at: size / 2 }
    }

    /// Counts DATA. Returns whether the window covered it.
    pub(crate) fn receive(&mut self, bytes: usize) -> bool {
        self.left -= i64::from(bytes as u32);
        self.left >= 0
    }

    /// Changes the size because the window of a stream has changed from `before` to `after`. It
    /// shrinks by withholding credit.
    pub(crate) fn follow(&mut self, before: u32, after: u32) {
        self.wanted += i64::from(after) - i64::from(before);
    }

    /// Credits consumed bytes; returns how much to announce to the peer now.
    pub(crate) fn credit(&mut self, bytes: u32) -> Option<u32> {
        self.credit += i64::from(bytes);
        let wanted = self.wanted.min(i64::from(MAX_31));
        let change = (wanted - self.size).max(-self.credit);
        self.size += change;
        self.credit += change;
        // Streams that are not read may hold more than half of the window: the others get credit once
        // half of what they can use was consumed.
        let is_little = self.credit < self.announced_at && self.credit < self.left;
        if self.credit == 0 || is_little {
            return None;
        }
        let more = std::mem::take(&mut self.credit);
        // `left` and `credit` together are at most `size`.
        self.left += more;
        u32::try_from(more).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A path with a round-trip time of `rtt_ms` that carries `per_ms` bytes in a millisecond at
    /// most: the window after ten seconds of a body.
    fn after_a_transfer(rtt_ms: u64, per_ms: u64) -> u32 {
        let mut size = WindowSize::new(65_535, 16 << 20);
        let mut now = Moment::ZERO;
        let mut returns: Option<Moment> = None;
        while now < Moment::from_millis(10_000) {
            let by_window = u64::from(size.window()) / rtt_ms;
            size.received(by_window.min(per_ms) as usize);
            if returns.is_none() && size.begins_probe(now) {
                returns = Some(now + Duration::from_millis(rtt_ms));
            }
            if returns.is_some_and(|at| now >= at) {
                size.ends_probe(now);
                returns = None;
            }
            now = now + Duration::from_millis(1);
        }
        size.window()
    }

    #[test]
    fn windows_grow_to_the_bandwidth_delay_product_and_not_far_beyond() {
        for (rtt_ms, per_ms) in [(100, 12_500), (20, 1_250), (200, 1_250)] {
            let product = rtt_ms * per_ms;
            let window = u64::from(after_a_transfer(rtt_ms, per_ms));
            assert!(
                (product..=4 * product).contains(&window),
                "{rtt_ms} ms: {window} of {product}"
            );
        }
        assert_eq!(after_a_transfer(1, 10_000), 65_535, "enough at first");
    }

    #[test]
    fn they_shrink_for_a_while() {
        let mut size = WindowSize::new(100, 1_000);
        assert!(size.begins_probe(Moment::ZERO) && !size.begins_probe(Moment::ZERO));
        size.received(1_000);
        size.ends_probe(Moment::from_millis(1));
        assert_eq!(size.window(), 200);
        size.shrink(Moment::from_millis(2));
        assert!(size.window() == 100 && !size.begins_probe(Moment::from_millis(9)));
        let later = Moment::from_millis(2) + SMALL_FOR;
        assert!(size.begins_probe(later));
        size.received(1_000);
        assert!(size.ends_probe(later) && size.window() == 200);
    }

    #[test]
    fn the_shared_window_follows_those_of_the_streams_and_returns() {
        let mut shared = SharedWindow::new(1_000);
        for round in 0..1_000 {
            // A stream grows by 300 and ends; all that is received is consumed.
            shared.follow(100, 400);
            for _ in 0..10 {
                assert!(shared.receive(100), "round {round}");
                let _ = shared.credit(100);
            }
            shared.follow(400, 100);
            assert!(shared.receive(100));
            let _ = shared.credit(100);
            assert!(shared.left + shared.credit == shared.size && shared.size <= 1_300);
        }
        assert!(shared.receive(400));
        let _ = shared.credit(400);
        assert_eq!(shared.size, 1_000);
        assert!(!shared.receive(1_001));
    }

    /// However much of the window is held by streams that are not read, the others move on.
    #[test]
    fn unread_streams_do_not_stop_the_others() {
        for unread in [0, 500, 510, 900, 999] {
            let mut shared = SharedWindow::new(1_000);
            assert!(shared.receive(unread));
            for _ in 0..10_000 {
                assert!(shared.left > 0, "{unread} unread");
                assert!(shared.receive(1));
                let _ = shared.credit(1);
            }
        }
    }

    #[test]
    fn the_shared_window_never_exceeds_what_a_window_may_be() {
        let mut shared = SharedWindow::new(MAX_31);
        shared.follow(0, MAX_31);
        assert!(shared.receive(MAX_31 as usize));
        assert_eq!(shared.credit(MAX_31), Some(MAX_31));
    }
}
