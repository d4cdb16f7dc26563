//! Belief against scripted results. Whole zones are in `shared::tests`.

use super::super::assignment::{Member, Roster};
use super::super::identity::ProbeHash;
use super::*;

const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_millis(500);

fn ms(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

fn needs() -> Needs {
    Needs { interval: INTERVAL, timeouts: vec![Duration::from_millis(100), TIMEOUT], fall: 3 }
}

fn heard(run: u16, outcome: Outcome) -> Heard {
    Heard {
        outcome,
        elapsed: Duration::from_millis(5),
        age_at_sending: Duration::ZERO,
        run,
        in_a_row: 1,
    }
}

fn good(run: u16) -> Heard {
    heard(run, Outcome::Success)
}

fn bad(run: u16) -> Heard {
    heard(run, Outcome::Failure(Failure::Status(500)))
}

/// A zone of five members, seen by one of them.
struct Zone {
    roster: Roster,
    me: MemberIndex,
}

impl Zone {
    fn new() -> Zone {
        let mut roster = Roster::new(None, 2);
        for n in 0..5 {
            let name = format!("weir-{n}");
            let host = name.as_str().into();
            roster.join(Member { name: name.into(), zone: None, host, start: 1 });
        }
        let me = roster.index_of("weir-4").expect("a member");
        Zone { roster, me }
    }

    /// Returns the first set of probers that `accepts`.
    fn probers(&self, accepts: impl Fn(&Probers) -> bool) -> Probers {
        let mut sets = (0..=255).map(|n| self.roster.probers(ProbeHash([n; 16])));
        sets.find(accepts).expect("one of 256 probes")
    }

    fn others(&self) -> (Probers, MemberIndex, MemberIndex) {
        let probers = self.probers(|set| !set.contains(self.me));
        let mut members = probers.iter();
        let (a, b) = (members.next(), members.next());
        (probers, a.expect("a prober"), b.expect("another"))
    }

    /// Returns a belief that has relied on both probers since 10 s.
    fn relying(&self) -> (Belief, MemberIndex, MemberIndex) {
        let (probers, a, b) = self.others();
        let mut belief = Belief::new(self.me, needs());
        belief.assign(&probers, ms(0));
        for run in 0..6 {
            let now = ms(u64::from(run) * 2_000);
            assert!(belief.on_heard(a, 1, &good(run), now));
            assert!(belief.on_heard(b, 1, &good(run), now));
        }
        assert_eq!(belief.duty(ms(10_000)), Duty::Rely);
        (belief, a, b)
    }
}

#[test]
fn a_member_that_has_heard_nothing_probes() {
    let zone = Zone::new();
    let (probers, a, b) = zone.others();
    let mut belief = Belief::new(zone.me, needs());
    assert_eq!(belief.duty(ms(0)), Duty::Probe);
    belief.assign(&probers, ms(0));
    assert_eq!(belief.duty(ms(10)), Duty::Probe);
    belief.on_heard(a, 1, &good(1), ms(20));
    assert_eq!(belief.duty(ms(1_000)), Duty::Probe, "one of two");
    belief.on_heard(b, 1, &good(1), ms(1_000));
    assert_eq!(belief.duty(ms(2_999)), Duty::Probe);
    belief.on_heard(a, 1, &good(2), ms(2_010));
    assert_eq!(belief.duty(ms(2_999)), Duty::Probe);
    assert_eq!(belief.duty(ms(3_000)), Duty::Rely);
}

#[test]
fn a_new_prober_need_not_have_spoken_but_not_for_ever() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let next = zone.probers(|set| set.contains(a) && !set.contains(b) && !set.contains(zone.me));
    belief.assign(&next, ms(11_900));
    belief.on_heard(a, 1, &good(6), ms(11_950));
    belief.on_heard(a, 1, &good(7), ms(13_800));
    // The result of the former prober is no longer fresh.
    assert_eq!(belief.duty(ms(14_000)), Duty::Rely);
    assert!(!belief.standing(ms(14_000)).is_complete);
    assert_eq!(belief.duty(ms(15_700)), Duty::Rely);
    belief.on_heard(a, 1, &good(8), ms(15_750));
    assert_eq!(belief.duty(ms(15_899)), Duty::Rely);
    assert_eq!(belief.duty(ms(15_900)), Duty::Probe);
}

