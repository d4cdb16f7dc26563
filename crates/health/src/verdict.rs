//! Rise and fall: how one consumer interprets the results of a probe.
//!
//! ```text
//!              1 success                 fall failures in a row
//!   Unknown ──────────────▶ Up ───────────────────────────▶ Down
//!      │                     ▲                               │ ▲
//!      │                     └──────── rise successes ───────┘ │
//!      └──────────────── fall failures in a row ───────────────┘
//! ```
//!
//! A server in `Unknown` is used as if it were up, so its first success only confirms the
//! assumption and takes effect at once. Other balancers (HAProxy's `init-state up`) mark such a
//! server down at its first failure; Weir requires `fall` of them, as at any other time: a balancer
//! that starts while its own network is still coming up must not mark every server down, and until
//! then a request that fails is retried elsewhere.
//!
//! A result that took longer than this consumer's timeout is a failure for it, whatever it was, and
//! is counted at that timeout: [`ProbeEvent::Pending`] triggers this while the probe may continue
//! for others. Two kinds of result count neither way: a probe that this machine could not even send
//! (no descriptor, no port), and a timeout of a server that is at its concurrency limit and
//! meanwhile answers requests, since the probe had to wait behind work that Weir itself sent.

use std::fmt;
use std::time::Duration;

use model::{Cause, Check, Fault, Health};

/// An event of a running probe. Every run ends with exactly one `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// It is still running.
    Pending {
        /// Time since its start.
        elapsed: Duration,
    },
    /// It ended.
    Done {
        /// Time since its start.
        elapsed: Duration,
        /// The result.
        result: Result<(), Failure>,
    },
}

/// Why a probe failed. Displays as a readable phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No result in time.
    Timeout,
    /// A response with a status that was not expected.
    Status(u16),
    /// No connection, or no valid response on it.
    Broken(Cause),
    /// The failure in these words: TLS was refused by one side, or a gRPC health service reports
    /// the server as not serving.
    Said(&'static str),
}

impl Failure {
    /// Returns whether it says nothing about the server, since this machine could not send the
    /// probe.
    pub fn is_local(self) -> bool {
        matches!(self, Failure::Broken(cause) if cause.fault() == Fault::Balancer)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Timeout => f.write_str("no answer in time"),
            Failure::Status(status) => write!(f, "status {status}"),
            Failure::Said(words) => f.write_str(words),
            Failure::Broken(cause) => {
                for (n, word) in cause.name().split('_').enumerate() {
                    let space = if n == 0 { "" } else { " " };
                    write!(f, "{space}{word}")?;
                }
                Ok(())
            }
        }
    }
}

/// What the server did while the probe ran; used when a probe times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLoad {
    /// Its concurrency limit is reached (false without a limit).
    pub at_limit: bool,
    /// It answered a real request since the probe started.
    pub answered_since_start: bool,
}

impl ServerLoad {
    fn excuses(self, failure: Failure) -> bool {
        failure == Failure::Timeout && self.at_limit && self.answered_since_start
    }
}

/// A change of health, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The health before.
    pub from: Health,
    /// The health now.
    pub to: Health,
    /// The reason.
    pub evidence: Evidence,
}

/// The evidence for a change. Displays as `connection refused 3 times`, `2 successes in a row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Successes in a row.
    Successes(u32),
    /// Failures in a row.
    Failures {
        /// How many.
        count: u32,
        /// How many of them, counted back from the last, were alike.
        alike: u32,
        /// The last.
        last: Failure,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Evidence::Successes(1) => f.write_str("1 success"),
            Evidence::Successes(n) => write!(f, "{n} successes in a row"),
            Evidence::Failures { count: 1, last, .. } => last.fmt(f),
            Evidence::Failures { count, alike, last } if alike >= count => {
                write!(f, "{last} {count} times")
            }
            Evidence::Failures { count, last, .. } => {
                write!(f, "{count} failures in a row, the last: {last}")
            }
        }
    }
}

/// One consumer's interpretation of a probe.
#[derive(Clone, Debug)]
pub struct Verdict {
    rise: u32,
    fall: u32,
    timeout: Duration,
    health: Health,
    successes: u32,
    failures: u32,
    /// How many of the failures in a row were like the last.
    alike: u32,
    last: Option<Failure>,
    /// The running probe has already been counted, at this consumer's timeout.
    judged: bool,
}

impl Verdict {
    /// Returns a verdict that starts with the known health (a server's health outlives reloads).
    pub fn new(check: &Check, health: Health) -> Verdict {
        Verdict {
            rise: check.rise.max(1),
            fall: check.fall.max(1),
            timeout: check.timeout,
            health,
            successes: 0,
            failures: 0,
            alike: 0,
            last: None,
            judged: false,
        }
    }

