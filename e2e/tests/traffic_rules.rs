//! The rules on traffic in a real balancer: real faults of real servers, each found while the doctor itself
//! looks at its host only once an hour.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use e2e::clients::Load;
use e2e::{App, Scene, Weir, http, server_tables, wait};
use rustix::process::Signal;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(40);

/// Three servers of one service, clients that request from them all the time, and a balancer.
struct Stage {
    apps: [App; 3],
    weir: Weir,
    load: Load,
}

impl Stage {
    fn new(scene: &Scene, work_ms: &str, service: &str, threads: u32) -> Stage {
        Stage::of(scene, &["--work-ms", work_ms], service, threads)
    }

    /// With these options of the servers.
    fn of(scene: &Scene, words: &[&str], service: &str, threads: u32) -> Stage {
        let apps = [11, 12, 13].map(|host| App::start(scene, host, words));
        let weir = Weir::start(scene, &config(scene, &apps, service));
        let load = Load::start(scene, weir.front(), "/", threads);
        Stage { apps, weir, load }
    }

    /// Changes what the second server does.
    fn set(&self, what: &str) {
        let response = http::get(self.apps[1].address(), &format!("/-/set?{what}")).unwrap();
        assert_eq!(response.status, 200);
    }

    /// Returns `10.1.2.3:8080 of app`.
    fn subject(&self) -> String {
        format!("{} of app", self.apps[1].address())
    }

    /// Returns a rule's finding about a subject, if it is present.
    fn finding(&self, rule: &str, subject: &str) -> Option<Value> {
        let findings = self.weir.api("/api/v1/findings");
        let is_it = |one: &&Value| {
            one["rule"] == rule && one["subject"] == subject && one["is_present"] == true
        };
        findings["findings"].as_array()?.iter().find(is_it).cloned()
    }

    fn wait_for(&self, rule: &str, subject: &str) -> Value {
        wait::until(&format!("{rule} about {subject}"), SOON, || self.finding(rule, subject))
    }

    fn wait_for_end(&self, rule: &str, subject: &str) {
        wait::until(&format!("the end of {rule} about {subject}"), SOON, || {
            self.finding(rule, subject).is_none().then_some(())
        });
    }

    /// Waits until the history has so many seconds: what was before is known then.
    fn wait_for_rows(&self, rows: usize) {
        wait::until("rows of the history", SOON, || {
            let history = self.weir.api("/api/v1/history?kind=server&columns=requests");
            (history["ended_unix_ms"].as_array()?.len() >= rows).then_some(())
        });
    }

    /// Waits until all servers have responded.
    fn wait_for_traffic(&self) {
        wait::until("traffic", SOON, || {
            let traffic = self.weir.api("/api/v1/traffic");
            let servers = traffic["services"][0]["servers"].as_array()?.clone();
            let responds =
                |one: &Value| one["windows"][0]["first_byte"]["p50_ms"].as_f64().is_some();
            (servers.len() == 3 && servers.iter().all(responds)).then_some(())
        });
    }
}

fn config(scene: &Scene, apps: &[App; 3], service: &str) -> String {
    let tables = server_tables("app", apps.each_ref().map(App::address));
    let rest = format!(
        "[doctor]\ninterval = \"1h\"\n[[route]]\nservice = \"app\"\n[service.app]\n{service}\n{tables}"
    );
    scene.config("workers = 2", &rest)
}

#[test]
fn a_server_three_times_slower_than_its_peers_is_found_and_drained() {
    let Some(scene) = Scene::new("rules-slow", &["python3"]) else { return };
    let stage = Stage::new(&scene, "20", "", 4);
    stage.wait_for_traffic();
    stage.wait_for_rows(8);
    let subject = stage.subject();
    assert_eq!(stage.finding("server_slow", &subject), None);
    stage.set("work_ms=60");
    let found = stage.wait_for("server_slow", &subject);
    assert_eq!(found["service"], "app");
    assert_eq!(found["servers"][0], stage.apps[1].address().to_string());
    assert_eq!((&found["severity"], &found["certainty"]), (&"warning".into(), &"certain".into()));
    stage.weir.wait_for_log(&["server_slow", "is slow: its"], SOON);
    is_explained(&scene, &stage, &subject);
    // The remedy is a command that works.
    let remedy = found["remedy"][0]["commands"][0].as_str().unwrap();
    let admin = scene.admin().to_string();
    let words: Vec<&str> = remedy.split(' ').skip(1).chain(["--admin", &admin]).collect();
    assert_eq!(e2e::run(&scene, &words).code, Some(0), "{remedy}");
    stage.wait_for_end("server_slow", &subject);
    let report = stage.load.finish();
    assert_eq!(report.status(200), report.requests());
}

