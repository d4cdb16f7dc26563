//! What a peer may cost without bringing anything (RFC 9113 section 10.5).
//!
//! Every frame costs time to read, and some cost an answer. Frames that an exchange needs are paid for
//! by the exchange. All others take points from a budget, which fills again with time and with useful
//! work; whoever exhausts it is told `ENHANCE_YOUR_CALM`.

use model::Moment;

use crate::error::Violation;

/// The most points, which is also what there is at first.
const POINTS_MAX: u32 = 2_000;
/// Points that come back with time: pings and settings of a peer that means well are rarer.
const POINTS_PER_SECOND: u64 = 100;
/// Points for a request or a response.
const POINTS_PER_HEAD: u32 = 10;
/// Points for a frame with content, in either direction: each may bring two `WINDOW_UPDATE`s.
const POINTS_PER_DATA: u32 = 2;

/// Streams that may be reset; beyond it, at most half of all. Resets by the client count (Rapid Reset,
/// CVE-2023-44487), and those that its violations cause (`MadeYouReset`, CVE-2025-8671).
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

    /// Takes `points` for a frame, of which `rule` says what there were too many of.
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

    /// Counts a stream that a client begins.
    pub(crate) fn begins(&mut self) {
        self.begun = self.begun.saturating_add(1);
    }

    /// Counts a stream that the client reset, or had reset.
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
