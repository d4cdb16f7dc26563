//! The time until a dead server is down, for every loss of at most one message of each prober in a
//! row.

use std::time::Duration;

use model::{Health, Moment};

use super::{CALM, INTERVAL, TIMEOUT, bound, check};
use crate::evidence::Failure;
use crate::shared::assignment::{Member, MemberIndex, Probers, Roster};
use crate::shared::belief::{Belief, Duty, Needs, REPEAT_AFTER};
use crate::shared::identity::ProbeHash;
use crate::shared::result::{Heard, Outcome};
use crate::shared::tally::Tally;
use crate::verdict::ProbeEvent;

/// When the server dies. Before, there is time for results from all.
const DEATH: Duration = Duration::from_secs(20);
/// The longest way of a message.
const WAY: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// From this prober.
    Message(usize, u16, Duration, u8),
    Turn,
    OwnResult,
}

struct Case {
    fall: u32,
    /// The time from a prober's last run before the death to the death, and between its runs, as
    /// shares of the interval.
    phases: [f64; 2],
    periods: [f64; 2],
    /// Which of a prober's messages after the death are lost.
    lost: [u32; 2],
    own_phase: f64,
}

fn at(time: Duration) -> Moment {
    Moment::ZERO + time
}

/// Returns a roster of three members and a probe that the third does not run.
fn probers_without_me() -> (Probers, MemberIndex) {
    let mut roster = Roster::new(None, 2);
    for name in ["a", "b", "me"] {
        roster.join(Member { name: name.into(), zone: None, host: name.into(), start: 1 });
    }
    let me = roster.index_of("me").expect("a member");
    let sets = (0..=255).map(|n| roster.probers(ProbeHash([n; 16])));
    (sets.into_iter().find(|set| !set.contains(me)).expect("one of 256"), me)
}

/// Returns what happens, in order.
fn script(case: &Case) -> Vec<(Duration, Step)> {
    let mut steps = Vec::new();
    for prober in 0..2 {
        let period = INTERVAL.mul_f64(case.periods[prober]);
        let mut starts = DEATH.saturating_sub(INTERVAL.mul_f64(case.phases[prober]));
        while starts > period {
            starts -= period;
        }
        let (mut run, mut failures, mut sent) = (0, 0, 0);
        while starts < DEATH + bound(case.fall) {
            let is_dead = starts >= DEATH;
            failures += u8::from(is_dead);
            let ends = if is_dead { starts + TIMEOUT } else { starts };
            for age in [Duration::ZERO, REPEAT_AFTER] {
                if !(is_dead && case.lost[prober] >> sent & 1 == 1) {
                    steps.push((ends + age + WAY, Step::Message(prober, run, age, failures)));
                }
                sent += u32::from(is_dead);
            }
            run += 1;
            starts += period;
        }
    }
    let period = INTERVAL.mul_f64(1.1);
    let mut turn = INTERVAL.mul_f64(case.own_phase);
    while turn < DEATH + bound(case.fall) {
        steps.push((turn, Step::Turn));
        turn += period;
    }
    steps.sort();
    steps
}

/// Returns when the server is down, from its death on.
fn time_to_down(case: &Case, probers: &Probers, me: MemberIndex) -> Option<Duration> {
    let needs = Needs { interval: INTERVAL, timeouts: vec![TIMEOUT], fall: case.fall };
    let mut belief = Belief::new(me, needs);
    let mut tally = Tally::new(&check(2, case.fall), Health::Up);
    belief.assign(probers, Moment::ZERO);
    let names: Vec<MemberIndex> = probers.iter().collect();
    let mut own_result = None;
    let mut steps = script(case);
    steps.reverse();
    while let Some((time, step)) = steps.pop() {
        let now = at(time);
        match step {
            Step::Message(prober, run, age, failures) => {
                let (outcome, elapsed) = match failures {
                    0 => (Outcome::Success, Duration::ZERO),
                    _ => (Outcome::Failure(Failure::Timeout), TIMEOUT),
                };
                let in_a_row = failures.max(1);
                let heard = Heard { outcome, elapsed, age_at_sending: age, run, in_a_row };
                if belief.on_heard(names[prober], 1, &heard, now) {
                    tally.on_heard(names[prober], &heard, CALM, &belief.standing(now));
                }
            }
            Step::Turn => {
                if belief.duty(now) == Duty::Probe {
                    let is_dead = time >= DEATH;
                    let ends = if is_dead { time + TIMEOUT } else { time };
                    own_result = Some(if is_dead { Err(Failure::Timeout) } else { Ok(()) });
                    let place = steps.partition_point(|(other, _)| *other > ends);
                    steps.insert(place, (ends, Step::OwnResult));
                }
            }
            Step::OwnResult => {
                let result = own_result.take().expect("one run at a time");
                let elapsed = if result.is_ok() { Duration::ZERO } else { TIMEOUT };
                belief.on_own(elapsed, result, now);
                let event = ProbeEvent::Done { elapsed, result };
                tally.on_own(event, CALM, &belief.standing(now));
            }
        }
        if tally.health() == Health::Down {
            assert!(time >= DEATH, "down while it lived");
            return Some(time.saturating_sub(DEATH));
        }
    }
    None
}

#[test]
fn a_dead_server_is_down_in_time_whichever_messages_are_lost() {
    let (probers, me) = probers_without_me();
    // A prober sends two messages a run, so it loses at most one of each run.
    let losses: Vec<u32> = (0..1 << 8).filter(|bits| bits & (bits << 1) == 0).collect();
    let (mut cases, mut longest) = (0, [Duration::ZERO; 4]);
    for fall in 1..=3 {
        for phases in [[0.01, 0.01], [0.01, 0.5], [0.5, 0.9], [0.9, 0.01]] {
            for periods in [[1.1, 1.1], [0.9, 1.1]] {
                for own_phase in [0.1, 0.6] {
                    for &first in &losses {
                        for &second in &losses {
                            let lost = [first, second];
                            let case = Case { fall, phases, periods, lost, own_phase };
                            let took = time_to_down(&case, &probers, me);
                            let took = took.unwrap_or(Duration::MAX);
                            assert!(
                                took <= bound(fall),
                                "fall {fall}, phases {phases:?}, periods {periods:?}, lost \
                                 {first:b} {second:b}, own {own_phase}: {took:?}"
                            );
                            longest[fall as usize] = longest[fall as usize].max(took);
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{cases} cases; longest by fall: {longest:?}, bounds: {:?}", [1, 2, 3].map(bound));
}
