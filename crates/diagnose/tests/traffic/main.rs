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

/// As above, and every few minutes the servers get another version one after another or at once, one of them gets
/// it and goes back, or a reload changes the service.
#[test]
fn a_day_of_deploys_without_regression_raises_no_alarm() {
    const VERSIONS: [&str; 3] = ["2.8.1", "2.8.2", "2.8.3"];
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut busy = Service::new("busy", 3, 110.0);
    let mut small = Service::new("small", 2, 100.0);
    let mut burst_until = 0;
    for second in 1..=DAY_S {
        if second > burst_until + 60 && rng.u32(0..600) == 0 {
            burst_until = second + rng.u64(1..6);
        }
        let (round, at) = (second / 300, second % 300);
        let version = VERSIONS[round as usize % VERSIONS.len()];
        for (service, servers) in [(&mut busy, 3), (&mut small, 2)] {
            match (round % 4, at) {
                (0, at) if at % 30 == 0 && at < 30 * servers && second > 60 => {
                    service.deploy((at / 30) as usize, version, second);
                }
                (1, 7) => (0..servers).for_each(|n| service.deploy(n as usize, version, second)),
                (2, 7) => service.deploy(1, version, second),
                (3, 7) => service.reload(second),
                _ => {}
            }
        }
        let times = if second < burst_until { 3.0 } else { 1.0 };
        busy.second(second, arrivals(times * daily(second, 60.0), &mut rng), &mut rng);
        small.second(second, arrivals(daily(second, 2.0), &mut rng), &mut rng);
        let found = findings(&[&busy, &small], second);
        assert!(found.is_empty(), "seed {seed}, second {second}: {found:#?}");
    }
}

/// How a regression comes.
#[derive(Clone, Copy, Debug)]
enum Deploy {
    /// One of three servers gets another version.
    Canary,
    /// All of them at once.
    All,
    Reload,
}

/// Returns how many seconds after a deploy its regression is the only finding, at 100 requests a second over three
/// servers, and how often something else was found before that.
fn time_to_blame(deploy: Deploy, fault: Behaviour, seed: u64) -> Option<(u64, usize)> {
    const BEGINS_S: u64 = 120;
    const FOUND_WITHIN_S: u64 = 60;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut service = Service::new("api", 3, 1_000.0);
    (0..3).for_each(|server| service.set(server, Behaviour { check_fails: 0.0, ..HEALTHY }));
    let begins = BEGINS_S + rng.u64(0..5);
    let (mut found_after, mut others_before) = (None, 0);
    for second in 1..begins + FOUND_WITHIN_S {
        if second == begins {
            let servers = if matches!(deploy, Deploy::Canary) { 1..2 } else { 0..3 };
            for server in servers {
                service.set(server, fault);
                if !matches!(deploy, Deploy::Reload) {
                    service.deploy(server, "2.8.1", second);
                }
            }
            if matches!(deploy, Deploy::Reload) {
                service.reload(second);
            }
        }
        service.second(second, arrivals(100.0, &mut rng), &mut rng);
        let found = findings(&[&service], second);
        if second < begins {
            assert!(found.is_empty(), "seed {seed}, second {second}: {found:#?}");
        } else if found.iter().any(|one| one.rule == "deploy_regression") {
            assert_eq!(found.len(), 1, "seed {seed}, second {second}: {found:#?}");
            found_after = found_after.or(Some(second - begins + 1));
        } else if found_after.is_none() {
            others_before += found.len();
        } else {
            // It stays; only in the first seconds it may not be proved at every look.
            assert!(second <= begins + 15, "seed {seed}, {second}, {deploy:?}: {found:#?}");
        }
    }
    found_after.map(|found_after| (found_after, others_before))
}

/// Trouble that began twenty seconds earlier is not blamed on what was done about it.
#[test]
fn a_deploy_in_answer_to_trouble_is_not_blamed_for_it() {
    const SEEDS: u64 = 10;
    let seed = fastrand::u64(..);
    let slow = Behaviour { slower: 3.0, check_fails: 0.0, ..HEALTHY };
    let failing = Behaviour { fails: 0.2, check_fails: 0.0, ..HEALTHY };
    for (round, fault) in (0..SEEDS).flat_map(|round| [(round, slow), (round, failing)]) {
        for deploy in [Deploy::Canary, Deploy::All, Deploy::Reload] {
            let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(round));
            let mut service = Service::new("api", 3, 1_000.0);
            let began = 120 + round;
            for second in 1..began + 60 {
                let of_all = !matches!(deploy, Deploy::Canary);
                for server in if of_all { 0..3 } else { 1..2 } {
                    if second == began {
                        service.set(server, fault);
                    } else if second == began + 20 && !matches!(deploy, Deploy::Reload) {
                        service.deploy(server, "2.8.1", second);
                    }
                }
                if second == began + 20 && matches!(deploy, Deploy::Reload) {
                    service.reload(second);
                }
                service.second(second, arrivals(100.0, &mut rng), &mut rng);
                let found = findings(&[&service], second);
                let is_blamed = found.iter().any(|one| one.rule == "deploy_regression");
                assert!(!is_blamed, "seed {seed}, round {round}, {deploy:?}: {found:#?}");
            }
        }
    }
}

#[test]
fn regressions_of_deploys_are_found_within_seconds() {
    const SEEDS: u64 = 20;
    let seed = fastrand::u64(..);
    let slow = Behaviour { slower: 3.0, check_fails: 0.0, ..HEALTHY };
    let failing = Behaviour { fails: 0.2, check_fails: 0.0, ..HEALTHY };
    for (fault, name) in [(slow, "three times slower"), (failing, "one of five requests fails")] {
        for deploy in [Deploy::Canary, Deploy::All, Deploy::Reload] {
            let found: Vec<Option<(u64, usize)>> =
                (0..SEEDS).map(|n| time_to_blame(deploy, fault, seed.wrapping_add(n))).collect();
            println!("{deploy:?}, {name}: after {found:?} s");
            let is_soon =
                |found: &Option<(u64, usize)>| found.is_some_and(|(seconds, _)| seconds <= 10);
            assert!(found.iter().all(is_soon), "seed {seed}: {deploy:?}, {name}: {found:?} s");
        }
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