#[test]
fn successors_of_a_silent_new_prober_get_no_more_time_than_it_had() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let with_a = |not: &[MemberIndex]| {
        zone.probers(|set| set.contains(a) && not.iter().all(|one| !set.contains(*one)))
    };
    let next = with_a(&[b, zone.me]);
    belief.assign(&next, ms(11_900));
    let silent = next.iter().find(|one| *one != a).expect("two probers");
    belief.on_heard(a, 1, &good(7), ms(13_800));
    belief.assign(&with_a(&[b, zone.me, silent]), ms(15_500));
    belief.on_heard(a, 1, &good(8), ms(15_700));
    assert_eq!(belief.duty(ms(15_800)), Duty::Rely);
    assert_eq!(belief.duty(ms(15_900)), Duty::Probe);
}

#[test]
fn a_former_prober_probes_until_its_successor_speaks() {
    let zone = Zone::new();
    let mine = zone.probers(|set| set.contains(zone.me));
    let a = mine.iter().find(|one| *one != zone.me).expect("two probers");
    let mut belief = Belief::new(zone.me, needs());
    belief.assign(&mine, ms(0));
    for (run, now) in [(1, 10), (2, 2_010), (3, 4_010)] {
        belief.on_heard(a, 1, &good(run), ms(now));
        belief.on_own(Duration::ZERO, Ok(()), ms(now + 10));
    }
    let next = zone.probers(|set| set.contains(a) && !set.contains(zone.me));
    let successor = next.iter().find(|one| *one != a).expect("two probers");
    belief.assign(&next, ms(5_000));
    for (run, now) in [(4, 6_010), (5, 8_010)] {
        belief.on_heard(a, 1, &good(run), ms(now));
        assert_eq!(belief.duty(ms(now + 500)), Duty::Probe);
    }
    belief.on_heard(successor, 1, &good(1), ms(8_600));
    belief.on_heard(a, 1, &good(6), ms(10_010));
    assert_eq!(belief.duty(ms(10_700)), Duty::Rely);
}

#[test]
fn a_prober_always_probes_and_sends_its_results() {
    let zone = Zone::new();
    let mut belief = Belief::new(zone.me, needs());
    belief.assign(&zone.probers(|set| set.contains(zone.me)), ms(0));
    assert_eq!(belief.duty(ms(100_000)), Duty::Probe);
    let mut rows = Vec::new();
    for (n, result) in
        [Ok(()), Err(Failure::Timeout), Err(Failure::Timeout)].into_iter().enumerate()
    {
        let own = belief.on_own(TIMEOUT, result, ms(100_000 + n as u64 * 2_000));
        rows.push(own.send.expect("it is a prober").in_a_row);
    }
    assert_eq!(rows, [1, 1, 2]);
    let local = Err(Failure::Broken(model::Cause::ConnectionLimitReached));
    let own = belief.on_own(TIMEOUT, local, ms(110_000));
    assert_eq!(own.send.map(|heard| heard.outcome), Some(Outcome::Unknown));
}

#[test]
fn a_missing_result_makes_a_member_probe_until_all_is_well_for_one_interval() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    belief.on_heard(a, 1, &good(6), ms(12_000));
    assert_eq!(belief.duty(ms(13_999)), Duty::Rely);
    assert_eq!(belief.duty(ms(14_000)), Duty::Probe, "the other's is two intervals old");
    assert!(!belief.standing(ms(14_000)).is_complete);
    belief.on_own(Duration::from_millis(5), Ok(()), ms(14_005));
    belief.on_heard(a, 1, &good(7), ms(14_100));
    belief.on_heard(b, 1, &good(7), ms(14_200));
    assert_eq!(belief.duty(ms(16_199)), Duty::Probe);
    assert_eq!(belief.duty(ms(16_200)), Duty::Rely);
}

#[test]
fn a_gap_between_two_turns_is_noticed() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    // Both were silent for five intervals, while no turn came.
    belief.on_heard(a, 1, &good(9), ms(20_000));
    belief.on_heard(b, 1, &good(9), ms(20_000));
    assert_eq!(belief.duty(ms(20_001)), Duty::Probe);
}

