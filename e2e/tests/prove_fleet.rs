//! Thirty-two balancers that share their health checks: the storm of 70 services over the same four servers, from
//! a fleet; and as many that share limits. `make prove`.

#[path = "fleet/rates.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod rates;
#[path = "fleet/slots.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod slots;
#[path = "fleet/stage.rs"]
#[allow(dead_code, reason = "fleet uses the rest")]
mod stage;

use std::time::{Duration, Instant};

use e2e::{App, Authority, Pair, Scene, Zones, http, wait};

use stage::{
    Member, SERVERS, Settings, address, restart, start_apps, wait_for_health, wait_until_all_see,
};

const MEMBERS: usize = 32;
const SERVICES: usize = 70;
const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const FALL: u32 = 3;
/// Members that die at once.
const KILLED: usize = 8;

/// The services, each with all servers and the same check.
fn services(apps: &[App]) -> String {
    let service = |number: usize| {
        let name = format!("s{number}");
        let servers = e2e::server_tables(&name, apps.iter().map(App::address));
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\n\
             check = {{ path = \"/status\", expect = 200, interval = \"2s\", timeout = \"1s\", fall = {FALL} }}\n\
             {servers}"
        )
    };
    (0..SERVICES).map(service).collect()
}

/// How many probes each server has answered.
fn probes(apps: &[App]) -> Vec<u64> {
    apps.iter().map(|app| app.stat("probes")).collect()
}

/// Probes a second of each server over this time.
fn rates(apps: &[App], time: Duration) -> Vec<f64> {
    let before = probes(apps);
    let begun = Instant::now();
    wait::measure_for(time);
    let took = begun.elapsed().as_secs_f64();
    let after = probes(apps);
    after.iter().zip(before).map(|(after, before)| (after - before) as f64 / took).collect()
}

#[test]
#[ignore = "takes a minute: make prove"]
fn a_limit_over_32_members_is_kept_and_all_of_it_is_used() {
    let Some(scene) = Scene::alone("prove-fleet-slots", &["python3", "wrk"]) else { return };
    Zones::run(&[SERVERS], |zones| {
        let apps = start_apps(&scene, zones, 2, &["--work-ms", "50"]);
        let members = slots::start(&scene, &apps, 32);
        for busy in [32, 1] {
            // How much of the time the slots are in use is a matter of the machine: `measure_fleet`.
            let share = slots::busy_share(&scene, &apps, &members[..busy]);
            println!("{busy} with requests: {:.2} % of the slots busy", share * 100.0);
        }
    });
}

#[test]
#[ignore = "takes two minutes: make prove"]
fn a_rate_limit_over_the_fleet_is_kept_within_a_tenth() {
    let Some(scene) = Scene::alone("prove-fleet-rates", &["python3"]) else { return };
    Zones::run(&[SERVERS], |zones| {
        let apps = start_apps(&scene, zones, 2, &[]);
        for (count, busy, times) in
            [(3, 3, 3.0), (3, 1, 3.0), (3, 3, 1.2), (32, 32, 3.0), (32, 8, 3.0)]
        {
            let members = rates::start(&scene, &apps, count);
            let per_s = times * rates::LIMIT / busy as f64;
            let loads: Vec<_> = members[..busy].iter().map(|one| (one, per_s)).collect();
            rates::pass(&scene, &loads, 4);
            let (passed, _) = rates::pass(&scene, &loads, 12);
            println!(
                "{count} members, {busy} with requests, {times} times the limit: {passed:.1} of {} per second pass",
                rates::LIMIT
            );
            let error = passed / rates::LIMIT - 1.0;
            assert!(error.abs() <= 0.1, "{passed} per second");
        }
    });
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

#[test]
#[ignore = "takes three minutes: make prove"]
fn thirty_two_balancers_check_each_server_four_times_a_second() {
    let Some(scene) = Scene::alone("prove-fleet", &["python3"]) else { return };
    Zones::run(&[SERVERS], |zones| check_four_times_a_second(&scene, zones));
}

fn check_four_times_a_second(scene: &Scene, zones: &Zones) {
    let mut apps = start_apps(scene, zones, 4, &[]);
    let rest = services(&apps);
    let settings = |number: usize| Settings {
        zone: format!("zone{}", number % 4),
        knows: vec![0, 1, 2],
        ..Settings::new(&rest)
    };
    let start = |number: usize| Member::start_unready(scene, number, &settings(number));
    let mut members: Vec<Member> = (0..MEMBERS).map(start).collect();
    members.iter().for_each(Member::wait_until_ready);
    wait_until_all_see(&members, MEMBERS - 1);
    for service in ["s0", "s69"] {
        wait_for_health(&members, service, "up");
    }
    // Those that probed for themselves until they knew the others go on for an interval.
    wait::measure_for(3 * INTERVAL);

    let minute = rates(&apps, Duration::from_mins(1));
    println!(
        "probes a second of each server: {minute:.2?}, mean {:.2}; 1,120 if each service checked, 16 if each balancer did",
        mean(&minute)
    );
    // Two of each of four zones, each two seconds.
    assert!(minute.iter().all(|rate| *rate <= 4.4), "{minute:?}");
    assert!(minute.iter().all(|rate| *rate >= 3.6), "{minute:?}");

    // A server dies.
    let down_within = INTERVAL.mul_f64(1.1) * FALL + TIMEOUT + Duration::from_secs(1);
    apps[0].kill();
    let begun = Instant::now();
    let last = wait::within(Duration::from_mins(1), || {
        let is_down = |member: &Member| member.health("s7").first().is_some_and(|it| it == "down");
        members.iter().all(is_down).then(|| begun.elapsed())
    });
    let took = last.expect("the dead server to be down everywhere");
    println!(
        "a dead server was down at all {MEMBERS} members after {took:.2?}; bound {down_within:.2?}"
    );
    assert!(took <= down_within, "{took:?}");
    restart(scene, zones, &mut apps[..1]);
    wait_for_health(&members, "s7", "up");

    // A quarter of the fleet dies at once: no server gets more checks than without sharing.
    members.drain(..KILLED).for_each(|mut member| member.process().kill());
    let disturbed = rates(&apps, Duration::from_secs(20));
    println!("probes a second of each server while {KILLED} members die: {disturbed:.2?}");
    assert!(disturbed.iter().all(|rate| *rate <= 16.0), "{disturbed:?}");
    wait_until_all_see(&members, MEMBERS - KILLED - 1);
    wait::measure_for(3 * INTERVAL);
    let after = rates(&apps, Duration::from_secs(20));
    println!("and after: {after:.2?}");
    assert!(after.iter().all(|rate| *rate <= 4.4), "{after:?}");
    wait_for_health(&members, "s7", "up");

    let sent: u64 = members
        .iter()
        .map(|member| member.fleet()["datagrams"]["sent_bytes"].as_u64().unwrap_or(0))
        .sum();
    let cpu: Duration = members.iter_mut().map(|member| member.process().cpu_time()).sum();
    println!("sent by the members that lived, in all: {sent} bytes; CPU time {cpu:.1?}");
}

/// The findings of a member, each with its subject and what it says.
fn findings(member: &Member) -> Vec<(String, String, String)> {
    let report = member.api("/api/v1/findings");
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    findings.map(|one| (text(&one["rule"]), text(&one["subject"]), text(&one["what"]))).collect()
}

#[test]
#[ignore = "takes two minutes: make prove"]
fn what_is_wrong_with_a_fleet_for_minutes_is_a_finding() {
    let Some(scene) = Scene::new("prove-fleet-findings", &[]) else { return };
    let members = Authority::new(&scene, "members");
    let strangers = Authority::new(&scene, "strangers");
    let day = Duration::from_hours(24);
    let ending = members.issue_ending("member0", &["fleet.internal"], day);
    let stranger = strangers.issue("member1", &["fleet.internal"]);
    let start = |number, pair: &Pair, authority: &Authority| {
        let rest = format!(
            "tls = {{ certificate = {}, {}, name = \"fleet.internal\" }}\n\
             [doctor]\ninterval = \"1s\"\n[[route]]\ndeny = 404",
            pair.table(),
            authority.ca()
        );
        Member::start(&scene, number, &Settings { knows: vec![0, 1, 2], ..Settings::new(&rest) })
    };
    let both = [start(0, &ending, &members), start(1, &stranger, &strangers)];
    wait_until_all_see(&both, 1);
    let begun = Instant::now();
    let found = |rule: &str| {
        wait::until("the finding", Duration::from_mins(3), || {
            findings(&both[0]).into_iter().find(|(of, _, _)| of == rule)
        })
    };
    let (_, subject, what) = found("certificate_expiring");
    assert!(subject.ends_with("member0.pem of fleet"), "{subject}: {what}");
    let (_, _, what) = found("fleet_members_missing");
    let took = begun.elapsed();
    assert!(what.contains(&address(&scene, 2, 7946).to_string()), "{what}");
    let (_, _, what) = found("fleet_secrets_not_shared");
    println!("after {took:?} and {:?}: {what}", begun.elapsed());
    let metrics = http::get(both[0].admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("weir_fleet_problems{kind=\"missing\"} 1"), "{metrics}");

    let _third = start(2, &members.issue("member2", &["fleet.internal"]), &members);
    wait::until("the finding to end", Duration::from_mins(1), || {
        let report = both[0].api("/api/v1/findings");
        let findings = report["findings"].as_array()?;
        let one = findings.iter().find(|one| one["rule"] == "fleet_members_missing")?;
        (one["is_present"] == false).then_some(())
    });
}
