//! Concurrency limits and the queue: exact across all workers, shared by address, first come first
//! served, and the answers when the queue is full.

#[path = "scenarios/limits.rs"]
mod scenario;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e2e::rogue::Rogue;
use e2e::{App, Scene, Weir, http, wait};

#[test]
fn a_server_never_sees_more_than_its_limit() {
    let Some(scene) = Scene::alone("limits-wrk", &["python3", "wrk"]) else {
        return;
    };
    scenario::never_more_than_the_limit(&scene, 4);
}

#[test]
fn services_that_name_one_address_share_its_limit() {
    let Some(scene) = Scene::new("limits-shared", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "30"]);
    let service = |name: &str| {
        let server = e2e::server_tables(name, [app.address()]);
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\nin_flight_max = 3\n{server}"
        )
    };
    let config = scene.config("workers = 2", &(service("one") + &service("two")));
    let weir = Weir::start(&scene, &config);
    std::thread::scope(|scope| {
        for n in 0..24 {
            let target = if n % 2 == 0 { "/one" } else { "/two" };
            let front = weir.front();
            scope.spawn(move || {
                let mut connection = http::Connection::open(front).unwrap();
                for _ in 0..5 {
                    assert_eq!(connection.get(target, &[]).unwrap().status, 200);
                }
            });
        }
    });
    assert_eq!(app.stat("in_flight_max"), 3);
    assert_eq!(app.stat("requests"), 120);
}

#[test]
fn each_server_keeps_to_its_own_limit() {
    let Some(scene) = Scene::new("limits-own", &["python3"]) else {
        return;
    };
    let (small, large) = (
        App::start(&scene, 11, &["--work-ms", "30"]),
        App::start(&scene, 12, &["--work-ms", "30"]),
    );
    let servers = format!(
        "[[service.app.server]]\naddress = \"{}\"\nin_flight_max = 1\n{}",
        small.address(),
        e2e::server_tables("app", [large.address()])
    );
    let service =
        "[service.app]\nin_flight_max = 3\nqueue = { length_max = 100, wait_max = \"20s\" }";
    let config =
        scene.config("workers = 2", &format!("[[route]]\nservice = \"app\"\n{service}\n{servers}"));
    let weir = Weir::start(&scene, &config);
    std::thread::scope(|scope| {
        for _ in 0..24 {
            let front = weir.front();
            scope.spawn(move || {
                let mut connection = http::Connection::open(front).unwrap();
                for _ in 0..5 {
                    assert_eq!(connection.get("/", &[]).unwrap().status, 200);
                }
            });
        }
    });
    assert_eq!((small.stat("in_flight_max"), large.stat("in_flight_max")), (1, 3));
    assert_eq!(small.stat("requests") + large.stat("requests"), 120);
}

#[test]
fn the_queue_is_first_come_first_served() {
    let Some(scene) = Scene::alone("limits-order", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "100"]);
    let weir = Weir::start(&scene, &scene.one_service("in_flight_max = 1", &[app.address()]));
    let finished = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for n in 0..8_u64 {
            let (finished, front) = (&finished, weir.front());
            let open = http::Connection::open(front).unwrap();
            scope.spawn(move || {
                let mut connection = open;
                assert_eq!(connection.get("/", &[]).unwrap().status, 200);
                finished.lock().unwrap().push(n);
            });
            // The next one comes when this one runs, or stands in the queue.
            wait::until("the request to be in line", Duration::from_secs(5), || {
                let in_line = app.stat("in_flight") + weir.queue_length("app");
                let done = finished.lock().unwrap().len() as u64;
                (done + in_line > n).then_some(())
            });
        }
    });
    assert_eq!(*finished.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_full_queue_is_answered_429_with_retry_after() {
    let Some(scene) = Scene::alone("limits-full", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "600"]);
    let service = "in_flight_max = 1\nqueue = { length_max = 2, wait_max = \"10s\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    let answers = at_once(weir.front(), 10);
    let with = |status: u16| answers.iter().filter(move |answer| answer.status == status);
    assert_eq!(with(200).count(), 3, "one runs, two wait: {answers:?}");
    assert_eq!(with(429).count(), 7, "{answers:?}");
    for refused in with(429) {
        let seconds = refused.field("retry-after").expect("a Retry-After");
        assert!((1..=10).contains(&seconds.parse::<u32>().unwrap()), "{seconds}");
    }
    assert_eq!(app.stat("in_flight_max"), 1);
    let causes: Vec<_> = wait::until("the access lines", Duration::from_secs(5), || {
        let lines = weir.access();
        (lines.len() >= 10).then_some(lines)
    });
    let full = causes.iter().filter(|line| line.to_string().contains("queue_full")).count();
    assert_eq!(full, 7, "each refusal says why");
}