/// The account names the server, when it became slow, and what did not cause it; a bundle has the same.
fn is_explained(scene: &Scene, stage: &Stage, subject: &str) {
    let admin = scene.admin().to_string();
    let moved = format!("{subject} became slower: its median time to the response head");
    let text = wait::until("the account of the slow server", SOON, || {
        let ran = e2e::run(scene, &["explain", "--last", "5m", "--admin", &admin]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.replace("\n          ", " ").contains(&moved).then_some(ran.stdout)
    });
    for part in ["Now: ", "Ruled out: ", "2 other servers", "Example: GET / at ", "weir drain app "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }

    let file = scene.folder().join("bundle.json.gz").display().to_string();
    let saved = e2e::run(scene, &["bundle", "--last", "5m", "-o", &file, "--admin", &admin]);
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(!saved.stderr.contains("not in the bundle"), "{}", saved.stderr);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let read = e2e::run(scene, &["explain", &file, "--json"]);
    let account: Value = serde_json::from_str(&read.stdout).unwrap();
    let events = account["events"].as_array().unwrap();
    let is_it = |one: &&Value| one["measure"] == "first_byte" && one["effect"] == "trouble";
    let slower = events.iter().find(is_it).unwrap();
    assert_eq!(slower["servers"][0], stage.apps[1].address().to_string(), "{account:#}");
    assert_eq!(account["is_present"], true);
}

#[test]
fn a_slower_version_is_named_until_it_is_drained() {
    let Some(scene) = Scene::new("rules-version", &["python3"]) else { return };
    let settings = "version_field = \"X-App-Version\"\npassive = false";
    let words = ["--work-ms", "20", "--version", "2.8.0"];
    let mut stage = Stage::of(&scene, &words, settings, 4);
    stage.wait_for_traffic();
    stage.wait_for_rows(8);
    stage.apps[1].restart_with(&scene, &["--work-ms", "60", "--version", "2.8.1"]);
    let restarted = Instant::now();
    let found = stage.wait_for("deploy_regression", "version 2.8.1 of app");
    println!("found after {:?}", restarted.elapsed());
    let server = stage.apps[1].address().to_string();
    assert_eq!((&found["service"], &found["servers"][0]), (&"app".into(), &server.as_str().into()));
    let what = found["what"].as_str().unwrap();
    assert!(what.starts_with("Version 2.8.1 of app is slow"), "{what}");
    assert!(what.contains("that of version 2.8.0"), "{what}");
    // It explains what another rule sees.
    wait::until("server_slow as a consequence", SOON, || {
        let found = stage.finding("deploy_regression", "version 2.8.1 of app")?;
        (found["consequences"][0]["rule"] == "server_slow").then_some(())
    });
    assert_eq!(stage.finding("server_slow", &stage.subject()), None);
    assert_eq!(stage.weir.api("/api/v1/services/app")["servers"][1]["version"], "2.8.1");
    let changes = stage.weir.api("/api/v1/changes").to_string();
    let stated = format!("{server} of app runs version 2.8.1, before 2.8.0.");
    assert!(changes.contains(&stated), "{changes}");
    // The remedy is a command that works.
    let remedy = found["remedy"][0]["commands"][0].as_str().unwrap();
    let admin = scene.admin().to_string();
    let words: Vec<&str> = remedy.split(' ').skip(1).chain(["--admin", &admin]).collect();
    assert_eq!(e2e::run(&scene, &words).code, Some(0), "{remedy}");
    stage.wait_for_end("deploy_regression", "version 2.8.1 of app");
    drop(stage.load.finish());
}

#[test]
fn a_reload_after_which_all_servers_are_slower_is_named() {
    let Some(scene) = Scene::new("rules-reload", &["python3"]) else { return };
    let stage = Stage::new(&scene, "20", "", 4);
    stage.wait_for_traffic();
    std::thread::sleep(Duration::from_secs(15));
    scene.file("weir.toml", config(&scene, &stage.apps, "idle_connections_max = 1"));
    let admin = scene.admin().to_string();
    assert_eq!(e2e::run(&scene, &["reload", "--admin", &admin]).code, Some(0));
    stage.apps.iter().for_each(|app| app.set("work_ms=80"));
    let found = stage.wait_for("deploy_regression", "configuration 2 of app");
    let what = found["what"].as_str().unwrap();
    assert!(what.starts_with("Since the reload to configuration 2, app's median"), "{what}");
    assert_eq!(found["certainty"], "likely", "{found:#}");
    stage.apps.iter().for_each(|app| app.set("work_ms=20"));
    stage.wait_for_end("deploy_regression", "configuration 2 of app");
    drop(stage.load.finish());
}

#[test]
fn a_server_that_stops_responding_is_found_though_its_port_accepts() {
    let Some(scene) = Scene::new("rules-silent", &["python3"]) else { return };
    let mut stage = Stage::new(&scene, "20", "passive = false", 8);
    stage.wait_for_traffic();
    let subject = stage.subject();
    stage.apps[1].process().signal(Signal::STOP);
    let found = stage.wait_for("server_slow", &subject);
    assert!(found["what"].as_str().unwrap().contains("has not responded for"), "{found:#}");
    assert_eq!(found["severity"], "critical");
    stage.apps[1].process().signal(Signal::CONT);
    stage.wait_for_end("server_slow", &subject);
    drop(stage.load.finish());
}

#[test]
fn a_server_whose_check_passes_while_its_requests_fail() {
    let Some(scene) = Scene::new("rules-blind", &["python3"]) else { return };
    let check = "check = { path = \"/status\", interval = \"1s\" }\npassive = false";
    let stage = Stage::new(&scene, "20", check, 4);
    stage.wait_for_traffic();
    let subject = stage.subject();
    stage.set("status=500");
    let found = stage.wait_for("checks_blind", &subject);
    assert_eq!(found["severity"], "critical", "{found:#}");
    // It explains what another rule sees.
    assert_eq!(stage.finding("server_failing", &subject), None);
    stage.set("status=200");
    stage.wait_for_end("checks_blind", &subject);
    drop(stage.load.finish());
}

#[test]
fn a_saturated_service_says_what_it_would_take() {
    let Some(scene) = Scene::new("rules-saturated", &["python3"]) else { return };
    let limits = "in_flight_max = 2\nqueue = { length_max = 4, wait_max = \"1s\" }";
    let stage = Stage::new(&scene, "100", limits, 16);
    let found = stage.wait_for("service_saturated", "app");
    assert_eq!(found["severity"], "critical", "{found:#}");
    let evidence: Vec<&str> = found["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(evidence.contains(&"requests in flight that this rate needs"), "{evidence:?}");
    drop(stage.load.finish());
}

#[test]
fn a_client_that_floods_is_named() {
    const FLOOD: &str = "127.0.0.77";
    let Some(scene) = Scene::new("rules-flood", &["python3"]) else { return };
    let stage = Stage::new(&scene, "20", "", 2);
    // What is usual must be known for half a minute.
    let last = Instant::now() + Duration::from_secs(110);
    let begins = Instant::now() + Duration::from_secs(42);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flood = || {
            std::thread::sleep(begins.saturating_duration_since(Instant::now()));
            let mut connection =
                http::Connection::open_from(FLOOD.parse().unwrap(), stage.weir.front()).unwrap();
            while !is_over.load(Relaxed) && Instant::now() < last {
                assert_eq!(connection.get("/", &[]).unwrap().status, 200);
            }
        };
        (0..12).for_each(|_| drop(scope.spawn(flood)));
        let bound = begins.saturating_duration_since(Instant::now()) + SOON;
        let subject = format!("{FLOOD} at app");
        let found = wait::until("the flood", bound, || stage.finding("client_spike", &subject));
        is_over.store(true, Relaxed);
        assert!(found["what"].as_str().unwrap().starts_with(FLOOD), "{found:#}");
    });
    drop(stage.load.finish());
}
