//! The API over real sockets on loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use decide::Registry;
use model::{Administrative, Moment};
use serde_json::{Value, json};

const CONFIGURATION: &str = r#"
zone = "a"

[[listener]]
name = "public"
address = "127.0.0.1:8080"

[[route]]
host = "api.example.com"
path = "/listings"
service = "listings"

[service.listings]
in_flight_max = 4

[[service.listings.server]]
address = "127.0.0.1:5001"
zone = "a"

[[service.listings.server]]
address = "[::1]:5002"
zone = "b"
"#;

struct Api {
    handle: admin::Handle,
    registry: Arc<Registry>,
    ready: Arc<AtomicBool>,
}

impl Api {
    fn start() -> Api {
        let checked = config::check(CONFIGURATION, "weir.toml", &())
            .unwrap_or_else(|errors| panic!("{errors:#?}"));
        let registry = Arc::new(Registry::with_seed(0));
        registry.publish(Arc::new(checked.snapshot), Moment::from_millis(1));
        let ready = Arc::new(AtomicBool::new(true));
        let counters = Arc::new(observe::Registry::new());
        let shard = counters.add_shard();
        shard.service(&Arc::from("listings")).attempts.add(7);
        let options = admin::Options {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            registry: Arc::clone(&registry),
            counters,
            plan: Arc::new(|| json!({ "probes": 2 })),
            configuration: Arc::new(|snapshot| json!({ "zone": snapshot.zone.as_deref() })),
            probes: Arc::new(Vec::new),
            ready: Arc::clone(&ready),
            workers: 3,
            version: "1.2.3",
        };
        Api { handle: admin::start(options).unwrap(), registry, ready }
    }

    fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.handle.address()), "")
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let host = self.handle.address();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        self.send(&head, body)
    }

    /// Sends a head without its last line and a body, and reads until the server closes.
    fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.handle.address()).unwrap();
        write!(stream, "{head}Connection: close\r\n\r\n{body}").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }

    /// An answer that is no success says why, to programs and to people.
    #[track_caller]
    fn problem(&self, status: u16, name: &str) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["error"], name);
        problem["message"].as_str().unwrap().to_owned()
    }
}

#[test]
fn status_says_whether_it_takes_work() {
    let api = Api::start();
    let status = api.get("/api/v1/status").json();
    assert_eq!(status["ready"], true);
    assert_eq!(status["version"], "1.2.3");
    assert_eq!(status["workers"], 3);
    assert_eq!(status["generation"], 1);
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["listeners"], json!([{ "name": "public", "address": "127.0.0.1:8080" }]));
    api.ready.store(false, Relaxed);
    assert_eq!(api.get("/api/v1/status").json()["ready"], false);
    api.handle.stop();
}

#[test]
fn a_service_is_shown_with_its_servers() {
    let api = Api::start();
    let service = api.get("/api/v1/services/listings").json();
    assert_eq!(service["tier"], "own_zone");
    assert_eq!(service["eligible"], 1);
    assert_eq!(service["queue"]["length"], 0);
    let server = &service["servers"][0];
    assert_eq!(server["address"], "127.0.0.1:5001");
    assert_eq!(server["zone"], "a");
    assert_eq!(server["in_flight_max"], 4);
    assert_eq!(server["health"], "unknown");
    assert_eq!(server["state"], "ready");
    assert_eq!(api.get("/api/v1/services").json()["services"], json!([service]));
    let message = api.get("/api/v1/services/other").problem(404, "service_not_found");
    assert!(message.ends_with("there are: listings"), "{message}");
}

