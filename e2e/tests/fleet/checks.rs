//! The health checks that members share.

use std::time::Instant;

use e2e::{App, Scene, Zones, wait};

use super::stage::{
    Member, SERVERS, SOON, Settings, restart, start_apps, wait_for_health, wait_until_all_see,
};

/// A service with these servers, checked each half second.
fn service(apps: &[App]) -> String {
    let servers = e2e::server_tables("app", apps.iter().map(App::address));
    format!(
        "[[route]]\nservice = \"app\"\n[service.app]\n\
         check = {{ path = \"/status\", expect = 200, interval = \"500ms\", timeout = \"300ms\" }}\n{servers}"
    )
}

#[test]
fn each_server_is_checked_by_two_members_of_each_zone_and_all_know() {
    let Some(scene) = Scene::new("fleet-checks", &["python3"]) else { return };
    Zones::run(&[SERVERS], |zones| share_checks(&scene, zones));
}

fn share_checks(scene: &Scene, zones: &Zones) {
    let mut apps = start_apps(scene, zones, 3, &[]);
    let rest = service(&apps);
    let of_zone = |number: usize| Settings {
        zone: if number < 5 { "a" } else { "b" }.to_owned(),
        ..Settings::new(&rest)
    };
    let mut members: Vec<Member> =
        (0..7).map(|number| Member::start(scene, number, &of_zone(number))).collect();
    wait_until_all_see(&members, 6);

    // Five members of zone a, and two of zone b, which check everything.
    let mut shares = Vec::new();
    let settled = wait::within(SOON, || {
        shares = members.iter().map(Member::shares).collect::<Vec<_>>();
        let assigned = |of: &[[u64; 3]]| of.iter().map(|one| one[0]).sum::<u64>();
        let stood_in: u64 = shares.iter().map(|one| one[1]).sum();
        (assigned(&shares[..5]) == 6 && assigned(&shares[5..]) == 6 && stood_in == 0).then_some(())
    });
    assert!(settled.is_some(), "assigned, stood in, relied: {shares:?}");
    apps.iter().for_each(App::reset);
    let begun = Instant::now();
    wait::until("some rounds of checks", SOON, || {
        (apps.iter().map(|app| app.stat("probes")).sum::<u64>() >= 60).then_some(())
    });
    let probes: u64 = apps.iter().map(|app| app.stat("probes")).sum();
    // No more than four times two a second on each of three servers, but for one that had begun.
    let most = begun.elapsed().as_secs_f64() * 24.0 * 1.2 + 6.0;
    println!("{probes} probes in {:?}; without sharing 42 a second", begun.elapsed());
    assert!((probes as f64) < most, "{probes} probes in {:?}", begun.elapsed());

    // All learn that a server has died, and that it is back.
    wait_for_health(&members, "app", "up");
    apps.iter_mut().for_each(App::kill);
    let begun = Instant::now();
    wait_for_health(&members, "app", "down");
    println!("three dead servers were down at all members after {:?}", begun.elapsed());
    restart(scene, zones, &mut apps);
    wait_for_health(&members, "app", "up");

    // Members that die are stood in for at once, and then replaced.
    for number in [0, 1, 1] {
        members[number].process().kill();
        members.remove(number);
    }
    apps.iter_mut().for_each(App::kill);
    wait_for_health(&members, "app", "down");
    restart(scene, zones, &mut apps);
    wait_for_health(&members, "app", "up");
    wait_until_all_see(&members, 3);
}
