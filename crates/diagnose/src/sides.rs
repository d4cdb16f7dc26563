//! Two sides of a comparison: the servers of a version and the others, or a service before a change and since.
//!
//! Sides are compared only in the hour after a change, so that these tests are not among those of every look
//! ([`crate::evidence::TESTS_A_LOOK`]).

use std::time::Duration;

use model::histogram::HistogramTotals;

use crate::evidence::Units;
use crate::facts::ServerSpan;
use crate::traffic::{Separation, separation};
use crate::words;

/// Shares at which two distributions of durations are compared, as in `server_slow`.
const SHARES: &[f64] = &[0.4, 0.15, 0.05];
/// With fewer responses a median says too little.
const RESPONSES_MIN: u64 = 5;
/// A difference of less does not matter.
const LONGER_MIN: Duration = Duration::from_millis(5);
const FAILURES_MIN: u64 = 10;

/// What one side did in some seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) seconds: u64,
    pub(crate) sent: u64,
    pub(crate) failed: u64,
    pub(crate) first_byte: HistogramTotals,
}

impl Side {
    /// Returns what was done in all of these spans, which are of the same seconds.
    pub(crate) fn of<'a>(spans: impl IntoIterator<Item = &'a ServerSpan>) -> Side {
        let mut side = Side::default();
        for span in spans {
            side.seconds = side.seconds.max(span.seconds);
            side.sent = side.sent.saturating_add(span.sent);
            side.failed = side.failed.saturating_add(span.failed());
            span.first_byte.add_to(&mut side.first_byte);
        }
        side
    }

    /// The same without failures to connect: a server that is restarted has them.
    pub(crate) fn of_running<'a>(spans: impl IntoIterator<Item = &'a ServerSpan>) -> Side {
        const NOT_RUNNING: [&str; 3] =
            ["connection_refused", "connection_timeout", "connect_syn_unanswered"];
        let spans: Vec<&ServerSpan> = spans.into_iter().collect();
        let causes =
            spans.iter().flat_map(|span| NOT_RUNNING.map(|cause| span.failures.get(cause)));
        let not_running = words::sum(causes.flatten().copied());
        let side = Side::of(spans);
        Side { failed: side.failed.saturating_sub(not_running), ..side }
    }

    /// Returns the requests that failed. Some of them may have been sent before these seconds.
    pub(crate) fn failures(&self) -> Units {
        Units::new(self.failed, self.sent.max(self.failed))
    }

    /// Returns the median time to the response head.
    pub(crate) fn median(&self) -> Option<Duration> {
        (self.first_byte.count() >= RESPONSES_MIN).then(|| self.first_byte.quantile(0.5)).flatten()
    }

    /// Returns the requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.sent as f64 / self.seconds.max(1) as f64
    }
}

/// How much worse a side must be to matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Its median time is so many times as long.
    pub(crate) slower_times: f64,
    /// It fails at least this share of its requests.
    pub(crate) failed_share: f64,
    /// And so many times the other side's.
    pub(crate) failed_times: f64,
}

/// In what one side is worse than another; at least in one.
#[derive(Clone, Debug)]
pub(crate) struct Worse {
    pub(crate) slower: Option<Separation>,
    pub(crate) is_failing: bool,
}

impl Limits {
    /// Returns in what `side` is proved to be worse than `other`. `alarm_chance`: the probability that a test is
    /// wrong.
    pub(crate) fn proved(self, side: &Side, other: &Side, alarm_chance: f64) -> Option<Worse> {
        let slower = self
            .is_slower(side, other)
            .then(|| separation(&side.first_byte, &other.first_byte, SHARES, alarm_chance))
            .flatten();
        let is_failing = self.is_failing(side, other) && fails_more(side, other, alarm_chance);
        (slower.is_some() || is_failing).then_some(Worse { slower, is_failing })
    }

    /// Returns whether `side` is still worse in one of these. True if too little is known of it.
    pub(crate) fn is_still(self, worse: &Worse, side: &Side, other: &Side) -> bool {
        const FRESH_MIN: u64 = 10;
        let is_slower = || side.first_byte.count() < FRESH_MIN || self.is_slower(side, other);
        let is_failing = || side.sent < FRESH_MIN || self.is_failing(side, other);
        worse.slower.is_some() && is_slower() || worse.is_failing && is_failing()
    }

