//! Records of requests: those in flight, TCP statistics of their connections, and why each got its
//! server.

use std::fs::Permissions;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use e2e::rogue::full_listen_queue;
use e2e::{App, Scene, Weir, http, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// What is in flight, once it is `count`.
fn in_flight(weir: &Weir, count: usize) -> Vec<Value> {
    wait::until(&format!("{count} requests in flight"), SOON, || {
        let mut shown = weir.api("/api/v1/requests");
        let requests = shown["requests"].as_array_mut().map(std::mem::take)?;
        (requests.len() == count).then_some(requests)
    })
}

/// The access line of the request for `path`.
fn line(weir: &Weir, path: &str) -> Value {
    wait::until(&format!("an access line of {path}"), SOON, || {
        weir.access().into_iter().find(|line| line["path"] == path)
    })
}

#[test]
fn what_is_in_flight_is_told_with_its_stage() {
    let Some(scene) = Scene::new("records-in-flight", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let service = "in_flight_max = 1\nqueue = { length_max = 5, wait_max = \"30s\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[app.address()]));
    assert!(in_flight(&weir, 0).is_empty());

    let mut first = http::Connection::open(weir.front()).unwrap();
    first
        .send(b"POST /slow?work_ms=3000 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n")
        .unwrap();
    let shown = in_flight(&weir, 1);
    let one = &shown[0];
    for (member, expected) in [
        ("method", "POST"),
        ("host", "a.example"),
        ("path", "/slow"),
        ("listener", "public"),
        ("service", "app"),
        ("server", &app.address().to_string()),
        ("client", &first.stream.local_addr().unwrap().to_string()),
    ] {
        assert_eq!(one[member], expected, "{one:#}");
    }
    assert_eq!(one["attempts"], 1, "{one:#}");
    assert_eq!(one["request_id"].as_str().map(str::len), Some(32), "{one:#}");

    let mut second = http::Connection::open(weir.front()).unwrap();
    second.send(b"GET /waits HTTP/1.1\r\nHost: a.example\r\n\r\n").unwrap();
    let shown = in_flight(&weir, 2);
    let stages: Vec<&Value> = shown.iter().map(|one| &one["stage"]).collect();
    // The slowest first.
    assert_eq!(stages, ["response", "queue"], "{shown:#?}");
    assert_eq!(shown[1]["server"], Value::Null);
    assert!(shown[0]["age_ms"].as_f64() >= shown[1]["age_ms"].as_f64());

    for connection in [&mut first, &mut second] {
        assert_eq!(connection.response(false).unwrap().status, 200);
    }
    assert!(in_flight(&weir, 0).is_empty());
    wait::until("the kept connection in the metrics", SOON, || {
        (weir.metric("weir_server_idle_connections", &[]) > 0.0).then_some(())
    });
}

#[test]
fn a_connection_in_tcp_mode_is_in_flight_as_long_as_it_lasts() {
    let Some(scene) = Scene::new("records-tunnel", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let tcp = scene.address(1, 9000);
    let config = format!(
        "[[listener]]\nname = \"bytes\"\naddress = \"{tcp}\"\nprotocol = \"tcp\"\n\
         service = \"app\"\n[service.app]\n{}",
        e2e::server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("log = { tcp_info = 1 }", &config));
    let stream = TcpStream::connect(tcp).unwrap();
    let shown = wait::until("the tunnel", SOON, || {
        let shown = in_flight(&weir, 1);
        (shown[0]["stage"] == "tunnel").then_some(shown)
    });
    assert_eq!((&shown[0]["listener"], &shown[0]["path"]), (&"bytes".into(), &Value::Null));
    drop(stream);
    assert!(in_flight(&weir, 0).is_empty());
    let line = wait::until("its line", SOON, || weir.access().pop());
    assert!(line["tcp"]["server_rtt_ms"].as_f64() > Some(0.0), "{line:#}");
}

#[test]
fn what_tcp_says_is_told_of_the_share_that_is_asked_for() {
    let Some(scene) = Scene::new("records-tcp", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let config = |share: &str| {
        let servers =
            format!("[[service.app.server]]\naddress = \"{}\"\nzone = \"eu-1a\"\n", app.address());
        let top = format!("workers = 1\nlog = {{ tcp_info = {share} }}");
        scene.config(&top, &format!("[[route]]\nservice = \"app\"\n{servers}"))
    };
    let weir = Weir::start(&scene, &config("1"));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    for _ in 0..10 {
        assert_eq!(connection.get("/all", &[]).unwrap().status, 200);
    }
    let tcp = &line(&weir, "/all")["tcp"];
    for member in ["client_rtt_ms", "server_rtt_ms"] {
        let millis = tcp[member].as_f64().unwrap();
        assert!((0.0..1_000.0).contains(&millis), "{tcp:#}");
    }
    assert_eq!((&tcp["client_retransmits"], &tcp["server_retransmits"]), (&0.into(), &0.into()));
    let server = format!("address=\"{}\"", app.address());
    let counted = |name: &str| weir.metric(name, &[&server]) as u64;
    assert_eq!(counted("weir_server_tcp_samples_total"), 10);
    // A request each; nothing is counted twice.
    assert_eq!(counted("weir_server_tcp_segments_sent_total"), 10);
    assert_eq!(counted("weir_server_tcp_segments_retransmitted_total"), 0);
    assert!(weir.metric("weir_server_tcp_round_trip_seconds", &[&server]) > 0.0);
    let zone = ["zone=\"eu-1a\""];
    for name in ["weir_zone_tcp_round_trip_seconds_count", "weir_zone_tcp_segments_sent_total"] {
        assert_eq!(weir.metric(name, &zone) as u64, 10, "{name}");
    }

    scene.file("weir.toml", config("0"));
    weir.hang_up();
    weir.wait_for_log(&["log.tcp_info: 1 → 0"], SOON);
    assert_eq!(connection.get("/none", &[]).unwrap().status, 200);
    assert_eq!(line(&weir, "/none")["tcp"], Value::Null);
    assert_eq!(counted("weir_server_tcp_samples_total"), 10);
}

#[test]
fn syns_that_were_sent_again_are_counted_without_any_sampling() {
    let Some(scene) = Scene::new("records-syn", &[]) else {
        return;
    };
    let hole = scene.address(12, 8080);
    let _full = full_listen_queue(hole).unwrap();
    let service = "timeouts = { connect = \"1500ms\" }\nretries = { max = 0 }";
    let config = scene.one_service(service, &[hole]);
    let weir = Weir::start(&scene, &format!("log = {{ tcp_info = 0 }}\n{config}"));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 504);
    let line = line(&weir, "/");
    assert_eq!((&line["cause"], &line["tcp"]), (&"connect_syn_unanswered".into(), &Value::Null));
    assert_eq!(weir.metric("weir_server_syn_retries_total", &[]) as u64, 1);
}

#[test]
fn a_request_with_the_token_is_told_why_it_got_its_server() {
    let Some(scene) = Scene::new("records-decision", &["python3"]) else {
        return;
    };
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let token = scene.file("explain.token", TOKEN);
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let apps = [11, 12, 13].map(|host| App::start(&scene, host, &[]));
    let config = |log: &str| {
        let servers = e2e::server_tables("app", apps.iter().map(App::address));
        let top = format!("workers = 1\nlog = {{ {log} }}");
        scene.config(&top, &format!("[[route]]\nservice = \"app\"\n{servers}"))
    };
    let file = format!("explain_token_file = \"{}\"", token.display());
    let weir = Weir::start(&scene, &config(&file));
    let drained = apps[1].address();
    let drain = format!("/api/v1/services/app/servers/{drained}/state");
    let mut admin = http::Connection::open(scene.admin()).unwrap();
    let json = ["Content-Type: application/json"];
    let answer = admin.request("POST", &drain, &json, br#"{"state": "drain"}"#).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());

    let asked = http::get_with(weir.front(), "/asked", &[&format!("Weir-Explain: {TOKEN}")]);
    let asked = asked.unwrap();
    assert_eq!(asked.status, 200);
    assert!(!asked.text().to_lowercase().contains("weir-explain"), "{}", asked.text());
    let told = &line(&weir, "/asked")["decision"];
    assert_eq!(told.as_array().map(Vec::len), Some(1), "{told:#}");
    let decision = &told[0];
    assert_eq!((&decision["service"], &decision["by"]), (&"app".into(), &"round_robin".into()));
    let mut whys: Vec<&str> = Vec::new();
    for server in decision["servers"].as_array().unwrap() {
        let why = server["why"].as_str().unwrap();
        assert_eq!(why == "draining", server["address"] == drained.to_string(), "{decision:#}");
        assert_eq!(why == "chosen", server["address"] == decision["chosen"], "{decision:#}");
        whys.push(why);
    }
    whys.sort_unstable();
    assert_eq!(whys, ["chosen", "draining", "not_its_turn"]);

    // Without the token there is no record, and the field is not forwarded.
    let wrong = http::get_with(weir.front(), "/wrong", &["Weir-Explain: 0123456789abcdef"]);
    assert!(!wrong.unwrap().text().to_lowercase().contains("weir-explain"));
    assert_eq!(line(&weir, "/wrong")["decision"], Value::Null);

    // A share of all: here all of it; and a refusal has its reasons, too.
    scene.file("weir.toml", config("decisions = 1"));
    weir.hang_up();
    weir.wait_for_log(&["log.decisions: 0 → 1"], SOON);
    for app in &apps {
        let path = format!("/api/v1/services/app/servers/{}/state", app.address());
        assert_eq!(
            admin.request("POST", &path, &json, br#"{"state": "drain"}"#).unwrap().status,
            200
        );
    }
    assert_eq!(http::get(weir.front(), "/nobody").unwrap().status, 503);
    let decision = &line(&weir, "/nobody")["decision"][0];
    assert_eq!((&decision["chosen"], &decision["reason"]), (&Value::Null, &"all_down".into()));
    assert!(decision["servers"].as_array().unwrap().iter().all(|one| one["why"] == "draining"));
}

#[test]
fn without_a_token_configured_the_field_is_only_removed() {
    let Some(scene) = Scene::new("records-no-token", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut stream = TcpStream::connect(weir.front()).unwrap();
    write!(stream, "GET /x HTTP/1.1\r\nHost: a\r\nweir-EXPLAIN: \r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.to_lowercase().contains("weir-explain"), "{answer}");
    assert_eq!(line(&weir, "/x")["decision"], Value::Null);
}
