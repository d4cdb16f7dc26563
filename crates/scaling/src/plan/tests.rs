//! Plans for services of a few servers, and random ones.

use std::collections::BTreeMap;

use super::*;

const PACE: Pace = Pace {
    out_cooldown: Duration::from_secs(30),
    in_cooldown: Duration::from_secs(300),
    drain_max: Duration::from_secs(60),
};

/// A group of machines behind a plan, and its clock.
struct Machines {
    plan: Plan<u32>,
    servers: BTreeMap<u32, Listed<u32>>,
    pace: Pace,
    aside: u32,
    is_complete: bool,
    may_shrink: bool,
    now: u64,
}

impl Machines {
    fn none() -> Machines {
        Machines {
            plan: Plan::default(),
            servers: BTreeMap::new(),
            pace: PACE,
            aside: 0,
            is_complete: true,
            may_shrink: true,
            now: 0,
        }
    }

    /// Machines whose plan has looked long enough.
    fn of(servers: u32) -> Machines {
        let mut group = Machines::none();
        (0..servers).for_each(|key| group.add(key));
        group.quiet(servers, 40);
        group
    }

    fn add(&mut self, key: u32) {
        let listed = Listed {
            key,
            zone: key as usize % 2,
            is_up: true,
            counts: true,
            is_gone: false,
            is_leaving: false,
            in_flight_here: 1,
            in_flight: Some(1),
        };
        self.servers.insert(key, listed);
    }

    fn step(&mut self, wanted: u32) -> Step<u32> {
        self.now += 1;
        let listed: Vec<Listed<u32>> = self.servers.values().copied().collect();
        let group = Group {
            servers: &listed,
            aside: self.aside,
            is_complete: self.is_complete,
            may_shrink: self.may_shrink,
        };
        let step = self.plan.step(wanted, &group, &self.pace, Duration::from_secs(self.now));
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
    let mut group = Machines::none();
    group.quiet(5, 30);
    assert_eq!(group.step(5).call, Some(out(5, 0)));
}

#[test]
fn more_servers_are_asked_for_at_once_and_then_after_the_cooldown() {
    let mut group = Machines::of(2);
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
    let mut group = Machines::of(2);
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
    let mut group = Machines::of(5);
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
    let mut group = Machines::of(4);
    assert_eq!(group.step(2).leave, [0, 1]);
    assert_eq!(group.step(3).back, [0]);
    assert_eq!(group.step(4).back, [1]);
    // No call has named it, so there is nothing to take back.
    group.quiet(4, 400);
    // One that a call has named is perhaps gone: another call is needed.
    group.servers.values_mut().for_each(|server| server.in_flight = Some(0));
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
    let mut group = Machines::of(4);
    group.pace.drain_max = Duration::ZERO;
    let call = Call { change: Change::In, servers: 2, before: 4, remove: Vec::new() };
    assert_eq!(group.step(2), Step { call: Some(call), ..nothing() });
}

#[test]
fn servers_that_others_add_stay() {
    let mut group = Machines::of(3);
    (10..16).for_each(|key| group.add(key));
    group.quiet(3, 400);
    group.quiet(4, 10);
    group.quiet(6, 10);
    // A call states the whole number, so all that are too many leave.
    assert_eq!(group.step(5).leave.len(), 4);
}

#[test]
fn more_that_was_asked_for_is_taken_back() {
    let mut group = Machines::of(2);
    assert_eq!(group.step(4).call, Some(out(4, 2)));
    group.called(true);
    group.quiet(2, 299);
    assert_eq!(group.step(2).call, Some(less(2, &[])));
}

#[test]
fn a_new_plan_takes_over_servers_that_leave() {
    let mut group = Machines::of(4);
    assert_eq!(group.step(3).leave.len(), 1);
    group.plan = Plan::default();
    // An earlier plan may have named it, so it does not come back by itself.
    group.quiet(4, 29);
    group.quiet(3, 31);
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
fn servers_that_leave_come_back_if_the_others_go_down() {
    let mut group = Machines::of(5);
    assert_eq!(group.step(3).leave, [0, 1]);
    for (down, back, leave) in [(2, 0, vec![]), (3, 1, vec![2, 3])] {
        let server = group.servers.get_mut(&down).unwrap();
        (server.is_up, server.in_flight) = (false, Some(0));
        let step = group.step(3);
        // Those that are down go in their place.
        assert_eq!((step.back, step.leave), (vec![back], leave));
    }
    assert_eq!(group.step(3).call, Some(less(3, &[2, 3])));
}

#[test]
fn servers_of_a_fixed_list_that_are_off_are_asked_for() {
    let mut group = Machines::of(5);
    for server in group.servers.values_mut().skip(2) {
        (server.is_up, server.counts) = (false, false);
    }
    assert_eq!(group.step(4).call, Some(out(4, 2)));
}

#[test]
fn a_call_for_more_is_never_one_for_fewer() {
    let mut group = Machines::of(2);
    assert_eq!(group.step(3).call, Some(out(3, 2)));
    group.called(true);
    (2..10).for_each(|key| group.add(key));
    group.quiet(5, 1_000);
    // Some start slowly, and the number goes up and down.
    let mut group = Machines::of(5);
    assert_eq!(group.step(10).call, Some(out(10, 5)));
    group.called(true);
    for second in 0..250 {
        group.quiet(9 + second % 2, 1);
    }
}

#[test]
fn nothing_is_called_while_servers_or_loads_may_be_missing() {
    let mut group = Machines::of(4);
    group.is_complete = false;
    group.quiet(6, 100);
    group.quiet(2, 100);
    group.is_complete = true;
    group.may_shrink = false;
    group.quiet(2, 100);
    assert_eq!(group.step(6).call, Some(out(6, 4)));
}

#[test]
fn servers_that_an_operator_has_taken_out_count_and_are_not_chosen() {
    let mut group = Machines::of(4);
    group.aside = 3;
    assert_eq!(group.step(5).call, Some(out(8, 7)));
    group.called(true);
    group.pace.drain_max = Duration::ZERO;
    group.quiet(2, 299);
    let call = Call { change: Change::In, servers: 5, before: 7, remove: Vec::new() };
    assert_eq!(group.step(2).call, Some(call));
}

#[test]
fn servers_that_their_source_no_longer_lists_are_gone() {
    let mut group = Machines::of(4);
    assert_eq!(group.step(3).leave, [0]);
    group.servers.get_mut(&0).unwrap().in_flight = Some(0);
    assert_eq!(group.step(3).call, Some(less(3, &[0])));
    group.called(true);
    let gone = group.servers.get_mut(&0).unwrap();
    (gone.is_gone, gone.is_up) = (true, false);
    group.quiet(3, 400);
    let step = group.step(4);
    assert_eq!((step.back, step.call), (Vec::new(), Some(out(4, 3))));
}

#[test]
fn a_server_is_chosen_by_the_requests_here_if_others_are_unknown() {
    let mut group = Machines::of(6);
    for (key, in_flight) in [(0, 5), (2, 3), (4, 4), (1, 9), (3, 8), (5, 7)] {
        let server = group.servers.get_mut(&key).unwrap();
        (server.in_flight_here, server.in_flight) = (in_flight, None);
    }
    assert_eq!(group.step(4).leave, [2, 5]);
}

#[test]
fn random_groups_follow_their_number() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut group = Machines::of(random.u32(0..6));
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
                assert!(made.servers >= wanted, "seed {seed} at {second} s: {made:?}");
                let is_more = made.change == Change::In || made.servers > made.before;
                assert!(is_more, "seed {seed} at {second} s: {made:?}");
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