    /// By the figures alone, whether or not they prove it.
    pub(crate) fn is_slower(self, side: &Side, other: &Side) -> bool {
        let (Some(time), Some(than)) = (side.median(), other.median()) else { return false };
        time >= than.mul_f64(self.slower_times) && time >= than + LONGER_MIN
    }

    /// The same of failures.
    pub(crate) fn is_failing(self, side: &Side, other: &Side) -> bool {
        let share = side.failures().share();
        share >= self.failed_share && share >= self.failed_times * other.failures().share()
    }
}

/// Whether the failures prove that the sides do not fail the same share: of all failures, `side` has more than
/// its share of the requests. (Given how many failed, the number at one side is hypergeometric, whose tail is
/// below that of the binomial distribution: Hoeffding 1963, theorem 4.)
fn fails_more(side: &Side, other: &Side, alarm_chance: f64) -> bool {
    let (own, others) = (side.failures(), other.failures());
    let all = words::sum([own.of, others.of]);
    let failed = words::sum([own.affected, others.affected]);
    own.affected >= FAILURES_MIN
        && others.of > 0
        && Units::new(own.affected, failed).exceeds_at(own.of as f64 / all as f64, alarm_chance)
}

#[cfg(test)]
mod tests {
    use model::histogram::bucket_of;

    use super::*;
    use crate::evidence::alarm_chance;

    const LIMITS: Limits = Limits { slower_times: 1.5, failed_share: 0.02, failed_times: 2.0 };

    fn side(sent: u64, failed: u64, times: &[(u64, u64)]) -> Side {
        let mut first_byte = HistogramTotals::default();
        first_byte.add(times.iter().map(|&(us, count)| (bucket_of(us), count)), 0, u64::MAX);
        Side { seconds: 5, sent, failed, first_byte }
    }

    #[test]
    fn a_few_hundred_requests_prove_a_fifth_of_failures() {
        let other = side(200, 0, &[]);
        let proved = |sent, failed| {
            LIMITS.proved(&side(sent, failed, &[]), &other, alarm_chance(6)).is_some()
        };
        assert!(proved(100, 20));
        assert!(!proved(100, 9), "too few");
        assert!(!proved(2_000, 39), "a share that does not matter");
        // The same share on both sides.
        assert!(LIMITS.proved(&side(100, 20, &[]), &side(200, 40, &[]), alarm_chance(6)).is_none());
        // More at one side, as may happen by accident.
        assert!(LIMITS.proved(&side(100, 20, &[]), &side(200, 19, &[]), alarm_chance(6)).is_none());
    }

    #[test]
    fn a_longer_median_counts_if_it_matters_and_is_proved() {
        let other = side(300, 0, &[(20_000, 300)]);
        let slower = |times| LIMITS.proved(&side(300, 0, times), &other, alarm_chance(6)).is_some();
        assert!(slower(&[(60_000, 100)]));
        assert!(!slower(&[(60_000, 4)]), "too few");
        assert!(!slower(&[(24_000, 100)]), "too little");
        let fast = side(300, 0, &[(1_000, 300)]);
        assert!(
            LIMITS.proved(&side(300, 0, &[(3_000, 300)]), &fast, alarm_chance(6)).is_none(),
            "2 ms"
        );
    }

    #[test]
    fn it_is_over_when_fresh_figures_show_so() {
        let (slow, other) = (side(100, 0, &[(60_000, 100)]), side(300, 0, &[(20_000, 300)]));
        let worse = LIMITS.proved(&slow, &other, alarm_chance(6)).unwrap();
        assert!(LIMITS.is_still(&worse, &slow, &other));
        assert!(LIMITS.is_still(&worse, &side(3, 0, &[(20_000, 3)]), &other), "unknown");
        assert!(!LIMITS.is_still(&worse, &side(100, 0, &[(20_000, 100)]), &other));
    }
}
