//! States of servers that are set for the whole fleet (`weir drain --fleet`).

use std::net::SocketAddr;

use e2e::{App, Finished, NewProcess, Scene, Zones, http, run, wait};
use rustix::process::Signal;

use super::stage::{Member, SERVERS, SOON, Settings, address, cut, start_apps, wait_until_all_see};

/// The members at the start.
const MEMBERS: usize = 3;

fn settings(apps: &[App]) -> Settings {
    let servers = e2e::server_tables("app", apps.iter().map(App::address));
    let service = format!("[[route]]\nservice = \"app\"\n[service.app]\n{servers}");
    Settings { knows: (0..MEMBERS).collect(), ..Settings::new(&service) }
}

/// `weir VERB app SERVER WORDS` at a member.
fn order(
    scene: &Scene,
    member: &Member,
    verb: &str,
    server: SocketAddr,
    words: &[&str],
) -> Finished {
    let (server, admin) = (server.to_string(), member.admin().to_string());
    run(scene, &[&[verb, "app", &server, "--admin", &admin], words].concat())
}

/// The state of a server at a member.
fn state(member: &Member, server: SocketAddr) -> String {
    let service = member.api("/api/v1/services/app");
    let servers = service["servers"].as_array().cloned().unwrap_or_default();
    let found = servers.iter().find(|one| one["address"] == server.to_string());
    found.and_then(|one| one["state"].as_str()).unwrap_or_default().to_owned()
}

fn wait_for_state(member: &Member, server: SocketAddr, wanted: &str) {
    let mut seen = String::new();
    let found = wait::within(SOON, || {
        seen = state(member, server);
        (seen == wanted).then_some(())
    });
    assert!(found.is_some(), "waited for {wanted}; it is {seen}");
}

/// Sends requests through each member; returns how many reached each server.
fn spread(scene: &Scene, apps: &[App], members: &[Member]) -> Vec<u64> {
    apps.iter().for_each(App::reset);
    for member in members {
        for _ in 0..10 {
            let response = http::get(member.front(scene), "/").expect("a response");
            assert_eq!(response.status, 200);
        }
    }
    apps.iter().map(|app| app.stat("requests")).collect()
}

#[test]
fn a_server_is_drained_at_all_members_and_at_those_that_come_later() {
    let Some(scene) = Scene::new("fleet-orders", &["python3"]) else { return };
    Zones::run(&[SERVERS], |zones| drain_everywhere(&scene, zones));
}

