//! How many servers a service should have, and requests that wait for the first one.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::http::{self, Connection};
use e2e::rogue::Rogue;
use e2e::{App, Process, Scene, Weir, binary, server_tables, wait};
use serde_json::Value;

/// A load covers 15 s, and a number follows from it every 5 s.
const SOON: Duration = Duration::from_mins(1);

/// 50 requests/s of 200 ms occupy 10 slots: with 70 % utilization and a reserve of 4, they need 18.
const LOAD: (&str, &str) = ("50", "200");

fn service(scaling: &str, servers: &[App]) -> String {
    format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 8\npassive = false\n\
         scaling = {{ servers_max = 9, scale_in_after = \"5s\", idle_after = \"5s\"{scaling} }}\n{}",
        server_tables("app", servers.iter().map(App::address))
    )
}

fn bench(scene: &Scene, front: SocketAddr) -> Process {
    let url = format!("http://{front}/");
    let words = ["bench", "-q", "--rate", LOAD.0, "-t", "5m", &url].map(str::to_owned);
    Process::start(scene, "bench", binary(), words)
}

fn wait_for_number(weir: &Weir, number: u64, reasons: &[&str]) -> Value {
    wait::until(&format!("{number} servers"), SOON, || {
        let wanted = weir.api("/api/v1/services/app")["wanted"].clone();
        let is_it =
            wanted["number"] == number && reasons.iter().any(|reason| wanted["reason"] == *reason);
        is_it.then_some(wanted)
    })
}

#[test]
fn the_number_follows_the_load() {
    let Some(scene) = Scene::new("scaling-number", &["python3"]) else { return };
    let servers = [11, 12].map(|host| App::start(&scene, host, &["--work-ms", LOAD.1]));
    let weir = Weir::start(&scene, &scene.config("workers = 2", &service("", &servers)));
    let bench = bench(&scene, weir.front());
    let wanted = wait_for_number(&weir, 3, &["more_load"]);
    let why = wanted["why"].as_str().expect("text");
    assert!(why.contains("3 servers of 8 slots"), "{why}");
    assert_eq!(weir.metric("weir_service_wanted_servers", &["service=\"app\""]) as u64, 3);
    let log = weir.wait_for_log(&["wanted servers: ", "reason=\"more_load\""], SOON);
    assert!(log.contains("service=app"), "{log}");
    drop(bench);
    wait_for_number(&weir, 1, &["less_load", "no_load"]);
}

#[test]
fn without_a_limit_a_target_gives_the_number() {
    let Some(scene) = Scene::new("scaling-target", &["python3"]) else { return };
    let servers = [11].map(|host| App::start(&scene, host, &["--work-ms", LOAD.1]));
    let text = service(", in_flight_target = 3", &servers).replace("in_flight_max = 8\n", "");
    let weir = Weir::start(&scene, &scene.config("workers = 2", &text));
    let _bench = bench(&scene, weir.front());
    // A step adds at most four servers to the one that there is.
    wait_for_number(&weir, 5, &["more_load", "step_limited"]);
}

#[test]
fn a_request_without_a_server_waits_for_the_first_one() {
    let Some(scene) = Scene::new("scaling-zero", &[]) else { return };
    let address = scene.address(11, 8080);
    let text = format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 4\n\
         check = {{ interval = \"100ms\" }}\nqueue = {{ length_max = 1, wait_max = \"1m\" }}\n\
         scaling = {{ servers_min = 0, servers_max = 3 }}\n{}",
        server_tables("app", [address])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &text));
    wait::until("it is down", SOON, || {
        let service = weir.api("/api/v1/services/app");
        (service["servers"][0]["health"] == "down").then_some(())
    });
    let mut first = Connection::open(weir.front()).expect("a connection");
    first.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("it waits", SOON, || (weir.queue_length("app") == 1).then_some(()));
    // The queue is bounded.
    let refused = http::get(weir.front(), "/").expect("an answer");
    assert_eq!(refused.status, 429);
    assert!(refused.field("retry-after").is_some());
    wait_for_number(&weir, 1, &["unknown_service_time"]);
    let _server = Rogue::start(address, |peer| {
        while peer.request().is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    assert_eq!(first.response(false).expect("an answer").status, 200);
}
