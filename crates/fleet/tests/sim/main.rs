//! Fleets of members in virtual time, under loss, partitions, crashes, restarts and clocks that differ.
//!
//! Each schedule follows from a seed, which a failure prints. `FLEET_SEED=7 FLEET_SCHEDULES=1` repeats one; with `FLEET_TRACE=1`, it
//! prints what is wrong each second.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod world;

use world::{Network, SECOND, World};

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Starts all members within two seconds, and lets them find each other.
fn joined(seed: u64, members: usize) -> World {
    let mut world = World::new(seed, members);
    for at in 0..members {
        world.start(at);
        world.run(2 * SECOND / members as u64);
    }
    agree(&mut world, 60, &format!("seed {seed}: joining"));
    world
}

/// Runs until all lists are right, and returns how many seconds that took.
fn agree(world: &mut World, seconds: u64, what: &str) -> f64 {
    match world.run_until_agreed(seconds * SECOND) {
        Some(took) => took as f64 / SECOND as f64,
        None => panic!("{what}: no agreement after {seconds} s: {}", world.disagreement().unwrap()),
    }
}

/// Ends all partitions.
fn heal(world: &mut World) {
    for node in &mut world.nodes {
        node.group = 0;
    }
}

/// Disturbs a fleet in one way.
fn disturb(world: &mut World) {
    let at = world.rng.usize(..world.nodes.len());
    let live = world.nodes.iter().filter(|node| node.process.is_some()).count();
    match world.rng.u8(..9) {
        0 if live > world.nodes.len() / 2 => world.nodes[at].process = None,
        1 if live > world.nodes.len() / 2 => world.leave(at),
        2 | 3 => {
            let at = world.nodes.iter().position(|node| node.process.is_none()).unwrap_or(at);
            // Sometimes the wall clock was set back meanwhile.
            world.nodes[at].wall_ms -= world.rng.i64(0..40_000) * i64::from(world.rng.u8(..4) == 0);
            world.start(at);
        }
        4 => {
            let groups = world.rng.u8(2..4);
            for at in 0..world.nodes.len() {
                world.nodes[at].group = world.rng.u8(..groups);
            }
        }
        5 => heal(world),
        6 => world.nodes[at].stopped_until = world.time + world.rng.u64(SECOND..15 * SECOND),
        7 => world.network.loss = world.rng.f64() * 0.2,
        _ => {
            world.network.duplication = world.rng.f64() * 0.2;
            world.network.jitter = world.rng.u64(1_000..200_000);
            world.network.replay = world.rng.f64() * 0.05;
        }
    }
}

struct Outcome {
    agreed_after: f64,
    datagrams: u64,
    false_departures: u64,
}

/// Disturbs a fleet for a minute and a half, then expects agreement, which then lasts.
fn schedule(seed: u64, members: usize) -> Outcome {
    let mut world = joined(seed, members);
    for _ in 0..30 {
        disturb(&mut world);
        let pause = world.rng.u64(..6 * SECOND);
        world.run(pause);
    }
    for node in &mut world.nodes {
        (node.group, node.stopped_until) = (0, 0);
    }
    world.network = Network { loss: 0.02, duplication: 0.02, replay: 0.01, jitter: 5_000 };
    let agreed_after = agree(&mut world, 60, &format!("seed {seed}"));
    // Datagrams that were recorded before are sent again for a minute more. One of them may list a member that is
    // gone, until its turn to be probed.
    world.network.replay = 0.0;
    world.run(60 * SECOND);
    agree(&mut world, 40, &format!("seed {seed}, after a first agreement"));
    let before = world.false_departures;
    world.run(20 * SECOND);
    assert_eq!(world.false_departures, before, "seed {seed}: a member left that lives");
    assert_eq!(world.disagreement(), None, "seed {seed}: agreement did not last");
    Outcome { agreed_after, datagrams: world.datagrams, false_departures: world.false_departures }
}

fn schedules(members: usize, default: u64) {
    let (first, count) = (variable("FLEET_SEED", 1), variable("FLEET_SCHEDULES", default));
    let (mut slowest, mut sum, mut datagrams, mut false_departures) = (0.0_f64, 0.0, 0, 0);
    for seed in first..first + count {
        let outcome = schedule(seed, members);
        if outcome.agreed_after > 25.0 {
            eprintln!("seed {seed}: agreement after {:.1} s", outcome.agreed_after);
        }
        slowest = slowest.max(outcome.agreed_after);
        sum += outcome.agreed_after;
        datagrams += outcome.datagrams;
        false_departures += outcome.false_departures;
    }
    eprintln!(
        "{count} schedules of {members} members from seed {first}: agreement after {:.1} s on average, {slowest:.1} s \
         at most; {datagrams} datagrams; {false_departures} departures of members that lived",
        sum / count as f64,
    );
}

/// Returns the bytes that each member sends per second over some seconds: the mean, and the member with most.
fn rates(world: &mut World, seconds: u64) -> (f64, f64) {
    for node in &mut world.nodes {
        node.sent_bytes = 0;
    }
    world.run(seconds * SECOND);
    let sent = || world.nodes.iter().map(|node| node.sent_bytes);
    let most = sent().max().unwrap_or(0) as f64 / seconds as f64;
    (sent().sum::<u64>() as f64 / seconds as f64 / world.nodes.len() as f64, most)
}

#[test]
fn every_schedule_ends_in_agreement() {
    schedules(32, 20);
}

#[test]
#[ignore = "takes half an hour: 10,000 schedules"]
fn prove_every_schedule_ends_in_agreement() {
    schedules(32, 10_000);
}

