//! Servers that leave because their service needs fewer: one member decides, and waits for the requests of all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::http::{self, Connection};
use e2e::rogue::Rogue;
use e2e::{Scene, server_tables, wait};

use super::stage::{Member, SOON, Settings, wait_until_all_see};

/// The addresses of a member's servers that leave.
fn leaving(member: &Member) -> Vec<String> {
    let service = member.api("/api/v1/services/app");
    let servers = service["servers"].as_array().expect("servers");
    let leaving = servers.iter().filter(|server| server["leaving"] == true);
    leaving.map(|server| server["address"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn servers_leave_at_all_members_and_finish_the_requests_of_all() {
    let Some(scene) = Scene::new("fleet-leaving", &[]) else { return };
    let released: [Arc<AtomicBool>; 2] = Default::default();
    let addresses: Vec<SocketAddr> = (11..14).map(|host| scene.address(host, 8080)).collect();
    let _servers: Vec<Rogue> = addresses
        .iter()
        .map(|address| {
            let released = released.clone();
            Rogue::start(*address, move |peer| {
                while let Some(head) = peer.request() {
                    let of = |member: usize| head.starts_with(&format!("GET /{member} "));
                    let flag = released.iter().enumerate().find(|(member, _)| of(*member));
                    while flag.is_some_and(|(_, flag)| !flag.load(Ordering::Relaxed)) {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            })
        })
        .collect();
    let calls = scene.folder().join("calls.txt");
    let rest = format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 8\npassive = false\n\
         timeouts = {{ response = \"2m\" }}\n\
         scaling = {{ servers_max = 4, scale_in_after = \"5s\", command = [\"/bin/sh\", \"-c\", \
         \"echo $0 >> {}\", \"{{servers}} {{remove}}\"] }}\n{}",
        calls.display(),
        server_tables("app", addresses.iter().copied())
    );
    let settings = Settings { knows: vec![0, 1], ..Settings::new(&rest) };
    let members = [0, 1].map(|number| Member::start(&scene, number, &settings));
    wait_until_all_see(&members, 1);
    // The time that requests take must be known.
    for member in &members {
        wait::until("a number", SOON, || {
            (!member.api("/api/v1/services/app")["wanted"].is_null()).then_some(())
        });
        assert_eq!(http::get(member.front(&scene), "/").expect("an answer").status, 200);
    }
    // A request of each member at each server.
    let mut held: Vec<Vec<Connection>> = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let one = |_| {
            let mut connection = Connection::open(member.front(&scene)).expect("a connection");
            let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
            connection.send(request.as_bytes()).expect("sent");
            connection
        };
        held.push((0..3).map(one).collect());
    }
    let mut left = members.iter().map(|member| {
        wait::until("two servers leave", 2 * SOON, || {
            let left = leaving(member);
            (left.len() == 2).then_some(left)
        })
    });
    let [one, two] = [left.next(), left.next()];
    assert_eq!(one, two);
    let deciders = members
        .iter()
        .filter(|member| !member.api("/api/v1/services/app")["wanted"]["calls"].is_null());
    assert_eq!(deciders.count(), 1);
    for (number, connections) in held.into_iter().enumerate() {
        std::thread::sleep(Duration::from_secs(4));
        assert!(!calls.exists(), "member {number} has requests in flight there");
        released[number].store(true, Ordering::Relaxed);
        for mut connection in connections {
            assert_eq!(connection.response(false).expect("an answer").status, 200);
        }
    }
    let called = wait::until("a call", SOON, || {
        std::fs::read_to_string(&calls).ok().filter(|text| text.ends_with('\n'))
    });
    assert_eq!(called, format!("1 {}\n", one.expect("two members").join(" ")));
}
