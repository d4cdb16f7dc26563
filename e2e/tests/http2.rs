//! HTTP/2 on either side: curl, nghttp and h2load before Weir, nginx and a server on Python's h2
//! behind it, and features that only one version has.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::clients::{client, curl, h2load, python_client, start};
use e2e::frames::{Frames, code, kind, request};
use e2e::{
    App, Authority, H2SPEC, Nginx, PYTHON_PEERS, Process, Scene, Weir, find, http, python_server,
    server_tables, wait,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// Servers of both versions, and Weir before them with a listener in clear text and one of TLS:
/// `/one/` and `/two/` reach applications by HTTP/1.1 and HTTP/2, `/files1/` and `/files2/` nginx.
struct Both {
    app: App,
    weir: Weir,
    clear: SocketAddr,
    tls: SocketAddr,
    _nginx: Nginx,
    _app2: Process,
}

fn both(scene: &Scene) -> Both {
    let app = App::start(scene, 11, &[]);
    let [two, nginx2] = [scene.address(12, 8080), scene.address(13, 8081)];
    let app2 = python_server(scene, "servers/http2.py", "http2", two, &[]);
    let nginx = Nginx::start(scene, 13, &format!("listen {nginx2} http2;"));
    let pair = Authority::new(scene, "ca").issue("a", &["a.example.com"]);
    let (clear, tls) = (scene.front(), scene.address(1, 8443));
    let service = |name: &str, lines: &str, path: &str, server: SocketAddr| {
        format!(
            "[[route]]\npath = \"/{name}/\"\nservice = \"{name}\"\n\
             rewrite = {{ prefix = \"{path}\" }}\n[service.{name}]\n{lines}\n{}",
            server_tables(name, [server])
        )
    };
    let http2 = "http = \"2\"";
    let rest = format!(
        "[[listener]]\nname = \"tls\"\naddress = \"{tls}\"\ntls = {{ certificates = [{}] }}\n{}{}{}{}",
        pair.table(),
        service("one", "", "/", app.address()),
        service("two", http2, "/", two),
        service("files1", "", "/files/", nginx.address()),
        service("files2", http2, "/files/", nginx2),
    );
    let weir = Weir::start(scene, &scene.config("workers = 2", &rest));
    Both { app, weir, clear, tls, _nginx: nginx, _app2: app2 }
}

const NEEDS: &[&str] = &["python3", "nginx", "curl", "nghttp", "h2load", PYTHON_PEERS];

fn echo_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no echo: {error}: {text:?}"))
}

