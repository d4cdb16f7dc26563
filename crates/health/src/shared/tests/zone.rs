//! A small zone in virtual time: members with clocks of their own, messages that are lost and late,
//! rosters that differ for a while, servers that die, and perhaps a prober that lies.
//!
//! `WEIR_SHARED_SEED` repeats one schedule.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use model::{Health, Moment};

use super::{CALM, INTERVAL, TIMEOUT, bound, check};
use crate::evidence::Failure;
use crate::shared::assignment::{Member, MemberIndex, Roster};
use crate::shared::belief::{Belief, Duty, Event, Needs};
use crate::shared::identity::ProbeHash;
use crate::shared::result::{Heard, Outcome};
use crate::shared::tally::Tally;
use crate::shared::wire;
use crate::verdict::ProbeEvent;

const MEMBERS: usize = 5;
const PROBES: usize = 3;
const FALL: u32 = 3;
const SCHEDULES: u64 = 150;
/// Length of a schedule.
const END: Duration = Duration::from_secs(150);
/// When a server dies, and when it lives again.
const DEATH: Duration = Duration::from_secs(60);
const REVIVAL: Duration = Duration::from_secs(100);
/// Longest time until a change of members is known to all.
const NEWS_MAX_MS: u64 = 6_000;

/// What happens in a schedule.
#[derive(Debug)]
struct Plot {
    seed: u64,
    liar: Option<usize>,
    dying: Option<usize>,
    churn: bool,
}

enum Step {
    Turn(usize, usize, u64),
    Result(usize, usize, u64),
    Message { to: usize, from: usize, start: u64, bytes: Vec<u8> },
    Send { from: usize, probe: usize, start: u64, heard: Heard, ended: Duration },
    News { to: usize, about: usize, start: Option<u64> },
    Crash(usize),
    Start(usize),
}

struct Node {
    start: u64,
    /// Time of the world at which its clock is zero.
    clock: Duration,
    roster: Roster,
    beliefs: Vec<Belief>,
    tallies: Vec<Tally>,
    /// Its last evidence for each probe.
    evidence: Vec<Duration>,
    /// What it accepted from each other member, for each probe: when the run ended.
    accepted: HashMap<(usize, MemberIndex), Duration>,
    last_run: Vec<Option<Duration>>,
    health_since: Vec<Duration>,
}

struct World {
    plot: Plot,
    rng: fastrand::Rng,
    now: Duration,
    steps: BTreeMap<(Duration, u64), Step>,
    steps_given: u64,
    nodes: Vec<Option<Node>>,
    /// The starts of live members; 0: none.
    starts: [u64; MEMBERS],
    last_lost: HashMap<(usize, usize, usize), bool>,
    runs: u64,
    ignored: Vec<(usize, usize)>,
}

fn probe_hash(probe: usize) -> ProbeHash {
    ProbeHash([probe as u8 + 1; 16])
}

fn name(member: usize) -> String {
    format!("weir-{member}")
}

impl World {
    fn new(plot: Plot) -> World {
        let rng = fastrand::Rng::with_seed(plot.seed);
        let mut world = World {
            plot,
            rng,
            now: Duration::ZERO,
            steps: BTreeMap::new(),
            steps_given: 0,
            nodes: (0..MEMBERS).map(|_| None).collect(),
            starts: [0; MEMBERS],
            last_lost: HashMap::new(),
            runs: 0,
            ignored: Vec::new(),
        };
        for member in 0..MEMBERS {
            let delay = world.rng.u64(0..3_000);
            world.after(Duration::from_millis(delay), Step::Start(member));
        }
        if world.plot.churn {
            for _ in 0..world.rng.usize(1..4) {
                let member = world.rng.usize(0..MEMBERS);
                let at = world.rng.u64(20_000..110_000);
                let back = at + world.rng.u64(500..20_000);
                world.after(Duration::from_millis(at), Step::Crash(member));
                world.after(Duration::from_millis(back), Step::Start(member));
            }
        }
        world
    }

    fn after(&mut self, delay: Duration, step: Step) {
        self.steps_given += 1;
        self.steps.insert((self.now + delay, self.steps_given), step);
    }

    fn is_dead(&self, probe: usize) -> bool {
        self.plot.dying == Some(probe) && (DEATH..REVIVAL).contains(&self.now)
    }

