//! Rise and fall: what results of a probe mean for one consumer.
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
//! In a fleet, results of other members count, too:
//!
//! Each source has its own count of results in a row, by this consumer's timeout. The health changes
//! when `fall` failures in a row (for down) or `rise` successes in a row (for up; one if the health is
//! unknown) were counted
//!
//! 1. by this member itself: its own results decide whenever it has that many; or
//! 2. by every prober, each of which must be believed and have a fresh result. Then this member's own
//!    results, if it has any since it began to probe, must all be of the same kind.
//!
//! Its own results in a row are kept while it relies on others, as long as the others' results are of the same kind.
//! Otherwise a member that keeps losing messages would start counting from zero each time.
//!
//! So a single prober never changes a server's health at another member if there are two: a contrary
//! result is a disagreement, at which the member probes for itself, and its own results decide. With a
//! single prober for each probe, what it says is believed: two is the smallest safe number.
//!
//! A server that dies is down at every member within `fall` × 1.1 × interval + timeout + 1 s if all
//! probers are live and tell the truth, even if every second message of each prober is lost (each result
//! is sent twice, [`super::belief::REPEAT_AFTER`]). If a prober lies, the member's own results decide,
//! which takes up to 1.1 intervals and a timeout more. If a prober crashes meanwhile, its last result is
//! fresh for two intervals, and then the member counts by itself: up to 2 + `fall` × 1.1 intervals and a
//! timeout more.

use std::time::Duration;

use model::{Check, Health, Moment};

use super::assignment::MemberIndex;
use super::belief::Standing;
use super::result::{Heard, Outcome};
use crate::evidence::{Evidence, Failure, Streak};
use crate::verdict::{Change, ProbeEvent, Reading, ServerLoad};

/// A change of health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The change and its evidence.
    pub change: Change,
    /// Whether this member's own results decided it. Only then is it fresh evidence against the
    /// outcomes of real requests here, and may end an ejection ([`model::ServerState::readmit`]).
    pub is_own: bool,
}

/// One consumer's counts.
#[derive(Clone, Debug)]
pub struct Tally {
    rise: u32,
    fall: u32,
    timeout: Duration,
    reading: Reading,
    health: Health,
    own: Streak,
    /// Own results since it began to probe; 0 while it relies on others.
    own_results: u32,
    /// Since when it has probed for itself; `None`: it relies on others, and `own` has its earlier results.
    own_since: Option<Moment>,
    sources: Vec<(MemberIndex, Streak)>,
}

impl Tally {
    /// Returns a tally that starts with the known health.
    pub fn new(check: &Check, health: Health) -> Tally {
        Tally {
            rise: check.rise.max(1),
            fall: check.fall.max(1),
            timeout: check.timeout,
            reading: Reading::new(check),
            health,
            own: Streak::default(),
            own_results: 0,
            own_since: None,
            sources: Vec::new(),
        }
    }

    /// Applies a changed check: health and own counts are kept, thresholds are replaced. If the
    /// consumer now uses another probe (`same_probe` false), events of the running one, and what
    /// others said about it, are forgotten.
    pub fn retune(&mut self, check: &Check, same_probe: bool) {
        self.rise = check.rise.max(1);
        self.fall = check.fall.max(1);
        self.timeout = check.timeout;
        self.reading.retune(check, same_probe);
        if !same_probe {
            self.sources.clear();
        }
    }

    /// Forgets all results, but not the health.
    pub fn forget_results(&mut self) {
        self.own = Streak::default();
        self.own_results = 0;
        self.sources.clear();
    }

    /// Returns the current health.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Returns the number of failures in a row and the last of them, of the source that has most.
    pub fn failing(&self) -> Option<(u32, Failure)> {
        let shared = self.sources.iter().filter_map(|(_, streak)| streak.failing());
        shared.chain(self.own.failing()).max_by_key(|(count, _)| *count)
    }

    /// Processes an event of a probe that no other member runs; `load` is what the server did while it
    /// ran.
    pub fn on_event(&mut self, event: ProbeEvent, load: ServerLoad) -> Option<Change> {
        self.on_own(event, load, &Standing::alone()).map(|decided| decided.change)
    }

