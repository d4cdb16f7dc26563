//! Clients that are slow with a request's body, before servers with a limit: they hold no slot that
//! others could use.

#![allow(clippy::float_cmp, reason = "counts, which metrics carry as numbers, are whole")]

use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use e2e::frames::{END_HEADERS, END_STREAM, Frames, kind, request};
use e2e::http::Connection;
use e2e::{App, Scene, Weir, http, wait};

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n";

/// A client that has sent `head` and the first byte of its body.
fn slow(front: SocketAddr, head: &str) -> Connection {
    let mut connection = Connection::open(front).unwrap();
    connection.send(format!("{head}\r\n1").as_bytes()).unwrap();
    connection
}

/// The top-level settings of a service of one server with `in_flight_max`.
fn config(scene: &Scene, top: &str, service: &str, app: &App) -> String {
    let servers = e2e::server_tables("app", [app.address()]);
    scene.config(top, &format!("[[route]]\nservice = \"app\"\n[service.app]\n{service}\n{servers}"))
}

#[test]
fn a_small_body_is_read_before_a_slot_is_taken() {
    let Some(scene) = Scene::new("slow-bodies", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let service = "in_flight_max = 2\nqueue = { length_max = 0 }";
    let weir = Weir::start(&scene, &config(&scene, "workers = 2", service, &app));
    let mut over_http1: Vec<_> = (0..3).map(|_| slow(weir.front(), HEAD)).collect();
    let mut over_http2 = Frames::client(weir.front()).unwrap();
    let fields = [&request("POST", "/")[..], &[("content-length", "4")]].concat();
    for stream in [1, 3, 5] {
        over_http2.headers(stream, &fields, false).unwrap();
        over_http2.send(kind::DATA, 0, stream, b"1").unwrap();
    }
    wait::until("three bodies to be held", Duration::from_secs(5), || {
        (weir.metric("weir_request_buffers_bytes", &[]) > 0.0).then_some(())
    });
    for _ in 0..50 {
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    }
    assert_eq!(app.stat("requests"), 50, "the server has seen nothing of the slow ones");
    for connection in &mut over_http1 {
        connection.send(&[b'2'; 999]).unwrap();
        let answer = connection.response(false).unwrap();
        assert_eq!((answer.status, &answer.json()["body_bytes"]), (200, &1000.into()));
        // The connection goes on.
        assert_eq!(connection.get("/", &[]).unwrap().status, 200);
    }
    for stream in [1, 3, 5] {
        over_http2.send(kind::DATA, END_STREAM, stream, b"234").unwrap();
        assert_eq!(over_http2.response(stream).unwrap().0, 200);
    }
    assert_eq!(weir.metric("weir_request_buffers_bytes", &[]), 0.0);
}

#[test]
fn an_upload_that_is_refused_after_it_was_read_leaves_its_connection_usable() {
    let Some(scene) = Scene::new("slow-bodies-refused", &["python3"]) else { return };
    let mut app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, "", "in_flight_max = 1", &app));
    app.kill();
    let mut connection = slow(weir.front(), HEAD);
    // What follows the body is a request of its own, and not to be taken for a part of it.
    let next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    connection.send(&[&[b'2'; 999][..], next.as_bytes()].concat()).unwrap();
    for _ in 0..2 {
        assert_eq!(connection.response(false).unwrap().status, 502);
    }
}

