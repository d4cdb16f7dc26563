//! Bounds the rate of writes: a burst at once, then so many in a second. Pure: time is an argument.

use std::time::Duration;

use model::Moment;

/// How many writes may begin at once after a quiet time.
pub(crate) const BURST: u32 = 200;
/// The time from one write to the next after a burst: 200 in a second. An API server that cannot keep up says so (429).
const EVERY: Duration = Duration::from_millis(5);

/// A bucket of tokens, one for each write.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the bucket is full again.
    full_at: Moment,
}

impl Pace {
    /// Returns when the next write may begin. `None`: now.
    pub(crate) fn wait_until(&self, now: Moment) -> Option<Moment> {
        let at = self.full_at.before(EVERY * (BURST - 1));
        (at > now).then_some(at)
    }

    /// Notes that a write begins.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.full_at = self.full_at.max(now) + EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn a_burst_is_followed_by_a_steady_rate() {
        let mut pace = Pace::default();
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
}
