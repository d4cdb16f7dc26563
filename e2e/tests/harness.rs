//! Tests of the harness: the peers count, delay, abort and disappear as the other tests expect. Weir does
//! not run here.

use std::time::Duration;

use e2e::clients::{Load, ab, curl, wrk};
use e2e::{App, Haproxy, NAMESPACES, Nginx, Scene, Zones, http, wait};

#[test]
fn the_app_counts_what_runs_at_once() {
    let Some(scene) = Scene::new("harness-app", &["python3", "wrk"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "20"]);
    let seen = wrk(&scene, app.address(), "/", 5, 1);
    assert_eq!((seen.non_2xx_3xx, seen.socket_errors), (0, 0), "{seen:?}");
    let stats = app.stats();
    assert_eq!(stats["in_flight_max"], 5);
    assert_eq!(stats["probes"], 0);
    let busy = stats["busy_s"].as_f64().unwrap();
    assert!(busy > 4.0 && busy < 6.0, "five slots for a second: {stats}");
    assert!(stats["requests"].as_u64().unwrap() >= seen.requests);
}

#[test]
fn the_app_answers_as_asked() {
    let Some(scene) = Scene::new("harness-answers", &["python3"]) else {
        return;
    };
    let mut app = App::start(&scene, 11, &[]);
    let mut connection = http::Connection::open(app.address()).unwrap();
    let echo = connection.request("POST", "/a?b=c", &["X-A: b"], b"12345").unwrap();
    assert_eq!(echo.json()["body_bytes"], 5);
    assert_eq!(echo.json()["target"], "/a?b=c");
    assert_eq!(connection.get("/?status=204", &[]).unwrap().status, 204);
    let chunked = connection.get("/?trailer=1&size=1000", &[]).unwrap();
    assert_eq!((chunked.body.len(), chunked.trailers.as_str()), (1000, "X-Sum: 1000\r\n"));
    assert_eq!(connection.get("/?early=1", &[]).unwrap().status, 103);
    assert_eq!(connection.response(false).unwrap().status, 200);
    assert_eq!(connection.get("/?until_close=1&size=9", &[]).unwrap().body.len(), 9);
    assert!(http::get(app.address(), "/?abort=10").is_err(), "it promises more than it sends");
    app.set("health=503");
    assert_eq!(http::get(app.address(), "/status").unwrap().status, 503);
    assert_eq!(app.stat("probes"), 1);
    app.restart(&scene);
    assert_eq!(app.stat("probes"), 0);
}

#[test]
fn load_tells_every_end_apart() {
    let Some(scene) = Scene::new("harness-load", &["python3"]) else {
        return;
    };
    let mut app = App::start(&scene, 11, &["--work-ms", "5"]);
    let load = Load::start(&scene, app.address(), "/?size=2000&drip_ms=20", 4);
    wait::until("requests", Duration::from_secs(5), || (app.stat("requests") >= 8).then_some(()));
    app.kill();
    let report = load.finish();
    assert!(report.status(200) >= 4, "{:?}", report.json);
    assert!(report.broken_off() + report.without_response() >= 4, "{:?}", report.json);
    assert_eq!(report.served_by("app11"), report.status(200));
}

#[test]
fn nginx_haproxy_ab_and_curl_work_together() {
    let needs = ["nginx", "haproxy", "ab", "curl"];
    let Some(scene) = Scene::new("harness-nginx", &needs) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "location = /teapot { return 418; }");
    let front = scene.front();
    let config = format!(
        "defaults\n mode http\n timeout client 9s\n timeout server 9s\n timeout connect 1s\n\
         listen all\n bind {front}\n server s {}\n",
        nginx.address()
    );
    let _haproxy = Haproxy::start(&scene, &config, front);
    let seen = ab(&scene, front, "/", 4, 1);
    assert!(seen.complete > 100 && seen.failed == 0 && seen.non_2xx == 0, "{seen:?}");
    let answer = curl(&scene, &["-w", "%{http_code}", &format!("http://{front}/teapot")]);
    assert!(answer.stdout.ends_with("418"), "{answer:?}");
}

#[test]
fn a_zone_can_be_cut_off_and_brought_back() {
    let Some(scene) = Scene::new("harness-zones", &["python3", NAMESPACES]) else {
        return;
    };
    Zones::run(&["a", "b"], |zones| {
        let start = |zone: &str| {
            let address = zones.address(zone, 11, 8080);
            zones.inside(zone, || App::start_at(&scene, zone, address, &[]))
        };
        let (a, b) = (start("a"), start("b"));
        let reaches = |app: &App| {
            let short = Duration::from_millis(300);
            std::net::TcpStream::connect_timeout(&app.address(), short).is_ok()
        };
        assert!(reaches(&a) && reaches(&b));
        zones.cut("b");
        assert!(reaches(&a) && !reaches(&b));
        zones.restore("b");
        assert!(reaches(&a) && reaches(&b));
    });
}
