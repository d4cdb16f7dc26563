//! Copies of requests for another service (`mirror`): what they carry, that nothing of what happens to them
//! reaches the client, and what they may cost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::clients::curl;
use e2e::http::Connection;
use e2e::rogue::{Peer, Rogue};
use e2e::{Scene, Weir, server_tables, wait};

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
    let rest = format!(
        "[[route]]\nservice = \"app\"\nmirror = {{ service = \"next\", {mirror} }}\n\
         request_header = {{ set = {{ X-Added = \"1\" }}, remove = [\"X-Removed\"] }}\n\
         [service.app]\n{}\n[service.next]\n{}",
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
fn whatever_becomes_of_copies_requests_do_not_notice() {
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
    for (next, ends) in [
        (dead, true),
        (resets.address(), true),
        (garbage.address(), true),
        (cut.address(), true),
        (silent.address(), false),
        (endless.address(), false),
    ] {
        let count = if ends { 200 } else { IN_FLIGHT_MAX + 50 };
        let mut weir = Weir::start(&scene, &config(&scene, "", "share = 1", app.address(), next));
        let mut client = Connection::open(weir.front()).unwrap();
        for _ in 0..count {
            assert_eq!(client.request("POST", "/", &[], b"body").unwrap().status, 200);
        }
        assert_eq!(before(&mut seen) as u64, count);
        if ends {
            let counts = || ["failed", "overloaded"].map(|it| mirrored(&weir, it));
            wait::until(&format!("the ends of the copies to {next}"), SOON, || {
                let [failed, overloaded] = counts();
                (failed > 0 && failed + overloaded == count).then_some(())
            });
        } else {
            assert_eq!(mirrored(&weir, "overloaded"), 50, "{next}");
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
fn the_bodies_of_copies_count_against_the_memory_for_bodies() {
    let Some(scene) = Scene::new("mirror-memory", &[]) else {
        return;
    };
    let (app, _) = recorder(&scene, 11, "app");
    let silent = Rogue::start(scene.address(12, 8080), Peer::hold);
    let top = "request_buffers_max = \"100kB\"";
    let weir = Weir::start(&scene, &config(&scene, top, "", app.address(), silent.address()));
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..5 {
        assert_eq!(client.request("POST", "/", &[], &vec![b'x'; 30_000]).unwrap().status, 200);
    }
    assert_eq!(mirrored(&weir, "overloaded"), 2);
    assert_eq!(weir.metric("weir_request_buffers_bytes", &[]) as u64, 90_000);
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
    let copies = wait::until("the last copies", SOON, || {
        let copies = at_next.lock().unwrap().len() as u64;
        (mirrored(&weir, "same_status") == copies).then_some(copies)
    });
    // Seven standard deviations.
    assert!((200..=400).contains(&copies), "{copies}");
}
