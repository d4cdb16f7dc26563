//! What happens now and what happened before: rates, latencies, and rows, in a real balancer, across a
//! reload and an upgrade.

use std::path::Path;
use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, Scene, Weir, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap_or(0)).collect()
}

/// Returns the requests of each row of a service, by when it ended.
fn requests(weir: &Weir) -> Vec<(u64, u64)> {
    let past = weir.api("/api/v1/history?kind=service&columns=requests");
    let Some(service) = past["series"].get(0) else { return Vec::new() };
    let ended = numbers(&past["ended_unix_ms"]);
    ended.into_iter().zip(numbers(&service["columns"]["requests"])).collect()
}

#[test]
fn a_slow_server_shows_and_rows_survive_a_reload_and_an_upgrade() {
    let Some(scene) = Scene::new("history", &["python3"]) else { return };
    let quick = App::start(&scene, 11, &["--work-ms", "10"]);
    let slow = App::start(&scene, 12, &["--work-ms", "150"]);
    let config = |weight: u16| {
        let rest = format!(
            "[[route]]\nservice = \"app\"\n[service.app]\nwhen_full = 503\n{}weight = {weight}\n",
            server_tables("app", [quick.address(), slow.address()]),
        );
        scene.config("workers = 2", &rest)
    };
    let mut weir = Weir::start(&scene, &config(1));
    let load = Load::start(&scene, weir.front(), "/", 8);
    // Servers' first windows appear after a second, and are the last ten later.
    let server = |weir: &Weir, address: String| {
        let traffic = weir.api("/api/v1/traffic");
        let servers = traffic["services"][0]["servers"].as_array().cloned().unwrap_or_default();
        servers
            .into_iter()
            .find(|one| one["address"] == address)
            .map(|one| one["windows"][0].clone())
    };
    wait::until("the slow server's median", SOON, || {
        let p50 =
            |app: &App| server(&weir, app.address().to_string())?["first_byte"]["p50_ms"].as_f64();
        let (quick, slow) = (p50(&quick)?, p50(&slow)?);
        (quick < 100.0 && (140.0..200.0).contains(&slow)).then_some(())
    });
    wait::until("five rows", SOON, || {
        let busy = requests(&weir).iter().filter(|(_, requests)| *requests > 0).count();
        (busy >= 5).then_some(())
    });

    // A reload changes nothing of it.
    std::fs::write(Path::new(scene.folder()).join("weir.toml"), config(2)).unwrap();
    weir.hang_up();
    weir.wait_for_log(&["reload"], SOON);
    let before = requests(&weir);
    let (_, new) = weir.upgrade(SOON);
    wait::until("rows of the new process", SOON, || {
        let last = before.last()?.0;
        let later = requests(&weir).into_iter().filter(|(at, n)| *at > last + 1_500 && *n > 0);
        (later.count() >= 2).then_some(())
    });
    let after = requests(&weir);
    // Rows are counted by the machine's clock, so their times are the same in both processes.
    for (at, expected) in before.iter().filter(|(_, n)| *n > 0) {
        let found = after.iter().find(|(other, _)| other.abs_diff(*at) <= 20);
        assert_eq!(found.map(|(_, n)| n), Some(expected), "{before:?}\n{after:?}");
    }
    drop(load.finish());
    new.signal(rustix::process::Signal::TERM);
    wait::until("its end", SOON, || (!new.is_running()).then_some(()));
}

#[test]
fn failures_and_refusals_are_counted_apart() {
    let Some(scene) = Scene::new("history-endings", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "300"]);
    let nothing = scene.address(12, 8080);
    let rest = format!(
        "[[route]]\npath = \"/gone\"\nservice = \"gone\"\n[[route]]\nservice = \"app\"\n\
         [service.gone]\n{}[service.app]\nin_flight_max = 1\nqueue = {{ length_max = 0 }}\n{}",
        server_tables("gone", [nothing]),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let get = |path: &str| e2e::http::get(weir.front(), path).unwrap().status;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get("/"));
        wait::until("one in flight", SOON, || {
            (weir.api("/api/v1/requests")["in_flight"] == 1).then_some(())
        });
        assert_eq!(get("/"), 429);
        assert_eq!(first.join().unwrap(), 200);
    });
    assert_eq!(get("/gone"), 502);
    let sums = |service: &str| {
        let path = format!("/api/v1/history?kind=service&service={service}");
        let series = weir.api(&path)["series"].get(0).cloned().unwrap_or_default();
        ["requests", "failed", "refused"].map(|column| {
            numbers(series["columns"].get(column).unwrap_or(&Value::Array(Vec::new()))).iter().sum()
        })
    };
    wait::until("the counts", SOON, || {
        let counted: [[u64; 3]; 2] = [sums("app"), sums("gone")];
        (counted == [[2, 0, 1], [1, 1, 0]]).then_some(())
    });
    let causes = weir.api("/api/v1/history?kind=listener&columns=causes")["series"][0]["causes"]
        .as_array()
        .unwrap()
        .clone();
    let named: Vec<&str> = causes.iter().filter_map(|one| one["cause"].as_str()).collect();
    for cause in ["completed", "queue_full", "connection_refused"] {
        assert!(named.contains(&cause), "{named:?}");
    }
}
