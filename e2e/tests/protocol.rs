//! What Weir forwards and what it refuses: loops, disguised fields, informational responses before a
//! failure, and requests that HTTP/2 itself forbids.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use e2e::frames::{Frames, code, kind, request};
use e2e::http::{self, Connection};
use e2e::rogue::{Peer, Rogue};
use e2e::{Scene, Weir, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// Answers each request with its own head as the body.
fn echoes(peer: &mut Peer) {
    while let Some(head) = peer.request() {
        peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len()));
    }
}

/// A Weir with one service whose server echoes, and further lines.
fn echoing(scene: &Scene, listener: &str, rest: &str) -> (Weir, Rogue) {
    let server = Rogue::start(scene.address(11, 8080), echoes);
    let config = scene.config(
        "workers = 1",
        &format!(
            "{listener}\n[[route]]\nservice = \"app\"\n{rest}\n[service.app]\n{}",
            server_tables("app", [server.address()])
        ),
    );
    (Weir::start(scene, &config), server)
}

/// The values of a field in an echoed head, whatever the name's case.
fn echoed(head: &str, name: &str) -> Vec<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value.to_owned()).collect()
}

fn lines_with(weir: &Weir, cause: &str) -> Vec<Value> {
    weir.access().into_iter().filter(|line| line["cause"] == cause).collect()
}

