//! Receive windows (RFC 9113 section 5.2) that grow with the bandwidth-delay product.
//!
//! A window smaller than the bandwidth-delay product limits throughput; a larger one only buffers
//! bodies that are not read. Streams therefore start with a small window. While a body is being
//! transferred, a PING measures how many bytes arrive in one round-trip time; if that is most of a
//! window, windows double.

use model::Moment;

/// Chooses the window of all streams of a connection.
#[derive(Debug)]
pub(crate) struct WindowSize {
    window: u32,
    first: u32,
    max: u32,
    probe: Option<Probe>,
    /// No probe starts before this time: after each there is a pause of the same length.
    rests_until: Moment,
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
        let begins = self.probe.is_none() && self.window < self.max && now >= self.rests_until;
        if begins {
            self.probe = Some(Probe { sent: now, received: 0 });
        }
        begins
    }

    /// Called when the PING was acknowledged.
    pub(crate) fn ends_probe(&mut self, now: Moment) {
        let Some(probe) = self.probe.take() else { return };
        self.rests_until = now + now.since(probe.sent);
        if probe.received >= u64::from(self.window) * 2 / 3 {
            self.window = self.window.saturating_mul(2).min(self.max);
        }
    }

    /// Returns to the initial size permanently, because memory is short.
    pub(crate) fn shrink(&mut self) {
        self.window = self.first;
        self.max = self.first;
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
    fn they_shrink_for_good() {
        let mut size = WindowSize::new(100, 1_000);
        assert!(size.begins_probe(Moment::ZERO) && !size.begins_probe(Moment::ZERO));
        size.received(1_000);
        size.ends_probe(Moment::from_millis(1));
        assert_eq!(size.window(), 200);
        size.shrink();
        assert!(size.window() == 100 && !size.begins_probe(Moment::from_millis(9)));
    }
}
