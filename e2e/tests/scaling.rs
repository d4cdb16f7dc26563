//! How many servers a service should have, requests that wait for the first one, and programs that start and stop
//! servers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::http::{self, Connection};
use e2e::rogue::Rogue;
use e2e::{App, Process, Scene, Weir, binary, run, server_tables, wait};
use serde_json::{Value, json};

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

/// The head and the body of a request.
type Message = (String, Vec<u8>);

/// A server that takes 200 ms for a request, and for `/hold` until the flag is set.
fn holding(address: SocketAddr, released: &Arc<AtomicBool>) -> Rogue {
    let released = Arc::clone(released);
    Rogue::start(address, move |peer| {
        while let Some(head) = peer.request() {
            std::thread::sleep(Duration::from_millis(200));
            while head.starts_with("GET /hold") && !released.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    })
}

/// A program that writes down how it was called, and what a source lists from then on.
const SCALE: &str = r#"set -eu
cd "$3"
echo "$WEIR_SERVICE $WEIR_CHANGE $1 from $WEIR_BEFORE remove ($2)" >> calls.txt
if [ "$WEIR_CHANGE" = out ]; then
  head -n "$1" all.txt > listed.txt
else
  for address in $2; do grep -v -F -x "$address" listed.txt > left.txt; mv left.txt listed.txt; done
fi
{ echo 'server = ['; while read -r address; do echo "{ address = \"$address\" },"; done < listed.txt; echo ']'; } > new.txt
mv new.txt servers.toml
"#;

fn leaving(weir: &Weir) -> Vec<String> {
    let service = weir.api("/api/v1/services/app");
    let servers = service["servers"].as_array().expect("servers");
    let leaving = servers.iter().filter(|server| server["leaving"] == true);
    leaving.map(|server| server["address"].as_str().expect("text").to_owned()).collect()
}

fn wait_for_calls(folder: &Path, count: usize) -> Vec<String> {
    wait::until(&format!("{count} calls"), 2 * SOON, || {
        let text = std::fs::read_to_string(folder.join("calls.txt")).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn a_command_adds_servers_and_removes_them_when_they_are_idle() {
    let Some(scene) = Scene::new("scaling-command", &[]) else { return };
    let released = Arc::new(AtomicBool::new(false));
    let addresses: Vec<SocketAddr> = (11..15).map(|host| scene.address(host, 8080)).collect();
    let _servers: Vec<Rogue> = addresses.iter().map(|one| holding(*one, &released)).collect();
    let all: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    scene.file("all.txt", &all);
    let script = scene.file("scale.sh", SCALE);
    let row = |address| format!("{{ address = \"{address}\" }}, ");
    let two: String = addresses.iter().take(2).map(row).collect();
    scene.file("servers.toml", format!("server = [{two}]\n"));
    let folder = scene.folder().display().to_string();
    let text = format!(
        "[[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 8\npassive = false\n\
         check = {{ interval = \"1s\" }}\ntimeouts = {{ response = \"2m\" }}\n\
         discover = {{ files = \"servers.toml\" }}\n[service.app.scaling]\n\
         servers_max = 4\nscale_in_after = \"5s\"\nscale_in_cooldown = \"30s\"\n\
         command = [\"/bin/sh\", \"{}\", \"{{servers}}\", \"{{remove}}\", \"{folder}\"]\n",
        script.display()
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &text));
    let bench = bench(&scene, weir.front());
    assert_eq!(wait_for_calls(scene.folder(), 1), ["app out 3 from 2 remove ()"]);
    wait::until("three servers", SOON, || {
        (weir.api("/api/v1/services/app")["eligible"] == 3).then_some(())
    });
    drop(bench);
    let in_flight = || -> Vec<u64> {
        let service = weir.api("/api/v1/services/app");
        let servers = service["servers"].as_array().expect("servers");
        servers.iter().filter_map(|server| server["in_flight"].as_u64()).collect()
    };
    wait::until("no request is left", SOON, || (in_flight() == [0, 0, 0]).then_some(()));
    // Two requests at each server.
    let mut held: Vec<Connection> = Vec::new();
    for _ in 0..6 {
        let mut connection = Connection::open(weir.front()).expect("a connection");
        connection.send(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        held.push(connection);
    }
    wait::until("each holds two", SOON, || (in_flight() == [2, 2, 2]).then_some(()));
    let left = wait::until("two servers leave", 2 * SOON, || {
        let left = leaving(&weir);
        (left.len() == 2).then_some(left)
    });
    // They finish what they have, and get nothing new.
    for _ in 0..6 {
        assert_eq!(http::get(weir.front(), "/").expect("an answer").status, 200);
    }
    assert_eq!(wait_for_calls(scene.folder(), 1).len(), 1, "requests are in flight there");
    let shown = run(&scene, &["status", "--admin", &scene.admin().to_string()]);
    assert!(shown.stdout.contains("ready, leaving"), "{}", shown.stdout);
    assert!(shown.stdout.contains("wanted servers: 1; "), "{}", shown.stdout);
    assert!(shown.stdout.contains("; last asked for 3"), "{}", shown.stdout);
    released.store(true, Ordering::Relaxed);
    for mut connection in held {
        assert_eq!(connection.response(false).expect("an answer").status, 200);
    }
    let calls = wait_for_calls(scene.folder(), 2);
    let words = format!("app in 1 from 1 remove ({} {})", left[0], left[1]);
    assert_eq!(calls[1], words);
    wait::until("one server", SOON, || {
        (weir.api("/api/v1/services/app")["eligible"] == 1).then_some(())
    });
    assert_eq!(http::get(weir.front(), "/").expect("an answer").status, 200);
    assert_eq!(weir.api("/api/v1/services/app")["wanted"]["calls"]["failed"], 0);
}

#[test]
fn a_webhook_that_fails_is_called_again() {
    let Some(scene) = Scene::new("scaling-webhook", &["python3"]) else { return };
    let servers = [11, 12].map(|host| App::start(&scene, host, &["--work-ms", LOAD.1]));
    let got: Arc<Mutex<Vec<Message>>> = Arc::default();
    let kept = Arc::clone(&got);
    let hook = Rogue::start(scene.address(20, 8080), move |peer| {
        while let Some(message) = peer.message() {
            let mut kept = kept.lock().expect("no panic");
            kept.push(message);
            peer.say(match kept.len() {
                1 => "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 8\r\n\r\nno quota",
                _ => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
            });
        }
    });
    let webhook = format!(
        ", webhook = {{ url = \"http://{}/scale?a=b\", header = {{ X-Token = \"${{file:token}}\" }} }}",
        hook.address()
    );
    scene.file("token", "hush-hush");
    let weir = Weir::start(&scene, &scene.config("workers = 2", &service(&webhook, &servers)));
    let _bench = bench(&scene, weir.front());
    let calls = wait::until("a call that succeeds", 2 * SOON, || {
        let calls = weir.api("/api/v1/services/app")["wanted"]["calls"].clone();
        (calls["succeeded"] == 1).then_some(calls)
    });
    assert_eq!(calls, json!({ "servers": 3, "succeeded": 1, "failed": 1, "error": null }));
    let log = weir.wait_for_log(&["scaling: the call failed", "status 503: no quota"], SOON);
    let got = got.lock().expect("no panic").clone();
    assert_eq!(got.len(), 2);
    for (head, body) in got {
        assert!(head.starts_with("POST /scale?a=b HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-token: hush-hush\r\n"), "{head}");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(body["why"].as_str().expect("text").contains("3 servers of 8 slots"), "{body}");
        for (key, value) in [
            ("service", json!("app")),
            ("servers", json!(3)),
            ("before", json!(2)),
            ("change", json!("out")),
            ("remove", json!([])),
        ] {
            assert_eq!(body[key], value, "{key} of {body}");
        }
    }
    assert!(!log.contains("hush-hush"));
    assert!(!weir.api("/api/v1/configuration").to_string().contains("hush-hush"));
}