#[test]
fn a_server_is_put_aside_and_back() {
    let api = Api::start();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let endpoints = || api.registry.current().services[0].endpoints();

    let service = api.post(path, r#"{"state": "drain"}"#).json();
    assert_eq!(service["servers"][0]["state"], "drain");
    assert_eq!(endpoints().all[0].state.administrative(), Administrative::Drain);
    // It counts at once: the own zone has nobody left.
    assert_eq!(service["tier"], "all_zones");
    assert!(!endpoints().is_eligible("127.0.0.1:5001".parse().unwrap()));

    let service = api.post(path, r#"{"state": "ready"}"#).json();
    assert_eq!(service["tier"], "own_zone");

    let v6 = "/api/v1/services/listings/servers/[::1]:5002/state";
    let service = api.post(v6, r#"{"state": "maintenance"}"#).json();
    assert_eq!(service["servers"][1]["state"], "maintenance");
}

#[test]
fn a_mistake_is_told_and_changes_nothing() {
    let api = Api::start();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let other = "/api/v1/services/listings/servers/127.0.0.1:9/state";
    let message = api.post(other, r#"{"state": "drain"}"#).problem(404, "server_not_found");
    assert!(message.ends_with("its servers: 127.0.0.1:5001, [::1]:5002"), "{message}");
    let nowhere = "/api/v1/services/listings/servers/x/state";
    api.post(nowhere, r#"{"state": "drain"}"#).problem(404, "server_not_found");
    let unknown = api.post(path, r#"{"state": "asleep"}"#);
    assert!(unknown.problem(422, "body_not_readable").contains("maintenance"));
    api.post(path, r#"{"state": "drain", "for": 3}"#).problem(422, "body_not_readable");
    api.post(path, "{").problem(400, "body_not_readable");
    let large = format!(r#"{{"state": "{}"}}"#, "x".repeat(5_000));
    api.post(path, &large).problem(413, "body_not_readable");
    api.get(path).problem(405, "method_not_allowed");
    api.get("/api/v2").problem(404, "not_found");
    let state = &api.registry.current().services[0].endpoints().all[0].state.clone();
    assert_eq!(state.administrative(), Administrative::Ready);
}

#[test]
fn web_pages_are_kept_out() {
    let api = Api::start();
    let address = api.handle.address();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";

    let rebound =
        format!("GET /api/v1/status HTTP/1.1\r\nHost: evil.example:{}\r\n", address.port());
    let message = api.send(&rebound, "").problem(421, "host_not_allowed");
    assert!(message.contains("evil.example"), "{message}");
    let absolute = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {address}\r\n");
    api.send(&absolute, "").problem(421, "host_not_allowed");
    let twice = format!("GET / HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n");
    assert_ne!(api.send(&twice, "").status, 200);

    let foreign = format!("GET / HTTP/1.1\r\nHost: {address}\r\nOrigin: https://evil.example\r\n");
    let answer = api.send(&foreign, "");
    answer.problem(403, "origin_not_allowed");
    assert!(!answer.head.contains("access-control-"));
    // What a form of another page could send without asking first.
    let body = r#"{"state": "maintenance"}"#;
    let form = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    api.send(&form, body).problem(415, "body_not_readable");
    let own = format!("GET / HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n");
    assert_eq!(api.send(&own, "").status, 200);
}

#[test]
fn what_it_shows_is_never_kept() {
    let api = Api::start();
    for path in ["/", "/metrics", "/api/v1/status", "/nothing"] {
        let head = api.get(path).head;
        assert!(head.contains("cache-control: no-store"), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
    }
}

#[test]
fn the_page_names_every_endpoint() {
    let api = Api::start();
    let page = api.get("/");
    assert!(page.head.contains("content-type: text/html"));
    for path in ["/metrics", "/api/v1/status", "/api/v1/services", "/api/v1/checks"] {
        assert!(page.body.contains(&format!("href=\"{path}\"")), "{path}");
        assert_eq!(api.get(path).status, 200, "{path}");
    }
}

#[test]
fn metrics_are_what_was_counted_and_what_is_so_now() {
    let api = Api::start();
    let metrics = api.get("/metrics");
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    assert!(metrics.body.contains("service=\"listings\""), "{}", metrics.body);
    assert!(metrics.body.contains("127.0.0.1:5001"), "{}", metrics.body);
}

#[test]
fn the_plan_and_the_configuration_are_shown() {
    let api = Api::start();
    assert_eq!(api.get("/api/v1/checks").json(), json!({ "probes": 2 }));
    let configuration = api.get("/api/v1/configuration").json();
    assert_eq!(configuration, json!({ "generation": 1, "configuration": { "zone": "a" } }));
}

#[test]
fn only_loopback_is_served() {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    assert!(admin::check_address(address("127.0.0.1:9900")).is_ok());
    assert!(admin::check_address(address("[::1]:9900")).is_ok());
    for public in ["0.0.0.0:9900", "[::]:9900", "10.0.0.1:9900"] {
        let message = admin::check_address(address(public)).unwrap_err().to_string();
        assert!(message.starts_with(public) && message.contains("127.0.0.1:9900"), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}