    /// Processes an event of a run of this member's own; `load` is what the server did while it ran.
    pub fn on_own(
        &mut self,
        event: ProbeEvent,
        load: ServerLoad,
        standing: &Standing,
    ) -> Option<Decided> {
        self.follow(standing);
        let result = self.reading.read(event, load)?;
        // The run may have begun before this member went back to relying on others.
        self.own.count(result, 1);
        let is_probing = standing.probing_since.is_some();
        self.own_results = self.own_results.saturating_add(is_probing.into());
        if !is_probing {
            self.forget_contradicted();
        }
        self.decide(standing)
    }

    /// Processes a result that [`super::belief::Belief::on_heard`] found new. `load` is what the server
    /// did here between the start of the run (now, less age and elapsed time) and now.
    pub fn on_heard(
        &mut self,
        from: MemberIndex,
        heard: &Heard,
        load: ServerLoad,
        standing: &Standing,
    ) -> Option<Decided> {
        self.follow(standing);
        let result = heard.read(self.timeout)?;
        if let Err(failure) = result
            && load.excuses(failure)
        {
            return None;
        }
        // A row of successes at the prober may contain some that are too slow here, and a success that
        // is too slow here continues no row of failures.
        let is_failure = matches!(heard.outcome, Outcome::Failure(_));
        let in_a_row = if is_failure { u32::from(heard.in_a_row) } else { 1 };
        self.streak_of(from, standing)?.count(result, in_a_row);
        if self.own_results == 0 {
            self.forget_contradicted();
        }
        self.decide(standing)
    }

    /// Forgets results of members that are no longer heard or are not probers, and own results of an earlier period of
    /// probing if others contradict them: later results do not continue such a streak.
    fn follow(&mut self, standing: &Standing) {
        if self.own_since != standing.probing_since {
            self.own_since = standing.probing_since;
            self.own_results = 0;
            self.forget_contradicted();
        }
        self.sources.retain(|(member, _)| standing.voters.contains(member));
    }

    /// Forgets own results if another member's last one is of the other kind.
    fn forget_contradicted(&mut self) {
        if self.sources.iter().any(|(_, streak)| streak.contradicts(&self.own)) {
            self.own = Streak::default();
        }
    }

    /// Returns the counts of a source; `None` if its results do not count.
    fn streak_of(&mut self, from: MemberIndex, standing: &Standing) -> Option<&mut Streak> {
        if !standing.voters.contains(&from) {
            return None;
        }
        let known = self.sources.iter().position(|(member, _)| *member == from);
        let at = known.unwrap_or_else(|| {
            self.sources.push((from, Streak::default()));
            self.sources.len() - 1
        });
        self.sources.get_mut(at).map(|(_, streak)| streak)
    }

    fn decide(&mut self, standing: &Standing) -> Option<Decided> {
        let needed_up = match self.health {
            Health::Unknown => 1,
            Health::Up | Health::Down => self.rise,
        };
        let down = (self.health != Health::Down)
            .then(|| self.agreed(standing, self.fall, Streak::failures))
            .flatten()
            .map(|found| (Health::Down, found));
        let up = (self.health != Health::Up)
            .then(|| self.agreed(standing, needed_up, Streak::successes))
            .flatten()
            .map(|found| (Health::Up, found));
        let (to, (evidence, is_own)) = down.or(up)?;
        let from = std::mem::replace(&mut self.health, to);
        Some(Decided { change: Change { from, to, evidence }, is_own })
    }

    /// Applies the rule in the header to results of one kind. Returns the evidence, and whether it is
    /// this member's own.
    fn agreed(
        &self,
        standing: &Standing,
        needed: u32,
        count: impl Fn(&Streak) -> u32,
    ) -> Option<(Evidence, bool)> {
        if count(&self.own) >= needed {
            return Some((self.own.evidence(), true));
        }
        let is_contrary = self.own_results > count(&self.own);
        if is_contrary || !standing.is_complete {
            return None;
        }
        let mut weakest: Option<&Streak> = None;
        for voter in &standing.voters {
            let (_, streak) = self.sources.iter().find(|(member, _)| member == voter)?;
            if count(streak) < needed {
                return None;
            }
            if weakest.is_none_or(|weakest| count(streak) < count(weakest)) {
                weakest = Some(streak);
            }
        }
        Some((weakest?.evidence(), false))
    }
}

#[cfg(test)]
mod alone;
#[cfg(test)]
mod tests {
    use model::{Cause, CheckKind};

    use super::*;

    pub(super) const CALM: ServerLoad = ServerLoad { at_limit: false, answered_since_start: false };
    const A: MemberIndex = MemberIndex(1);
    const B: MemberIndex = MemberIndex(2);

