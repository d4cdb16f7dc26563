//! Fleets in virtual time: the sum of the requests in flight at a server never exceeds its limit, whatever is lost,
//! late, cut off or restarted; and the slots are used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod world;

use world::{LIMITS, World};

/// Members that want more slots than there are, for a time. Returns the share of the slots that is used.
fn utilisation(members: usize, busy: usize, request_ms: u64) -> f64 {
    let mut world = World::new(7, members, request_ms);
    world.demand(0..members, 0);
    world.run_ms(4_000);
    world.demand(0..busy, 3 * LIMITS[0]);
    world.run_ms(1_000);
    world.used = 0;
    world.run_ms(10_000);
    let slots: u32 = LIMITS.iter().sum();
    world.used as f64 / (f64::from(slots) * 10_000.0)
}

#[test]
fn slots_are_used_where_requests_wait() {
    for (members, busy) in [(1, 1), (3, 1), (3, 3), (32, 1), (32, 5), (32, 32)] {
        for request_ms in [5, 50] {
            let used = utilisation(members, busy, request_ms);
            println!("{members} members, {busy} busy, {request_ms} ms: {:.1} % used", used * 100.0);
            assert!(used >= 0.95, "{members} members, {busy} busy, {request_ms} ms: {used}");
        }
    }
}

#[test]
fn all_that_wait_are_served() {
    let mut world = World::new(3, 32, 20);
    world.run_ms(4_000);
    world.demand(0..32, 3);
    world.run_ms(20_000);
    let served: Vec<u64> = world.members().map(|member| member.served).collect();
    let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
    assert!(*least * 2 > *most, "{served:?}");
}

#[test]
fn a_member_that_was_idle_gets_its_slots_back() {
    let mut world = World::new(5, 3, 50);
    world.run_ms(4_000);
    world.demand(0..1, 30);
    world.run_ms(2_000);
    world.demand(1..2, 1);
    let before = world.member(1).served;
    world.run_ms(1_000);
    assert!(world.member(1).served > before, "nothing served within a second");
}

/// One schedule of changes of demand, loss, partitions, crashes, ends, starts and servers.
fn schedule(seed: u64) {
    let mut world = World::new(seed, 0, 0);
    world.random_fleet();
    for _ in 0..60 {
        world.random_change();
        let ms = world.rng.u64(10..2_000);
        world.run_ms(ms);
    }
    world.calm();
    world.run_ms(20_000);
    assert_eq!(world.lent(), 0, "seed {seed}: lent without need; {}", world.described());
    world.demand(0..world.size(), 12);
    world.run_ms(2_000);
    world.used = 0;
    world.run_ms(5_000);
    // Shares of members that do not run are unused.
    assert!(world.shares() > 0, "seed {seed}: {}", world.described());
    let used = world.used as f64 / (f64::from(world.shares()) * 5_000.0);
    assert!(used >= 0.9, "seed {seed}: {used} used after the calm; {}", world.described());
}

#[test]
fn the_sum_never_exceeds_the_limit() {
    let first = match std::env::var("SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => fastrand::u64(..1 << 48),
    };
    let count = std::env::var("SCHEDULES").map_or(60, |count| count.parse().expect("a number"));
    println!("SEED={first} SCHEDULES={count}");
    for seed in first..first + count {
        schedule(seed);
    }
}