#[test]
fn who_waits_too_long_is_answered_as_configured() {
    let Some(scene) = Scene::new("limits-wait", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "1500"]);
    let service =
        "in_flight_max = 1\nwhen_full = 503\nqueue = { length_max = 10, wait_max = \"200ms\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    let answers = at_once(weir.front(), 3);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|&&status| status == 503).count(), 2, "{statuses:?}");
    assert!(answers.iter().all(|a| a.status == 200 || a.field("retry-after").is_some()));
}

#[test]
fn a_tunnel_holds_its_slot() {
    let Some(scene) = Scene::new("limits-tunnel", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let service = "in_flight_max = 1\nqueue = { length_max = 0 }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    let mut tunnel = http::Connection::open(weir.front()).unwrap();
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    tunnel.send(upgrade).unwrap();
    assert_eq!(tunnel.response(false).unwrap().status, 101);
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 429);
    drop(tunnel);
    wait::until("the slot to be free again", Duration::from_secs(5), || {
        (http::get(weir.front(), "/").ok()?.status == 200).then_some(())
    });
}

#[test]
fn a_refused_upgrade_holds_its_slot_until_its_server_is_done() {
    let Some(scene) = Scene::new("limits-upgrade-refused", &[]) else {
        return;
    };
    let is_working = Arc::new(AtomicBool::new(false));
    let working = Arc::clone(&is_working);
    let server = Rogue::start(scene.address(11, 8080), move |peer| {
        let Some(head) = peer.head() else { return };
        assert!(!working.load(Ordering::SeqCst), "two requests at a time");
        if head.starts_with("GET /upgrade") {
            working.store(true, Ordering::SeqCst);
            peer.say("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
            // It works on although Weir has given up.
            peer.hold();
            wait::measure_for(Duration::from_millis(500));
            working.store(false, Ordering::SeqCst);
        } else {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let service = "in_flight_max = 1\nqueue = { length_max = 5, wait_max = \"1m\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[server.address()]));
    let mut asking = http::Connection::open(weir.front()).unwrap();
    asking
        .send(
            b"GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
              Upgrade: websocket\r\n\r\n",
        )
        .unwrap();
    assert_eq!(asking.response(false).unwrap().status, 502);
    assert!(is_working.load(Ordering::SeqCst), "the answer does not wait for the server");
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    assert!(!is_working.load(Ordering::SeqCst));
}

#[test]
fn a_client_that_goes_away_leaves_the_queue() {
    let Some(scene) = Scene::new("limits-leave", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--work-ms", "7000"]);
    let service = "in_flight_max = 1\nqueue = { length_max = 5, wait_max = \"1m\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    let send = || {
        let mut connection = http::Connection::open(weir.front()).unwrap();
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        connection
    };
    let mut first = send();
    let in_flight = || (app.stat("in_flight") == 1).then_some(());
    wait::until("the first to run", Duration::from_secs(5), in_flight);
    let waiting: Vec<_> = (0..4).map(|_| send()).collect();
    let queued = |n: u64| move |length: u64| (length == n).then_some(());
    let length = || weir.queue_length("app");
    wait::until("four to wait", Duration::from_secs(5), || queued(4)(length()));
    drop(waiting);
    wait::until("no request to wait", Duration::from_secs(5), || queued(0)(length()));
    assert_eq!(app.stat("in_flight"), 1, "they left before there was a slot for them");
    assert_eq!(first.response(false).unwrap().status, 200);
    assert_eq!(app.stat("requests"), 1, "the server never saw those who left");
}

#[test]
fn a_request_rate_is_kept_per_key() {
    let Some(scene) = Scene::new("limits-rate", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let config = scene.config(
        "",
        &format!(
            "[[route]]\nservice = \"app\"\n\
             rate_limit = {{ requests = 1, per = \"1h\", burst = 3, by = \"header:X-Key\" }}\n\
             [service.app]\n{}",
            e2e::server_tables("app", [app.address()])
        ),
    );
    let weir = Weir::start(&scene, &config);
    let statuses = |key: &str| -> Vec<u16> {
        let field = format!("X-Key: {key}");
        let get = |_| http::get_with(weir.front(), "/", &[&field]).unwrap().status;
        (0..5).map(get).collect()
    };
    assert_eq!(statuses("one"), [200, 200, 200, 429, 429]);
    assert_eq!(statuses("two"), [200, 200, 200, 429, 429]);
    let refused = http::get_with(weir.front(), "/", &["X-Key: one"]).unwrap();
    assert!(refused.field("retry-after").is_some(), "{}", refused.head);
}

/// A request passes all rates of its route or counts for none, and its response says what is left.
#[test]
fn a_request_keeps_all_rates_of_its_route() {
    let Some(scene) = Scene::new("limits-rates", &["python3", "curl"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let short = "{ name = \"short\", requests = 2, per = \"1h\", by = \"header:X-Key\" }";
    let long =
        "{ name = \"long\", requests = 3, per = \"1d\", by = \"cookie:session\", headers = true }";
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[route]]\nservice = \"app\"\nrate_limit = [{short}, {long}]\n\
             response_header = {{ set = {{ RateLimit = \"\\\"tea\\\";r=1\" }} }}\n\
             [service.app]\n{}",
            e2e::server_tables("app", [app.address()])
        ),
    );
    let weir = Weir::start(&scene, &config);
    let get = |fields: &[&str]| http::get_with(weir.front(), "/", fields).unwrap();
    let status = |key: &str, session: &str| {
        get(&[&format!("X-Key: {key}"), &format!("Cookie: a=b; session={session}")]).status
    };
    let told = |response: &http::Response| {
        let values = |name: &str| {
            let named = response.fields.iter().filter(|(field, _)| field == name);
            named.map(|(_, value)| value.clone()).collect::<Vec<_>>().join(", ")
        };
        [values("ratelimit-policy"), values("ratelimit")]
    };
    let first = get(&["X-Key: a", "Cookie: session=1"]);
    assert_eq!(first.status, 200);
    let policy = "\"long\";q=3;w=86400".to_owned();
    assert_eq!(told(&first), [policy.clone(), "\"tea\";r=1, \"long\";r=2;t=28800".into()]);
    assert_eq!([status("a", "1"), status("a", "1")], [200, 429]);
    // The refused request did not count for the other rate.
    assert_eq!([status("b", "1"), status("b", "1")], [200, 429]);
    assert_eq!([status("b", "2"), status("b", "2")], [200, 429]);
    let refused = get(&["X-Key: c", "Cookie: session=1"]);
    assert_eq!((refused.status, &told(&refused)[0]), (429, &policy));
    assert!(told(&refused)[1].starts_with("\"long\";r=0;t=86"), "{}", refused.head);
    let retry_after: u64 = refused.field("retry-after").unwrap().parse().unwrap();
    assert!((28_000..=28_800).contains(&retry_after), "{}", refused.head);
    let lines = wait::until("the access lines", Duration::from_secs(10), || {
        Some(weir.access()).filter(|lines| lines.len() >= 8)
    });
    let refused = lines.iter().filter(|line| line["cause"] == "rate_limited");
    let details: Vec<_> = refused.map(|line| line["detail"].as_str().unwrap()).collect();
    assert_eq!(details, ["short", "long", "short", "long"]);
    // Those with several values share one allowance: a server may read another of them than Weir.
    for (key, statuses) in [("d", [200, 200]), ("e", [429, 429])] {
        let several = [&*format!("X-Key: {key}"), "X-Key: x", "Cookie: session=9"];
        // A cookie of its own for each, so that only the field counts.
        let one = get(&several).status;
        assert_eq!([one, get(&several[..2]).status], statuses, "{key}");
    }
    let url = format!("http://{}/", weir.front());
    let cookie = ["-i", "--http2-prior-knowledge", "-H", "Cookie: session=7", &url];
    let seen = e2e::clients::curl(&scene, &cookie).stdout.replace('\r', "");
    assert!(seen.contains("\nratelimit-policy: \"long\";q=3;w=86400\n"), "{seen}");
    assert!(seen.contains("\nratelimit: \"long\";r=2;t=28800\n"), "{seen}");
}

/// With `wait_max` a rate spreads requests over time, and refuses those that would wait for longer.
#[test]
fn a_request_rate_may_be_waited_for() {
    let Some(scene) = Scene::new("limits-rate-wait", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let route = |path: &str, limit: &str| {
        format!("[[route]]\npath = \"{path}\"\nservice = \"app\"\nrate_limit = {{ {limit} }}\n")
    };
    let config = scene.config(
        "",
        &format!(
            "{}{}[service.app]\n{}",
            route("/soon", "requests = 20, per = \"1s\", burst = 1, wait_max = \"1m\""),
            route("/late", "requests = 1, per = \"30s\", burst = 1, wait_max = \"35s\""),
            e2e::server_tables("app", [app.address()])
        ),
    );
    let weir = Weir::start(&scene, &config);
    let began = std::time::Instant::now();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let get = || http::get(weir.front(), "/soon").unwrap().status;
        let all: Vec<_> = (0..5).map(|_| scope.spawn(get)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; 5]);
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    // The second waits for 30 s, and leaves; the third would wait for 60.
    assert_eq!(http::get(weir.front(), "/late").unwrap().status, 200);
    let mut waiting = http::Connection::open(weir.front()).unwrap();
    waiting.send(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    wait::until("the second to wait", Duration::from_secs(10), || {
        (weir.api("/api/v1/requests")["requests"].as_array()?.len() == 1).then_some(())
    });
    assert_eq!(http::get(weir.front(), "/late").unwrap().status, 429);
    drop(waiting);
    wait::until("the second to be missed", Duration::from_secs(10), || {
        weir.access().iter().any(|line| line["cause"] == "client_closed").then_some(())
    });
}

#[test]
fn too_many_open_files_pause_accepting_and_do_not_spin() {
    let Some(scene) = Scene::alone("limits-emfile", &["python3", "prlimit"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let config = scene.one_service("", &[app.address()]);
    let mut weir = Weir::start_by(&scene, &config, &["prlimit", "--nofile=96:96"]);
    let mut held: Vec<_> =
        (0..150).map(|_| http::Connection::open(weir.front()).unwrap()).collect();
    // The newest wait in the backlog; how many does not matter, only what that costs.
    // A thread that spins never sleeps, however little of the processors it is given.
    let looks = 200;
    let asleep = (0..looks).filter(|_| {
        wait::measure_for(Duration::from_millis(5));
        weir.process().is_asleep()
    });
    let asleep = asleep.count();
    assert!(asleep > looks / 4, "asleep in {asleep} of {looks} looks");
    assert!(weir.process().is_running());
    held.drain(..120);
    wait::until("connections to be accepted again", Duration::from_secs(10), || {
        (http::get(weir.front(), "/").ok()?.status == 200).then_some(())
    });
    for mut connection in held {
        assert_eq!(connection.get("/", &[]).unwrap().status, 200, "who waited is served");
    }
}

/// Sends `count` GETs at once, each on a connection opened before; yields the answers.
fn at_once(front: std::net::SocketAddr, count: usize) -> Vec<http::Response> {
    let mut connections: Vec<_> =
        (0..count).map(|_| http::Connection::open(front).unwrap()).collect();
    for connection in &mut connections {
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    connections.iter_mut().map(|connection| connection.response(false).unwrap()).collect()
}