#[test]
fn weir_says_100_continue_in_the_servers_place() {
    let Some(scene) = Scene::new("slow-bodies-expect", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, "", "in_flight_max = 1", &app));
    let mut connection = Connection::open(weir.front()).unwrap();
    connection.send(format!("{HEAD}Expect: 100-continue\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(connection.response(false).unwrap().status, 100);
    assert_eq!(app.stat("requests"), 0);
    connection.send(&[b'1'; 1000]).unwrap();
    let answer = connection.response(false).unwrap();
    assert_eq!((answer.status, &answer.json()["body_bytes"]), (200, &1000.into()));
    let fields = answer.json()["fields"].to_string().to_lowercase();
    assert!(!fields.contains("expect"), "{fields}");

    let mut over_http2 = Frames::client(weir.front()).unwrap();
    let expects = [("content-length", "4"), ("expect", "100-continue")];
    over_http2.headers(1, &[&request("POST", "/")[..], &expects].concat(), false).unwrap();
    let head = over_http2.until(|frame| frame.kind == kind::HEADERS).unwrap();
    assert_eq!((head.status(), head.flags & END_STREAM), (Some(100), 0));
    assert_eq!(head.flags & END_HEADERS, END_HEADERS);
    over_http2.send(kind::DATA, END_STREAM, 1, b"1234").unwrap();
    assert_eq!(over_http2.response(1).unwrap().0, 200);
}

#[test]
fn bodies_beyond_the_memory_for_them_are_read_in_their_slots() {
    let Some(scene) = Scene::new("slow-bodies-memory", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let service = "in_flight_max = 9";
    let weir = Weir::start(&scene, &config(&scene, "request_buffers_max = 1500", service, &app));
    let mut all: Vec<_> = (0..4).map(|_| slow(weir.front(), HEAD)).collect();
    for connection in &mut all {
        connection.send(&[b'2'; 600]).unwrap();
    }
    wait::until("two bodies to be too much", Duration::from_secs(5), || {
        let beyond = weir.metric("weir_request_buffers_exhausted_total", &[]) >= 2.0;
        (beyond && app.stat("requests") >= 2).then_some(())
    });
    let held = weir.metric("weir_request_buffers_bytes", &[]);
    assert!((1.0..=1500.0).contains(&held), "{held}");
    for connection in &mut all {
        connection.send(&[b'2'; 399]).unwrap();
        let answer = connection.response(false).unwrap();
        assert_eq!((answer.status, &answer.json()["body_bytes"]), (200, &1000.into()));
    }
    assert_eq!(weir.metric("weir_request_buffers_bytes", &[]), 0.0);
}

#[test]
fn a_client_that_hardly_sends_loses_its_slot_to_those_who_wait() {
    let Some(scene) = Scene::new("slow-bodies-slot", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let service = "in_flight_max = 1\nqueue = { wait_max = \"30s\" }";
    let weir = Weir::start(&scene, &config(&scene, "", service, &app));
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut lone = Connection::open(weir.front()).unwrap();
    lone.send(chunked.as_bytes()).unwrap();
    wait::until("the slot to be taken", Duration::from_secs(5), || {
        (app.stat("in_flight") == 1).then_some(())
    });
    // No other request wants the slot: its client may take its time.
    wait::measure_for(Duration::from_secs(7));
    lone.send(b"1\r\n1\r\n0\r\n\r\n").unwrap();
    assert_eq!(lone.response(false).unwrap().status, 200);

    let mut hog = Connection::open(weir.front()).unwrap();
    hog.send(chunked.as_bytes()).unwrap();
    wait::until("the slot to be taken", Duration::from_secs(5), || {
        (app.stat("in_flight") == 1).then_some(())
    });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| http::get(weir.front(), "/").unwrap().status);
        wait::until("a request to wait", Duration::from_secs(5), || {
            (weir.queue_length("app") == 1).then_some(())
        });
        assert_eq!(hog.response(false).unwrap().status, 408);
        assert_eq!(waiting.join().unwrap(), 200);
    });
    let slow = wait::until("its line", Duration::from_secs(5), || {
        weir.access().into_iter().find(|line| line["status"] == 408)
    });
    assert_eq!(
        (&slow["cause"], &slow["fault"]),
        (&"http_request_body_slow".into(), &"client".into())
    );
    let waited = slow["total_ms"].as_f64().unwrap();
    assert!(waited >= 5_000.0, "not before five seconds of waiting for it: {waited} ms");
}

#[test]
fn no_disguise_keeps_a_slot_for_a_slow_client() {
    let Some(scene) = Scene::new("slow-bodies-disguise", &["python3"]) else { return };
    let hosts = [11, 12, 13];
    let apps = hosts.map(|host| App::start(&scene, host, &[]));
    let service = |name: &str, queue: &str, app: &App| {
        let servers = e2e::server_tables(name, [app.address()]);
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\n\
             in_flight_max = 1\nqueue = {{ {queue} }}\n{servers}"
        )
    };
    // Two services share each server's slot; the second has no place to wait, and refuses.
    let services = hosts.iter().zip(&apps).map(|(host, app)| {
        service(&format!("one{host}"), "wait_max = \"30s\"", app)
            + &service(&format!("two{host}"), "length_max = 0", app)
    });
    let weir = Weir::start(&scene, &scene.config("", &services.collect::<String>()));
    let head = |host| format!("POST /one{host} HTTP/1.1\r\nHost: a\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let grpc = format!("{}Content-Type: application/grpc\r\n{chunked}", head(11));
    // Bulk is spliced past the program, and what follows it comes slowly.
    let bulk = format!("{}Content-Length: 300000\r\n\r\n{}", head(12), "1".repeat(100_000));
    let plain = format!("{}{chunked}", head(13));
    let cases = [(&grpc, "/one11", 200), (&bulk, "/one12", 200), (&plain, "/two13", 429)];
    std::thread::scope(|scope| {
        for ((upload, other, at_first), app) in cases.into_iter().zip(&apps) {
            let front = weir.front();
            scope.spawn(move || loses_its_slot(front, app, upload, other, at_first));
        }
    });
}

/// Sends the beginning of `upload`, and then a byte now and then; meanwhile a first GET of `other` is
/// answered with `at_first`, and one in the end with 200.
fn loses_its_slot(front: SocketAddr, app: &App, upload: &str, other: &str, at_first: u16) {
    let mut hog = Connection::open(front).unwrap();
    hog.send(upload.as_bytes()).unwrap();
    wait::until("the slot to be taken", Duration::from_secs(5), || {
        (app.stat("in_flight") == 1).then_some(())
    });
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let trickle = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(300)) == Err(RecvTimeoutError::Timeout) {
            if hog.send(b"1").is_err() {
                return;
            }
        }
    });
    assert_eq!(http::get(front, other).unwrap().status, at_first, "{other}");
    wait::until("the slot to be free", Duration::from_secs(20), || {
        (http::get(front, other).unwrap().status == 200).then_some(())
    });
    drop(stop);
    trickle.join().unwrap();
}
