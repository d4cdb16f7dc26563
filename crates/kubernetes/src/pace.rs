//! Bounds the rate of writes: a burst at once, then one at a time. If the API server asks for fewer requests, they pause.
//! Pure: time is an argument.

use std::time::Duration;

use model::Moment;

use crate::backoff::{Backoff, WAIT_MAX};

/// A bucket of tokens, one for each write.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The time in which a token is added.
    every: Duration,
    /// The time in which all tokens but one are added.
    burst: Duration,
    /// When the bucket is full again.
    full_at: Moment,
    /// Until when the API server wants no writes.
    paused_until: Moment,
    pauses: Backoff,
}

impl Pace {
    /// Creates a full bucket: `burst` writes (at least one) may begin at once after a quiet time, then one each `every`.
    pub(crate) fn new(burst: u32, every: Duration) -> Pace {
        Pace {
            every,
            burst: every * burst.saturating_sub(1),
            full_at: Moment::ZERO,
            paused_until: Moment::ZERO,
            pauses: Backoff::default(),
        }
    }

    /// Returns whether the bucket is full.
    pub(crate) fn is_rested(&self, now: Moment) -> bool {
        self.full_at.max(self.paused_until) <= now
    }

    /// Returns whether the API server has accepted nothing since it last asked for fewer requests.
    pub(crate) fn has_failed(&self) -> bool {
        self.pauses.failures() > 0
    }

    /// Returns when the next write may begin. `None`: now.
    pub(crate) fn wait_until(&self, now: Moment) -> Option<Moment> {
        let at = self.full_at.before(self.burst).max(self.paused_until);
        (at > now).then_some(at)
    }

    /// Notes that a write begins.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.full_at = self.full_at.max(now) + self.every;
    }

    /// Notes that the API server asks for fewer requests: all writes pause, for longer each time, and for as long as it
    /// asks. There is no burst afterwards. `draw` from 0 to 1 varies the pause.
    pub(crate) fn pause(&mut self, asked: Option<Duration>, now: Moment, draw: f64) {
        // Those that were under way together count as one failure. Of the times that they ask for, the longest counts.
        let is_new = self.paused_until <= now;
        let wait = if is_new {
            self.pauses.failed(asked, draw)
        } else {
            asked.unwrap_or_default().min(WAIT_MAX)
        };
        self.paused_until = self.paused_until.max(now + wait);
        self.full_at = self.paused_until + self.burst;
    }

    /// Notes that the API server has accepted a write.
    pub(crate) fn accepted(&mut self) {
        self.pauses.succeeded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: u32 = 200;

    fn pace() -> Pace {
        Pace::new(BURST, Duration::from_millis(5))
    }

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_burst_is_followed_by_a_steady_rate() {
        let mut pace = pace();
        let start = 1_000_000;
        for _ in 0..BURST {
            assert_eq!(pace.wait_until(at(start)), None);
            pace.begin(at(start));
        }
        for next in 1..5 {
            let now = start + (next - 1) * 5;
            assert_eq!(pace.wait_until(at(now)), Some(at(start + next * 5)));
            pace.begin(at(start + next * 5));
        }
        // After two quiet seconds there is a whole burst again.
        let later = at(start + 20 + 2000);
        for _ in 0..BURST {
            assert_eq!(pace.wait_until(later), None);
            pace.begin(later);
        }
        assert!(pace.wait_until(later).is_some());
    }

    #[test]
    fn the_longest_pause_that_is_asked_for_counts() {
        let mut pace = pace();
        let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
        pace.pause(None, at(1000), 1.0);
        assert_eq!(pace.wait_until(at(1000)), Some(at(1500)));
        for (now, asked, end) in
            [(1001, seconds(20), 21_001), (1002, seconds(5), 21_001), (1003, seconds(900), 31_003)]
        {
            pace.pause(asked, at(now), 1.0);
            assert_eq!(pace.wait_until(at(now)), Some(at(end)), "{asked:?}");
        }
        // All of them were one failure.
        pace.pause(None, at(40_000), 1.0);
        assert_eq!(pace.wait_until(at(40_000)), Some(at(41_000)));
    }

    #[test]
    fn a_busy_server_pauses_all_writes() {
        let mut pace = pace();
        let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
        pace.pause(seconds(3), at(1000), 1.0);
        // Others were under way.
        pace.pause(None, at(1001), 1.0);
        pace.pause(seconds(2), at(1002), 1.0);
        assert_eq!((pace.wait_until(at(3999)), pace.wait_until(at(4000))), (Some(at(4000)), None));
        pace.begin(at(4000));
        assert_eq!(pace.wait_until(at(4000)), Some(at(4005)), "no burst");
        // It is still busy: the pauses become longer, up to a bound.
        for (now, wait) in [(4005, 1000), (6000, 2000), (9000, 4000)] {
            pace.pause(None, at(now), 1.0);
            assert_eq!(pace.wait_until(at(now)), Some(at(now + wait)));
        }
        pace.pause(seconds(3600), at(20_000), 1.0);
        assert_eq!(pace.wait_until(at(20_000)), Some(at(50_000)));
        pace.accepted();
        pace.pause(None, at(60_000), 1.0);
        assert_eq!(pace.wait_until(at(60_000)), Some(at(60_500)));
    }
}