    pub(super) fn check(rise: u32, fall: u32, timeout_ms: u64) -> Check {
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

    fn standing(voters: &[MemberIndex], is_complete: bool) -> Standing {
        Standing { voters: voters.to_vec(), is_complete, probing_since: Some(Moment::ZERO) }
    }

    fn heard(result: Result<(), Failure>, elapsed_ms: u64, in_a_row: u8) -> Heard {
        let elapsed = Duration::from_millis(elapsed_ms);
        let outcome = Outcome::of(result);
        Heard { outcome, elapsed, age_at_sending: Duration::ZERO, run: 0, in_a_row }
    }

    /// One letter a result (s success, f failure of prober A; S, F of B; o, x of this member), one
    /// letter the health after it.
    fn play(tally: &mut Tally, results: &str, standing: &Standing) -> String {
        let mut healths = String::new();
        for letter in results.chars() {
            let is_success = "sSo".contains(letter);
            let result =
                if is_success { Ok(()) } else { Err(Failure::Broken(Cause::ConnectionRefused)) };
            let from = if "sf".contains(letter) { A } else { B };
            match letter {
                'o' | 'x' => {
                    let event = ProbeEvent::Done { elapsed: Duration::from_millis(5), result };
                    tally.on_own(event, CALM, standing);
                }
                _ => {
                    tally.on_heard(from, &heard(result, 5, 1), CALM, standing);
                }
            }
            healths.push(match tally.health() {
                Health::Unknown => '?',
                Health::Up => 'U',
                Health::Down => 'D',
            });
        }
        healths
    }

    #[test]
    fn results_and_healths_table() {
        let both = standing(&[A, B], true);
        let one_missing = standing(&[A], false);
        for (from, standing, results, healths) in [
            // All probers, each as often as is needed.
            (Health::Up, &both, "fFfFfF", "UUUUUD"),
            (Health::Up, &both, "fffffF", "UUUUUU"),
            (Health::Up, &both, "fFfSfFFF", "UUUUUUUD"),
            (Health::Down, &both, "sSsS", "DDDU"),
            (Health::Down, &both, "sssSfS", "DDDDDD"),
            (Health::Unknown, &both, "sS", "?U"),
            (Health::Unknown, &both, "fFfFfF", "?????D"),
            // One of them says otherwise: this member's own results decide.
            (Health::Up, &both, "fSfSfSxxx", "UUUUUUUUD"),
            (Health::Down, &both, "sFsFoo", "DDDDDU"),
            // Its own are contrary.
            (Health::Up, &both, "oxfFfFfF", "UUUUUUUU"),
            (Health::Up, &both, "ofFfFfFxxx", "UUUUUUUUUD"),
            // Its own are fewer, but alike.
            (Health::Up, &both, "xfFfFfF", "UUUUUUD"),
            (Health::Down, &both, "osSsS", "DDDDU"),
            // One is missing.
            (Health::Up, &one_missing, "fffff", "UUUUU"),
            (Health::Up, &one_missing, "fffxxx", "UUUUUD"),
            (Health::Unknown, &one_missing, "so", "?U"),
        ] {
            let mut tally = Tally::new(&check(2, 3, 1_000), from);
            assert_eq!(play(&mut tally, results, standing), healths, "{from:?} {results}");
        }
    }

    #[test]
    fn only_own_results_are_evidence_against_real_requests() {
        let both = standing(&[A, B], true);
        let mut tally = Tally::new(&check(1, 1, 1_000), Health::Down);
        let good = heard(Ok(()), 5, 1);
        assert_eq!(tally.on_heard(A, &good, CALM, &both), None);
        let decided = tally.on_heard(B, &good, CALM, &both).expect("up");
        assert!(!decided.is_own);
        let event = ProbeEvent::Done {
            elapsed: Duration::from_millis(5),
            result: Err(Failure::Status(500)),
        };
        let decided = tally.on_own(event, CALM, &both).expect("down");
        assert!(decided.is_own);
        assert_eq!(decided.change.evidence.to_string(), "status 500");
    }

    #[test]
    fn each_consumer_reads_a_shared_result_by_its_own_timeout() {
        let both = standing(&[A, B], true);
        let mut hasty = Tally::new(&check(2, 1, 100), Health::Up);
        let mut patient = Tally::new(&check(2, 1, 1_000), Health::Up);
        for from in [A, B] {
            hasty.on_heard(from, &heard(Ok(()), 200, 9), CALM, &both);
            patient.on_heard(from, &heard(Ok(()), 200, 9), CALM, &both);
        }
        assert_eq!((hasty.health(), patient.health()), (Health::Down, Health::Up));
        assert_eq!(hasty.failing(), Some((1, Failure::Timeout)));
        // A prober that gave up before this consumer would have says nothing to it.
        patient.on_heard(A, &heard(Err(Failure::Timeout), 500, 9), CALM, &both);
        assert_eq!(patient.failing(), None);
    }

    #[test]
    fn failures_that_did_not_arrive_are_counted_with_the_next_one() {
        let both = standing(&[A, B], true);
        let mut tally = Tally::new(&check(2, 3, 1_000), Health::Up);
        let third = heard(Err(Failure::Status(500)), 5, 3);
        assert_eq!(tally.on_heard(A, &third, CALM, &both), None);
        let decided = tally.on_heard(B, &third, CALM, &both).expect("down");
        assert_eq!(decided.change.to, Health::Down);
        // Successes are not: those that did not arrive may have been too slow for this consumer.
        let second = heard(Ok(()), 5, 2);
        tally.on_heard(A, &second, CALM, &both);
        assert_eq!(tally.on_heard(B, &second, CALM, &both), None);
    }

    #[test]
    fn a_busy_server_that_answers_here_is_not_failed_by_a_shared_timeout() {
        let both = standing(&[A, B], true);
        let busy = ServerLoad { at_limit: true, answered_since_start: true };
        let timeout = heard(Err(Failure::Timeout), 1_000, 9);
        let mut tally = Tally::new(&check(2, 1, 1_000), Health::Up);
        for from in [A, B] {
            assert_eq!(tally.on_heard(from, &timeout, busy, &both), None);
        }
        assert_eq!(tally.failing(), None);
    }

    #[test]
    fn own_results_are_forgotten_if_others_contradict_them_when_the_member_relies_on_them() {
        let first = standing(&[A, B], true);
        let relying = Standing { probing_since: None, ..first.clone() };
        let second = Standing { probing_since: Some(Moment::from_millis(9)), ..first.clone() };
        for (probing, relied, probing_again, healths) in [
            ("xx", "", "x", "UUD"),
            ("fFxx", "", "x", "UUUUD"),
            // One that began while it probed.
            ("xx", "x", "", "UUD"),
            ("", "sSxxx", "x", "UUUUUU"),
            ("xx", "f", "x", "UUUD"),
            ("xx", "s", "x", "UUUU"),
            ("xx", "fs", "xxx", "UUUUUUD"),
            // Contradicted before it relies on others.
            ("sSxx", "", "xxx", "UUUUUUD"),
            ("sSxx", "fF", "x", "UUUUUUU"),
            // Only the last row.
            ("oxx", "", "fFfFfF", "UUUUUUUUD"),
        ] {
            let mut tally = Tally::new(&check(2, 3, 1_000), Health::Up);
            let found = [
                play(&mut tally, probing, &first),
                play(&mut tally, relied, &relying),
                play(&mut tally, probing_again, &second),
            ];
            assert_eq!(found.concat(), healths, "{probing} {relied} {probing_again}");
        }
    }

    #[test]
    fn counts_of_any_number_of_members_are_kept_within_bounds() {
        let both = standing(&[A, B], true);
        let mut tally = Tally::new(&check(2, 3, 1_000), Health::Up);
        for member in 0..1_000 {
            tally.on_heard(MemberIndex(member), &heard(Ok(()), 5, 1), CALM, &both);
            assert!(tally.sources.len() <= 2);
        }
    }

    #[test]
    fn failures_before_a_silence_are_no_part_of_those_after_it() {
        let mut tally = Tally::new(&check(2, 3, 1_000), Health::Up);
        let fails = |in_a_row| heard(Err(Failure::Status(500)), 5, in_a_row);
        let relying = |voters: &[MemberIndex]| Standing {
            voters: voters.to_vec(),
            is_complete: true,
            probing_since: None,
        };
        assert!(tally.on_heard(A, &fails(2), CALM, &relying(&[A])).is_none());
        // It is silent, and another one is heard meanwhile.
        tally.on_heard(B, &heard(Ok(()), 5, 1), CALM, &relying(&[B]));
        assert!(tally.on_heard(A, &fails(1), CALM, &relying(&[A])).is_none());
        assert!(tally.on_heard(A, &fails(3), CALM, &relying(&[A])).is_some());
    }
}