    fn run(&mut self) {
        while let Some(((now, _), step)) = self.steps.pop_first() {
            if now > END {
                break;
            }
            self.now = now;
            self.step(step);
            self.check();
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Start(member) => self.start(member),
            Step::Crash(member) => {
                self.nodes[member] = None;
                self.starts[member] = 0;
                self.spread_news(member, None);
            }
            Step::News { to, about, start } => self.learn(to, about, start),
            Step::Turn(member, probe, start) => self.turn(member, probe, start),
            Step::Result(member, probe, start) => self.result(member, probe, start),
            Step::Send { from, probe, start, heard, ended } => {
                self.send(from, probe, start, heard, ended);
            }
            Step::Message { to, from, start, bytes } => self.receive(to, from, start, &bytes),
        }
    }

    fn start(&mut self, member: usize) {
        if self.nodes[member].is_some() {
            return;
        }
        let start = self.now.as_micros() as u64 + 1;
        self.starts[member] = start;
        let mut roster = Roster::new(None, 2);
        // A new member learns the list when it joins.
        for (other, &start) in self.starts.iter().enumerate().filter(|(_, start)| **start > 0) {
            let name = name(other);
            roster.join(Member {
                name: name.as_str().into(),
                zone: None,
                host: name.into(),
                start,
            });
        }
        let me = roster.index_of(&name(member)).expect("it is live");
        let needs = Needs { interval: INTERVAL, timeouts: vec![TIMEOUT], fall: FALL };
        let clock = self.now.saturating_sub(Duration::from_millis(self.rng.u64(0..5_000)));
        let mut node = Node {
            start,
            clock,
            roster,
            beliefs: (0..PROBES).map(|_| Belief::new(me, needs.clone())).collect(),
            tallies: (0..PROBES).map(|_| Tally::new(&check(2, FALL), Health::Unknown)).collect(),
            evidence: vec![self.now; PROBES],
            accepted: HashMap::new(),
            last_run: vec![None; PROBES],
            health_since: vec![self.now; PROBES],
        };
        node.assign(self.now);
        self.nodes[member] = Some(node);
        for probe in 0..PROBES {
            let delay = INTERVAL.mul_f64(self.rng.f64());
            self.after(delay, Step::Turn(member, probe, start));
        }
        self.spread_news(member, Some(start));
    }

    fn spread_news(&mut self, about: usize, start: Option<u64>) {
        for to in (0..MEMBERS).filter(|to| *to != about) {
            let delay = Duration::from_millis(self.rng.u64(10..NEWS_MAX_MS));
            self.after(delay, Step::News { to, about, start });
        }
    }

    fn learn(&mut self, to: usize, about: usize, start: Option<u64>) {
        let now = self.now;
        // News that something newer overtook.
        if self.starts[about] != start.unwrap_or(0) {
            return;
        }
        let Some(node) = &mut self.nodes[to] else { return };
        let name = name(about);
        let host = name.as_str().into();
        match start {
            Some(start) => {
                node.roster.join(Member { name: name.into(), zone: None, host, start });
            }
            None => {
                node.roster.leave(&name);
            }
        }
        node.assign(now);
    }

    fn turn(&mut self, member: usize, probe: usize, start: u64) {
        let now = self.now;
        let is_dead = self.is_dead(probe);
        let Some(node) = self.nodes[member].as_mut().filter(|node| node.start == start) else {
            return;
        };
        let here = node.here(now);
        if node.beliefs[probe].duty(here) == Duty::Probe {
            if let Some(last) = node.last_run[probe].replace(now) {
                assert!(
                    now.saturating_sub(last) >= INTERVAL.mul_f64(0.89),
                    "two runs in one interval"
                );
            }
            self.runs += 1;
            let takes = if is_dead { TIMEOUT } else { Duration::from_millis(5) };
            self.after(takes, Step::Result(member, probe, start));
        }
        let next = INTERVAL.mul_f64(0.9 + 0.2 * self.rng.f64());
        self.after(next, Step::Turn(member, probe, start));
    }

