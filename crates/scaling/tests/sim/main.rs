//! Services in virtual time: how soon refusals end, how steady the number of servers is, and how far it is from the
//! true need.
//!
//! Each test runs a few fixed seeds, from 1 on. `SEED=` starts from another one, and `SEEDS=` sets how many follow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod comparison;
mod scalers;
mod service;
mod shape;

use scalers::{ByWanted, Compared};
use scaling::staffing::Slots;
use service::{Log, SETTING, START_UP, SYNC, Setting, run};
use shape::Shape;

/// The servers that a rate needs, if it and the service time are known exactly.
fn true_need(setting: &Setting, rate: f64) -> u32 {
    let slots = Slots::of(rate * setting.service, 0.7);
    (slots.total() / f64::from(setting.slots)).ceil() as u32
}

/// The seeds of this run: from `SEED` (default 1), and `SEEDS` of them (default `count`).
fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let first = number("SEED").unwrap_or(1);
    println!("SEED={first}");
    first..first + number("SEEDS").unwrap_or(count)
}

/// A moment in the ten minutes after the start, which differs in its distance to the sync before it.
fn moment(seed: u64) -> f64 {
    600.0 + (seed % 15) as f64 + 0.5
}

/// Runs a service that is scaled by `wanted`, and checks that it never asks for more than twice the true need of
/// the last minutes and one server.
fn scaled(setting: Setting, shape: Shape, seed: u64, seconds: u32) -> Log {
    let mut scaler = ByWanted::new(setting.slots, 1);
    let log = run(setting, shape, &mut scaler, seed, seconds);
    for (at, answer) in &scaler.answers {
        let need = true_need(&setting, shape.most_before(*at, 345)).max(setting.servers);
        let most = 2 * need + 1;
        assert!(answer.servers.unwrap() <= most, "seed {seed}, {at} s, {most} at most: {answer}");
    }
    log
}

/// Checks that nothing is refused later than so many seconds after a change.
fn refused_until(log: &Log, from: f64, seconds: u32, seed: u64) {
    let (during, after) = log.refused.split_at(from as usize + 1 + seconds as usize);
    let during = &during[from as usize..];
    assert_eq!(after.iter().sum::<u32>(), 0, "seed {seed}, from {from}: {during:?} {after:?}");
}

#[test]
fn after_a_doubling_refusals_end_within_two_syncs_and_a_start() {
    for seed in seeds(12) {
        let from = moment(seed);
        for retries in [0, 3] {
            let setting = Setting { retries, ..SETTING };
            let shape = Shape::Step { base: 50.0, factor: 2.0, from, to: 2_000.0 };
            let log = scaled(setting, shape, seed, 1_200);
            refused_until(&log, from, 2 * SYNC + START_UP, seed);
        }
    }
}

/// The measured service time rises a little later, because it counts requests when they end.
#[test]
fn requests_that_take_twice_as_long_are_answered_a_sync_later() {
    for seed in seeds(12) {
        let from = moment(seed);
        let setting = Setting { slower_from: Some(from), ..SETTING };
        let mut scaler = ByWanted::new(setting.slots, 1);
        let log = run(setting, Shape::Steady(50.0), &mut scaler, seed, 1_200);
        refused_until(&log, from, 3 * SYNC + START_UP, seed);
        let most = log.replicas.iter().max().unwrap();
        assert!(*most <= 2 * true_need(&setting, 100.0), "seed {seed}: {:?}", log.replicas);
    }
}

#[test]
fn requests_may_take_longer_than_the_time_between_two_syncs() {
    for seed in seeds(6) {
        for service in [5.0, 20.0, 60.0] {
            let setting = Setting { service, wait_max: 30.0, ..SETTING };
            let shape = Shape::Step { base: 20.0 / service, factor: 2.0, from: 900.0, to: 9_000.0 };
            let log = scaled(setting, shape, seed, 2_400);
            refused_until(&log, 900.0, 2 * SYNC + START_UP, seed);
        }
    }
}

#[test]
fn an_idle_service_has_no_servers_and_gets_them_back() {
    for seed in seeds(4) {
        let from = 900.0 + moment(seed);
        let shape = Shape::Step { base: 20.0, factor: 0.0, from: 300.0, to: from };
        let mut scaler = ByWanted::new(SETTING.slots, 0);
        let log = run(Setting { servers: 4, ..SETTING }, shape, &mut scaler, seed, 2_400);
        let without = log.replicas.iter().filter(|count| **count == 0).count();
        assert!((35..=42).contains(&without), "seed {seed}: {:?}", log.replicas);
        // One server first, then as many more as it shows to be needed.
        refused_until(&log, from, 3 * SYNC + 2 * START_UP, seed);
    }
}

#[test]
fn a_ramp_and_a_day_cause_no_refusals() {
    for seed in seeds(3) {
        let ramp = Shape::Ramp { base: 25.0, factor: 4.0, from: 600.0, to: 1_200.0 };
        let day = Shape::Diurnal { least: 10.0, most: 100.0, period: 3_600.0 };
        for (shape, seconds) in [(ramp, 1_800), (day, 3_600)] {
            let servers = true_need(&SETTING, shape.rate(0.0));
            let log = scaled(Setting { servers, ..SETTING }, shape, seed, seconds);
            let refused: u32 = log.refused.iter().sum();
            let share = f64::from(refused) / f64::from(log.requests);
            assert!(share < 0.001, "seed {seed}, {shape:?}: {refused} of {}", log.requests);
        }
    }
}

#[test]
fn at_a_steady_load_the_number_hardly_changes() {
    for seed in seeds(4) {
        for rate in [1.0, 7.0, 20.0, 48.0, 60.0] {
            let servers = true_need(&SETTING, rate);
            let log = scaled(Setting { servers, ..SETTING }, Shape::Steady(rate), seed, 3_600);
            let (changes, most) = (log.changes(), *log.replicas.iter().max().unwrap());
            let what = format!("seed {seed}, {rate}/s, {servers} needed: {:?}", log.replicas);
            assert!(changes <= 12 && most <= servers + servers.div_ceil(2), "{what}");
            assert_eq!(log.refused.iter().sum::<u32>(), 0, "{what}");
        }
    }
}

#[test]
fn ten_instances_ask_for_as_many_as_one() {
    for seed in seeds(3) {
        let setting = Setting { instances: 10, ..SETTING };
        let new = || ByWanted::new(SETTING.slots, 1);
        let mut compared = Compared { many: new(), one: new() };
        let shape = Shape::Step { base: 40.0, factor: 2.5, from: 300.0, to: 600.0 };
        run(setting, shape, &mut compared, seed, 1_500);
        assert!(compared.many.answers.len() > 90);
        for ((at, many), (_, one)) in compared.many.answers.iter().zip(&compared.one.answers) {
            assert_eq!(many.servers, one.servers, "seed {seed}, {at} s: {many}; {one}");
            assert_eq!(many.reason, one.reason, "seed {seed}, {at} s: {many}; {one}");
        }
    }
}
