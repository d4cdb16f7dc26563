//! Plans for services of a few servers, and random ones.

use std::collections::BTreeMap;

use super::*;

const PACE: Pace = Pace {
    out_cooldown: Duration::from_secs(30),
    in_cooldown: Duration::from_secs(300),
    drain_max: Duration::from_secs(60),
};

/// A group of machines behind a plan, and its clock.
struct Group {
    plan: Plan<u32>,
    servers: BTreeMap<u32, Listed<u32>>,
    pace: Pace,
    now: u64,
}

impl Group {
    /// A group whose plan has looked long enough.
    fn of(servers: u32) -> Group {
        let mut group =
            Group { plan: Plan::default(), servers: BTreeMap::new(), pace: PACE, now: 0 };
        (0..servers).for_each(|key| group.add(key));
        group.quiet(servers, 40);
        group
    }

    fn add(&mut self, key: u32) {
        let listed = Listed {
            key,
            zone: key as usize % 2,
            is_up: true,
            is_leaving: false,
            in_flight: Some(1),
        };
        self.servers.insert(key, listed);
    }

    fn step(&mut self, wanted: u32) -> Step<u32> {
        self.now += 1;
        let listed: Vec<Listed<u32>> = self.servers.values().copied().collect();
        let step = self.plan.step(wanted, &listed, &self.pace, Duration::from_secs(self.now));
        for (keys, is_leaving) in [(&step.back, false), (&step.leave, true)] {
            for key in keys {
                self.servers.get_mut(key).unwrap().is_leaving = is_leaving;
            }
        }
        step
    }

    /// So many seconds in which nothing happens.
    fn quiet(&mut self, wanted: u32, seconds: u64) {
        for _ in 0..seconds {
            let step = self.step(wanted);
            assert_eq!(step, nothing(), "at {} s", self.now);
        }
    }

    fn called(&mut self, is_ok: bool) {
        self.plan.called(is_ok, Duration::from_secs(self.now));
    }
}

fn nothing() -> Step<u32> {
    Step { back: Vec::new(), leave: Vec::new(), call: None }
}

fn out(servers: u32, before: u32) -> Call<u32> {
    Call { change: Change::Out, servers, before, remove: Vec::new() }
}

fn less(servers: u32, remove: &[u32]) -> Call<u32> {
    Call { change: Change::In, servers, before: servers, remove: remove.to_vec() }
}

#[test]
fn a_plan_looks_before_it_acts() {
    let mut group = Group { plan: Plan::default(), servers: BTreeMap::new(), pace: PACE, now: 0 };
    group.quiet(5, 30);
    assert_eq!(group.step(5).call, Some(out(5, 0)));
}

#[test]
fn more_servers_are_asked_for_at_once_and_then_after_the_cooldown() {
    let mut group = Group::of(2);
    assert_eq!(group.step(4).call, Some(out(4, 2)));
    // The call is on its way.
    group.quiet(8, 10);
    group.called(true);
    group.quiet(8, 29);
    assert_eq!(group.step(8).call, Some(out(8, 2)));
    group.called(true);
    // It is repeated only after a while.
    group.quiet(8, 299);
    assert_eq!(group.step(8).call, Some(out(8, 2)));
    group.called(true);
    (2..8).for_each(|key| group.add(key));
    group.quiet(8, 1_000);
}

#[test]
fn a_failed_call_is_repeated_ever_later() {
    let mut group = Group::of(2);
    assert_eq!(group.step(3).call, Some(out(3, 2)));
    for wait in [5, 10, 20, 40, 60, 60] {
        group.called(false);
        group.quiet(3, wait - 1);
        assert_eq!(group.step(3).call, Some(out(3, 2)));
    }
    group.called(true);
    group.add(2);
    group.quiet(3, 400);
}

#[test]
fn servers_leave_and_finish_their_requests_before_they_are_removed() {
    let mut group = Group::of(5);
    group.servers.get_mut(&1).unwrap().in_flight = Some(0);
    // Zone 0 has three of the five. Then both have two.
    assert_eq!(group.step(3).leave, [0, 1]);
    group.quiet(3, 5);
    group.servers.get_mut(&0).unwrap().in_flight = None;
    group.quiet(3, 5);
    group.servers.get_mut(&0).unwrap().in_flight = Some(0);
    assert_eq!(group.step(3).call, Some(less(3, &[0, 1])));
    group.called(true);
    group.quiet(3, 10);
    group.servers.remove(&0);
    group.servers.remove(&1);
    group.quiet(3, 400);
    // The next ones are slow.
    assert_eq!(group.step(2).leave.len(), 1);
    group.quiet(2, 59);
    assert_eq!(group.step(2).call.unwrap().remove.len(), 1);
}

