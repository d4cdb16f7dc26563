//! Limits the work that a peer can cause without useful traffic (RFC 9113 section 10.5).
//!
//! Every frame takes time to process, and some require a response. Frames that carry heads or
//! content are free. All others take points from a budget, which refills with time, with requests
//! that are served, and with content that is sent. When a peer exhausts it, the connection ends with
//! `ENHANCE_YOUR_CALM`.

use model::Moment;

use crate::error::Violation;

/// Maximum number of points, and the number at first.
const POINTS_MAX: u32 = 2_000;
/// Points regained with time: well-behaved peers send fewer PING and SETTINGS frames.
const POINTS_PER_SECOND: u64 = 100;
/// Points gained by a request or a response.
const POINTS_PER_HEAD: u32 = 10;
/// Points gained by a DATA frame that is sent: some peers answer each with two `WINDOW_UPDATE`
/// frames.
const POINTS_PER_DATA: u32 = 2;
/// Content sent for which another point is gained: Go's client, for example, sends two
/// `WINDOW_UPDATE` frames for each 4 KiB that it reads.
const SENT_BYTES_PER_POINT: u32 = 1024;

/// How many more resets are allowed at most, and at first. Each stream that is not reset allows
/// another, so that at most half of all streams may be reset for long. Counts resets by the client
/// (Rapid Reset, CVE-2023-44487) and resets that its violations cause (`MadeYouReset`,
/// CVE-2025-8671).
const RESETS_MAX: u32 = 200;

#[derive(Debug)]
pub(crate) struct Budget {
    points: u32,
    filled: Moment,
    /// Content sent since it last gained a point.
    sent_bytes: u32,
    /// How many more resets are allowed, in halves: a stream that begins allows half of one.
    half_resets: u32,
}

impl Budget {
    pub(crate) fn new(now: Moment) -> Budget {
        Budget { points: POINTS_MAX, filled: now, sent_bytes: 0, half_resets: 2 * RESETS_MAX }
    }

    /// Takes `points` for a frame. `rule` names the kind of frame.
    ///
    /// # Errors
    /// The budget is exhausted.
    pub(crate) fn spend(
        &mut self,
        points: u32,
        rule: &'static str,
        now: Moment,
    ) -> Result<(), Violation> {
        if self.points < points {
            let micros = now.since(self.filled).as_micros() as u64;
            let earned = micros.saturating_mul(POINTS_PER_SECOND) / 1_000_000;
            if earned > 0 {
                self.filled = now;
                self.earn(u32::try_from(earned).unwrap_or(POINTS_MAX));
            }
        }
        match self.points.checked_sub(points) {
            Some(left) => {
                self.points = left;
                Ok(())
            }
            None => Err(Violation::load(rule)),
        }
    }

    pub(crate) fn head(&mut self) {
        self.earn(POINTS_PER_HEAD);
    }

    /// Counts content that was sent, in so many new DATA frames.
    pub(crate) fn sent(&mut self, bytes: usize, frames: u32) {
        let bytes = self.sent_bytes.saturating_add(bytes as u32);
        self.sent_bytes = bytes % SENT_BYTES_PER_POINT;
        self.earn(bytes / SENT_BYTES_PER_POINT + frames * POINTS_PER_DATA);
    }

    fn earn(&mut self, points: u32) {
        self.points = self.points.saturating_add(points).min(POINTS_MAX);
    }

    /// Counts a stream that the client has opened.
    pub(crate) fn begins(&mut self) {
        self.half_resets = (self.half_resets + 1).min(2 * RESETS_MAX);
    }

    /// Counts a stream that was reset by the client or because of it.
    ///
    /// # Errors
    /// Too many were.
    pub(crate) fn resets(&mut self) -> Result<(), Violation> {
        let left = self.half_resets.checked_sub(2);
        self.half_resets = left.ok_or(Violation::load("most streams are reset"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_back_with_time_and_work() {
        let mut budget = Budget::new(Moment::ZERO);
        for _ in 0..POINTS_MAX {
            budget.spend(1, "pings", Moment::ZERO).unwrap();
        }
        assert_eq!(budget.spend(1, "pings", Moment::ZERO).unwrap_err().rule, "pings");
        let later = Moment::from_millis(1_000);
        for _ in 0..POINTS_PER_SECOND {
            budget.spend(1, "pings", later).unwrap();
        }
        assert!(budget.spend(1, "pings", later).is_err());
        budget.head();
        assert!(budget.spend(10, "pings", later).is_ok());
        assert!(budget.spend(1, "pings", later).is_err());
    }

    #[test]
    fn half_of_many_streams_may_be_reset() {
        let reset_all = |budget: &mut Budget| {
            let mut count = 0;
            loop {
                budget.begins();
                if budget.resets().is_err() {
                    return count;
                }
                count += 1;
            }
        };
        let mut budget = Budget::new(Moment::ZERO);
        for _ in 0..10_000 {
            budget.begins();
            budget.begins();
            budget.resets().unwrap();
        }
        // However many were served before.
        let most = 2 * RESETS_MAX;
        assert!((most - 2..=most).contains(&reset_all(&mut budget)));
        for _ in 0..100 {
            budget.begins();
        }
        let some = reset_all(&mut budget);
        assert!((98..=102).contains(&some), "{some}");
    }

    #[test]
    fn content_that_is_sent_earns_points_whatever_its_pieces() {
        for piece in [1, 100, 1_000, 4_096, 16_384] {
            let mut budget = Budget::new(Moment::ZERO);
            budget.spend(POINTS_MAX, "updates", Moment::ZERO).unwrap();
            let mut left: usize = 100 * 1024;
            while left > 0 {
                let bytes = piece.min(left);
                budget.sent(bytes, 0);
                left -= bytes;
            }
            budget.spend(100, "updates", Moment::ZERO).unwrap();
            assert!(budget.spend(1, "updates", Moment::ZERO).is_err(), "{piece}");
            budget.sent(1, 1);
            budget.spend(2, "updates", Moment::ZERO).unwrap();
            assert!(budget.spend(1, "updates", Moment::ZERO).is_err(), "{piece}");
        }
    }
}