#[test]
fn a_loop_ends_at_the_sixth_pass_and_blames_no_server() {
    let Some(scene) = Scene::new("loop", &[]) else {
        return;
    };
    // Two listeners on either side, so that a server may be ejected: the last one never is.
    let [a, a2, b, b2] = [8080, 8081, 8082, 8083].map(|port| scene.address(1, port));
    let service = |name: &str, targets: [SocketAddr; 2]| {
        format!(
            "[[route]]\nlistener = [\"{name}1\", \"{name}2\"]\nservice = \"{name}\"\n[service.{name}]\n\
             passive = {{ failures = 1, share_max = 1.0 }}\n{}",
            server_tables(name, targets)
        )
    };
    let listeners = [("a1", a), ("a2", a2), ("b1", b), ("b2", b2)].map(|(name, address)| {
        format!("[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let config = format!(
        "workers = 2\n[admin]\naddress = \"{}\"\n{}{}{}",
        scene.admin(),
        listeners.concat(),
        service("a", [b, b2]),
        service("b", [a, a2]),
    );
    let weir = Weir::start(&scene, &config);
    let rounds = 20;
    for _ in 0..rounds {
        let answer = http::get(a, "/").expect("an answer");
        assert_eq!(answer.status, 508, "{}", answer.text());
        assert_eq!(answer.field("proxy-status"), Some("weir; error=proxy_loop_detected"));
    }
    // One that is gone before the end leaves nothing behind that runs.
    let mut gone = Connection::open(a).expect("a connection");
    gone.send(b"GET /gone HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    drop(gone);
    // The outer passes are logged after the answer has come.
    let passes = || weir.access().iter().filter(|line| line["path"] == "/").count();
    wait::until("the access lines of five passes that are served and a sixth", SOON, || {
        (passes() >= rounds * 6).then_some(())
    });
    assert_eq!(passes(), rounds * 6, "five passes are served, the sixth is refused");
    let gone = weir.access().iter().filter(|line| line["path"] == "/gone").count();
    assert!(gone <= 6, "{gone} passes of a request whose client has left");
    assert!(!weir.log().contains("ejected:"), "{}", weir.log());
}

#[test]
fn the_mark_of_an_instance_survives_reload_and_upgrade() {
    let Some(scene) = Scene::new("loop-mark", &[]) else {
        return;
    };
    let (mut weir, _server) = echoing(&scene, "", "");
    let front = weir.front();
    let ask = |fields: &[&str]| http::get_with(front, "/", fields).expect("an answer");
    let mark = || {
        let echo = ask(&[]);
        let marks = echoed(&echo.text(), "CDN-Loop");
        assert_eq!(marks.len(), 1, "{}", echo.text());
        marks[0].clone()
    };
    let first = mark();
    let others = ask(&["CDN-Loop: other; a=\"b\"", "Via: 1.1 x"]);
    assert_eq!(echoed(&others.text(), "CDN-Loop"), ["other; a=\"b\"", &first]);
    assert_eq!(echoed(&others.text(), "Via"), ["1.1 x"], "Via is off unless asked for");

    let refused = |mark: &str| {
        let list = |count: usize| format!("CDN-Loop: {}", vec![mark; count].join(", "));
        assert_eq!(ask(&[&list(4)]).status, 200, "the fifth pass");
        let answer = ask(&[&list(5)]);
        assert_eq!(answer.status, 508, "the sixth pass: {}", answer.text());
    };
    refused(&first);
    weir.hang_up();
    wait::until("the reload", SOON, || {
        (weir.metric("weir_reloads_total", &[]) >= 1.0).then_some(())
    });
    assert_eq!(mark(), first, "after a reload");
    let (_, _successor) = weir.upgrade(Duration::from_secs(20));
    assert_eq!(mark(), first, "after an upgrade");
    refused(&first);
}

#[test]
fn via_is_sent_where_it_is_asked_for() {
    let Some(scene) = Scene::new("via", &[]) else {
        return;
    };
    let via = scene.address(1, 8082);
    let listener =
        format!("[[listener]]\nname = \"via\"\naddress = \"{via}\"\nforward_fields = [\"via\"]");
    let (_weir, _server) = echoing(&scene, &listener, "");
    let echo = http::get_with(via, "/", &["Via: 1.0 before"]).expect("an answer").text();
    assert_eq!(echoed(&echo, "Via"), ["1.0 before", "1.1 weir"]);
    assert!(echoed(&echo, "X-Forwarded-For").is_empty(), "{echo}");
    let mut frames = Frames::client(via).expect("a connection");
    frames.headers(1, &request("GET", "/"), true).expect("sent");
    let body = frames.until(|frame| frame.kind == kind::DATA).expect("a body").payload;
    let echo = String::from_utf8_lossy(&body).into_owned();
    assert_eq!(echoed(&echo, "Via"), ["2 weir"], "{echo}");
}

#[test]
fn a_rule_for_a_field_is_one_for_its_spelling_with_underscores() {
    let Some(scene) = Scene::new("underscores", &[]) else {
        return;
    };
    let rule =
        "request_header = { remove = [\"X-Team\", \"x_plain\"], set = { \"X-Role\" = \"guest\" } }";
    let (weir, _server) = echoing(&scene, "", rule);
    let fields = [
        "X_Team: a",
        "X-TEAM: b",
        "x_team: c",
        "X_Role: admin",
        "X-Role: admin",
        "X-Plain: d",
        "X_Other: kept",
        "X.Team: kept",
    ];
    let echo = http::get_with(weir.front(), "/", &fields).expect("an answer").text();
    let mut frames = Frames::client(weir.front()).expect("a connection");
    let lower = fields.map(str::to_lowercase);
    let pairs = lower.iter().map(|field| field.split_once(": ").expect("a field"));
    let pairs: Vec<_> = request("GET", "/").into_iter().chain(pairs).collect();
    frames.headers(1, &pairs, true).expect("sent");
    let body = frames.until(|frame| frame.kind == kind::DATA).expect("a body").payload;
    for echo in [echo, String::from_utf8_lossy(&body).into_owned()] {
        for name in ["X-Team", "X_Team", "X_Role", "X-Plain", "X_Plain"] {
            assert!(echoed(&echo, name).is_empty(), "{name}: {echo}");
        }
        assert_eq!(echoed(&echo, "X-Role"), ["guest"], "{echo}");
        assert_eq!(echoed(&echo, "X_Other"), ["kept"], "{echo}");
        assert_eq!(echoed(&echo, "X.Team"), ["kept"], "{echo}");
    }
}

#[test]
fn nothing_is_sent_again_after_the_client_has_got_a_part_of_an_answer() {
    let Some(scene) = Scene::new("informed", &[]) else {
        return;
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let [first, second] = [11, 12].map(|host| {
        let asked = Arc::clone(&asked);
        Rogue::start(scene.address(host, 8080), move |peer| {
            if peer.request().is_some() {
                asked.fetch_add(1, Ordering::SeqCst);
                peer.say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            }
        })
    });
    let servers = server_tables("app", [first.address(), second.address()]);
    let config = scene.config(
        "workers = 1",
        &format!("[[route]]\nservice = \"app\"\n[service.app]\nretries = {{ max = 3 }}\n{servers}"),
    );
    let weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert_eq!(client.response(false).expect("hints").status, 103);
    assert_eq!(client.response(false).expect("an answer").status, 502, "and no hints again");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "servers asked");
    // A client of HTTP/1.0 gets no informational response, so that nothing was passed on.
    let mut old = Connection::open(weir.front()).expect("a connection");
    old.send(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
    assert_eq!(old.response(false).expect("an answer").status, 502);
    assert!(asked.load(Ordering::SeqCst) > 2, "servers asked");
}

#[test]
fn trace_is_refused_unless_a_route_names_it() {
    let Some(scene) = Scene::new("trace-method", &[]) else {
        return;
    };
    let rest = "[[route]]\nmethod = \"TRACE\"\npath = \"/diagnosed\"\nservice = \"app\"";
    let (weir, _server) = echoing(&scene, "", rest);
    let mut client = Connection::open(weir.front()).expect("a connection");
    let answer = client.request("TRACE", "/", &[], b"").expect("an answer");
    assert_eq!(answer.status, 405, "{}", answer.text());
    assert_eq!(answer.field("allow"), Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    let answer = client.request("TRACE", "/diagnosed", &[], b"").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().starts_with("TRACE /diagnosed HTTP/1.1\r\n"), "{}", answer.text());
}

#[test]
fn an_extended_connect_passes_only_for_protocols_that_are_named() {
    let Some(scene) = Scene::new("connect-protocols", &[]) else {
        return;
    };
    let (weir, _server) = echoing(&scene, "", "");
    for protocol in ["h2c", "H2C", "foo", "connect-udp"] {
        let mut frames = Frames::client(weir.front()).expect("a connection");
        let fields = [
            (":method", "CONNECT"),
            (":protocol", protocol),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "a.example.com"),
        ];
        frames.headers(1, &fields, false).expect("sent");
        let head = frames.until(|frame| frame.kind == kind::HEADERS).expect("an answer");
        assert_eq!(head.status(), Some(501), "{protocol}");
    }
    wait::until("all lines", SOON, || {
        (lines_with(&weir, "http_request_not_implemented").len() == 4).then_some(())
    });
}

#[test]
fn two_hosts_without_an_authority_are_refused() {
    let Some(scene) = Scene::new("two-hosts", &[]) else {
        return;
    };
    let (weir, _server) = echoing(&scene, "", "");
    let base = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
    for (hosts, status) in [(&["a"][..], 200), (&["a", "b"], 400), (&["a", "a"], 400)] {
        let mut frames = Frames::client(weir.front()).expect("a connection");
        let hosts = hosts.iter().map(|host| ("host", *host));
        let fields: Vec<_> = base.into_iter().chain(hosts).collect();
        frames.headers(1, &fields, true).expect("sent");
        assert_eq!(frames.response(1).expect("an answer").0, status, "{fields:?}");
    }
}

/// Takes a request, says that it has, and never answers.
fn holds(peer: &mut Peer) {
    peer.request();
    peer.hold();
}

fn holding(scene: &Scene, listener: &str) -> (Weir, Rogue, SocketAddr) {
    let server = Rogue::start(scene.address(11, 8080), holds);
    let front = scene.address(1, 8083);
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[listener]]\nname = \"two\"\naddress = \"{front}\"\n{listener}\n\
             [[route]]\nservice = \"app\"\n[service.app]\n{}",
            server_tables("app", [server.address()])
        ),
    );
    (Weir::start(scene, &config), server, front)
}

