//! Passive health checking (outlier detection): ejects a server for a while when real requests
//! fail.
//!
//! [`crate::blame`] says what an outcome means. A run of [`PassiveHealth::failures`] *certain*
//! failures ejects a server. A run that contains failures after sending begins a trial, in which
//! the server is ejected once it is clearly worse than its peers ([`crate::comparison`]).
//!
//! An ejection lasts `eject`, the n-th in a row n × `eject`, at most `eject_max`. The count n falls
//! by one for every `eject` of time that the server has been back without a new ejection. Ejections
//! are limited: at most `share_max` of the service's servers are ejected at once (rounded down, but
//! one of two or more may always be, unless `share_max` is 0), and the last ready server stays,
//! since some responses are better than none. [`ServerState::readmit`] ends an ejection; its caller
//! tracks the time.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Moment, PassiveHealth, ServerState, TrialRow};

use crate::attempt::Attempt;
use crate::blame::Blame;
use crate::comparison::{count, is_clearly_worse, trial_length};

/// The number of a service's servers, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// All of them.
    pub servers: u32,
    /// Those ejected now.
    pub ejected: u32,
    /// Those that are ready.
    pub ready: u32,
}

impl ServiceCounts {
    /// Counts `states`, a service's servers.
    pub fn of<'a>(states: impl IntoIterator<Item = &'a ServerState>) -> ServiceCounts {
        let mut counts = ServiceCounts::default();
        for state in states {
            counts.servers += 1;
            counts.ejected += u32::from(state.ejected_until().is_some());
            counts.ready += u32::from(state.is_ready());
        }
        counts
    }
}

/// An ejection that has just begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eject {
    /// Its end.
    pub until: Moment,
    /// Its length.
    pub time: Duration,
    /// The reason.
    pub why: Why,
    /// Number of consecutive ejections, including this one.
    pub ejections: u32,
}

/// The reason for an ejection. Displays as a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It could not be reached, this many times in a row.
    Unreachable(u32),
    /// It failed clearly more often than its peers.
    Worse {
        /// Its result in the trial…
        server: TrialRow,
        /// …and that of the others.
        peers: TrialRow,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Unreachable(times) => write!(f, "could not be reached {times} times in a row"),
            Why::Worse { server, peers } => write!(
                f,
                "{} of {} requests failed, {} of {} at the other servers",
                server.failed,
                server.failed + server.good,
                peers.failed,
                peers.failed + peers.good,
            ),
        }
    }
}

/// Records how an attempt at a server ended and decides whether to eject it. `Some` is returned to
/// exactly one of several callers that cross the threshold at once: the ejection is then written in
/// the server's state, and the caller publishes it (refresh, log). `states` yields all servers of
/// the service; it is called only after a failure.
///
/// Fast path: two atomic loads while the server is healthy and no trial runs.
#[inline]
pub fn on_outcome<'a, I: Iterator<Item = &'a ServerState>>(
    attempt: &Attempt<'_>,
    policy: &PassiveHealth,
    states: impl Fn() -> I,
) -> Option<Eject> {
    let &Attempt { state, blame, .. } = attempt;
    count(attempt);
    match blame {
        Blame::Good => state.note_success(),
        Blame::None => {}
        Blame::Certain | Blame::Compared => return on_failure(attempt, policy, states),
    }
    None
}

/// Returns the maximum number of servers, out of `servers`, that may be ejected at once.
pub fn ejected_max(servers: u32, share_max: f64) -> u32 {
    if servers < 2 || share_max <= 0.0 {
        return 0;
    }
    ((f64::from(servers) * share_max) as u32).clamp(1, servers)
}