fn echoed(echo: &Value, name: &str) -> Vec<String> {
    let fields = echo["fields"].as_array().expect("an echo");
    let named = fields.iter().filter(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
    named.map(|row| row[1].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_version_reaches_every_version() {
    let Some(scene) = Scene::new("http2-versions", NEEDS) else {
        return;
    };
    let mut both = both(&scene);
    let large: Vec<u8> =
        (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let large = scene.file("large", &large).to_string_lossy().into_owned();
    let digest = |path: &str| {
        let seen = client(&scene, "sha256sum", &[path], 20);
        seen.stdout.split(' ').next().expect("a digest").to_owned()
    };
    let sent = digest(&large);
    let (clear, tls) = (format!("http://{}", both.clear), format!("https://{}", both.tls));
    for (base, version) in [
        (&clear, "--http1.1"),
        (&clear, "--http2-prior-knowledge"),
        (&tls, "--http1.1"),
        (&tls, "--http2"),
    ] {
        let number = if version == "--http1.1" { "1.1" } else { "2" };
        for (service, spoken) in [("one", "HTTP/1.1"), ("two", "HTTP/2")] {
            let what = format!("{base} {version} {service}");
            let url = format!("{base}/{service}/x?a=b%20c&d");
            let words = ["-k", version, "-H", "Cookie: a=b; c=d", "-w", "\n%{http_version}", &url];
            let seen = curl(&scene, &words).stdout;
            let (body, seen_version) = seen.rsplit_once('\n').expect("two lines");
            assert_eq!(seen_version, number, "{what}");
            let echo = echo_of(body);
            assert_eq!(echo["version"], spoken, "{what}");
            assert_eq!(echo["target"], "/x?a=b%20c&d", "{what}");
            assert_eq!(echoed(&echo, "x-forwarded-for"), ["127.0.0.1"], "{what}");
            assert_eq!(echoed(&echo, "cookie").join("; "), "a=b; c=d", "{what}");
            let host = base.rsplit('/').next().unwrap_or_default();
            let named = if service == "one" { "host" } else { ":authority" };
            assert_eq!(echoed(&echo, named), [host], "{what}");

            for more in [&[][..], &["-H", "Transfer-Encoding: chunked"]] {
                // HTTP/2 has no such field, and curl does not send it there.
                let data = format!("@{large}");
                let words = [
                    more,
                    &["-k", version, "-H", "Expect:", "--data-binary", &data],
                    &[&*format!("{base}/{service}/up")],
                ];
                let echo = echo_of(&curl(&scene, &words.concat()).stdout);
                assert_eq!(echo["body_sha256"], sent, "{what} {more:?}");
            }
        }
        for service in ["files1", "files2"] {
            let got = scene.folder().join("got").to_string_lossy().into_owned();
            let url = format!("{base}/{service}/large");
            let seen = curl(&scene, &["-k", version, "-o", &got, &url]);
            assert_eq!((seen.code, digest(&got)), (Some(0), sent.clone()), "{url} {version}");
        }
    }
    let resident = both.weir.process().resident_bytes();
    assert!(resident < 120_000_000, "{resident} bytes resident after bodies of 20 MB");
}

#[test]
fn many_streams_at_once_all_succeed() {
    let Some(scene) = Scene::alone("http2-load", NEEDS) else {
        return;
    };
    let both = both(&scene);
    scene.file("small", "hello");
    for (base, service) in [
        (format!("http://{}", both.clear), "files1"),
        (format!("http://{}", both.clear), "files2"),
        (format!("https://{}", both.tls), "files1"),
        (format!("https://{}", both.tls), "files2"),
    ] {
        let url = format!("{base}/{service}/small");
        let seen = h2load(&scene, &["-n", "10000", "-c", "10", "-m", "100", &url]);
        assert_eq!((seen.succeeded, seen.failed), (10_000, 0), "{url}: {}", seen.text);
    }
    // Clients of HTTP/1.1 share connections of HTTP/2 to the server.
    let url = format!("http://{}/files2/small", both.clear);
    let seen = h2load(&scene, &["--h1", "-n", "5000", "-c", "20", &url]);
    assert_eq!((seen.succeeded, seen.failed), (5000, 0), "{}", seen.text);
}

#[test]
fn every_form_of_response_is_passed_on() {
    let Some(scene) = Scene::new("http2-forms", NEEDS) else {
        return;
    };
    let both = both(&scene);
    for service in ["one", "two"] {
        let url = |query: &str| format!("http://{}/{service}/?{query}", both.clear);
        let ask = |words: &[&str], query: &str| {
            let url = url(query);
            curl(&scene, &[&["--http2-prior-knowledge", "-i"][..], words, &[&url]].concat()).stdout
        };
        let head = ask(&["--head"], "size=100");
        assert!(head.starts_with("HTTP/2 200"), "{service}: {head}");
        assert!(head.contains("\r\ncontent-length: 100\r\n"), "{service}: {head}");
        for status in ["204", "304"] {
            let seen = ask(&[], &format!("status={status}"));
            assert!(seen.starts_with(&format!("HTTP/2 {status}")), "{service}: {seen}");
            assert!(seen.ends_with("\r\n\r\n"), "{service}: {seen}");
        }
        let seen = ask(&[], "early=1&size=5");
        assert!(seen.starts_with("HTTP/2 103"), "{service}: {seen}");
        assert!(seen.contains("\r\nlink: </a.css>; rel=preload\r\n"), "{service}: {seen}");
        assert!(seen.contains("\r\n\r\nHTTP/2 200") && seen.ends_with("\r\n\r\nxxxxx"), "{seen}");
        // No field of HTTP/1.1's connections may stand in a message of HTTP/2.
        for hop in ["transfer-encoding", "connection:", "keep-alive"] {
            assert!(!ask(&[], "chunked=1&size=10").contains(hop), "{service}: {hop}");
        }
        // curl takes trailers for fields of the head, so nghttp shows them.
        let url = url("trailer=1&size=10");
        let seen = client(&scene, "nghttp", &["-v", "-n", "-H", "te: trailers", &url], 20).stdout;
        assert!(seen.contains("x-sum: 10"), "{service}: {seen}");
        // The same for a client of HTTP/1.1.
        let words = ["--http1.1", "--raw", "-i", "-H", "TE: trailers", &url];
        let seen = curl(&scene, &words).stdout;
        assert!(seen.to_lowercase().ends_with("\r\n0\r\nx-sum: 10\r\n\r\n"), "{service}: {seen}");

        let body = scene.file("body", "hello").to_string_lossy().into_owned();
        let url = format!("http://{}/{service}/", both.clear);
        // What has a length has no trailers in HTTP/1.1.
        let words = ["--no-content-length", "--trailer", "x-check: 5d41", "-d", &body, &url];
        let echo = echo_of(&client(&scene, "nghttp", &words, 20).stdout);
        assert_eq!(echo["body_bytes"], 5, "{service}: {echo}");
        let trailers = echo["trailers"].to_string().to_lowercase();
        assert!(trailers.contains("x-check: 5d41"), "{service}: {echo}");
        for expect in ["Expect: 100-continue", "Expect:"] {
            let data = format!("@{body}");
            let words = ["--http2-prior-knowledge", "-H", expect, "--data-binary", &data, &url];
            let echo = echo_of(&curl(&scene, &words).stdout);
            assert_eq!(echo["body_bytes"], 5, "{service} {expect}: {echo}");
        }
    }
}

#[test]
fn memory_stays_bounded_when_nobody_reads() {
    let Some(scene) = Scene::alone("http2-slow", NEEDS) else {
        return;
    };
    let mut both = both(&scene);
    std::fs::File::create(scene.folder().join("huge")).unwrap().set_len(400_000_000).unwrap();
    let before = both.weir.process().resident_bytes();
    let mut stalled = Vec::new();
    for service in ["files1", "files2"] {
        for _ in 0..4 {
            let mut frames = Frames::client(both.clear).unwrap();
            // All the room there can be: nothing but the balancer's own bounds holds it back.
            frames.send(kind::SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]).unwrap();
            frames.send(kind::WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()).unwrap();
            for number in 0..8 {
                let path = format!("/{service}/huge");
                frames.headers(number * 2 + 1, &request("GET", &path), true).unwrap();
            }
            stalled.push(frames);
        }
    }
    wait::measure_for(Duration::from_secs(2));
    let grown = both.weir.process().resident_bytes().saturating_sub(before);
    println!("{grown} bytes more for 64 streams of 8 stalled clients");
    assert!(grown < 48_000_000, "{grown} bytes more for 64 streams of 8 stalled clients");
    // A stream that is not read does not hold up another of its connection.
    let mut frames = Frames::client(both.clear).unwrap();
    frames.send(kind::WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()).unwrap();
    frames.headers(1, &request("GET", "/files2/huge"), true).unwrap();
    frames.headers(3, &request("GET", "/one/"), true).unwrap();
    assert_eq!(frames.response(3).unwrap().0, 200);
}

#[test]
fn a_reset_by_the_client_ends_its_request() {
    let Some(scene) = Scene::new("http2-reset", NEEDS) else {
        return;
    };
    let both = both(&scene);
    for path in ["/one/", "/two/"] {
        let mut frames = Frames::client(both.clear).unwrap();
        let target = format!("{path}?work_ms=3000");
        frames.headers(1, &request("GET", &target), true).unwrap();
        let service = format!("service=\"{}\"", path.trim_matches('/'));
        wait::until("the request to run", SOON, || {
            let running = both.weir.metric("weir_server_in_flight", &[&service]);
            (running >= 1.0).then_some(())
        });
        frames.reset(1, code::CANCEL).unwrap();
        wait::until("the access line", SOON, || {
            let lines = both.weir.access();
            let is_it = |line: &Value| line["cause"] == "client_closed" && line["path"] == path;
            lines.iter().any(is_it).then_some(())
        });
        // The connection goes on.
        frames.headers(3, &request("GET", "/one/"), true).unwrap();
        assert_eq!(frames.response(3).unwrap().0, 200);
    }
    // A server of HTTP/1.1 is still at work on what was abandoned.
    assert_eq!(both.app.stat("in_flight"), 1);
}

#[test]
fn a_drain_loses_nothing() {
    let Some(scene) = Scene::new("http2-drain", NEEDS) else {
        return;
    };
    for service in ["one", "two"] {
        let mut both = both(&scene);
        let urls: Vec<String> = (0..20)
            .map(|n| format!("http://{}/{service}/?work_ms=1500&n={n}", both.clear))
            .collect();
        let mut words = vec!["-n", "-s"];
        words.extend(urls.iter().map(String::as_str));
        let mut nghttp = start(&scene, "nghttp", &words);
        let mut idle = Frames::client(both.clear).unwrap();
        idle.headers(1, &request("GET", "/one/"), true).unwrap();
        assert_eq!(idle.response(1).unwrap().0, 200);
        wait::until("the requests to run", SOON, || {
            (both.weir.metric("weir_server_in_flight", &[]) >= 20.0).then_some(())
        });
        both.weir.begin_to_stop();
        let said = idle.until(|frame| frame.kind == kind::GOAWAY).unwrap();
        assert_eq!(said.code(), code::NO_ERROR);
        let seen = nghttp.wait(SOON);
        let answered = seen.stdout.lines().filter(|line| line.contains(" 200 ")).count();
        assert_eq!(answered, 20, "{service}: {seen:?}");
        drop(idle);
        assert_eq!(both.weir.wait(SOON).code, Some(0));
        both.app.kill();
    }
}

#[test]
fn websockets_pass_from_either_version() {
    let Some(scene) = Scene::new("http2-websocket", NEEDS) else {
        return;
    };
    let one = scene.address(14, 8080);
    let _one = python_server(&scene, "servers/websocket.py", "websocket", one, &[]);
    let rest =
        format!("[[route]]\nservice = \"chat\"\n[service.chat]\n{}", server_tables("chat", [one]));
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let front = weir.front().to_string();
    for version in ["1.1", "2"] {
        let words = ["--address", &front, "--http", version];
        let seen = python_client(&scene, "clients/websocket.py", &words);
        assert_eq!(seen.stdout.trim(), "10 1000", "{version}: {seen:?}");
    }
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() >= 2)
    });
    assert!(lines.iter().all(|line| line["cause"] == "completed"), "{lines:?}");
}

