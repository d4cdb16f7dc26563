//! Who the members are: joining, leaving, keys, and what outsiders can do.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use e2e::{Scene, http, run, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::stage::{KEY, Member, SOON, Settings, address, wait_until_all_see};

const REST: &str = "[[route]]\ndeny = 404";

fn start(scene: &Scene, count: usize) -> Vec<Member> {
    (0..count).map(|number| Member::start(scene, number, &Settings::new(REST))).collect()
}

#[test]
fn members_find_each_other_and_notice_who_leaves_and_who_dies() {
    let Some(scene) = Scene::new("fleet-members", &[]) else { return };
    let mut members = start(&scene, 4);
    wait_until_all_see(&members, 3);
    let fleet = members[1].fleet();
    assert_eq!(fleet["own"]["name"], "b1", "{fleet}");
    assert_eq!(members[1].others(), ["b0", "b2", "b3"]);
    assert_eq!(fleet["members"][0]["zone"], "a");
    assert_eq!(fleet["members"][0]["address"], address(&scene, 0, 7946).to_string());

    let status = run(&scene, &["status", "--admin", &members[1].admin().to_string()]).stdout;
    assert!(status.contains("fleet: b1 is one of 4 members, 4 in its zone"), "{status}");
    let metrics = http::get(members[1].admin(), "/metrics").expect("metrics").text();
    assert!(metrics.contains("weir_fleet_members 4"), "{metrics}");

    // The first is only how the others found each other.
    let ended = members[0].process().terminate(SOON);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    members.remove(0);
    wait_until_all_see(&members, 2);
    let begun = std::time::Instant::now();
    members[0].process().kill();
    members.remove(0);
    wait_until_all_see(&members, 1);
    println!("a killed member was noticed after {:?}", begun.elapsed());

    missing_is(&members[0], Some(address(&scene, 0, 7946)));
    let status = run(&scene, &["status", "--admin", &members[0].admin().to_string()]).stdout;
    let said = format!("; no member answers at {}", address(&scene, 0, 7946));
    assert!(status.contains(&said), "{status}");
    members.push(Member::start(&scene, 0, &Settings { knows: vec![3], ..Settings::new(REST) }));
    wait_until_all_see(&members, 2);
    missing_is(&members[0], None);
}

/// Waits until the member's only problem is that this address is missing, or until it has none.
fn missing_is(member: &Member, address: Option<SocketAddr>) {
    let wanted: Vec<(String, String)> =
        address.map(|address| ("missing".to_owned(), address.to_string())).into_iter().collect();
    wait::until("the missing member to be shown", SOON, || {
        let fleet = member.fleet();
        let problems = fleet["problems"].as_array()?.iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let shown: Vec<_> =
            problems.map(|one| (text(&one["kind"]), text(&one["member"]))).collect();
        (shown == wanted).then_some(())
    });
}

#[test]
fn a_member_with_another_key_stays_outside_and_is_counted() {
    let Some(scene) = Scene::new("fleet-key", &[]) else { return };
    let mut members = start(&scene, 2);
    wait_until_all_see(&members, 1);
    let other = "another secret than that of the fleet, also long enough";
    let outside = Settings { keys: vec![other], ..Settings::new(REST) };
    let outsider = Member::start(&scene, 2, &outside);
    wait::until("refused datagrams to be counted", SOON, || {
        let refused = members[0].fleet()["datagrams"]["refused"]["unknown_key"].as_u64();
        refused.filter(|count| *count >= 2)
    });
    assert!(outsider.others().is_empty());
    assert_eq!(members[0].others(), ["b1"]);

    // The key is replaced: accepted by all, then used by all, then the old one is removed.
    for keys in [vec![KEY, other], vec![other, KEY], vec![other]] {
        let settings = Settings { keys: keys.clone(), ..Settings::new(REST) };
        for member in &members {
            let receipt = member.reload(&scene, &settings);
            assert_eq!(receipt["result"], "applied", "{receipt}");
        }
        wait_until_all_see(&members[..1], if keys[0] == other { 2 } else { 1 });
    }
    members.push(outsider);
    wait_until_all_see(&members, 2);
}

#[test]
fn a_member_keeps_its_place_over_an_upgrade() {
    let Some(scene) = Scene::new("fleet-upgrade", &[]) else { return };
    let mut members = start(&scene, 3);
    wait_until_all_see(&members, 2);
    let receipt = members[1].post("/api/v1/upgrade");
    let upgraded = e2e::NewProcess::of(&receipt);
    members[1].process().wait(SOON);
    wait_until_all_see(&members, 2);
    let fleet = members[1].fleet();
    assert_eq!(fleet["own"]["name"], "b1", "{fleet}");
    assert!(upgraded.is_running());
    upgraded.signal(Signal::TERM);
    members.remove(1);
    wait_until_all_see(&members, 1);
}

#[test]
fn what_an_outsider_sends_is_refused_and_counted() {
    let Some(scene) = Scene::new("fleet-outsider", &[]) else { return };
    let members = start(&scene, 2);
    wait_until_all_see(&members, 1);
    let socket = UdpSocket::bind(scene.address(50, 0)).expect("a socket");
    let to = address(&scene, 0, 7946);
    let seed = e2e::seeds()[0];
    println!("seed {seed}");
    let mut dice = e2e::Dice::new(seed);
    let mut sent = 0;
    for _ in 0..2_000 {
        let length = dice.below(1_300) as usize;
        let mut datagram: Vec<u8> = (0..length).map(|_| dice.number() as u8).collect();
        if let Some(version) = datagram.first_mut().filter(|_| dice.permille(700)) {
            *version = 1;
        }
        sent += u64::from(socket.send_to(&datagram, to).is_ok());
        std::thread::sleep(Duration::from_micros(100));
    }
    wait::until("most of them to be counted", SOON, || {
        let fleet = members[0].fleet();
        let refused = fleet["datagrams"]["refused"].as_object()?;
        let refused: u64 = refused.values().filter_map(Value::as_u64).sum();
        (refused >= sent / 2).then_some(())
    });
    assert_eq!(members[0].others(), ["b1"]);
    assert_eq!(members[1].others(), ["b0"]);
}

#[test]
fn two_members_of_one_name_are_told_apart_and_counted() {
    let Some(scene) = Scene::new("fleet-names", &[]) else { return };
    let mut members = start(&scene, 2);
    let twin = Settings { name: Some("b1"), ..Settings::new(REST) };
    members.push(Member::start(&scene, 2, &twin));
    wait::until("the conflict to be counted", SOON, || {
        let conflicts: u64 = members[1..]
            .iter()
            .map(|member| member.fleet()["name_conflicts"].as_u64().unwrap_or(0))
            .sum();
        (conflicts >= 3).then_some(())
    });
    // The first lists one of them.
    assert_eq!(members[0].others(), ["b1"]);
}
