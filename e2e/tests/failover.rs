//! Servers and zones that fail and recover: what clients see, and which requests are retried.

#[path = "scenarios/failover.rs"]
mod scenario;

use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, NAMESPACES, Scene, Weir, http, wait};

#[test]
fn a_server_is_killed_under_load_and_returns() {
    let Some(scene) = Scene::alone("failover-kill", &["python3"]) else {
        return;
    };
    scenario::a_server_is_killed_and_returns(&scene, 1);
}

#[test]
fn a_zone_is_cut_off_under_load_and_returns() {
    let Some(scene) = Scene::alone("failover-cut", &["python3", NAMESPACES]) else {
        return;
    };
    scenario::a_zone_is_cut_off_and_returns(&scene, 1);
}

#[test]
fn the_own_zone_comes_first_and_others_stand_in() {
    let Some(scene) = Scene::new("failover-zones", &["python3"]) else {
        return;
    };
    let mut own: Vec<App> = [11, 12].map(|host| App::start(&scene, host, &[])).into();
    let other = App::start(&scene, 21, &[]);
    let backup = App::start(&scene, 31, &[]);
    let table = |app: &App, rest: &str| {
        format!("[[service.app.server]]\naddress = \"{}\"\n{rest}\n", app.address())
    };
    let config = scene.config(
        "zone = \"a\"\nworkers = 2",
        &format!(
            "[[route]]\nservice = \"app\"\n[service.app]\n\
             check = {{ path = \"/status\", interval = \"100ms\", timeout = \"90ms\", rise = 2, fall = 2 }}\n{}{}{}{}",
            table(&own[0], "zone = \"a\""),
            table(&own[1], "zone = \"a\""),
            table(&other, "zone = \"b\""),
            table(&backup, "zone = \"a\"\nbackup = true")
        ),
    );
    let weir = Weir::start(&scene, &config);
    let load = |seconds: f64| Load::run(&scene, weir.front(), "/", 4, seconds, &[]);
    let seen = load(0.5);
    assert_eq!(
        seen.served_by("app11") + seen.served_by("app12"),
        seen.requests(),
        "{:?}",
        seen.json
    );

    own.iter_mut().for_each(App::kill);
    for app in &own {
        weir.wait_for_log(&[&app.address().to_string(), "down"], Duration::from_secs(5));
    }
    let seen = load(0.5);
    assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
    assert!(seen.served_by("app21") > 0, "{:?}", seen.json);

    for app in &mut own {
        app.restart(&scene);
    }
    wait::until("the own zone to take over again", Duration::from_secs(10), || {
        other.reset();
        backup.reset();
        let seen = load(0.3);
        assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
        (other.stat("requests") + backup.stat("requests") == 0).then_some(())
    });
}

#[test]
fn idempotent_requests_are_tried_once_more_and_others_are_not() {
    let Some(scene) = Scene::new("failover-retry", &["python3"]) else {
        return;
    };
    let apps = [11, 12].map(|host| App::start(&scene, host, &[]));
    let service = "passive = false";
    let weir = Weir::start(&scene, &scene.one_service(service, &apps.each_ref().map(App::address)));
    let requests = || apps.iter().map(|app| app.stat("requests")).sum::<u64>();

    let get = http::get(weir.front(), "/?reset=1").unwrap();
    assert_eq!((get.status, requests()), (502, 2), "GET: one attempt and one more");
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let post = connection.request("POST", "/?reset=1", &[], b"once").unwrap();
    assert_eq!((post.status, requests()), (502, 3), "POST: once");
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let put = connection.request("PUT", "/?reset=1", &[], b"idempotent").unwrap();
    assert_eq!((put.status, requests()), (502, 5), "PUT with its body kept: twice");
}

