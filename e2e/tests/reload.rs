//! Reloads and upgrades under traffic: no request is lost, no partly valid configuration comes into
//! force, and the result is reported.

#[path = "scenarios/reload.rs"]
mod scenario;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use e2e::clients::Load;
use e2e::{App, Scene, Weir, http, run, server_tables, wait};
use scenario::Clients;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(5);
/// What the first request of a connection may take to arrive when its listener is removed.
const FIRST_REQUEST_WITHIN: Duration = Duration::from_millis(250);

/// Top-level keys of most of these: the file is read only when a test says so.
const TOP: &str = "workers = 2\ndrain_max = \"3s\"\nreload = { watch = false }";

/// One service `app` on `servers`, with more lines.
fn config(scene: &Scene, servers: &[SocketAddr], more: &str) -> String {
    let servers = server_tables("app", servers);
    scene.config(TOP, &format!("[[route]]\nservice = \"app\"\n[service.app]\n{servers}{more}"))
}

/// A reload through the API that must come into force; its receipt.
fn reload(scene: &Scene, weir: &Weir, text: &str) -> Value {
    scene.file("weir.toml", text);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let receipt = answer.json();
    assert_eq!(receipt["result"], "applied", "{receipt:#}");
    receipt
}

fn refused(weir: &Weir) -> u64 {
    weir.metric("weir_reloads_total", &["result=\"refused\""]) as u64
}

fn last_refused(weir: &Weir) -> bool {
    weir.metric("weir_reload_last_refused", &[]) > 0.5
}

fn listener(name: &str, address: SocketAddr) -> String {
    format!("[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n")
}

#[test]
fn reloads_under_load_lose_nothing() {
    let Some(scene) = Scene::alone("reload-load", &["nginx", "wrk"]) else {
        return;
    };
    let clients = Clients { connections: 20, pause: scenario::PACED, and_quiet: false };
    scenario::reloads(&scene, 10, Duration::from_secs(6), clients).assert_nothing_lost();
}

#[test]
fn an_upgrade_under_load_loses_nothing() {
    let Some(scene) = Scene::alone("upgrade-load", &["nginx", "wrk"]) else {
        return;
    };
    let clients = Clients { connections: 20, pause: scenario::FLAT_OUT, and_quiet: false };
    let (measured, receipt, _successor) = scenario::upgrade(&scene, 9, clients);
    measured.assert_nothing_lost();
    let handed = &receipt["handed_over"];
    assert_eq!(handed["listeners"], serde_json::json!(["public"]), "{receipt:#}");
    assert_eq!(handed["sockets"], 2, "{receipt:#}");
}

