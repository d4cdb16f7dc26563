//! The rules on traffic against simulated traffic: what they find in a day without faults, and how soon they
//! find a fault. Seeds are printed when a test fails.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod simulation;

use simulation::{Behaviour, HEALTHY, Service, arrivals, findings};

const DAY_S: u64 = 24 * 3_600;

/// Requests a second at a time of day: between a fifth of `peak` and `peak`.
fn daily(second: u64, peak: f64) -> f64 {
    let phase = second as f64 / DAY_S as f64 * std::f64::consts::TAU;
    peak * (0.6 - 0.4 * phase.cos())
}

/// Daily swings, bursts for up to five seconds that exceed what the servers can finish and fill the queue,
/// pauses of servers, a tail of slow requests, single failures and lost probes.
#[test]
fn a_day_of_healthy_traffic_raises_no_alarm() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut busy = Service::new("busy", 3, 110.0);
    let mut small = Service::new("small", 2, 100.0);
    let mut burst_until = 0;
    for second in 1..=DAY_S {
        if second > burst_until + 60 && rng.u32(0..600) == 0 {
            burst_until = second + rng.u64(1..6);
        }
        let times = if second < burst_until { 3.0 } else { 1.0 };
        busy.second(second, arrivals(times * daily(second, 60.0), &mut rng), &mut rng);
        small.second(second, arrivals(daily(second, 2.0), &mut rng), &mut rng);
        let found = findings(&[&busy, &small], second);
        assert!(found.is_empty(), "seed {seed}, second {second}: {found:#?}");
    }
}

/// Returns how many seconds after it began a fault of one of three servers is found, at 100 requests
/// a second, by one of these rules.
fn time_to_find(fault: Behaviour, rules: &[&str], seed: u64) -> Option<u64> {
    const BEGINS_S: u64 = 120;
    const FOUND_WITHIN_S: u64 = 120;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut service = Service::new("api", 3, 1_000.0);
    // Faults do not begin with the seconds at which the history takes snapshots.
    let begins = BEGINS_S + rng.u64(0..5);
    // No probe is lost here: a rule would have to wait until that one is old.
    (0..3).for_each(|server| service.set(server, Behaviour { check_fails: 0.0, ..HEALTHY }));
    for second in 1..begins + FOUND_WITHIN_S {
        if second == begins {
            service.set(1, fault);
        }
        service.second(second, arrivals(100.0, &mut rng), &mut rng);
        let found = findings(&[&service], second);
        if second < begins {
            assert!(found.is_empty(), "seed {seed}, second {second}: {found:#?}");
        } else if found
            .iter()
            .any(|one| rules.contains(&&*one.rule) && one.subject == "10.0.1.2:80 of api")
        {
            return Some(second - begins + 1);
        }
    }
    None
}

#[test]
fn faults_are_found_within_seconds() {
    const SEEDS: u64 = 20;
    let seed = fastrand::u64(..);
    let failing = Behaviour { fails: 0.2, check_fails: 0.0, ..HEALTHY };
    let cases: [(&str, Behaviour, &[&str], u64); 6] = [
        ("three times slower", Behaviour { slower: 3.0, ..HEALTHY }, &["server_slow"], 10),
        ("75 times slower", Behaviour { slower: 75.0, ..HEALTHY }, &["server_slow"], 10),
        ("one of five requests fails", failing, &["server_failing", "checks_blind"], 10),
        ("the same, and its check passes", failing, &["checks_blind"], 15),
        (
            "the same, and its check fails",
            Behaviour { check_fails: 1.0, ..failing },
            &["server_failing"],
            10,
        ),
        ("hangs", Behaviour { hangs: true, ..HEALTHY }, &["server_slow"], 12),
    ];
    for (name, fault, rules, within_s) in cases {
        let found: Vec<Option<u64>> =
            (0..SEEDS).map(|n| time_to_find(fault, rules, seed.wrapping_add(n))).collect();
        println!("{name}: {rules:?} after {found:?} s");
        let is_soon = |found: &Option<u64>| found.is_some_and(|seconds| seconds <= within_s);
        assert!(found.iter().all(is_soon), "seed {seed}: {name}: {rules:?} after {found:?} s");
    }
}
