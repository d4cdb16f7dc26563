//! Limits the work that a peer can cause without useful traffic (RFC 9113 section 10.5).
//!
//! Every frame takes time to process, and some require a response. Frames that carry heads or
//! content are free. All others take points from a budget, which refills with time and with useful
//! frames. When a peer exhausts it, the connection ends with `ENHANCE_YOUR_CALM`.

use model::Moment;

use crate::error::Violation;

/// Maximum number of points, and the number at first.
const POINTS_MAX: u32 = 2_000;
/// Points regained with time: well-behaved peers send fewer PING and SETTINGS frames.
const POINTS_PER_SECOND: u64 = 100;
/// Points gained by a request or a response.
const POINTS_PER_HEAD: u32 = 10;
/// Points gained by a frame with content, in either direction: each may cause two `WINDOW_UPDATE`s.
const POINTS_PER_DATA: u32 = 2;

/// Number of resets that are always allowed; beyond it, at most half of all streams may be reset.
/// Counts resets by the client (Rapid Reset, CVE-2023-44487) and resets that its violations cause
/// (`MadeYouReset`, CVE-2025-8671).
const RESETS_FREE: u32 = 100;

#[derive(Debug)]
pub(crate) struct Budget {
    points: u32,
    filled: Moment,
    begun: u32,
    reset: u32,
}

impl Budget {
    pub(crate) fn new(now: Moment) -> Budget {
        Budget { points: POINTS_MAX, filled: now, begun: 0, reset: 0 }
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

    pub(crate) fn data(&mut self) {
        self.earn(POINTS_PER_DATA);
    }

    fn earn(&mut self, points: u32) {
        self.points = self.points.saturating_add(points).min(POINTS_MAX);
    }

    /// Counts a stream that the client has opened.
    pub(crate) fn begins(&mut self) {
        self.begun = self.begun.saturating_add(1);
    }

    /// Counts a stream that was reset by the client or because of it.
    ///
    /// # Errors
    /// Too many were.
    pub(crate) fn resets(&mut self) -> Result<(), Violation> {
        self.reset = self.reset.saturating_add(1);
        if self.reset > RESETS_FREE && self.reset > self.begun / 2 {
            return Err(Violation::load("most streams are reset"));
        }
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
        let mut budget = Budget::new(Moment::ZERO);
        for _ in 0..RESETS_FREE {
            budget.begins();
            budget.resets().unwrap();
        }
        budget.begins();
        assert!(budget.resets().is_err());
        let mut budget = Budget::new(Moment::ZERO);
        for _ in 0..1_000 {
            budget.begins();
            budget.begins();
            budget.resets().unwrap();
        }
    }
}
