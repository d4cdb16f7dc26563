//! Balancing on real requests: weights, load, slow start, and servers drained by an operator. (The
//! algorithms are tested by simulation in `decide`.)

use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, Scene, Weir, http, wait};
use serde_json::Value;

fn tables(apps: &[App], more: &[&str]) -> String {
    apps.iter()
        .zip(more)
        .map(|(app, more)| {
            format!("[[service.app.server]]\naddress = \"{}\"\n{more}\n", app.address())
        })
        .collect()
}

fn configuration(scene: &Scene, service: &str, servers: &str) -> String {
    let rest = format!("[[route]]\nservice = \"app\"\n[service.app]\n{service}\n{servers}");
    // One worker, so that turns are exact.
    scene.config("workers = 1", &rest)
}

fn start(scene: &Scene, service: &str, servers: &str) -> Weir {
    Weir::start(scene, &configuration(scene, service, servers))
}

#[test]
fn round_robin_follows_weights() {
    let Some(scene) = Scene::new("balance-weights", &["python3"]) else {
        return;
    };
    let apps = [11, 12, 13].map(|host| App::start(&scene, host, &[]));
    let servers = tables(&apps, &["weight = 3", "weight = 1", "weight = 0"]);
    let weir = start(&scene, "", &servers);
    let mut connection = http::Connection::open(weir.front()).unwrap();
    for _ in 0..80 {
        assert_eq!(connection.get("/", &[]).unwrap().status, 200);
    }
    assert_eq!(apps.each_ref().map(|app| app.stat("requests")), [60, 20, 0]);
}

#[test]
fn least_connections_and_peak_ewma_spare_a_slow_server() {
    let Some(scene) = Scene::alone("balance-slow", &["python3"]) else {
        return;
    };
    let apps = [
        App::start(&scene, 11, &["--work-ms", "5"]),
        App::start(&scene, 12, &["--work-ms", "1000"]),
    ];
    for balance in ["least-connections", "peak-ewma"] {
        let servers = tables(&apps, &["", ""]);
        let weir = start(&scene, &format!("balance = \"{balance}\""), &servers);
        let seen = Load::run(&scene, weir.front(), "/", 8, 2.0, &[]);
        assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
        // It takes two hundred times as long, so that even a machine that does the other's work at a
        // tenth of the pace leaves it a twentieth. Turns would give it half.
        let share = seen.served_by("app12") as f64 / seen.requests() as f64;
        assert!(share < 0.25, "{balance}: the slow server got {share:.2}: {:?}", seen.json);
    }
}

#[test]
fn a_server_that_came_back_starts_slowly() {
    let Some(scene) = Scene::alone("balance-slow-start", &["python3"]) else {
        return;
    };
    let mut apps = [11, 12].map(|host| App::start(&scene, host, &["--work-ms", "2"]));
    let check =
        "check = { path = \"/status\", interval = \"50ms\", timeout = \"5s\", rise = 1, fall = 1 }";
    let service = |slow_start: &str| format!("slow_start = \"{slow_start}\"\n{check}");
    let servers = tables(&apps, &["", ""]);
    // So long that it has hardly begun while this test looks.
    let weir = start(&scene, &service("1h"), &servers);
    let address = apps[1].address().to_string();
    apps[1].kill();
    weir.wait_for_log(&[&address, "down"], Duration::from_secs(5));
    let logged = weir.log().len();
    apps[1].restart(&scene);
    weir.wait_for_log_from(logged, &[&address, "up"], Duration::from_secs(5));
    let share = || {
        let seen = Load::run(&scene, weir.front(), "/", 4, 1.0, &[]);
        seen.served_by("app12") as f64 / seen.requests() as f64
    };
    // Of two servers of which one has a tenth of its weight.
    let first = share();
    assert!((0.02..0.2).contains(&first), "a tenth at first, not {first:.2}");
    scene.file("weir.toml", configuration(&scene, &service("1s"), &servers));
    weir.hang_up();
    wait::until("its full share", Duration::from_secs(15), || (share() > 0.42).then_some(()));
}

#[test]
fn a_person_can_put_a_server_aside() {
    let Some(scene) = Scene::new("balance-aside", &["python3"]) else {
        return;
    };
    let apps = [11, 12].map(|host| App::start(&scene, host, &[]));
    let weir = start(&scene, "", &tables(&apps, &["", ""]));
    let set = |state: &str| {
        let address = apps[0].address();
        let path = format!("/api/v1/services/app/servers/{address}/state");
        let mut connection = http::Connection::open(scene.admin()).unwrap();
        let body = format!("{{\"state\": \"{state}\"}}");
        let fields = ["Content-Type: application/json"];
        let answer = connection.request("POST", &path, &fields, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for state in ["drain", "maintenance"] {
        set(state);
        apps[0].reset();
        for _ in 0..10 {
            let answer = http::get(weir.front(), "/").unwrap();
            assert_eq!(answer.field("x-served-by"), Some("app12"), "{state}");
        }
        assert_eq!(apps[0].stat("requests"), 0, "{state}");
        set("ready");
        wait::until("it to be used again", Duration::from_secs(5), || {
            http::get(weir.front(), "/").ok()?;
            (apps[0].stat("requests") > 0).then_some(())
        });
    }
}

#[test]
fn every_request_is_logged_and_counted() {
    let Some(scene) = Scene::new("balance-log", &["python3"]) else {
        return;
    };
    let apps = [App::start(&scene, 11, &[])];
    let weir = start(&scene, "", &tables(&apps, &[""]));
    for _ in 0..5 {
        http::get_with(weir.front(), "/a?b", &["Host: shop.example"]).unwrap();
    }
    let lines: Vec<Value> = wait::until("five access lines", Duration::from_secs(5), || {
        let lines = weir.access();
        (lines.len() >= 5).then_some(lines)
    });
    assert_eq!(lines.len(), 5);
    for line in &lines {
        let text = line.to_string();
        let address = apps[0].address().to_string();
        for word in ["\"completed\"", "/a", "shop.example", "app", &address, "200", "GET"] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
    let metrics = http::get(scene.admin(), "/metrics").unwrap().text();
    let counted = metrics.lines().any(|line| {
        line.starts_with("weir_") && line.contains("completed") && line.ends_with(" 5")
    });
    assert!(counted, "{metrics}");
}