#[cold]
fn on_failure<'a, I: Iterator<Item = &'a ServerState>>(
    attempt: &Attempt<'_>,
    policy: &PassiveHealth,
    states: impl Fn() -> I,
) -> Option<Eject> {
    let &Attempt { state, trial, blame, now, response_timeout, .. } = attempt;
    let failures = state.consecutive_failures.fetch_add(1, Relaxed).saturating_add(1);
    let unreachable = if blame == Blame::Certain {
        state.consecutive_unreachable.fetch_add(1, Relaxed).saturating_add(1)
    } else {
        state.consecutive_unreachable.load(Relaxed)
    };
    // A server that is already out (for any reason) is not ejected by its last requests.
    if !state.is_ready() {
        return None;
    }
    let threshold = policy.failures.max(1);
    if blame == Blame::Certain && unreachable >= threshold {
        let why = Why::Unreachable(unreachable);
        return eject(state, policy, why, || ServiceCounts::of(states()), now);
    }
    if trial.is_on(now) {
        let (server, peers) = rows(state, states());
        if blame == Blame::Certain || !is_clearly_worse(server, peers) {
            return None;
        }
        let why = Why::Worse { server, peers };
        let ejected = eject(state, policy, why, || ServiceCounts::of(states()), now);
        if ejected.is_some() {
            trial.end();
        }
        return ejected;
    }
    // Without peers there is nothing to compare with, and the last server stays anyway.
    if failures >= threshold && ServiceCounts::of(states()).ready >= 2 {
        trial.begin(now, now + trial_length(response_timeout), || {
            for state in states() {
                state.trial.reset(state.requests.load(Relaxed));
            }
        });
    }
    None
}

/// Returns the result of this server in the running trial, and that of the others together.
fn rows<'a>(
    state: &ServerState,
    states: impl Iterator<Item = &'a ServerState>,
) -> (TrialRow, TrialRow) {
    let row = |state: &ServerState| state.trial.row(state.requests.load(Relaxed));
    let peers = states.filter(|peer| !std::ptr::eq(*peer, state)).map(row);
    let peers = peers.fold(TrialRow::default(), |sum, peer| TrialRow {
        good: sum.good + peer.good,
        failed: sum.failed + peer.failed,
        pending: sum.pending + peer.pending,
    });
    (row(state), peers)
}

fn eject(
    state: &ServerState,
    policy: &PassiveHealth,
    why: Why,
    counts: impl Fn() -> ServiceCounts,
    now: Moment,
) -> Option<Eject> {
    let before = counts();
    let room = ejected_max(before.servers, policy.share_max);
    if before.ejected >= room || before.ready < 2 {
        return None;
    }
    let ejections = ejections_remembered(state, policy, now).saturating_add(1);
    let time = policy.eject.saturating_mul(ejections).min(policy.eject_max);
    let until = now + time;
    if !state.eject(until) {
        return None;
    }
    // Another worker may have ejected another server since `before` was counted. A worker that
    // finds the bounds exceeded takes its own ejection back; at worst both do, and the next failure
    // tries again.
    let after = counts();
    if after.ejected > room || after.ready == 0 {
        state.cancel_ejection();
        return None;
    }
    state.ejections.store(ejections, Relaxed);
    Some(Eject { until, time, why, ejections })
}

