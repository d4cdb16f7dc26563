//! Real traffic: curl, wrk, ab and Python's http.client before Weir, nginx and a Python server
//! behind it. Messages must arrive unchanged, whatever their framing.

use std::time::Duration;

use e2e::clients::{Load, ab, curl, wrk};
use e2e::{App, Nginx, Process, Scene, Weir, find, http, wait};
use serde_json::Value;

const PEERS: &[&str] = &["python3", "nginx", "curl"];

/// The values of a field in app.py's echo, in order.
fn echoed(echo: &Value, name: &str) -> Vec<String> {
    let fields = echo["fields"].as_array().expect("an echo");
    let named = fields.iter().filter(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
    named.map(|row| row[1].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_client_reaches_every_server() {
    let needs = ["python3", "nginx", "curl", "wrk", "ab"];
    let Some(scene) = Scene::alone("traffic-all", &needs) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let app = App::start(&scene, 12, &["--size", "200"]);
    let weir = Weir::start(&scene, &scene.one_service("", &[nginx.address(), app.address()]));

    let seen = wrk(&scene, weir.front(), "/", 32, 2);
    assert_eq!((seen.non_2xx_3xx, seen.socket_errors), (0, 0), "{seen:?}");
    assert!(seen.requests > 2 * 32, "more than two on each connection: {seen:?}");
    let seen = ab(&scene, weir.front(), "/", 16, 2);
    assert_eq!((seen.non_2xx, seen.failed), (0, 0), "{seen:?}");
    assert!(seen.complete > 2 * 16, "{seen:?}");
    let seen = Load::run(&scene, weir.front(), "/", 8, 2.0, &[]);
    assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
    // Round robin: each has its half, and each of the two workers takes its own turns.
    let [nginx, app] = ["nginx11", "app12"].map(|server| seen.served_by(server));
    assert!(nginx.abs_diff(app) <= 2, "{:?}", seen.json);
    let url = format!("http://{}/status", weir.front());
    let answer = curl(&scene, &["-i", &url]);
    assert!(answer.stdout.starts_with("HTTP/1.1 200"), "{answer:?}");
}

#[test]
fn a_connection_per_request_works_as_well() {
    let Some(scene) = Scene::new("traffic-close", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let seen = Load::run(&scene, weir.front(), "/", 8, 1.0, &["--new-connections"]);
    assert_eq!(seen.status(200), seen.requests(), "{:?}", seen.json);
    // Weir keeps its own connections to the server.
    let connections = app.stat("connections");
    assert!(connections <= 20, "{connections} connections for {} requests", seen.requests());
}

#[test]
fn large_bodies_arrive_whole_both_ways() {
    let Some(scene) = Scene::new("traffic-bodies", PEERS) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let app = App::start(&scene, 12, &[]);
    let config = scene.config(
        "",
        &format!(
            "[[route]]\npath = \"/files\"\nservice = \"files\"\n[[route]]\nservice = \"app\"\n\
             [service.files]\n{}[service.app]\n{}",
            e2e::server_tables("files", [nginx.address()]),
            e2e::server_tables("app", [app.address()])
        ),
    );
    let mut weir = Weir::start(&scene, &config);
    let large: Vec<u8> =
        (0..24_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = scene.file("large", &large);
    let digest = |path: &std::path::Path| {
        let path = path.to_string_lossy().into_owned();
        Process::start(&scene, "sha", &find("sha256sum").unwrap(), [path])
            .wait(Duration::from_secs(20))
            .stdout
            .lines()
            .last()
            .and_then(|line| line.split(' ').next().map(str::to_owned))
            .expect("a digest")
    };
    let sent = digest(&file);

    let back = http::get(weir.front(), "/files/large").unwrap();
    assert!(back.body == large, "{} of {} bytes", back.body.len(), large.len());

    let url = format!("http://{}/up", weir.front());
    let path = format!("@{}", file.display());
    for (fields, what) in [
        (&["-H", "Expect:"][..], "with a length"),
        (&["-H", "Expect:", "-H", "Transfer-Encoding: chunked"], "chunked"),
        (&["-H", "Expect: 100-continue"], "after 100 Continue"),
    ] {
        let words = [fields, &["-X", "POST", "--data-binary", &path, &url]].concat();
        let answer = curl(&scene, &words);
        let echo: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        assert_eq!(echo["body_sha256"], sent.as_str(), "{what}: {answer:?}");
    }
    let resident = weir.process().resident_bytes();
    assert!(resident < 100_000_000, "{resident} bytes resident after bodies of 24 MB");
}

#[test]
fn memory_stays_bounded_when_the_client_reads_slowly() {
    let Some(scene) = Scene::new("traffic-memory", &["nginx"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let file = std::fs::File::create(scene.folder().join("huge")).unwrap();
    file.set_len(400_000_000).unwrap();
    let mut weir = Weir::start(&scene, &scene.one_service("", &[nginx.address()]));
    let before = weir.process().resident_bytes();
    // Eight clients ask for 400 MB each and read nothing of it.
    let mut stalled: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = http::Connection::open(weir.front()).unwrap();
            connection.send(b"GET /files/huge HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            connection
        })
        .collect();
    wait::measure_for(Duration::from_millis(1500));
    let grown = weir.process().resident_bytes().saturating_sub(before);
    assert!(grown < 16_000_000, "{grown} bytes more for eight stalled clients");
    // One of them reads on: the rest is still to come, whole.
    let connection = &mut stalled[0];
    let start = connection.exactly(1_000_000).unwrap();
    assert!(start.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn expect_100_continue_is_answered_before_the_body() {
    let Some(scene) = Scene::new("traffic-continue", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    connection
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        .unwrap();
    assert_eq!(connection.response(false).unwrap().status, 100);
    connection.send(b"hello").unwrap();
    let echo = connection.response(false).unwrap();
    assert_eq!((echo.status, &echo.json()["body_bytes"]), (200, &Value::from(5)));
}

#[test]
fn every_form_of_response_is_passed_on() {
    let Some(scene) = Scene::new("traffic-forms", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut connection = http::Connection::open(weir.front()).unwrap();

    let head = connection.request("HEAD", "/?size=100", &[], b"").unwrap();
    assert_eq!((head.status, head.field("content-length")), (200, Some("100")));
    for status in [204, 304] {
        let answer = connection.get(&format!("/?status={status}"), &[]).unwrap();
        assert_eq!((answer.status, answer.body.len()), (status, 0));
    }
    let chunked = connection.get("/?chunked=1&size=70000", &[]).unwrap();
    assert_eq!(chunked.body.len(), 70_000);
    let trailer = connection.get("/?trailer=1&size=10", &["TE: trailers"]).unwrap();
    assert_eq!((trailer.body.len(), trailer.trailers.as_str()), (10, "X-Sum: 10\r\n"));
    assert_eq!(connection.get("/?early=1", &[]).unwrap().status, 103);
    assert_eq!(connection.response(false).unwrap().status, 200);
    // A body that ends with the server's connection still ends visibly for the client.
    let until_close = connection.get("/?until_close=1&size=5000", &[]).unwrap();
    assert_eq!(until_close.body.len(), 5000);
    let asterisk = http::Connection::open(weir.front()).unwrap().request("OPTIONS", "*", &[], b"");
    assert_eq!(asterisk.unwrap().json()["target"], "*");
    let absolute = http::Connection::open(weir.front())
        .unwrap()
        .get("http://example.org/a?b", &["Host: example.org"])
        .unwrap();
    assert_eq!(absolute.status, 200);
    assert_eq!(echoed(&absolute.json(), "host"), ["example.org"]);
    let target = absolute.json()["target"].as_str().unwrap().to_owned();
    assert!(["/a?b", "http://example.org/a?b"].contains(&target.as_str()), "{target}");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let Some(scene) = Scene::new("traffic-pipeline", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let mut requests = String::new();
    for n in 0..50 {
        let work = if n % 7 == 0 { "&work_ms=10" } else { "" };
        requests += &format!("GET /?n={n}{work} HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    connection.send(requests.as_bytes()).unwrap();
    for n in 0..50 {
        let echo = connection.response(false).unwrap().json();
        let target = echo["target"].as_str().unwrap();
        assert!(
            target == format!("/?n={n}") || target.starts_with(&format!("/?n={n}&")),
            "{target}"
        );
    }
}

#[test]
fn http_1_0_clients_get_what_they_can_read() {
    let Some(scene) = Scene::new("traffic-10", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    connection.send(b"GET /?chunked=1&size=3000 HTTP/1.0\r\n\r\n").unwrap();
    // No chunks for a client of 1.0: the body ends with the connection (RFC 9112 section 6.1).
    let answer = connection.response(false).unwrap();
    assert_eq!(answer.field("transfer-encoding"), None, "{}", answer.head);
    assert_eq!(answer.body, vec![b'x'; 3000]);
    assert!(connection.is_closed_within(Duration::from_secs(2)));

    let mut kept = http::Connection::open(weir.front()).unwrap();
    for _ in 0..2 {
        kept.send(b"GET /?size=10 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").unwrap();
        assert_eq!(kept.response(false).unwrap().body.len(), 10);
    }
}

#[test]
fn forwarding_fields_are_set_and_those_of_strangers_replaced() {
    let Some(scene) = Scene::new("traffic-fields", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let echo = http::get_with(
        weir.front(),
        "/",
        &[
            "Host: shop.example:8080",
            "X-Forwarded-For: 6.6.6.6",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: evil.example",
            "Forwarded: for=6.6.6.6",
            "X-Request-Id: theirs",
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "Connection: keep-alive, X-Hop",
            "X-Hop: 1",
            "Keep-Alive: timeout=5",
            "TE: trailers",
            "Proxy-Connection: keep-alive",
            "X-End: to end",
        ],
    )
    .unwrap()
    .json();
    assert_eq!(echoed(&echo, "host"), ["shop.example:8080"]);
    assert_eq!(echoed(&echo, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(echoed(&echo, "x-forwarded-proto"), ["http"]);
    assert_eq!(echoed(&echo, "x-forwarded-host"), ["shop.example:8080"]);
    let forwarded = echoed(&echo, "forwarded");
    assert_eq!(forwarded.len(), 1);
    assert!(forwarded[0].contains("for=127.0.0.1") && !forwarded[0].contains("6.6.6.6"));
    for (name, theirs) in [("x-request-id", "theirs"), ("traceparent", "0af7651916cd43dd")] {
        let values = echoed(&echo, name);
        assert_eq!(values.len(), 1, "{name}");
        assert!(!values[0].is_empty() && !values[0].contains(theirs), "{name}: {values:?}");
    }
    for hop in ["x-hop", "keep-alive", "proxy-connection"] {
        assert_eq!(echoed(&echo, hop), Vec::<String>::new(), "{hop}");
    }
    assert_eq!(echoed(&echo, "x-end"), ["to end"]);
    let another = http::get(weir.front(), "/").unwrap().json();
    assert_ne!(echoed(&another, "x-request-id"), echoed(&echo, "x-request-id"));
}

#[test]
fn a_websocket_passes_through() {
    let Some(scene) = Scene::new("traffic-upgrade", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    // The first bytes of the tunnel come with the request, as an eager client sends them.
    connection
        .send(
            b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        )
        .unwrap();
    let switched = connection.response(false).unwrap();
    assert_eq!(switched.status, 101);
    assert_eq!(switched.field("upgrade"), Some("websocket"), "{}", switched.head);
    for size in [1, 100, 100_000] {
        let sent: Vec<u8> = (0..size).map(|n: u32| n as u8).collect();
        connection.send(&sent).unwrap();
        assert_eq!(connection.exactly(sent.len()).unwrap(), sent);
    }
    connection.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(connection.rest().unwrap(), b"");
    wait::until("the server to see the end", Duration::from_secs(5), || {
        (app.stat("in_flight") == 0).then_some(())
    });
}

#[test]
fn tcp_mode_keeps_half_close() {
    let Some(scene) = Scene::new("traffic-tcp", &["python3"]) else {
        return;
    };
    let server = scene.address(11, 7000);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/tcp.py").to_owned();
    let words = [script, "--address".into(), server.to_string()];
    let _server = Process::start(&scene, "tcp", &find("python3").unwrap(), words);
    wait::until("the tcp server", Duration::from_secs(5), || {
        std::net::TcpStream::connect(server).ok()
    });
    let front = scene.address(1, 7000);
    let config = format!(
        "[admin]\naddress = \"{}\"\n[[listener]]\nname = \"tcp\"\naddress = \"{front}\"\n\
         protocol = \"tcp\"\nservice = \"tcp\"\n[service.tcp]\n{}",
        scene.admin(),
        e2e::server_tables("tcp", [server])
    );
    let _weir = Weir::start(&scene, &config);
    for size in [0_usize, 1, 5_000_000] {
        // The server answers only after it has seen the client's end.
        let answer = http::raw(front, &vec![b'x'; size]).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(&format!("tcp {size} ")), "{answer:?}");
    }
}

#[test]
fn ipv6_works_on_both_sides() {
    let Some(scene) = Scene::new("traffic-v6", &["python3"]) else {
        return;
    };
    // ::1 is one address for everybody, so take ports that are free now.
    let free = || std::net::TcpListener::bind("[::1]:0").ok()?.local_addr().ok();
    let (Some(front), Some(server)) = (free(), free()) else {
        eprintln!("traffic-v6: SKIPPED, no IPv6 on this machine");
        return;
    };
    let app = App::start_at(&scene, "six", server, &[]);
    let config = format!(
        "[admin]\naddress = \"{}\"\n[[listener]]\nname = \"six\"\naddress = \"{front}\"\n\
         [[route]]\nservice = \"app\"\n[service.app]\n{}",
        scene.admin(),
        e2e::server_tables("app", [app.address()])
    );
    let _weir = Weir::start(&scene, &config);
    let echo = http::get(front, "/").unwrap().json();
    assert_eq!(echoed(&echo, "x-forwarded-for"), ["::1"]);
    assert!(echoed(&echo, "forwarded")[0].contains("for=\"[::1]\""), "{echo}");
}