/// A field line as HPACK has it, whatever the bytes.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = |text: &[u8]| u8::try_from(text.len()).expect("a short text");
    [&[0, length(name)], name, &[length(value)], value].concat()
}

#[test]
fn what_http2_refuses_itself_is_counted_and_not_blamed_on_others() {
    let Some(scene) = Scene::new("http2-refused", &[]) else {
        return;
    };
    let (weir, _server, front) = holding(&scene, "");
    let bad: [(&[u8], &[u8]); 4] =
        [(b"X-Upper", b"a"), (b"x-nul", b"a\0b"), (b"x-control", b"a\x01b"), (b"", b"a")];
    for (number, (name, value)) in bad.into_iter().enumerate() {
        let mut frames = Frames::client(front).expect("a connection");
        frames.headers(1, &request("GET", "/valid"), true).expect("sent");
        wait::until("the valid request at its server", SOON, || {
            (weir.metric("weir_server_in_flight", &[]) >= 1.0).then_some(())
        });
        let fields = e2e::frames::block(&request("GET", "/bad"));
        let payload = [fields, literal(name, value)].concat();
        // END_STREAM and END_HEADERS.
        frames.send(kind::HEADERS, 5, 3, &payload).expect("sent");
        let _ = frames.until(|frame| frame.kind == kind::GOAWAY || frame.kind == kind::RST_STREAM);
        drop(frames);
        // The valid request, if it ended with the connection, and the refusal.
        wait::until("an account of both", SOON, || {
            let valid = weir.access().iter().filter(|line| line["path"] == "/valid").count();
            let refused = weir.access().iter().filter(|line| line["path"].is_null()).count();
            (valid > number && refused > number).then_some(())
        });
    }
    let valid: Vec<_> = weir.access().into_iter().filter(|line| line["path"] == "/valid").collect();
    for line in &valid {
        assert_ne!(line["cause"], "client_reset", "{line}");
    }
    let counted = weir.metric(
        "weir_listener_requests_total",
        &["listener=\"two\"", "cause=\"http2_protocol_error\""],
    );
    assert!(counted >= 4.0, "{counted} of four refusals are counted");
    assert!(lines_with(&weir, "client_reset").is_empty(), "{:#?}", weir.access());
}

