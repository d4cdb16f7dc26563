//! Fleets in virtual time: whatever is lost, late, repeated, cut off or restarted, all members that live end with the
//! same table, and the newest order about each server is in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod world;

use model::Administrative;
use world::World;

/// One schedule of orders, loss, partitions, ends and starts.
fn schedule(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..80 {
        world.random_change();
        let ms = world.rng.u64(10..3_000);
        world.run_ms(ms);
    }
    world.calm();
    // The last orders: each by a member that may not know all others yet.
    let last: Vec<_> = (0..4).map(|_| world.random_order()).collect();
    world.run_ms(world.settled_after_ms());
    let tables = world.tables();
    let first = tables.first().expect("a member lives");
    for table in &tables {
        assert_eq!(table, first, "seed {seed}: tables differ; {}", world.described());
    }
    // An order is newer than all that its maker knows, and those that were unknown to it are known now.
    for (key, version, state) in last {
        let (found, found_state) = first[&key];
        assert!(found >= version, "seed {seed}: an older order won; {}", world.described());
        assert!(found > version || found_state == state, "seed {seed}");
    }
    // Now that all know all, the next order wins everywhere.
    for state in [Administrative::Maintenance, Administrative::Ready] {
        let key = world.order(state);
        world.run_ms(2_000);
        for table in world.tables() {
            assert_eq!(table[&key].1, state, "seed {seed}: {}", world.described());
        }
    }
}

#[test]
fn all_members_end_with_the_same_table() {
    let first = match std::env::var("SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => fastrand::u64(..1 << 48),
    };
    let count = std::env::var("SCHEDULES").map_or(100, |count| count.parse().expect("a number"));
    println!("SEED={first} SCHEDULES={count}");
    for seed in first..first + count {
        schedule(seed);
    }
}

#[test]
fn a_member_that_starts_learns_the_orders_within_two_seconds() {
    for members in [2, 8, 32] {
        let mut world = World::of(7, members);
        for _ in 0..20 {
            world.order(Administrative::Drain);
        }
        world.run_ms(1_000);
        let newcomer = world.start();
        world.run_ms(2_000);
        let tables = world.tables();
        assert!(tables.iter().all(|table| *table == tables[0]), "{members} members");
        assert!(!world.table_of(newcomer).is_empty(), "{members} members");
    }
}

#[test]
fn an_order_reaches_all_of_32_members_at_once_and_they_confirm_it() {
    let mut world = World::of(3, 32);
    world.run_ms(2_000);
    let key = world.order(Administrative::Drain);
    world.run_ms(20);
    assert!(world.tables().iter().all(|table| table[&key].1 == Administrative::Drain));
    assert_eq!(world.unconfirmed(&key), 0);
}