#[test]
fn contrary_results_make_a_member_probe() {
    let zone = Zone::new();
    let slow = Heard { elapsed: Duration::from_millis(200), ..good(6) };
    // The last is too slow for one of the consumers only.
    for (one, other) in [(good(6), bad(6)), (bad(6), good(6)), (good(6), slow)] {
        let (mut belief, a, b) = zone.relying();
        belief.on_heard(a, 1, &one, ms(11_000));
        belief.on_heard(b, 1, &other, ms(11_001));
        assert_eq!(belief.duty(ms(11_002)), Duty::Probe);
        belief.on_heard(b, 1, &Heard { run: 7, ..one }, ms(12_000));
        assert_eq!(belief.duty(ms(13_999)), Duty::Probe);
        assert_eq!(belief.duty(ms(14_000)), Duty::Rely);
    }
}

#[test]
fn repetitions_and_old_results_count_once_and_a_restart_begins_again() {
    let zone = Zone::new();
    let (mut belief, a, _) = zone.relying();
    let again = Heard { age_at_sending: REPEAT_AFTER, ..good(5) };
    assert!(!belief.on_heard(a, 1, &again, ms(10_500)));
    assert!(belief.on_heard(a, 1, &good(7), ms(11_000)));
    assert!(!belief.on_heard(a, 1, &good(6), ms(11_001)), "overtaken");
    assert!(belief.on_heard(a, 2, &good(0), ms(11_500)), "another start");
    assert!(belief.on_heard(a, 2, &good(40_000), ms(20_000)), "the last is no longer fresh");
    // Numbers wrap around.
    for (run, than, later) in [(0, u16::MAX, true), (u16::MAX, 0, false), (5, 5, false)] {
        assert_eq!(is_later(run, than), later);
    }
}

#[test]
fn what_says_nothing_is_no_evidence() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let early = Heard {
        elapsed: Duration::from_millis(100),
        ..heard(6, Outcome::Failure(Failure::Timeout))
    };
    let old = Heard { age_at_sending: INTERVAL * 2, ..good(6) };
    for heard in [heard(6, Outcome::Unknown), early, old] {
        assert!(!belief.on_heard(a, 1, &heard, ms(13_000)), "{heard:?}");
    }
    belief.on_heard(b, 1, &good(6), ms(13_000));
    assert_eq!(belief.duty(ms(14_000)), Duty::Probe);
}

#[test]
fn a_prober_that_contradicts_is_ignored_named_and_believed_again() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let mut events = Vec::new();
    for run in 0..20_u16 {
        let now = ms(11_000 + u64::from(run) * 2_000);
        let lie = if run < 5 { bad(10 + run) } else { good(10 + run) };
        belief.on_heard(a, 1, &lie, now);
        belief.on_heard(b, 1, &good(10 + run), now);
        if belief.duty(now) == Duty::Probe {
            let own = belief.on_own(Duration::from_millis(5), Ok(()), now);
            events.extend(own.events.into_iter().map(|event| (run, event)));
        }
        if (3..13).contains(&run) {
            let standing = belief.standing(now);
            assert_eq!(belief.duty(now), Duty::Probe, "an ignored prober counts as absent");
            assert!(run >= 12 || standing.voters == [b] && !standing.is_complete);
        }
    }
    let since = ms(11_000);
    assert_eq!(
        events,
        [
            (2, Event::Ignored { member: a, contradictions: 3, since }),
            (12, Event::Believed { member: a }),
        ]
    );
    assert_eq!(belief.duty(ms(51_000)), Duty::Rely);
}

#[test]
fn results_of_a_former_prober_stand_in_for_those_of_a_new_one() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let next = zone.probers(|set| set.contains(a) && !set.contains(b) && !set.contains(zone.me));
    let c = next.iter().find(|member| *member != a).expect("another");
    belief.assign(&next, ms(10_100));
    assert_eq!(belief.duty(ms(10_100)), Duty::Rely);
    let standing = belief.standing(ms(10_100));
    assert!(standing.is_complete && standing.voters.contains(&b));
    belief.on_heard(a, 1, &good(6), ms(12_000));
    belief.on_heard(c, 1, &good(6), ms(12_100));
    let standing = belief.standing(ms(12_100));
    assert!(standing.is_complete && !standing.voters.contains(&b));
    assert_eq!(belief.duty(ms(14_050)), Duty::Rely);
}