#[test]
fn a_dead_member_is_known_to_all_within_seconds() {
    let (mut sum, mut slowest) = (0.0, 0.0_f64);
    for seed in 0..20 {
        let mut world = joined(seed, 32);
        world.run(10 * SECOND);
        world.nodes[7].process = None;
        let took = agree(&mut world, 10, &format!("seed {seed}"));
        (sum, slowest) = (sum + took, slowest.max(took));
    }
    eprintln!(
        "a dead member of 32 is known to all after {:.1} s on average, {slowest:.1} s at most",
        sum / 20.0
    );
    assert!(sum / 20.0 < 6.0, "{}", sum / 20.0);
}

#[test]
fn loss_of_a_tenth_makes_no_living_member_leave() {
    let mut departures = 0;
    for seed in 1..=5 {
        let mut world = joined(seed, 32);
        world.network.loss = 0.1;
        world.run(180 * SECOND);
        departures += world.false_departures;
        agree(&mut world, 5, &format!("seed {seed}"));
    }
    eprintln!(
        "10 % loss: {departures} departures of members that lived, in 15 minutes of 32 members"
    );
    assert_eq!(departures, 0);
}

#[test]
fn both_sides_of_a_partition_find_each_other() {
    let mut slowest = 0.0_f64;
    for seed in 0..6 {
        let mut world = joined(seed, 32);
        let side = [16, 4, 1][seed as usize % 3];
        for node in world.nodes.iter_mut().rev().take(side) {
            node.group = 1;
        }
        world.run(120 * SECOND);
        heal(&mut world);
        slowest = slowest.max(agree(&mut world, 60, &format!("seed {seed}")));
    }
    eprintln!("partitions of 32 heal within {slowest:.1} s");
}

#[test]
fn a_member_that_leaves_is_gone_at_once() {
    let mut world = joined(1, 32);
    world.leave(5);
    let took = agree(&mut world, 3, "leaving");
    eprintln!("a member of 32 that leaves is gone after {took:.1} s");
}

#[test]
fn a_member_whose_clock_was_set_back_joins_again() {
    let mut world = joined(1, 32);
    world.nodes[9].process = None;
    world.nodes[9].wall_ms -= 3_600_000;
    world.start(9);
    agree(&mut world, 20, "restart with an old clock");
    // The same after the fleet has noticed that it was gone.
    world.nodes[9].process = None;
    world.run(15 * SECOND);
    world.nodes[9].wall_ms -= 3_600_000;
    world.start(9);
    agree(&mut world, 30, "restart with an old clock, later");
}

#[test]
fn a_process_that_was_stopped_finds_its_place_again() {
    let mut world = joined(1, 32);
    world.nodes[3].stopped_until = world.time + 30 * SECOND;
    world.run(30 * SECOND);
    assert_eq!(world.nodes[3].process.as_ref().unwrap().membership.members().len(), 31);
    let before = world.false_departures;
    agree(&mut world, 30, "after the pause");
    assert_eq!(world.false_departures, before, "it made others leave");
}

#[test]
fn two_processes_with_one_name_send_little() {
    let mut world = joined(1, 16);
    world.nodes[4].name = world.nodes[9].name.clone();
    world.nodes[4].process = None;
    world.start(4);
    let (mean, most) = rates(&mut world, 120);
    let conflicts = world.nodes[4].process.as_ref().unwrap().membership.counts().name_conflicts;
    eprintln!(
        "two of 16 processes with one name: {mean:.0} B/s per member, {most:.0} at most, {conflicts} conflicts"
    );
    assert!(most < 20_000.0 && conflicts > 0);
}

#[test]
fn two_hundred_members_join_and_part() {
    large(1, 200);
}

#[test]
#[ignore = "takes hours: 20 fleets of 1,000 members"]
fn prove_a_thousand_members_join_and_part() {
    let first = variable("FLEET_SEED", 1);
    for seed in first..first + variable("FLEET_SCHEDULES", 20) {
        large(seed, variable("FLEET_MEMBERS", 1_000) as usize);
    }
}

/// A large fleet: joins at once, loses a twentieth, parts in two, and heals; the traffic is bounded throughout.
fn large(seed: u64, members: usize) {
    let mut world = World::new(seed, members);
    for at in 0..members {
        world.start(at);
        world.run(2 * SECOND / members as u64);
    }
    let began = world.time;
    let mut peak = 0.0_f64;
    while world.disagreement().is_some() {
        peak = peak.max(rates(&mut world, 5).1);
        assert!(world.time < began + 120 * SECOND, "seed {seed}: {:?}", world.disagreement());
    }
    let joined = (world.time - began) / SECOND;
    let quiet = rates(&mut world, 10);
    world.network.loss = 0.02;
    let lossy = rates(&mut world, 10);
    for at in 0..members / 20 {
        world.nodes[at * 20 + 3].process = None;
    }
    let died = agree(&mut world, 40, &format!("seed {seed}: after deaths"));
    let healing = world.nodes.len() / 4;
    for node in world.nodes.iter_mut().take(healing) {
        node.group = 1;
    }
    world.run(40 * SECOND);
    heal(&mut world);
    let parted = rates(&mut world, 20);
    let healed = 20.0 + agree(&mut world, 60, &format!("seed {seed}: after a partition"));
    eprintln!(
        "seed {seed}, {members} members: joined within {joined} s at {peak:.0} B/s at most; bytes per member and second, \
         mean and most: {quiet:.0?} quiet, {lossy:.0?} at 2 % loss, {parted:.0?} while healing; deaths known after \
         {died:.1} s; healed within {healed:.1} s; {} datagrams",
        world.datagrams,
    );
    assert!(quiet.0 < 20_000.0 && lossy.0 < 20_000.0, "seed {seed}: too much traffic");
}