fn drain_everywhere(scene: &Scene, zones: &Zones) {
    let apps = start_apps(scene, zones, 2, &[]);
    let (first, second) = (apps[0].address(), apps[1].address());
    let settings = settings(&apps);
    let start = |number| Member::start(scene, number, &settings);
    let mut members: Vec<Member> = (0..MEMBERS).map(start).collect();
    wait_until_all_see(&members, MEMBERS - 1);

    let dry = order(scene, &members[0], "drain", first, &["--fleet", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stdout.ends_with("fleet: 3 members would be asked\n"), "{}", dry.stdout);
    assert_eq!(state(&members[0], first), "ready");

    let drained = order(scene, &members[0], "drain", first, &["--fleet"]);
    assert_eq!(drained.code, Some(0), "{} {}", drained.stdout, drained.stderr);
    let line = format!("{first} of app: drain, 0 in flight\n1 of 2 servers take new work");
    assert!(drained.stdout.starts_with(&line), "{}", drained.stdout);
    let line = "\nfleet: 3 of 3 members have confirmed\n";
    assert!(drained.stdout.ends_with(line), "{}", drained.stdout);
    let requests = spread(scene, &apps, &members);
    assert_eq!(requests, [0, 30], "through all members");
    show(scene, &members[2], first);

    members.push(start(MEMBERS));
    wait_for_state(&members[MEMBERS], first, "drain");
    wait_until_all_see(&members, MEMBERS);

    let _upgraded = local(scene, &mut members, first, second);

    let ready = order(scene, &members[2], "ready", first, &["--fleet"]);
    assert!(ready.stdout.ends_with("fleet: 4 of 4 members have confirmed\n"), "{}", ready.stdout);
    let requests = spread(scene, &apps, &members);
    assert!(requests.iter().all(|count| *count > 0), "{requests:?}");
    let status = run(scene, &["status", "--admin", &members[2].admin().to_string()]).stdout;
    assert!(!status.contains("fleet orders"), "{status}");
}

/// What is set at one member alone overrides an order, also over an upgrade. Returns the new process.
fn local(
    scene: &Scene,
    members: &mut [Member],
    first: SocketAddr,
    second: SocketAddr,
) -> NewProcess {
    let ready = order(scene, &members[1], "ready", first, &[]);
    assert_eq!(ready.code, Some(0), "{}", ready.stderr);
    // Another order, which it applies beside those that it has.
    let other = order(scene, &members[0], "maintenance", second, &["--fleet"]);
    assert!(other.stdout.ends_with("fleet: 4 of 4 members have confirmed\n"), "{}", other.stdout);
    assert_eq!([state(&members[1], first), state(&members[1], second)], ["ready", "maintenance"]);
    assert_eq!([state(&members[0], first), state(&members[0], second)], ["drain", "maintenance"]);

    let upgraded = NewProcess::of(&members[1].post("/api/v1/upgrade"));
    members[1].process().wait(SOON);
    wait_until_all_see(members, MEMBERS);
    wait::until("the new process to know the orders", SOON, || {
        let drained = |at: usize| members[at].fleet()["orders"]["drain"] == 1;
        (drained(0) && drained(1)).then_some(())
    });
    let ready = order(scene, &members[0], "ready", second, &["--fleet"]);
    assert!(ready.stdout.ends_with("fleet: 4 of 4 members have confirmed\n"), "{}", ready.stdout);
    assert_eq!([state(&members[1], first), state(&members[1], second)], ["ready", "ready"]);
    assert_eq!(state(&members[0], first), "drain");
    assert!(upgraded.is_running());
    upgraded
}

/// Status, metrics and the API name the order.
fn show(scene: &Scene, member: &Member, server: SocketAddr) {
    wait::until("the order to be shown", SOON, || {
        let orders = member.fleet()["orders"].clone();
        let shown = &orders["servers"][0];
        (orders["drain"] == 1
            && shown["service"] == "app"
            && shown["address"] == server.to_string()
            && shown["member"] == "b0")
            .then_some(())
    });
    let status = run(scene, &["status", "--admin", &member.admin().to_string()]).stdout;
    assert!(status.contains("\nfleet orders: 1 server drained for the whole fleet\n"), "{status}");
    let metrics = http::get(member.admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("weir_fleet_orders{state=\"drain\"} 1"), "{metrics}");
}

#[test]
fn a_member_that_is_cut_off_is_named_and_follows_when_it_is_back() {
    let Some(scene) = Scene::new("fleet-orders-cut", &["python3", "nft"]) else { return };
    Zones::run(&[SERVERS], |zones| cut_off(&scene, zones));
}

fn cut_off(scene: &Scene, zones: &Zones) {
    let apps = start_apps(scene, zones, 2, &[]);
    let first = apps[0].address();
    let settings = settings(&apps);
    let start = |number| Member::start(scene, number, &settings);
    let members: Vec<Member> = (0..MEMBERS).map(start).collect();
    wait_until_all_see(&members, MEMBERS - 1);

    let alone = address(scene, 2, 7946);
    zones.nft_here(&cut(scene, &[2], &[0, 1]));
    let drained = order(scene, &members[0], "drain", first, &["--fleet"]);
    assert_eq!(drained.code, Some(1), "{} {}", drained.stdout, drained.stderr);
    let line =
        format!("fleet: 2 of 3 members have confirmed within 3 s; not confirmed by b2 ({alone})\n");
    assert!(drained.stdout.ends_with(&line), "{}", drained.stdout);
    assert_eq!([state(&members[1], first), state(&members[2], first)], ["drain", "ready"]);
    wait::until("the partition to be noticed", SOON, || {
        let others = [0, 1].map(|at| members[at].others());
        (members[2].others().is_empty() && others == [["b1"], ["b0"]]).then_some(())
    });
    // It is listed, and does not answer.
    let later = order(scene, &members[1], "maintenance", first, &["--fleet"]);
    let line =
        format!("fleet: 2 of 3 members have confirmed within 3 s; not confirmed by {alone}\n");
    assert!(later.stdout.ends_with(&line), "{}", later.stdout);
    assert_eq!(later.code, Some(1));

    zones.nft_here("delete table inet cut");
    wait_for_state(&members[2], first, "maintenance");
    assert_eq!(state(&members[0], first), "maintenance");

    // A member that dies and starts again learns it from the others.
    let mut members = members;
    members[2].process().signal(Signal::KILL);
    members[2].process().wait(SOON);
    members[2] = start(2);
    wait_for_state(&members[2], first, "maintenance");
    // One that it sets counts, although it has only just started.
    let ready = order(scene, &members[2], "ready", first, &["--fleet"]);
    assert_eq!(ready.code, Some(0), "{} {}", ready.stdout, ready.stderr);
    let states = [0, 1, 2].map(|at| state(&members[at], first));
    assert_eq!(states, ["ready", "ready", "ready"]);
}