#[test]
fn a_refused_file_leaves_the_old_one_serving_and_says_every_mistake() {
    let Some(scene) = Scene::new("reload-refused", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let good = config(&scene, &[app.address()], "");
    let weir = Weir::start(&scene, &good);
    let admin = scene.admin().to_string();
    let bad = good.replace("service = \"app\"", "service = \"ap\"") + "in_flight_max = \"four\"\n";
    let file = scene.file("weir.toml", &bad).to_string_lossy().into_owned();
    let both = [format!("{file}:"), "did you mean".to_owned(), "in_flight_max".to_owned()];

    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
    let finished = run(&scene, &["reload", "--admin", &admin]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for said in [&message, &finished.stderr] {
        assert!(both.iter().all(|word| said.contains(word)), "{both:?} in {said}");
    }
    let from = weir.log().len();
    weir.hang_up();
    weir.wait_for_log_from(from, &["reload refused", "SIGHUP"], SOON);
    weir.wait_for_log_from(from, &["in_flight_max"], SOON);

    // A file that is not there is no configuration either.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(weir.ask("/api/v1/reload").status, 422);
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    assert_eq!(weir.api("/api/v1/status")["generation"], 1);
    assert_eq!(refused(&weir), 4);
    assert!(last_refused(&weir));
    let receipts = weir.api("/api/v1/reloads");
    assert_eq!(receipts["reloads"].as_array().map(Vec::len), Some(4), "{receipts:#}");
    assert_eq!(receipts["reloads"][1]["trigger"], "SIGHUP", "{receipts:#}");

    scene.file("weir.toml", &good);
    let finished = run(&scene, &["reload", "--admin", &admin]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.starts_with("unchanged"), "{finished:?}");
    assert!(!last_refused(&weir));
}

#[test]
fn listeners_come_and_go_and_the_others_notice_nothing() {
    let Some(scene) = Scene::new("reload-listeners", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let [second, third] = [8081, 8082].map(|port| scene.address(1, port));
    let with = |listeners: &str| config(&scene, &[app.address()], listeners);
    let weir = Weir::start(&scene, &with(&listener("second", second)));
    let mut stays = http::Connection::open(weir.front()).unwrap();
    assert_eq!(stays.get("/", &[]).unwrap().status, 200);
    let mut idle = http::Connection::open(second).unwrap();
    assert_eq!(idle.get("/", &[]).unwrap().status, 200);
    wait::measure_for(http::SILENCE);
    let mut running = http::Connection::open(second).unwrap();
    running
        .send(b"POST /?work_ms=700 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
        .unwrap();
    wait::until("the request to run", SOON, || (app.stat("in_flight") == 1).then_some(()));
    let connecting = Instant::now();
    let mut fresh = http::Connection::open(second).unwrap();

    let receipt = reload(&scene, &weir, &with(&listener("third", third)));
    assert!(fresh.is_closed_within(SOON));
    assert!(
        connecting.elapsed() >= FIRST_REQUEST_WITHIN,
        "closed before its first request could arrive"
    );
    let listeners = &receipt["changes"]["listeners"];
    assert_eq!(listeners["added"], serde_json::json!(["third"]), "{receipt:#}");
    assert_eq!(listeners["removed"], serde_json::json!(["second"]), "{receipt:#}");
    assert_eq!(receipt["carried"]["in_flight"], 1, "{receipt:#}");
    assert_eq!(http::get(third, "/").unwrap().status, 200);
    wait::until("the removed one to refuse", SOON, || TcpStream::connect(second).err());
    assert!(idle.is_closed_within(SOON));
    let answer = running.response(false).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["body_bytes"], 5, "{}", answer.text());
    assert_eq!(answer.field("connection"), Some("close"), "{}", answer.head);
    assert_eq!(stays.get("/", &[]).unwrap().status, 200, "its connection is the same");

    // Another name for the same address: no moment without a socket.
    let receipt = reload(&scene, &weir, &with(&listener("renamed", third)));
    assert_eq!(receipt["changes"]["listeners"]["added"], serde_json::json!(["renamed"]));
    assert_eq!(http::get(third, "/").unwrap().status, 200);

    // An address that another process uses cannot be added, and then nothing changes at all.
    let taken = std::net::TcpListener::bind(scene.address(1, 8083)).unwrap();
    let wanted = listener("taken", taken.local_addr().unwrap());
    scene.file("weir.toml", with(&wanted) + "[service.more]\n" + &server_tables("more", [second]));
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("in use"), "{}", answer.text());
    assert_eq!(http::get(third, "/").unwrap().status, 200);
    let services = weir.api("/api/v1/services");
    assert_eq!(services["services"].as_array().map(Vec::len), Some(1), "{services:#}");
    assert_eq!(stays.get("/", &[]).unwrap().status, 200);
}

#[test]
fn what_stays_of_a_service_keeps_what_is_known_of_it() {
    let Some(scene) = Scene::new("reload-servers", &["python3"]) else {
        return;
    };
    let apps = [11, 12, 13].map(|host| App::start(&scene, host, &[]));
    let [one, two, three] = apps.each_ref().map(App::address);
    let weir = Weir::start(&scene, &config(&scene, &[one, two], ""));
    let drained =
        run(&scene, &["drain", "app", &two.to_string(), "--admin", &scene.admin().to_string()]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    let load = Load::start(&scene, weir.front(), "/?size=100", 4);
    wait::until("requests", SOON, || (apps[0].stat("requests") > 50).then_some(()));

    let receipt = reload(&scene, &weir, &config(&scene, &[two, three], ""));
    let servers = &receipt["changes"]["servers"];
    assert_eq!(servers["added"], serde_json::json!([format!("app: {three}")]), "{receipt:#}");
    assert_eq!(servers["removed"], serde_json::json!([format!("app: {one}")]), "{receipt:#}");
    assert_eq!(receipt["carried"]["set_by_hand"], 1, "{receipt:#}");
    wait::until("the new server to work", SOON, || (apps[2].stat("requests") > 50).then_some(()));
    let at_the_change = apps[0].stat("requests");
    wait::measure_for(Duration::from_millis(300));
    assert_eq!(apps[0].stat("requests"), at_the_change, "the removed one gets no more");
    assert_eq!(apps[1].stat("requests"), 0, "the drained one is drained still");
    let seen = load.finish();
    assert_eq!(seen.status(200), seen.requests(), "{seen:?}");
    // Counted before the change and after it.
    let counted = weir.metric("weir_listener_requests_total", &["cause=\"completed\""]);
    assert!(counted >= seen.requests() as f64, "{counted} of {}", seen.requests());
}

#[test]
fn a_change_of_the_file_is_noticed_when_it_is_over() {
    let Some(scene) = Scene::new("reload-watch", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    // Watching is what happens when nothing is said about it.
    let before = scene.one_service("", &[app.address()]);
    let weir = Weir::start(&scene, &before);
    let denied = |path: &str| http::get(weir.front(), path).unwrap().status == 418;
    assert!(!denied("/secret"));
    let after = format!("{before}\n[[route]]\npath = \"/secret\"\ndeny = 418\n");
    // As an editor saves: a new file takes the name of the old one.
    let new = scene.file("weir.toml.new", &after);
    std::fs::rename(new, scene.folder().join("weir.toml")).unwrap();
    wait::until("the change to be noticed", SOON, || denied("/secret").then_some(()));
    // The receipt is written once the change is in force.
    let trigger = || weir.api("/api/v1/reloads")["reloads"].get(0)?.get("trigger").cloned();
    assert_eq!(wait::until("the receipt", SOON, trigger), "file");

    // Half a file, or one with a mistake: reported once, and the old one serves on.
    let from = weir.log().len();
    let mut file = std::fs::File::create(scene.folder().join("weir.toml")).unwrap();
    file.write_all(&after.as_bytes()[..after.len() / 2]).unwrap();
    weir.wait_for_log_from(from, &["reload refused", "file"], SOON);
    file.write_all(&after.as_bytes()[after.len() / 2..]).unwrap();
    weir.wait_for_log_from(from, &["the file says what is in force"], SOON);
    assert_eq!(refused(&weir), 1);
    assert!(denied("/secret"));
}

#[test]
fn sighup_opens_the_access_log_anew_and_a_reload_moves_it() {
    let Some(scene) = Scene::new("reload-log", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let path = |name: &str| scene.folder().join(name);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(path(name)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    let with = |log: &str| {
        let log = format!("[log]\naccess = \"{}\"\n", path(log).display());
        config(&scene, &[app.address()], &log)
    };
    let weir = Weir::start(&scene, &with("access.log"));
    let get = |target: &str, log: &str| {
        assert_eq!(http::get(weir.front(), target).unwrap().status, 200);
        wait::until(&format!("{target} in {log}"), SOON, || {
            lines(log).iter().any(|line| line["path"] == target).then_some(())
        });
    };
    get("/one", "access.log");
    std::fs::rename(path("access.log"), path("access.log.1")).unwrap();
    get("/two", "access.log.1");
    weir.hang_up();
    wait::until("a new log", SOON, || path("access.log").exists().then_some(()));
    get("/three", "access.log");
    reload(&scene, &weir, &with("moved.log"));
    get("/four", "moved.log");
    let counts = ["access.log.1", "access.log", "moved.log"].map(|log| lines(log).len());
    assert_eq!(counts, [2, 1, 1]);
    // One that cannot be opened is refused.
    scene.file("weir.toml", with("nowhere/access.log"));
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    get("/five", "moved.log");
}

#[test]
fn what_only_a_new_process_can_follow_is_named_and_an_upgrade_follows_it() {
    let Some(scene) = Scene::new("reload-waiting", &["python3"]) else {
        return;
    };
    let apps = [11, 12].map(|host| App::start(&scene, host, &[]));
    let [one, two] = apps.each_ref().map(App::address);
    let admin = scene.admin().to_string();
    let before = config(&scene, &[one, two], "");
    let mut weir = Weir::start(&scene, &before);
    let receipt = reload(&scene, &weir, &before.replace("workers = 2", "workers = 3"));
    assert_eq!(
        receipt["waiting_for_upgrade"],
        serde_json::json!(["workers: 2 → 3"]),
        "{receipt:#}"
    );
    assert_eq!(weir.api("/api/v1/status")["workers"], 2);

    // The new process knows what people have said of servers.
    let drained = run(&scene, &["drain", "app", &two.to_string(), "--admin", &admin]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    let mut running = http::Connection::open(weir.front()).unwrap();
    running.send(b"GET /?work_ms=1000 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut idle = http::Connection::open(weir.front()).unwrap();
    assert_eq!(idle.get("/", &[]).unwrap().status, 200);
    wait::until("the request to run", SOON, || (apps[0].stat("in_flight") == 1).then_some(()));

    let old = weir.process().pid();
    let (receipt, successor) = {
        let answer = weir.ask("/api/v1/upgrade");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let receipt = answer.json();
        let successor = e2e::NewProcess::of(&receipt);
        (receipt, successor)
    };
    assert_eq!(receipt["predecessor"]["pid"], old, "{receipt:#}");
    assert!(weir.process().is_running(), "it has something to finish");
    // A connection that is idle when the old process leaves is good for one more request. It leaves just after the
    // answer.
    weir.wait_for_log(&["leaving"], SOON);
    let last = idle.request("POST", "/", &[], b"hello").unwrap();
    assert_eq!((last.status, last.field("connection")), (200, Some("close")), "{}", last.head);
    assert_eq!(running.response(false).unwrap().status, 200);
    assert_eq!(weir.process().wait(SOON).code, Some(0));
    let status = weir.api("/api/v1/status");
    assert_eq!((&status["pid"], &status["workers"]), (&successor.pid().into(), &3.into()));
    let service = weir.api("/api/v1/services/app");
    assert_eq!(service["servers"][1]["state"], "drain", "{service:#}");
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    assert_eq!(apps[1].stat("requests"), 0);

    // It can be stopped and reloaded like any other.
    let receipt = reload(&scene, &weir, &before);
    assert_eq!(receipt["waiting_for_upgrade"], serde_json::json!(["workers: 3 → 2"]));
    successor.signal(rustix::process::Signal::TERM);
    wait::until("the new process to end", SOON, || (!successor.is_running()).then_some(()));
    assert!(TcpStream::connect(weir.front()).is_err());
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let Some(scene) = Scene::new("upgrade-fails", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let good = config(&scene, &[app.address()], "");
    let mut weir = Weir::start(&scene, &good);
    let mut kept = http::Connection::open(weir.front()).unwrap();
    assert_eq!(kept.get("/", &[]).unwrap().status, 200);
    let taken = std::net::TcpListener::bind(scene.address(1, 8083)).unwrap();
    let wanted = listener("taken", taken.local_addr().unwrap());
    for (text, why) in [
        (good.replace("[service.app]", "[service.app]\nin_flight_max = \"four\""), "in_flight_max"),
        (good.clone() + &wanted, "in use"),
    ] {
        scene.file("weir.toml", text);
        let finished = run(&scene, &["upgrade", "--admin", &scene.admin().to_string()]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(why), "{why} in {}", finished.stderr);
        weir.wait_for_log(&["upgrade failed", "continues to serve"], SOON);
        assert_eq!(kept.get("/", &[]).unwrap().status, 200);
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    }
    assert!(weir.process().is_running());
    scene.file("weir.toml", &good);
    let (_, successor) = weir.upgrade(SOON);
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);

    // The next one takes over from that, asked by a signal.
    successor.signal(rustix::process::Signal::USR2);
    wait::until("the first new process to end", SOON, || (!successor.is_running()).then_some(()));
    let _second = e2e::NewProcess::of(&weir.api("/api/v1/status"));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
}

#[test]
fn an_upgrade_keeps_the_unix_socket_of_the_admin_api() {
    let Some(scene) = Scene::new("upgrade-unix", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let socket = scene.folder().join("admin.sock");
    let admin = format!("unix:{}", socket.display());
    let text = config(&scene, &[app.address()], "").replace(&scene.admin().to_string(), &admin);
    let mut weir = Weir::start_unready(&scene, &text, &[]);
    let status = || {
        let finished = run(&scene, &["status", "--json", "--admin", &admin]);
        (finished.code == Some(0)).then(|| serde_json::from_str::<Value>(&finished.stdout).unwrap())
    };
    wait::until("the admin API", SOON, status);
    let finished = run(&scene, &["upgrade", "--json", "--admin", &admin]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let successor = e2e::NewProcess::of(&serde_json::from_str(&finished.stdout).unwrap());
    assert_eq!(weir.wait(SOON).code, Some(0));
    assert!(socket.exists(), "the old process leaves it to the new one");
    assert!(status().is_some());
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    successor.signal(rustix::process::Signal::TERM);
    wait::until("the new process to end", SOON, || (!successor.is_running()).then_some(()));
    assert!(!socket.exists(), "and that removes it");
}