    /// Applies a changed check: health and counts are kept, thresholds are replaced. If the
    /// consumer now uses another probe (`same_probe` false), events of the running one are
    /// forgotten.
    pub fn retune(&mut self, check: &Check, same_probe: bool) {
        self.rise = check.rise.max(1);
        self.fall = check.fall.max(1);
        self.timeout = check.timeout;
        self.judged &= same_probe;
    }

    /// Returns the current health.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Returns the last failure and the number of failures in a row; for status pages.
    pub fn failing(&self) -> Option<(u32, Failure)> {
        self.last.map(|last| (self.failures, last))
    }

    /// Processes one event. `load` is what the server did while the probe ran.
    pub fn on_event(&mut self, event: ProbeEvent, load: ServerLoad) -> Option<Change> {
        let result = match event {
            ProbeEvent::Pending { elapsed } => {
                if self.judged || elapsed < self.timeout {
                    return None;
                }
                self.judged = true;
                Err(Failure::Timeout)
            }
            ProbeEvent::Done { elapsed, result } => {
                if std::mem::take(&mut self.judged) {
                    return None;
                }
                // Abandoned before this consumer's timeout (which has just been raised).
                if result == Err(Failure::Timeout) && elapsed < self.timeout {
                    return None;
                }
                if elapsed > self.timeout { Err(Failure::Timeout) } else { result }
            }
        };
        match result {
            Ok(()) => self.on_success(),
            Err(failure) if failure.is_local() || load.excuses(failure) => None,
            Err(failure) => self.on_failure(failure),
        }
    }

    fn on_success(&mut self) -> Option<Change> {
        (self.failures, self.alike, self.last) = (0, 0, None);
        self.successes = self.successes.saturating_add(1);
        let needed = match self.health {
            Health::Up => return None,
            Health::Unknown => 1,
            Health::Down => self.rise,
        };
        (self.successes >= needed)
            .then(|| self.change(Health::Up, Evidence::Successes(self.successes)))
    }

    fn on_failure(&mut self, failure: Failure) -> Option<Change> {
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        self.alike = if self.last == Some(failure) { self.alike.saturating_add(1) } else { 1 };
        self.last = Some(failure);
        if self.health == Health::Down || self.failures < self.fall {
            return None;
        }
        let (count, alike) = (self.failures, self.alike);
        Some(self.change(Health::Down, Evidence::Failures { count, alike, last: failure }))
    }