#[test]
fn a_response_that_breaks_off_is_seen_and_counted_apart() {
    let Some(scene) = Scene::new("failover-broken", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let broken = http::get(weir.front(), "/?abort=1000");
    assert!(broken.is_err(), "the client must see that it is not whole: {broken:?}");
    wait::until("the access line", Duration::from_secs(5), || {
        let lines = weir.access();
        lines.iter().find(|line| {
            let line = line.to_string();
            // By a reset, or by an early end.
            line.contains("connection_reset") || line.contains("http_response_incomplete")
        })?;
        Some(())
    });
}

#[test]
fn refused_connections_are_tried_elsewhere_even_with_a_body() {
    let Some(scene) = Scene::new("failover-refused", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    // Nothing listens at host 12; no check, so that only the refusal tells.
    let servers = [app.address(), scene.address(12, 8080)];
    let weir = Weir::start(&scene, &scene.one_service("", &servers));
    for _ in 0..20 {
        let mut connection = http::Connection::open(weir.front()).unwrap();
        // Nothing was sent to anybody yet, so a POST may go elsewhere as well.
        let answer = connection.request("POST", "/", &[], b"body").unwrap();
        assert_eq!((answer.status, &answer.json()["body_bytes"]), (200, &4.into()));
    }
}

#[test]
fn a_kept_connection_that_the_server_closes_costs_no_request() {
    let Some(scene) = Scene::new("failover-stale", &["python3"]) else {
        return;
    };
    // The server closes after 300 ms of silence; Weir would keep for 4 s.
    let app = App::start(&scene, 11, &["--idle-s", "0.3"]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    // Pauses around the server's own timeout: some requests meet the closing.
    std::thread::scope(|scope| {
        let load = |pause: &'static str| {
            let (scene, front) = (&scene, weir.front());
            move || Load::run(scene, front, "/", 4, 3.0, &["--pause-ms", pause])
        };
        let loads = ["295", "300", "305"].map(|pause| scope.spawn(load(pause)));
        for load in loads {
            let seen = load.join().unwrap();
            assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
        }
    });
}

#[test]
fn when_all_are_down_the_answer_is_503_or_all_are_tried() {
    let Some(scene) = Scene::new("failover-all-down", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    app.set("health=500");
    let check = "check = { path = \"/status\", expect = 200, interval = \"50ms\", timeout = \"40ms\", rise = 1, fall = 1 }";
    for (word, status) in [("refuse", 503), ("try-all", 200)] {
        let service = format!("{check}\nwhen_all_down = \"{word}\"");
        let weir = Weir::start(&scene, &scene.one_service(&service, &[app.address()]));
        let address = app.address().to_string();
        // Both runs write to one log file; this run's line is among the last.
        wait::until("the server to be down", Duration::from_secs(5), || {
            let view = weir.api("/api/v1/services/app").to_string();
            (view.contains(&address) && view.contains("\"down\"")).then_some(())
        });
        let answer = http::get(weir.front(), "/").unwrap();
        assert_eq!(answer.status, status, "{word}: {}", answer.text());
    }
}

#[test]
fn runs_of_failures_eject_a_server_for_a_while() {
    let Some(scene) = Scene::new("failover-passive", &["python3"]) else {
        return;
    };
    let apps = [11, 12].map(|host| App::start(&scene, host, &[]));
    apps[0].set("status=500");
    let service = "passive = { failures = 3, eject = \"700ms\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &apps.each_ref().map(App::address)));
    let load = |seconds: f64| Load::run(&scene, weir.front(), "/", 1, seconds, &[]);
    let seen = load(0.4);
    // Three in a row begin the comparison. In it 19 on each side are no chance any more; where chance
    // sent fewer there, fewer are enough: ten of them need 42 on the other side, which happens once
    // in 200,000 runs.
    assert!((13..=60).contains(&seen.status(500)), "some, then no more: {:?}", seen.json);
    weir.wait_for_log(&[&apps[0].address().to_string(), "eject"], Duration::from_secs(5));
    apps[0].set("status=200");
    wait::until("the server to be used again", Duration::from_secs(5), || {
        (load(0.1).served_by("app11") > 0).then_some(())
    });
}