#[test]
fn results_of_a_member_that_is_not_assigned_are_kept_until_it_is() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let next = zone.probers(|set| set.contains(a) && !set.contains(b) && !set.contains(zone.me));
    let c = next.iter().find(|member| *member != a).expect("another");
    assert!(belief.on_heard(c, 1, &bad(1), ms(10_050)));
    assert_eq!(belief.duty(ms(10_060)), Duty::Rely, "not assigned, so it does not count");
    assert!(!belief.standing(ms(10_060)).voters.contains(&c));
    belief.assign(&next, ms(10_100));
    assert!(belief.standing(ms(10_100)).voters.contains(&c));
    assert_eq!(belief.duty(ms(10_100)), Duty::Probe, "now it contradicts");
}

#[test]
fn results_of_any_number_of_members_are_kept_within_bounds() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    for stranger in 1_000..2_000 {
        belief.on_heard(MemberIndex(stranger), 1, &bad(1), ms(10_100));
        assert!(belief.sources.len() <= SOURCES_MAX);
    }
    assert_eq!(belief.duty(ms(10_100)), Duty::Rely);
    let voters = belief.standing(ms(10_100)).voters;
    assert!(voters.contains(&a) && voters.contains(&b));
}

#[test]
fn a_member_probes_while_a_new_prober_of_a_failing_server_catches_up() {
    let zone = Zone::new();
    let (mut belief, a, b) = zone.relying();
    let row = |run: u16, in_a_row: u8| Heard { in_a_row, ..bad(run) };
    let mut now = 10_100;
    for n in 1..4_u16 {
        now += 2_000;
        belief.on_heard(a, 1, &row(5 + n, n as u8), ms(now));
        belief.on_heard(b, 1, &row(5 + n, n as u8), ms(now));
    }
    assert_eq!(belief.duty(ms(now + 2_000)), Duty::Rely, "they agree on the failure");
    let next = zone.probers(|set| set.contains(a) && !set.contains(b) && !set.contains(zone.me));
    let c = next.iter().find(|member| *member != a).expect("another");
    belief.assign(&next, ms(now + 100));
    for n in 1..4_u16 {
        assert_eq!(belief.duty(ms(now + 200)), Duty::Probe);
        now += 2_000;
        belief.on_heard(a, 1, &row(10 + n, 9), ms(now));
        belief.on_heard(c, 1, &row(n, n as u8), ms(now));
    }
    assert_eq!(belief.duty(ms(now + 1_999)), Duty::Probe);
    assert_eq!(belief.duty(ms(now + 2_000)), Duty::Rely);
}

#[test]
fn any_results_in_any_order_are_taken_within_bounds() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let zone = Zone::new();
    for _ in 0..200 {
        let needs = Needs {
            interval: Duration::from_millis(rng.u64(1..100_000)),
            timeouts: vec![Duration::from_micros(rng.u64(..) >> rng.u32(0..64))],
            fall: rng.u32(..) >> rng.u32(0..32),
        };
        let mut belief = Belief::new(zone.me, needs);
        let mut now = Moment::from_micros(rng.u64(..) >> rng.u32(0..64));
        for _ in 0..200 {
            now = now + Duration::from_micros(rng.u64(..) >> rng.u32(0..64));
            let heard = Heard {
                outcome: [good(0), bad(0), heard(0, Outcome::Unknown)][rng.usize(0..3)].outcome,
                elapsed: Duration::from_micros(rng.u32(..).into()),
                age_at_sending: Duration::from_millis(rng.u16(..).into()),
                run: rng.u16(..),
                in_a_row: rng.u8(1..),
            };
            match rng.u8(0..6) {
                0 => belief.assign(&zone.roster.probers(ProbeHash([rng.u8(..); 16])), now),
                1 => drop(belief.on_own(heard.elapsed, Err(Failure::Timeout), now)),
                _ => {
                    belief.on_heard(MemberIndex(rng.u32(0..100)), rng.u64(0..2), &heard, now);
                }
            }
            let duty = belief.duty(now);
            assert_eq!(duty == Duty::Probe, belief.standing(now).probing_since.is_some());
            assert!(belief.sources.len() <= SOURCES_MAX);
        }
    }
}
