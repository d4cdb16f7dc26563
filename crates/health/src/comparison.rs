//! Decides whether a server is clearly worse than its peers, by a randomised trial, so that no
//! client can manipulate the result.
//!
//! A failure after the request was sent may be caused by the request: a URL that crashes every
//! server, or that each answers with 500. Such failures alone prove nothing, and neither does a run
//! of them at one server: a client that alternates a good and a bad request between two servers in
//! turn gives one of them all the bad ones. So a run only *begins a trial*. While it lasts, servers
//! are drawn at random, and only attempts whose server was drawn at random are counted. If the
//! request is the cause, the failures then fall on all servers alike; that they fall on one server
//! by chance is what [`is_clearly_worse`] computes, by Fisher's exact test over the attempts of the
//! trial. With requests that fail on every server, a server is ejected wrongly once in 1 /
//! [`CHANCE_MAX`] evaluations.
//!
//! Attempts whose outcome is still open count in the server's favour: as successes of its own, as
//! failures of its peers. So a server does not look worse because its peers fail more slowly, or
//! because a client keeps what would have succeeded open.

use std::time::Duration;

use model::{TrialOutcome, TrialRow};

use crate::attempt::Attempt;
use crate::blame::Blame;

/// Probability with which a server may look this bad by chance. Each failure of a trial is one
/// evaluation.
pub const CHANCE_MAX: f64 = 1e-10;

/// How much larger a server's share of failed attempts must be than its peers': a large sample
/// makes small differences significant, but those are no reason to lose a server.
pub const DIFFERENCE_MIN: f64 = 0.25;

/// Minimum length of a trial, unless it ends with an ejection.
pub const TRIAL_MIN: Duration = Duration::from_secs(60);

/// Minimum length of a trial, in response timeouts of the service: failures that take a whole
/// timeout each need time to become known.
pub const TRIAL_RESPONSE_TIMEOUTS: u32 = 4;

/// Returns the maximum length of a service's trial.
pub fn trial_length(response_timeout: Duration) -> Duration {
    TRIAL_MIN.max(response_timeout.saturating_mul(TRIAL_RESPONSE_TIMEOUTS))
}

/// Counts an attempt in the service's trial, if one is running that covers it. An attempt whose
/// server was not drawn at random is no evidence, however it ended.
pub fn count(attempt: &Attempt<'_>) {
    let &Attempt { state, trial, blame, drawn, chosen_at, now, .. } = attempt;
    if trial.covers(chosen_at, now) {
        state.trial.count(match blame {
            Blame::Good if drawn => TrialOutcome::Good,
            Blame::Compared if drawn => TrialOutcome::Failed,
            Blame::None | Blame::Good | Blame::Compared | Blame::Certain => TrialOutcome::Other,
        });
    }
}

/// Returns whether `server` failed so much more often than `peers`, all of them together, that
/// chance does not explain it.
pub fn is_clearly_worse(server: TrialRow, peers: TrialRow) -> bool {
    let (n, failed) = (server.good + server.failed + server.pending, server.failed);
    let (peers_n, peers_failed) =
        (peers.good + peers.failed + peers.pending, peers.failed + peers.pending);
    if n == 0 || peers_n == 0 {
        return false;
    }
    let difference = failed as f64 / n as f64 - peers_failed as f64 / peers_n as f64;
    difference >= DIFFERENCE_MIN
        && probability_of_as_many(failed, n, failed + peers_failed, n + peers_n) <= CHANCE_MAX
}

/// Returns the probability that of `all` attempts, `all_failed` of which failed, a random choice of
/// `n` contains `failed` failures or more (the upper tail of the hypergeometric distribution).
fn probability_of_as_many(failed: u64, n: u64, all_failed: u64, all: u64) -> f64 {
    let good = all - all_failed;
    let most = n.min(all_failed);
    // Probability of exactly `failed`; each next term is a ratio away.
    let mut term =
        (ln_choose(all_failed, failed) + ln_choose(good, n - failed) - ln_choose(all, n)).exp();
    let mut sum = term;
    for k in failed..most {
        let (up, down) = ((all_failed - k) * (n - k), (k + 1) * (good + k + 1 - n));
        term *= up as f64 / down as f64;
        sum += term;
        // Not `<`: both may have underflowed to zero.
        if term <= sum * 1e-12 {
            break;
        }
    }
    sum
}

/// ln C(n, k), for k ≤ n.
fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// ln n!: exact up to 20, then Stirling's series, whose error is below 1e-9 there.
fn ln_factorial(n: u64) -> f64 {
    if n <= 20 {
        return ((1..=n).product::<u64>() as f64).ln();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(good: u64, failed: u64, pending: u64) -> TrialRow {
        TrialRow { good, failed, pending }
    }

    #[test]
    fn the_tail_is_that_of_the_textbook() {
        // Fisher's tea tasting: 3 or more of 4 right: 17 / 70; all 4: 1 / 70.
        assert!((probability_of_as_many(3, 4, 4, 8) - 17.0 / 70.0).abs() < 1e-12);
        assert!((probability_of_as_many(4, 4, 4, 8) - 1.0 / 70.0).abs() < 1e-12);
        assert!((probability_of_as_many(0, 4, 4, 8) - 1.0).abs() < 1e-12);
        // Mean 25, standard deviation 3.06: 40 is 4.9 of them away.
        let far = probability_of_as_many(40, 50, 100, 200);
        assert!((1e-8..1e-5).contains(&far), "{far}");
    }

    #[test]
    fn what_it_takes() {
        let cases = [
            // One of two servers that fails everything: 19 failures.
            (row(0, 18, 0), row(18, 0, 0), false),
            (row(0, 19, 0), row(19, 0, 0), true),
            // One of five: fewer failures needed, given many successes of others.
            (row(0, 9, 0), row(36, 0, 0), false),
            (row(0, 10, 0), row(40, 0, 0), true),
            // Half of its responses fail, where peers fail none; not where peers fail as much.
            (row(60, 60, 0), row(120, 0, 0), true),
            (row(60, 60, 0), row(60, 60, 0), false),
            // Significant, but no reason to lose a server.
            (row(900_000, 100_000, 0), row(1_000_000, 0, 0), false),
            // Peers that have not answered may be failing.
            (row(0, 30, 0), row(5, 0, 25), false),
            // What is still open may be its successes.
            (row(0, 60, 60), row(120, 0, 0), true),
            (row(0, 60, 200), row(120, 0, 0), false),
            // No peers to compare with.
            (row(0, 1_000, 0), row(0, 0, 0), false),
        ];
        for (server, peers, expected) in cases {
            assert_eq!(is_clearly_worse(server, peers), expected, "{server:?} {peers:?}");
        }
    }
}
