//! Health checks as the servers see them: how many probes, with which Host, on which connections,
//! and the effect of their results.

#[path = "scenarios/probes.rs"]
mod scenario;

use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, Scene, Weir, http, wait};

#[test]
fn seventy_services_over_four_servers_probe_twice_a_second() {
    let Some(scene) = Scene::new("health-storm", &["python3"]) else {
        return;
    };
    scenario::each_distinct_probe_runs_once(&scene, Duration::from_secs(8));
}

#[test]
fn checks_that_differ_stay_two_and_host_is_the_servers_address() {
    let Some(scene) = Scene::new("health-identity", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let service = |name: &str, more: &str| {
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\n\
             check = {{ path = \"/status\", interval = \"100ms\", timeout = \"90ms\"{more} }}\n{}",
            e2e::server_tables(name, [app.address()])
        )
    };
    let services = [
        service("one", ""),
        service("same", ", rise = 5, fall = 7"),
        service("other", ", host = \"other.example\""),
    ];
    let _weir = Weir::start(&scene, &scene.config("", &services.concat()));
    wait::until("some probes", Duration::from_secs(5), || (app.stat("probes") > 5).then_some(()));
    app.reset();
    wait::measure_for(Duration::from_secs(2));
    let stats = app.stats();
    let hosts = stats["probe_hosts"].as_object().unwrap();
    assert_eq!(hosts.len(), 2, "{stats}");
    for host in [app.address().to_string().as_str(), "other.example"] {
        let probes = hosts[host].as_u64().unwrap();
        assert!((15..=25).contains(&probes), "20 wanted of each: {stats}");
    }
    // Kept connections, reopened every tenth time (and this question's own).
    let connections = stats["connections"].as_u64().unwrap();
    assert!((2..=10).contains(&connections), "{stats}");
}

#[test]
fn pre_fork_servers_are_probed_on_connections_of_their_own() {
    let Some(scene) = Scene::new("health-fresh", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let check =
        "check = { path = \"/status\", interval = \"50ms\", timeout = \"40ms\", reuse = false }";
    let _weir = Weir::start(&scene, &scene.one_service(check, &[app.address()]));
    wait::until("some probes", Duration::from_secs(5), || (app.stat("probes") > 10).then_some(()));
    let stats = app.stats();
    let (probes, connections) = (&stats["probes"], stats["connections"].as_u64().unwrap());
    assert!(connections >= probes.as_u64().unwrap(), "a connection for each probe: {stats}");
}

#[test]
fn rise_and_fall_are_counted_and_said() {
    let Some(scene) = Scene::new("health-rise", &["python3"]) else {
        return;
    };
    let apps = [11, 12].map(|host| App::start(&scene, host, &[]));
    let check = "check = { path = \"/status\", expect = 200, interval = \"100ms\", timeout = \"90ms\", rise = 3, fall = 2 }";
    let weir = Weir::start(&scene, &scene.one_service(check, &apps.each_ref().map(App::address)));
    let address = apps[0].address().to_string();
    apps[0].set("health=503");
    let line = weir.wait_for_log(&[&address, "down"], Duration::from_secs(5));
    assert!(line.contains("503"), "the log says why: {line}");
    apps[0].reset();
    for _ in 0..20 {
        let answer = http::get(weir.front(), "/").unwrap();
        assert_eq!(answer.field("x-served-by"), Some("app12"));
    }
    assert_eq!(apps[0].stat("requests"), 0);
    apps[0].set("health=200");
    apps[0].reset();
    let logged = weir.log().len();
    weir.wait_for_log_from(logged, &[&address, "up"], Duration::from_secs(5));
    assert!(apps[0].stat("probes") >= 3, "three successes in a row: {}", apps[0].stats());
    wait::until("it to be used again", Duration::from_secs(5), || {
        (http::get(weir.front(), "/").ok()?.field("x-served-by")? == "app11").then_some(())
    });
}

#[test]
fn a_slow_probe_of_a_busy_server_that_answers_is_no_failure() {
    let Some(scene) = Scene::alone("health-busy", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "50"]);
    let service = "in_flight_max = 2\n\
                   check = { path = \"/status\", interval = \"200ms\", timeout = \"150ms\", rise = 1, fall = 2 }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    let seen = std::thread::scope(|scope| {
        let load = scope.spawn(|| Load::run(&scene, weir.front(), "/", 6, 3.0, &[]));
        // Probes become slow only once the server is busy.
        wait::until("the server to be busy", Duration::from_secs(10), || {
            (app.stat("in_flight") > 0).then(|| app.set("health_ms=1000"))
        });
        load.join().unwrap()
    });
    assert_eq!(seen.status(200), seen.requests(), "no request was lost: {:?}", seen.json);
    // Without work it is what it looks like: a server that does not answer its check.
    weir.wait_for_log(&[&app.address().to_string(), "down"], Duration::from_secs(5));
}

#[test]
fn tcp_checks_find_out_who_listens() {
    let Some(scene) = Scene::new("health-tcp", &["python3"]) else {
        return;
    };
    let mut app = App::start(&scene, 11, &[]);
    let check =
        "check = { kind = \"tcp\", interval = \"50ms\", timeout = \"40ms\", rise = 2, fall = 2 }";
    let weir = Weir::start(&scene, &scene.one_service(check, &[app.address()]));
    let address = app.address().to_string();
    app.kill();
    weir.wait_for_log(&[&address, "down"], Duration::from_secs(5));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 503);
    let logged = weir.log().len();
    app.restart(&scene);
    weir.wait_for_log_from(logged, &[&address, "up"], Duration::from_secs(5));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
}
