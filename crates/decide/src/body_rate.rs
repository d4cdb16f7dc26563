//! Detects clients that send a request body too slowly for a slot that others wait for.

use std::time::Duration;

/// A client that sends fewer bytes than this per second of waiting is slow: 4 kbit/s, less than any
/// link over which people upload, and expensive for an attacker with thousands of connections.
pub const BYTES_PER_S_MIN: u64 = 500;
/// The window over which the rate is measured, and how long a client may be silent at first: longer
/// than three retransmissions of a lost packet.
pub const WINDOW: Duration = Duration::from_secs(5);
/// How often a client that is waited for is checked: other requests may start to want its slot at
/// any time.
pub const POLL_EVERY: Duration = Duration::from_secs(1);

/// The rate at which one body arrives, relative to the time spent waiting for it: while the server
/// reads nothing, the client owes nothing.
#[derive(Clone, Copy, Debug)]
pub struct BodyRate {
    /// Bytes received and time waited when the current window began.
    began: (u64, Duration),
    was_slow: bool,
}

impl BodyRate {
    /// Starts measuring; `bytes` have been received already.
    pub fn new(bytes: u64) -> BodyRate {
        BodyRate { began: (bytes, Duration::ZERO), was_slow: false }
    }

    /// Returns whether the last full window was too slow, and the current one is so far. `bytes`
    /// have been received in total, and the client has been waited for `waited` since
    /// [`BodyRate::new`].
    pub fn is_slow(&mut self, bytes: u64, waited: Duration) -> bool {
        let (bytes_before, waited_before) = self.began;
        let (came, took) =
            (bytes.saturating_sub(bytes_before), waited.saturating_sub(waited_before));
        let is_slow = (came as f64) < BYTES_PER_S_MIN as f64 * took.as_secs_f64();
        if took < WINDOW {
            return self.was_slow && is_slow;
        }
        self.began = (bytes, waited);
        self.was_slow = is_slow;
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the second in which a client that sends `rate(second)` bytes is first slow.
    fn slow_at(rate: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut body, mut bytes) = (BodyRate::new(0), 0);
        (1..=60).find(|&second| {
            bytes += rate(second);
            body.is_slow(bytes, Duration::from_secs(second))
        })
    }

    #[test]
    fn a_client_is_slow_below_500_bytes_a_second_after_five_seconds() {
        assert_eq!(slow_at(|_| 0), Some(5));
        assert_eq!(slow_at(|_| 1), Some(5));
        assert_eq!(slow_at(|_| 499), Some(5));
        assert_eq!(slow_at(|_| 500), None);
    }

    #[test]
    fn what_came_before_a_window_does_not_count_in_it() {
        let burst = |second| if second == 1 { 1_000_000 } else { 1 };
        assert_eq!(slow_at(burst), Some(10));
        let pause = |second| if second < 5 { 0 } else { 2_500 };
        assert_eq!(slow_at(pause), None, "five seconds of grace");
    }

    #[test]
    fn a_client_that_speeds_up_is_no_longer_slow() {
        let mut body = BodyRate::new(100);
        assert!(body.is_slow(100, WINDOW));
        assert!(body.is_slow(101, WINDOW + POLL_EVERY));
        assert!(!body.is_slow(2_700, WINDOW + POLL_EVERY * 2));
        assert!(!body.is_slow(2_700, WINDOW * 2));
    }

    #[test]
    fn time_not_spent_waiting_for_the_client_does_not_count() {
        let mut body = BodyRate::new(0);
        assert!((0..60).all(|_| !body.is_slow(0, Duration::from_secs(4))));
    }
}