/// Returns the number of consecutive ejections so far, less those forgotten since the server came
/// back.
fn ejections_remembered(state: &ServerState, policy: &PassiveHealth, now: Moment) -> u32 {
    let ejections = state.ejections.load(Relaxed);
    let Some(back_since) = state.up_since().filter(|_| ejections > 0) else {
        return ejections;
    };
    let step_us = policy.eject.as_micros().max(1);
    let forgotten = now.since(back_since).as_micros() / step_us;
    ejections.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use model::Trial;

    use super::*;
    use model::{Administrative, Health};

    const POLICY: PassiveHealth = PassiveHealth {
        failures: 5,
        count_5xx: true,
        eject: Duration::from_secs(10),
        eject_max: Duration::from_secs(35),
        share_max: 0.5,
    };

    fn servers(n: usize) -> Vec<ServerState> {
        (0..n).map(|_| ServerState::default()).collect()
    }

    fn attempt<'a>(
        state: &'a ServerState,
        blame: Blame,
        trial: &'a Trial,
        now: Moment,
    ) -> Attempt<'a> {
        let response_timeout = Duration::from_secs(30);
        Attempt { state, trial, blame, drawn: true, chosen_at: now, now, response_timeout }
    }

    /// A certain failure, or a success.
    fn outcome(all: &[ServerState], n: usize, failed: bool, at: Moment) -> Option<Eject> {
        let blame = if failed { Blame::Certain } else { Blame::Good };
        on_outcome(&attempt(&all[n], blame, &Trial::default(), at), &POLICY, || all.iter())
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn only_a_run_of_failures_ejects() {
        let all = servers(4);
        for _ in 0..100 {
            for _ in 0..4 {
                assert_eq!(outcome(&all, 0, true, at(1)), None);
            }
            assert_eq!(outcome(&all, 0, false, at(1)), None);
        }
        for _ in 0..4 {
            assert_eq!(outcome(&all, 0, true, at(1)), None);
        }
        let eject = outcome(&all, 0, true, at(1)).expect("the fifth in a row");
        assert_eq!((eject.until, eject.why, eject.ejections), (at(11), Why::Unreachable(5), 1));
        // Requests that were still in flight do not eject it again.
        assert_eq!(outcome(&all, 0, true, at(2)), None);
        assert_eq!(all[0].ejected_until(), Some(at(11)));
    }

    #[test]
    fn share_and_last_ready_table() {
        // servers, share, maximum ejected at once
        let cases = [
            (1, 0.5, 0),
            (1, 1.0, 0),
            (2, 0.5, 1),
            (2, 0.1, 1),
            (3, 0.5, 1),
            (4, 0.5, 2),
            (5, 0.5, 2),
            (10, 0.3, 3),
            (4, 0.0, 0),
            (4, 1.0, 4),
            (4, 7.0, 4),
            (4, f64::NAN, 1),
        ];
        for (count, share_max, most) in cases {
            assert_eq!(ejected_max(count, share_max), most, "{count} servers, share {share_max}");
        }
        for (count, share_max, most) in cases {
            let policy = PassiveHealth { share_max, ..POLICY };
            let all = servers(count as usize);
            let mut ejected = 0;
            for state in &all {
                for _ in 0..20 {
                    let trial = Trial::default();
                    let attempt = attempt(state, Blame::Certain, &trial, at(1));
                    ejected += u32::from(on_outcome(&attempt, &policy, || all.iter()).is_some());
                }
            }
            assert_eq!(ejected, most.min(count - 1), "{count} servers, share {share_max}");
            assert!(all.iter().any(ServerState::is_ready));
        }
    }

    #[test]
    fn the_last_ready_server_is_never_ejected() {
        let all = servers(3);
        all[1].set_health(Health::Down, at(1));
        all[2].set_administrative(Administrative::Drain);
        for _ in 0..50 {
            assert_eq!(outcome(&all, 0, true, at(1)), None);
        }
        all[2].set_administrative(Administrative::Ready);
        assert!(outcome(&all, 0, true, at(1)).is_some());
    }

    #[test]
    fn ejections_grow_are_capped_and_are_forgotten_in_quiet_time() {
        let all = servers(4);
        let mut now = at(100);
        for expected_s in [10, 20, 30, 35, 35] {
            for _ in 0..4 {
                assert_eq!(outcome(&all, 0, true, now), None);
            }
            let eject = outcome(&all, 0, true, now).expect("the fifth");
            assert_eq!(eject.time, Duration::from_secs(expected_s));
            now = eject.until;
            assert!(all[0].readmit(now));
            now = now + Duration::from_secs(1);
        }
        // Five ejections in a row; back for 31 s: three are forgotten, so this is the third.
        now = now + Duration::from_secs(30);
        let eject = (0..5).find_map(|_| outcome(&all, 0, true, now)).expect("ejected");
        assert_eq!((eject.ejections, eject.time), (3, Duration::from_secs(30)));
        all[0].readmit(eject.until);
        // Long enough later it starts from one.
        let later = eject.until + Duration::from_secs(3600);
        let eject = (0..5).find_map(|_| outcome(&all, 0, true, later)).expect("ejected");
        assert_eq!(eject.ejections, 1);
    }

    /// Many threads fail every server at once: the bounds hold, and each ejection has one owner.
    #[test]
    fn workers_that_race_never_leave_more_than_the_share_ejected() {
        for round in 0..50 {
            let all = servers(6);
            let wins = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|thread| {
                        let all = &all;
                        scope.spawn(move || {
                            (0..600)
                                .filter(|n| outcome(all, (n + thread) % 6, true, at(1)).is_some())
                                .count()
                        })
                    })
                    .collect();
                threads.into_iter().map(|t| t.join().expect("thread")).sum::<usize>()
            });
            let counts = ServiceCounts::of(&all);
            assert!(counts.ejected <= 3, "round {round}: {counts:?}");
            assert_eq!(wins, counts.ejected as usize, "round {round}");
        }
    }
}