#[test]
fn a_tunnel_reaches_a_server_of_http2() {
    let Some(scene) = Scene::new("http2-tunnel", NEEDS) else {
        return;
    };
    let both = both(&scene);
    // The first request on a fresh connection: whether the server takes an extended CONNECT is
    // known from its settings (RFC 8441 section 3).
    let mut tunnel = http::Connection::open(both.clear).unwrap();
    tunnel
        .send(
            b"GET /two/chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
              Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        )
        .unwrap();
    let switched = tunnel.response(false).unwrap();
    assert_eq!(switched.status, 101, "{}", switched.head);
    assert_eq!(switched.field("upgrade"), Some("websocket"), "{}", switched.head);
    // The example of RFC 6455 section 1.3.
    let accept = switched.field("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{}", switched.head);
    for size in [1, 100, 1_000_000] {
        let sent: Vec<u8> = (0..size).map(|n: u32| n as u8).collect();
        let mut writer = tunnel.stream.try_clone().unwrap();
        let back = std::thread::scope(|scope| {
            scope.spawn(|| std::io::Write::write_all(&mut writer, &sent).unwrap());
            tunnel.exactly(sent.len()).unwrap()
        });
        assert!(back == sent, "{size} bytes");
    }
    tunnel.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(tunnel.rest().unwrap(), b"");
}

