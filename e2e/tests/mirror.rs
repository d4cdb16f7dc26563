//! Copies of requests for another service (`mirror`): what they carry, that what happens to them has no effect
//! on the requests, and what they may cost.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::clients::curl;
use e2e::http::Connection;
use e2e::rogue::{Peer, Rogue};
use e2e::{Process, Scene, Weir, server_tables, wait};

const SOON: Duration = Duration::from_secs(20);
/// What the proxy allows on each worker.
const IN_FLIGHT_MAX: u64 = 256;

/// The requests that a server has received: head and body.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Starts a server that records requests, and answers those whose target contains a status with that, and all
/// others with 200.
fn recorder(scene: &Scene, host: u8, name: &'static str) -> (Rogue, Received) {
    let received = Received::default();
    let records = Arc::clone(&received);
    let server = Rogue::start(scene.address(host, 8080), move |peer| {
        while let Some((head, body)) = peer.message() {
            let target = head.split(' ').nth(1).unwrap_or_default();
            let chosen = target.split_once(&format!("{name}="));
            let chosen = chosen.and_then(|(_, text)| text.get(..3)?.parse().ok());
            let status: u16 = chosen.unwrap_or(200);
            let is_head = head.starts_with("HEAD");
            records.lock().unwrap().push((head, body));
            let body = if is_head { "" } else { name };
            let length = name.len();
            peer.say(format!(
                "HTTP/1.1 {status} Some\r\nSet-Cookie: by={name}\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        }
    });
    (server, received)
}

/// A configuration of a service `app` that is copied to a service `next`.
fn config(scene: &Scene, top: &str, mirror: &str, app: SocketAddr, next: SocketAddr) -> String {
    config_with(scene, top, mirror, (app, ""), (next, ""))
}

/// The same, with lines for both services.
fn config_with(
    scene: &Scene,
    top: &str,
    mirror: &str,
    (app, of_app): (SocketAddr, &str),
    (next, of_next): (SocketAddr, &str),
) -> String {
    let rest = format!(
        "[[route]]\nservice = \"app\"\nmirror = {{ service = \"next\", {mirror} }}\n\
         request_header = {{ set = {{ X-Added = \"1\" }}, remove = [\"X-Removed\"] }}\n\
         [service.app]\n{of_app}\n{}\n[service.next]\n{of_next}\n{}",
        server_tables("app", [app]),
        server_tables("next", [next]),
    );
    scene.config(&format!("workers = 1\n{top}"), &rest)
}

fn mirrored(weir: &Weir, result: &str) -> u64 {
    let result = format!("result=\"{result}\"");
    weir.metric("weir_mirrored_requests_total", &["service=\"next\"", &result]) as u64
}

/// The fields of a head, without the one that differs for each request to a server.
fn comparable(head: &str) -> Vec<String> {
    let mut lines: Vec<_> = head.lines().map(str::to_owned).collect();
    lines.retain(|line| !line.to_ascii_lowercase().starts_with("traceparent"));
    lines.sort_unstable();
    lines
}

#[test]
fn a_copy_is_the_whole_request_and_only_its_status_counts() {
    let Some(scene) = Scene::new("mirror", &["curl"]) else {
        return;
    };
    let (app, at_app) = recorder(&scene, 11, "app");
    let (next, at_next) = recorder(&scene, 12, "next");
    let mirror = "body_max = \"10kB\"";
    let weir = Weir::start(&scene, &config(&scene, "", mirror, app.address(), next.address()));
    let mut client = Connection::open(weir.front()).unwrap();
    // A copy of a chunked body has one chunk.
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    client.send(b"4\r\nbody\r\n0\r\n\r\n").unwrap();
    assert_eq!(client.response(false).unwrap().status, 200);
    let mut ask = |method: &str, target: &str, fields: &[&str], body: &[u8]| {
        let answer = client.request(method, target, fields, body).unwrap();
        assert_eq!(answer.field("set-cookie"), Some("by=app"), "{method} {target}");
        assert!(method == "HEAD" || answer.text() == "app", "{method} {target}");
        answer.status
    };
    assert_eq!(ask("GET", "/a%20b?c=d", &["X-Mine: 1", "X-Removed: 1", "Cookie: e=f"], b""), 200);
    assert_eq!(ask("HEAD", "/", &[], b""), 200);
    assert_eq!(ask("POST", "/form", &["Content-Type: text/plain"], &[b'x'; 9_000]), 200);
    assert_eq!(ask("DELETE", "/?app=404&next=404", &[], b""), 404);
    assert_eq!(ask("GET", "/?next=500", &[], b""), 200);
    assert_eq!(ask("GET", "/?app=503&next=204", &[], b""), 503);
    let url = format!("http://{}/http2", weir.front());
    let sent = curl(&scene, &["--http2-prior-knowledge", "--data", "over HTTP/2", &url]);
    assert_eq!(sent.stdout, "app", "{sent:?}");
    let copies = wait::until("the copies", SOON, || {
        let copies = at_next.lock().unwrap().clone();
        (copies.len() == 8).then_some(copies)
    });
    let sorted = |requests: &[(String, Vec<u8>)]| {
        let mut comparable: Vec<_> =
            requests.iter().map(|(head, body)| (comparable(head), body.clone())).collect();
        comparable.sort_unstable();
        comparable
    };
    // They have the same request IDs.
    assert_eq!(sorted(&copies), sorted(&at_app.lock().unwrap()));
    let is_changed =
        |head: &str| head.contains("\r\nx-added: 1\r\n") && !head.contains("X-Removed");
    assert!(copies.iter().all(|(head, _)| is_changed(head)), "{copies:?}");
    assert!(copies.iter().any(|(_, body)| body.len() == 9_000));
    wait::until("the counts", SOON, || {
        let counts = ["same_status", "other_status", "failed"].map(|it| mirrored(&weir, it));
        (counts == [6, 2, 0]).then_some(())
    });

    // What is not copied: longer bodies, of known and unknown length, and upgrades.
    assert_eq!(ask("POST", "/long", &[], &[b'x'; 10_001]), 200);
    let chunk = format!("2800\r\n{}\r\n0\r\n\r\n", "x".repeat(0x2800));
    client.send(b"POST /long HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    client.send(chunk.as_bytes()).unwrap();
    assert_eq!(client.response(false).unwrap().status, 200);
    let fields = ["Connection: upgrade", "Upgrade: websocket"];
    assert_eq!(client.get("/upgrade", &fields).unwrap().status, 200, "the server ignores it");
    assert_eq!(mirrored(&weir, "no_body"), 2);
    assert_eq!(at_next.lock().unwrap().len(), 8);
    // A copy is no request of a client.
    let lines = wait::until("the access lines", SOON, || {
        let lines = weir.access().len();
        (lines >= 11).then_some(lines)
    });
    assert_eq!(lines, 11);
    assert_eq!(
        weir.metric("weir_requests_total", &["service=\"next\"", "status=\"2xx\""]) as u64,
        6
    );
}

#[test]
fn copies_that_fail_have_no_effect_on_requests() {
    let Some(scene) = Scene::new("mirror-failing", &[]) else {
        return;
    };
    let (app, at_app) = recorder(&scene, 11, "app");
    let misbehaves = |host, behaviour: fn(&mut Peer)| {
        Rogue::start(scene.address(host, 8080), move |peer| {
            if peer.message().is_some() {
                behaviour(peer);
            }
        })
    };
    let dead = scene.address(20, 8080);
    let resets = misbehaves(21, Peer::reset);
    let garbage = misbehaves(22, |peer| peer.say("SSH-2.0-OpenSSH\r\n\r\n"));
    let cut = misbehaves(23, |peer| {
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        peer.reset();
    });
    let silent = misbehaves(24, Peer::hold);
    let endless = misbehaves(25, |peer| {
        peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        while peer.stream.peer_addr().is_ok()
            && std::io::Write::write_all(&mut peer.stream, chunk.as_bytes()).is_ok()
        {}
    });
    let before = |from: &mut usize| {
        let count = at_app.lock().unwrap().len() - *from;
        *from += count;
        count
    };
    let mut seen = 0;
    for (next, result) in [
        (dead, Some("failed")),
        (resets.address(), Some("failed")),
        (garbage.address(), Some("failed")),
        (cut.address(), Some("failed")),
        // The status is all that is compared; the rest is cut off.
        (endless.address(), Some("same_status")),
        (silent.address(), None),
    ] {
        let count = if result.is_some() { 200 } else { IN_FLIGHT_MAX + 50 };
        let mut weir = Weir::start(&scene, &config(&scene, "", "share = 1", app.address(), next));
        let mut client = Connection::open(weir.front()).unwrap();
        for _ in 0..count {
            assert_eq!(client.request("POST", "/", &[], b"body").unwrap().status, 200);
        }
        assert_eq!(before(&mut seen) as u64, count);
        match result {
            Some(result) => wait::until(&format!("the ends of the copies to {next}"), SOON, || {
                (mirrored(&weir, result) == count).then_some(())
            }),
            None => assert_eq!(mirrored(&weir, "overloaded"), 50, "{next}"),
        }
        let of_app = |more: &[&str]| {
            let labels = [&["service=\"app\""], more].concat();
            weir.metric("weir_requests_total", &labels) as u64
        };
        assert_eq!(
            [of_app(&["cause=\"completed\"", "status=\"2xx\""]), of_app(&["fault=\"server\""])],
            [count, 0]
        );
        // Copies in flight hold up nothing, not even the end.
        weir.begin_to_stop();
        let finished = weir.wait(SOON);
        assert_eq!(finished.code, Some(0), "{next}: {finished:?}");
        assert!(!finished.stderr.contains("panicked"), "{finished:?}");
    }
}

#[test]
fn the_bodies_of_copies_have_bounded_memory() {
    let Some(scene) = Scene::new("mirror-memory", &[]) else {
        return;
    };
    let (app, _) = recorder(&scene, 11, "app");
    let silent = Rogue::start(scene.address(12, 8080), Peer::hold);
    let top = "mirror_memory_max = \"100kB\"";
    let weir = Weir::start(&scene, &config(&scene, top, "", app.address(), silent.address()));
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..5 {
        assert_eq!(client.request("POST", "/", &[], &vec![b'x'; 30_000]).unwrap().status, 200);
    }
    assert_eq!(mirrored(&weir, "overloaded"), 2);
    assert_eq!(weir.metric("weir_mirror_memory_bytes", &[]) as u64, 90_000);
    assert_eq!(weir.metric("weir_mirror_memory_exhausted_total", &[]) as u64, 2);
}

#[test]
fn a_share_is_drawn() {
    let Some(scene) = Scene::new("mirror-share", &[]) else {
        return;
    };
    let (app, _) = recorder(&scene, 11, "app");
    let (next, at_next) = recorder(&scene, 12, "next");
    let weir =
        Weir::start(&scene, &config(&scene, "", "share = 0.3", app.address(), next.address()));
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..1_000 {
        assert_eq!(client.get("/", &[]).unwrap().status, 200);
    }
    // Seven standard deviations.
    wait::until("a share of copies", SOON, || {
        let copies = at_next.lock().unwrap().len() as u64;
        let is_share = (200..=400).contains(&copies);
        (is_share && mirrored(&weir, "same_status") == copies).then_some(())
    });
}

#[test]
fn a_mirror_that_leads_back_makes_no_copies_of_copies() {
    let Some(scene) = Scene::new("mirror-loop", &[]) else {
        return;
    };
    let (app, at_app) = recorder(&scene, 11, "app");
    let weir = Weir::start(&scene, &config(&scene, "", "", app.address(), scene.front()));
    assert_eq!(e2e::http::get(weir.front(), "/").unwrap().status, 200);
    wait::until("the copy", SOON, || (mirrored(&weir, "same_status") == 1).then_some(()));
    assert_eq!(at_app.lock().unwrap().len(), 2);
}

#[test]
fn both_services_keep_their_settings() {
    let Some(scene) = Scene::new("mirror-settings", &["nghttpd"]) else {
        return;
    };
    let (app, _) = recorder(&scene, 11, "app");
    let (next, at_next) = recorder(&scene, 12, "next");
    // Bodies for `app` are read before it has a slot; servers of `next` are introduced to the client.
    let (of_app, of_next) = ("in_flight_max = 1", "send_proxy = \"v1\"");
    let text = config_with(&scene, "", "", (app.address(), of_app), (next.address(), of_next));
    let weir = Weir::start(&scene, &text);
    let mut client = Connection::open(weir.front()).unwrap();
    client
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n")
        .unwrap();
    assert_eq!(client.response(false).unwrap().status, 100);
    client.send(&[b'x'; 5000]).unwrap();
    assert_eq!(client.response(false).unwrap().status, 200);
    let copies = wait::until("the copy", SOON, || {
        let copies = at_next.lock().unwrap().clone();
        (!copies.is_empty()).then_some(copies)
    });
    let (head, body) = &copies[0];
    let introduced = format!("PROXY TCP4 127.0.0.1 {} ", weir.front().ip());
    assert!(head.starts_with(&introduced), "{head}");
    assert!(!head.to_lowercase().contains("expect"), "{head}");
    assert_eq!(body.len(), 5000);

    // A service of HTTP/2.
    let address = scene.address(13, 8443);
    let words = ["--no-tls", "--address", &address.ip().to_string(), &address.port().to_string()]
        .map(str::to_owned);
    let _server = Process::start(&scene, "nghttpd", Path::new("nghttpd"), words);
    wait::until("the server", SOON, || std::net::TcpStream::connect(address).ok());
    let from = weir.log().len();
    let text = config_with(&scene, "", "", (app.address(), of_app), (address, "http = \"2\""));
    scene.file("weir.toml", text);
    weir.hang_up();
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    for (method, body) in [("GET", &b""[..]), ("POST", b"body")] {
        assert_eq!(client.request(method, "/?app=404", &[], body).unwrap().status, 404);
    }
    // It has no such file.
    wait::until("the copies", SOON, || (mirrored(&weir, "same_status") == 3).then_some(()));
}