#[test]
fn a_malformed_head_ends_its_stream_alone_and_is_counted() {
    let Some(scene) = Scene::new("http2-malformed", &[]) else {
        return;
    };
    let (weir, _server) = echoing(&scene, "", "");
    let front = weir.front();
    let mut frames = Frames::client(front).expect("a connection");
    // A length that the end of the stream contradicts; a path that is missing; a field that
    // belongs to HTTP/1.1 connections (RFC 9113 sections 8.1.1, 8.3.1, 8.2.2).
    let length: Vec<_> =
        request("POST", "/").into_iter().chain([("content-length", "5")]).collect();
    let no_path = [(":method", "GET"), (":scheme", "http"), (":authority", "a")];
    let hop: Vec<_> = request("GET", "/").into_iter().chain([("connection", "close")]).collect();
    for (stream, fields) in [(1, &length[..]), (3, &no_path), (5, &hop)] {
        frames.headers(stream, fields, true).expect("sent");
        let reset = frames.until(|frame| frame.kind == kind::RST_STREAM).expect("a reset");
        assert_eq!((reset.stream, reset.code()), (stream, 1), "PROTOCOL_ERROR: {fields:?}");
    }
    frames.headers(7, &request("GET", "/"), true).expect("sent");
    assert_eq!(frames.response(7).expect("an answer").0, 200, "the connection goes on");
    // A head that is too large is answered.
    let large = "x".repeat(20_000);
    let fields: Vec<_> = request("GET", "/").into_iter().chain([("x-large", &*large)]).collect();
    let block = e2e::frames::block(&fields);
    let (begin, rest) = block.split_at(16_000);
    frames.send(kind::HEADERS, 1, 9, begin).expect("sent");
    frames.send(kind::CONTINUATION, 4, 9, rest).expect("sent");
    let head = frames.until(|frame| frame.kind == kind::HEADERS).expect("an answer");
    assert_eq!((head.stream, head.status()), (9, Some(431)));
    frames.headers(11, &request("GET", "/"), true).expect("sent");
    assert_eq!(frames.response(11).expect("an answer").0, 200, "the connection goes on");
    wait::until("all lines", SOON, || (weir.access().len() >= 6).then_some(()));
    let malformed = lines_with(&weir, "http2_protocol_error");
    assert_eq!(malformed.len(), 3, "{malformed:#?}");
    let rules = [
        "content-length without content",
        "no :path, or not a path",
        "a connection-specific field",
    ];
    for (line, rule) in malformed.iter().zip(rules) {
        assert_eq!(line["detail"], rule, "{line}");
        assert_eq!(line["status"], Value::Null, "{line}");
    }
    let large = lines_with(&weir, "http_request_head_too_large");
    assert_eq!(large.len(), 1, "{large:#?}");
    assert_eq!(large[0]["status"], 431, "{large:#?}");
    let metric = |cause: &str| {
        // A whole number, and small.
        weir.metric("weir_listener_requests_total", &[&format!("cause=\"{cause}\"")]) as usize
    };
    assert_eq!(metric("http2_protocol_error"), 3);
    assert_eq!(metric("http_request_head_too_large"), 1);
}

#[test]
fn streams_beyond_the_limit_are_counted() {
    let Some(scene) = Scene::new("http2-streams", &[]) else {
        return;
    };
    let (weir, _server, front) = holding(&scene, "http2 = { streams_max = 1 }");
    let mut frames = Frames::client(front).expect("a connection");
    frames.headers(1, &request("GET", "/held"), true).expect("sent");
    for stream in [3, 5] {
        frames.headers(stream, &request("GET", "/more"), true).expect("sent");
        let reset = frames.until(|frame| frame.kind == kind::RST_STREAM).expect("a reset");
        assert_eq!((reset.stream, reset.code()), (stream, code::REFUSED_STREAM));
    }
    wait::until("both to be counted", SOON, || {
        (lines_with(&weir, "http2_streams_exceeded").len() == 2).then_some(())
    });
    // A side that leaves says so itself.
    frames.stream.flush().and_then(|()| frames.reset(1, code::CANCEL)).expect("sent");
    wait::until("the held request's end", SOON, || {
        weir.access().iter().any(|line| line["path"] == "/held").then_some(())
    });
    let _: io::Result<()> = frames.go_away(0, code::NO_ERROR);
}