    fn change(&mut self, to: Health, evidence: Evidence) -> Change {
        let from = std::mem::replace(&mut self.health, to);
        Change { from, to, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CheckKind;

    const CALM: ServerLoad = ServerLoad { at_limit: false, answered_since_start: false };

    fn check(rise: u32, fall: u32, timeout_ms: u64) -> Check {
        Check {
            kind: CheckKind::Tcp,
            port: None,
            clear_text: false,
            http: None,
            interval: Duration::from_secs(2),
            timeout: Duration::from_millis(timeout_ms),
            rise,
            fall,
        }
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn done(result: Result<(), Failure>) -> ProbeEvent {
        ProbeEvent::Done { elapsed: ms(5), result }
    }

    /// One letter a result (s success, r refused, 5 a status, l local), one letter the health
    /// after it (? unknown, U up, D down).
    #[test]
    fn rise_and_fall_table() {
        let cases = [
            // rise, fall, from, results, healths
            (2, 3, Health::Unknown, "s", "U"),
            (2, 3, Health::Unknown, "rrr", "??D"),
            (2, 3, Health::Unknown, "rrs", "??U"),
            (2, 3, Health::Unknown, "rrrss", "??DDU"),
            (2, 3, Health::Up, "rrsrrr", "UUUUUD"),
            (2, 3, Health::Up, "r5r", "UUD"),
            (2, 3, Health::Down, "srss", "DDDU"),
            (1, 1, Health::Up, "rsr", "DUD"),
            (2, 3, Health::Up, "rlrlrl", "UUUUDD"),
            (2, 3, Health::Unknown, "lllll", "?????"),
            (2, 3, Health::Down, "lsls", "DDDU"),
            (3, 2, Health::Down, "ssrsss", "DDDDDU"),
            // A zero threshold counts as one.
            (0, 0, Health::Up, "rs", "DU"),
        ];
        for (rise, fall, from, results, healths) in cases {
            let mut verdict = Verdict::new(&check(rise, fall, 1000), from);
            let mut got = String::new();
            for letter in results.chars() {
                let result = match letter {
                    's' => Ok(()),
                    'r' => Err(Failure::Broken(Cause::ConnectionRefused)),
                    '5' => Err(Failure::Status(500)),
                    _ => Err(Failure::Broken(Cause::ConnectionLimitReached)),
                };
                let before = verdict.health();
                let change = verdict.on_event(done(result), CALM);
                assert_eq!(change.is_some(), before != verdict.health());
                got.push(match verdict.health() {
                    Health::Unknown => '?',
                    Health::Up => 'U',
                    Health::Down => 'D',
                });
            }
            assert_eq!(got, healths, "rise {rise} fall {fall} results {results}");
        }
    }

    #[test]
    fn each_consumer_reads_a_slow_probe_by_its_own_timeout() {
        let mut hasty = Verdict::new(&check(2, 1, 100), Health::Up);
        let mut patient = Verdict::new(&check(2, 1, 1000), Health::Up);
        let pending = ProbeEvent::Pending { elapsed: ms(100) };
        // This consumer counts a failure at its own timeout, not when the probe ends.
        assert_eq!(hasty.on_event(pending, CALM).map(|c| c.to), Some(Health::Down));
        assert_eq!(patient.on_event(pending, CALM), None);
        let late = ProbeEvent::Done { elapsed: ms(700), result: Ok(()) };
        assert_eq!(hasty.on_event(late, CALM), None);
        assert_eq!(hasty.health(), Health::Down);
        assert_eq!(patient.on_event(late, CALM), None);
        assert_eq!(patient.health(), Health::Up);
        // The next run is counted again.
        assert_eq!(hasty.on_event(done(Ok(())), CALM), None);
        assert_eq!(hasty.on_event(done(Ok(())), CALM).map(|c| c.to), Some(Health::Up));
    }

    #[test]
    fn one_run_counts_once_however_often_it_is_pending() {
        let mut verdict = Verdict::new(&check(2, 2, 100), Health::Up);
        for elapsed in [50, 100, 200, 300] {
            assert_eq!(verdict.on_event(ProbeEvent::Pending { elapsed: ms(elapsed) }, CALM), None);
        }
        let end = ProbeEvent::Done { elapsed: ms(400), result: Err(Failure::Timeout) };
        assert_eq!(verdict.on_event(end, CALM), None);
        assert_eq!(verdict.failing(), Some((1, Failure::Timeout)));
        // A success that was not announced as pending, but is late: still a failure.
        let late = ProbeEvent::Done { elapsed: ms(101), result: Ok(()) };
        assert_eq!(verdict.on_event(late, CALM).map(|c| c.to), Some(Health::Down));
    }

    #[test]
    fn a_busy_server_that_answers_is_not_failed_by_a_timeout() {
        let busy = ServerLoad { at_limit: true, answered_since_start: true };
        let pending = ProbeEvent::Pending { elapsed: ms(1000) };
        let end = ProbeEvent::Done { elapsed: ms(1000), result: Err(Failure::Timeout) };
        let mut verdict = Verdict::new(&check(2, 3, 1000), Health::Up);
        for _ in 0..10 {
            assert_eq!(verdict.on_event(pending, busy), None);
            assert_eq!(verdict.on_event(end, busy), None);
        }
        assert_eq!(verdict.failing(), None);
        // At its limit but silent, or answering with free slots: the timeout counts.
        for load in [
            ServerLoad { at_limit: true, answered_since_start: false },
            ServerLoad { at_limit: false, answered_since_start: true },
        ] {
            let mut verdict = Verdict::new(&check(2, 1, 1000), Health::Up);
            assert!(verdict.on_event(pending, load).is_some());
        }
        // A refused connection counts even then: it is no sign of waiting.
        let mut verdict = Verdict::new(&check(2, 1, 1000), Health::Up);
        let refused = Err(Failure::Broken(Cause::ConnectionRefused));
        assert!(verdict.on_event(done(refused), busy).is_some());
    }

    #[test]
    fn evidence_reads_well() {
        let mut verdict = Verdict::new(&check(2, 3, 1000), Health::Up);
        let refused = done(Err(Failure::Broken(Cause::ConnectionRefused)));
        verdict.on_event(refused, CALM);
        verdict.on_event(refused, CALM);
        let change = verdict.on_event(refused, CALM).expect("down");
        assert_eq!(change.evidence.to_string(), "connection refused 3 times");
        verdict.on_event(done(Ok(())), CALM);
        let change = verdict.on_event(done(Ok(())), CALM).expect("up");
        assert_eq!(change.evidence.to_string(), "2 successes in a row");
        verdict.on_event(refused, CALM);
        verdict.on_event(refused, CALM);
        let change = verdict.on_event(done(Err(Failure::Status(503))), CALM).expect("down");
        assert_eq!(change.evidence.to_string(), "3 failures in a row, the last: status 503");
    }

    #[test]
    fn retuning_keeps_runs_and_forgets_another_probes_timeout() {
        let mut verdict = Verdict::new(&check(2, 5, 100), Health::Up);
        verdict.on_event(ProbeEvent::Pending { elapsed: ms(100) }, CALM);
        verdict.retune(&check(2, 2, 100), false);
        let given_up = ProbeEvent::Done { elapsed: ms(50), result: Err(Failure::Timeout) };
        assert_eq!(verdict.on_event(given_up, CALM), None);
        assert_eq!(verdict.failing(), Some((1, Failure::Timeout)));
        let change = verdict.on_event(done(Err(Failure::Status(500))), CALM);
        assert_eq!(change.map(|c| c.to), Some(Health::Down));
    }
}