    fn result(&mut self, member: usize, probe: usize, start: u64) {
        let now = self.now;
        let is_dead = self.is_dead(probe);
        let is_liar = self.plot.liar == Some(member);
        let Some(node) = self.nodes[member].as_mut().filter(|node| node.start == start) else {
            return;
        };
        let here = node.here(now);
        let (elapsed, result) = if is_dead {
            (TIMEOUT, Err(Failure::Timeout))
        } else {
            (Duration::from_millis(5), Ok(()))
        };
        let own = node.beliefs[probe].on_own(elapsed, result, here);
        node.evidence[probe] = now;
        let standing = node.beliefs[probe].standing(here);
        let event = ProbeEvent::Done { elapsed, result };
        if node.tallies[probe].on_own(event, CALM, &standing).is_some() {
            node.health_since[probe] = now;
        }
        for event in own.events {
            if let Event::Ignored { member: ignored, .. } = event {
                let other = (0..MEMBERS)
                    .find(|other| node.roster.index_of(&name(*other)) == Some(ignored))
                    .expect("a known member");
                self.ignored.push((member, other));
            }
        }
        let Some(mut heard) = own.send else { return };
        if is_liar {
            heard.outcome = match heard.outcome {
                Outcome::Success => Outcome::Failure(Failure::Status(500)),
                _ => Outcome::Success,
            };
            heard.elapsed = Duration::from_millis(1);
            heard.in_a_row = 255;
        }
        let send = || Step::Send { from: member, probe, start, heard, ended: now };
        self.after(Duration::ZERO, send());
        self.after(Duration::from_millis(450), send());
    }

    fn send(&mut self, from: usize, probe: usize, start: u64, mut heard: Heard, ended: Duration) {
        if self.starts[from] != start {
            return;
        }
        heard.age_at_sending = self.now.saturating_sub(ended);
        for to in (0..MEMBERS).filter(|to| *to != from) {
            let is_lost = self.rng.f64() < 0.3;
            let before = self.last_lost.insert((from, to, probe), is_lost).unwrap_or(false);
            if is_lost && !before {
                continue;
            }
            self.last_lost.insert((from, to, probe), false);
            let mut bytes = Vec::new();
            wire::encode(&[(probe_hash(probe), heard)], &mut bytes);
            let way = Duration::from_millis(self.rng.u64(1..300));
            self.after(way, Step::Message { to, from, start, bytes });
        }
    }

    fn receive(&mut self, to: usize, from: usize, start: u64, bytes: &[u8]) {
        let now = self.now;
        let Some(node) = &mut self.nodes[to] else { return };
        // A member that this one has never known.
        let Some(from) = node.roster.index_of(&name(from)) else { return };
        let here = node.here(now);
        for (hash, heard) in wire::decode(bytes).expect("a batch") {
            let probe = (0..PROBES).find(|probe| probe_hash(*probe) == hash).expect("a probe");
            if !node.beliefs[probe].on_heard(from, start, &heard, here) {
                continue;
            }
            let ended = now.saturating_sub(heard.age_at_sending);
            node.evidence[probe] = ended;
            node.accepted.insert((probe, from), ended);
            let standing = node.beliefs[probe].standing(here);
            for voter in &standing.voters {
                let ended = node.accepted.get(&(probe, *voter)).expect("it was heard");
                assert!(now.saturating_sub(*ended) <= INTERVAL * 2, "a stale result counts");
            }
            if node.tallies[probe].on_heard(from, &heard, CALM, &standing).is_some() {
                node.health_since[probe] = now;
            }
        }
    }

    fn check(&self) {
        let longest = INTERVAL.mul_f64(3.1) + TIMEOUT;
        let mut known_by = bound(FALL);
        if self.plot.liar.is_some() {
            known_by += INTERVAL.mul_f64(1.1) + TIMEOUT;
        }
        if self.plot.churn {
            // A prober that crashes just before its last failure: its result is fresh for two intervals,
            // then the member counts by itself.
            known_by += INTERVAL.mul_f64(2.0 + 1.1 * f64::from(FALL)) + TIMEOUT;
        }
        for (member, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            for probe in 0..PROBES {
                let age = self.now.saturating_sub(node.evidence[probe]);
                assert!(age <= longest, "no evidence for {age:?} at {member} of {probe}");
                let health = node.tallies[probe].health();
                let is_dying = self.plot.dying == Some(probe);
                if health == Health::Down {
                    let may_be = is_dying && self.now >= DEATH;
                    assert!(may_be, "{member} has the healthy server {probe} down");
                }
                let started = Duration::from_micros(node.start);
                let dead_for = self.now.saturating_sub(DEATH.max(started));
                if self.is_dead(probe) && dead_for > known_by {
                    assert_eq!(health, Health::Down, "at {member}, dead for {dead_for:?}");
                }
                if is_dying && self.now.saturating_sub(REVIVAL.max(started)) > known_by {
                    assert_eq!(health, Health::Up, "at {member}");
                }
            }
        }
    }
}