#[test]
fn servers_that_leave_come_back_if_they_are_needed() {
    let mut group = Group::of(4);
    assert_eq!(group.step(2).leave, [0, 1]);
    group.servers.get_mut(&0).unwrap().is_up = false;
    assert_eq!(group.step(3).back, [1]);
    assert_eq!(group.step(4).back, [0]);
    // Nobody was told, so there is nothing to take back.
    group.quiet(4, 400);
    // Those that were told are perhaps gone: another call is needed.
    group.servers.values_mut().for_each(|server| server.in_flight = Some(0));
    group.servers.get_mut(&0).unwrap().is_up = true;
    assert_eq!(group.step(3).leave, [0]);
    assert_eq!(group.step(3).call, Some(less(3, &[0])));
    assert_eq!(group.step(4), nothing(), "a call is on its way");
    group.called(true);
    group.quiet(4, 29);
    let step = group.step(4);
    assert_eq!((step.back, step.call), (vec![0], Some(out(4, 3))));
}

#[test]
fn without_draining_the_program_chooses() {
    let mut group = Group::of(4);
    group.pace.drain_max = Duration::ZERO;
    let call = Call { change: Change::In, servers: 2, before: 4, remove: Vec::new() };
    assert_eq!(group.step(2), Step { call: Some(call), ..nothing() });
}

#[test]
fn servers_that_others_add_stay() {
    let mut group = Group::of(3);
    (10..16).for_each(|key| group.add(key));
    group.quiet(3, 400);
    group.quiet(4, 10);
    group.quiet(6, 10);
    // A call states the whole number, so all that are too many leave.
    assert_eq!(group.step(5).leave.len(), 4);
}

#[test]
fn more_that_was_asked_for_is_taken_back() {
    let mut group = Group::of(2);
    assert_eq!(group.step(4).call, Some(out(4, 2)));
    group.called(true);
    group.quiet(2, 299);
    assert_eq!(group.step(2).call, Some(less(2, &[])));
}

#[test]
fn a_new_plan_takes_over_servers_that_leave() {
    let mut group = Group::of(4);
    assert_eq!(group.step(3).leave.len(), 1);
    group.plan = Plan::default();
    group.quiet(3, 60);
    assert_eq!(group.step(3).call, Some(less(3, &[0])));
    group.called(true);
    // It is still there and up: once more.
    group.quiet(3, 299);
    assert_eq!(group.step(3).call, Some(less(3, &[0])));
    group.called(true);
    // Down, as a machine of a fixed list that is off.
    group.servers.get_mut(&0).unwrap().is_up = false;
    group.quiet(3, 1_000);
}

#[test]
fn random_groups_follow_their_number() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut group = Group::of(random.u32(0..6));
        let mut target = group.servers.len() as u32;
        let mut call: Option<(Call<u32>, u64)> = None;
        let (mut wanted, mut next, mut starting) = (target, 100, Vec::new());
        for second in 0..6_000_u64 {
            if second < 4_000 && random.u32(0..200) == 0 {
                wanted = random.u32(0..20);
            }
            for server in group.servers.values_mut() {
                let most = if server.is_leaving { server.in_flight.unwrap_or(9) + 1 } else { 9 };
                server.in_flight = Some(random.u64(0..most));
            }
            if let Some((made, _)) = call.take_if(|(_, at)| *at <= second) {
                let is_ok = second > 4_000 || random.u32(0..4) > 0;
                if is_ok {
                    for key in &made.remove {
                        group.servers.remove(key);
                    }
                    target = made.servers;
                    let there = (group.servers.len() + starting.len()) as u32;
                    for _ in there..target {
                        starting.push((next, second + random.u64(5..90)));
                        next += 1;
                    }
                    while (group.servers.len() + starting.len()) as u32 > target
                        && (starting.pop().is_some() || group.servers.pop_last().is_some())
                    {
                    }
                }
                group.called(is_ok);
            }
            starting.retain(|(key, at)| {
                if *at <= second {
                    group.add(*key);
                }
                *at > second
            });
            let step = group.step(wanted);
            let staying = group.servers.values().filter(|one| !one.is_leaving).count() as u32;
            assert!(step.leave.is_empty() || staying >= wanted, "seed {seed} at {second} s");
            if let Some(made) = step.call {
                assert!(call.is_none(), "seed {seed}: two calls at {second} s");
                for key in &made.remove {
                    assert!(group.servers[key].is_leaving, "seed {seed} at {second} s");
                }
                call = Some((made, second + random.u64(0..40)));
            }
        }
        assert_eq!(group.servers.len() as u32, wanted, "seed {seed}");
        assert!(group.servers.values().all(|server| !server.is_leaving), "seed {seed}");
    }
}