#[test]
fn h2spec_finds_nothing() {
    let Some(scene) = Scene::new("http2-h2spec", &["python3", H2SPEC]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--size", "200000"]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let tls = scene.address(1, 8443);
    let rest = format!(
        "[[listener]]\naddress = \"{tls}\"\ntls = {{ certificates = [{}] }}\n\
         [[route]]\nservice = \"app\"\n[service.app]\n{}",
        pair.table(),
        server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    assert!(find(H2SPEC).is_some());
    for (address, words) in [(weir.front(), &[][..]), (tls, &["-t", "-k"][..])] {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let words = [&["-S", "-o", "5", "-h", &host, "-p", &port][..], words].concat();
        let seen = client(&scene, H2SPEC, &words, 120).stdout;
        let failed: Vec<&str> = seen
            .split(['\r', '\n'])
            .map(|line| line.trim_start_matches(|c| c != '×'))
            .filter(|line| line.starts_with('×'))
            // A port that speaks both versions takes this for a bad request of HTTP/1.1, and says
            // so, as RFC 9113 section 3.4 leaves it free to.
            .filter(|line| !line.contains("Sends invalid connection preface") || address == tls)
            .collect();
        assert!(failed.is_empty(), "{address}: {failed:#?}\n{seen}");
        assert!(seen.contains("146 tests"), "{seen}");
    }
}