impl Node {
    fn here(&self, now: Duration) -> Moment {
        Moment::ZERO + now.saturating_sub(self.clock)
    }

    fn assign(&mut self, now: Duration) {
        let here = self.here(now);
        for (probe, belief) in self.beliefs.iter_mut().enumerate() {
            belief.assign(&self.roster.probers(probe_hash(probe)), here);
        }
    }
}

/// Runs a schedule; returns the world at its end.
fn play(seed: u64, plot: impl Fn(&mut fastrand::Rng) -> Plot) -> World {
    let mut world = World::new(plot(&mut fastrand::Rng::with_seed(seed)));
    world.run();
    world
}

fn play_all(plot: impl Fn(u64, &mut fastrand::Rng) -> Plot) -> Vec<World> {
    let fixed = std::env::var("WEIR_SHARED_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = fixed.unwrap_or_else(|| fastrand::u64(..));
    let schedules = if fixed.is_some() { 1 } else { SCHEDULES };
    let mut worlds = Vec::new();
    for n in 0..schedules {
        let seed = first.wrapping_add(n);
        println!("WEIR_SHARED_SEED={seed}");
        worlds.push(play(seed, |rng| plot(seed, rng)));
    }
    worlds
}

#[test]
fn a_quiet_zone_runs_each_probe_twice_an_interval() {
    let plot = |seed, _: &mut fastrand::Rng| Plot { seed, liar: None, dying: None, churn: false };
    for world in play_all(plot) {
        // 75 intervals, three probes, two probers; without sharing it would be 1,125. At the start,
        // members with different lists probe for themselves.
        assert!((400..=620).contains(&world.runs), "{} runs", world.runs);
        assert_eq!(world.ignored, []);
    }
}

#[test]
fn a_dead_server_is_down_at_all_members_and_comes_back() {
    play_all(|seed, rng| Plot {
        seed,
        liar: None,
        dying: Some(rng.usize(0..PROBES)),
        churn: false,
    });
}

#[test]
fn a_lying_prober_marks_no_healthy_server_down_and_hides_no_dead_one() {
    let worlds = play_all(|seed, rng| Plot {
        seed,
        liar: Some(rng.usize(0..MEMBERS)),
        dying: rng.bool().then(|| rng.usize(0..PROBES)),
        churn: false,
    });
    for world in worlds {
        let liar = world.plot.liar.expect("there is one");
        let roster = &world.nodes[liar].as_ref().expect("it lives").roster;
        let index = roster.index_of(&name(liar)).expect("a member");
        let is_prober = (0..PROBES).any(|probe| roster.probers(probe_hash(probe)).contains(index));
        for honest in (0..MEMBERS).filter(|member| *member != liar) {
            let ignored = world.ignored.iter().filter(|(by, _)| *by == honest);
            let ignored: Vec<usize> = ignored.map(|(_, ignored)| *ignored).collect();
            assert!(ignored.iter().all(|member| *member == liar), "{honest} ignores {ignored:?}");
            // At the start, while members know few others, it may run a probe that it later does not.
            assert!(!is_prober || !ignored.is_empty(), "{honest} believes the liar");
        }
    }
}

#[test]
fn members_that_come_and_go_leave_no_probe_without_results() {
    play_all(|seed, rng| Plot {
        seed,
        liar: None,
        dying: rng.bool().then(|| rng.usize(0..PROBES)),
        churn: true,
    });
}

#[test]
fn a_lying_prober_in_a_zone_that_changes_marks_no_healthy_server_down() {
    play_all(|seed, rng| Plot {
        seed,
        liar: Some(rng.usize(0..MEMBERS)),
        dying: None,
        churn: true,
    });
}
