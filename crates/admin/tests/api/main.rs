//! The API over real sockets on loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod changes;
mod dashboard;
mod document;
mod door;
mod metrics_document;
mod rig;
mod stream;
mod traffic;

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use admin::Sources;
use model::Cause;
use serde_json::{Value, json};

use rig::Api;

#[test]
fn status_says_whether_it_takes_work() {
    let api = Api::start();
    let status = api.get("/api/v1/status").json();
    assert_eq!(status["ready"], true);
    assert_eq!(status["version"], "1.2.3");
    assert_eq!(status["workers"], 3);
    assert_eq!(status["generation"], 1);
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["zone"], "a");
    assert_eq!(status["connections"], json!({ "open": 2, "open_max": 32_768 }));
    let listener = json!({
        "name": "public",
        "address": "127.0.0.1:8080",
        "protocol": "http",
        "connections": { "open": 2, "open_max": 32_768 },
        "registration": {
            "service": "edge",
            "id": "weir-edge-8080",
            "address": "10.0.0.5:8080",
            "check": "passing",
            "registered_for_ms": 1500.0,
            "failing_for_ms": 12.0,
            "error": "Consul answers 500",
        },
    });
    assert_eq!(status["listeners"], json!([listener]));
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
fn web_pages_are_kept_out() {
    let api = Api::start();
    let address = api.authority();
    let port = address.rsplit(':').next().unwrap();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";

    let rebound = format!("GET /api/v1/status HTTP/1.1\r\nHost: evil.example:{port}\r\n");
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

/// What the page links to.
const PAGES: [&str; 10] = [
    "/metrics",
    "/api/v1/openapi.json",
    "/api/v1/status",
    "/api/v1/services",
    "/api/v1/requests",
    "/api/v1/causes",
    "/api/v1/checks",
    "/api/v1/findings",
    "/api/v1/configuration",
    "/api/v1/reloads",
];

#[test]
fn the_page_names_every_endpoint() {
    let api = Api::start();
    let page = api.get("/");
    assert!(page.head.contains("content-type: text/html"));
    for path in PAGES {
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
    let idle = "weir_server_idle_connections{service=\"listings\",server=\"127.0.0.1:5001\"";
    assert!(metrics.body.contains(idle), "{}", metrics.body);
    assert!(metrics.body.contains("weir_probes_total{address=\"127.0.0.1:5001\"} 10\n"));
    // What is unknown is left out.
    let api = Api::with(Sources { idle_connections: None, ..rig::sources() });
    assert!(!api.get("/metrics").body.contains("idle_connections"));
    let open = api.get_with("/metrics", "Accept: application/openmetrics-text");
    assert!(open.body.ends_with("# EOF\n"), "{}", open.body);
}

#[test]
fn the_plan_and_the_configuration_are_shown() {
    let api = Api::start();
    let plan = api.get("/api/v1/checks").json();
    assert_eq!((&plan["probes"], &plan["endpoints"][0]["ended"]), (&json!(2), &json!(10)));
    let configuration = api.get("/api/v1/configuration").json();
    assert_eq!(configuration, json!({ "generation": 1, "configuration": { "zone": "a" } }));
}

#[test]
fn causes_are_told_with_their_meaning_and_their_counts() {
    let api = Api::start();
    let all = api.get("/api/v1/causes").json();
    assert_eq!(all["requests"], 3);
    let causes = all["causes"].as_array().unwrap();
    assert_eq!(causes.len(), Cause::ALL.len());
    let full = api.get("/api/v1/causes/queue_full").json();
    assert!(causes.contains(&full));
    assert_eq!((&full["count"], &full["services"]), (&json!(1), &json!({ "listings": 1 })));
    assert_eq!((&full["fault"], &full["status"]), (&json!("server"), &json!(429)));
    assert!(full["what"].as_str().unwrap().starts_with(full["summary"].as_str().unwrap()));
    // One that found no service.
    let nowhere = api.get("/api/v1/causes/destination_not_found").json();
    assert_eq!((&nowhere["count"], &nowhere["services"]), (&json!(1), &json!({})));
    api.get("/api/v1/causes/other").problem(404, "cause_not_found");
}

#[test]
fn what_is_under_way_is_shown_slowest_first() {
    let api = Api::start();
    let ids = |query: &str| -> (Value, Vec<Value>) {
        let answer = api.get(&format!("/api/v1/requests{query}")).json();
        let requests = answer["requests"].as_array().unwrap();
        (answer["matching"].clone(), requests.iter().map(|one| one["request_id"].clone()).collect())
    };
    assert_eq!(ids(""), (json!(2), vec![json!("b"), json!("a")]));
    assert_eq!(ids("?limit=1"), (json!(2), vec![json!("b")]));
    assert_eq!(ids("?service=listings").1.len(), 2);
    assert_eq!(ids("?service=other"), (json!(0), vec![]));
    assert_eq!(ids("?longer_than_ms=86400000").0, json!(0));
    assert_eq!(api.get("/api/v1/requests").json()["workers_silent"], 1);
    assert_eq!(api.get("/api/v1/requests?service=other").json()["in_flight"], 2);
    let one = &api.get("/api/v1/requests").json()["requests"][0];
    assert_eq!((&one["stage"], &one["server"]), (&json!("response"), &json!("127.0.0.1:5001")));
    api.get("/api/v1/requests?limit=few").problem(400, "query_not_readable");
    api.get("/api/v1/requests?limits=1").problem(400, "query_not_readable");
    let api = Api::with(Sources { in_flight: None, ..rig::sources() });
    api.get("/api/v1/requests").problem(501, "not_available");
}

#[test]
fn examples_of_ended_requests_are_listed_the_latest_first() {
    let api = Api::start();
    let ids = |query: &str| -> (Value, Vec<Value>) {
        let answer = api.get(&format!("/api/v1/requests/ended{query}")).json();
        let requests = answer["requests"].as_array().unwrap();
        let ids = requests.iter().map(|one| one["request_id"].clone()).collect();
        (answer["left_out"].clone(), ids)
    };
    assert_eq!(ids(""), (json!(0), vec![json!("of other"), json!("of listings")]));
    assert_eq!(ids("?limit=1"), (json!(1), vec![json!("of other")]));
    assert_eq!(ids("?service=listings"), (json!(0), vec![json!("of listings")]));
    assert_eq!(ids("?since_unix_ms=99999999999999"), (json!(0), vec![]));
    let one = &api.get("/api/v1/requests/ended").json()["requests"][0];
    assert_eq!((&one["kept_for"], &one["total_ms"]), (&json!("slowest"), &json!(5)));
    assert!(one["ended_unix_ms"].as_u64() > Some(1_700_000_000_000), "{one}");
    api.get("/api/v1/requests/ended?x=1").problem(400, "query_not_readable");
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
