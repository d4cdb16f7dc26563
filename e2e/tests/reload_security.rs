//! A reload that changes a listener's security settings, or removes a service: what becomes of the
//! connections that were accepted before.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use e2e::clients::s_client;
use e2e::frames::{self, Frames, kind};
use e2e::{App, Authority, Pair, Scene, Weir, http, server_tables, wait};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const SOON: Duration = Duration::from_secs(5);
/// How long tunnels may stay.
const DRAIN: Duration = Duration::from_secs(1);
const TOP: &str = "workers = 2\ndrain_max = \"1s\"\nreload = { watch = false }";
const ASK: &str = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

/// A configuration whose public listener has the lines `listener`, and more.
fn config(scene: &Scene, listener: &str, app: SocketAddr, more: &str) -> String {
    let servers = server_tables("app", [app]);
    let rest = format!("{listener}\n[[route]]\nservice = \"app\"\n[service.app]\n{servers}{more}");
    scene.config(TOP, &rest)
}

fn tls(pair: &Pair, more: &str) -> String {
    format!("tls = {{ certificates = [{}]{more} }}\n", pair.table())
}

fn reload(scene: &Scene, weir: &Weir, text: &str) {
    scene.file("weir.toml", text);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["result"], "applied", "{}", answer.text());
}

#[test]
fn clear_text_connections_end_when_the_listener_changes_to_tls() {
    let Some(scene) = Scene::new("secure-tls", &["python3", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, "", app.address(), ""));
    // Between requests: in a task, and parked.
    let mut parked = http::Connection::open(weir.front()).unwrap();
    assert_eq!(parked.get("/", &[]).unwrap().status, 200);
    wait::measure_for(http::SILENCE);
    let mut idle = http::Connection::open(weir.front()).unwrap();
    assert_eq!(idle.get("/", &[]).unwrap().status, 200);
    let mut silent = http::Connection::open(weir.front()).unwrap();
    let mut running = http::Connection::open(weir.front()).unwrap();
    running.send(b"GET /?work_ms=700 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    wait::until("the request to run", SOON, || (app.stat("in_flight") == 1).then_some(()));

    reload(&scene, &weir, &config(&scene, &tls(&pair, ""), app.address(), ""));
    for connection in [&mut parked, &mut idle, &mut silent] {
        assert!(connection.is_closed_within(SOON));
    }
    let answer = running.response(false).unwrap();
    assert_eq!((answer.status, answer.field("connection")), (200, Some("close")));
    assert!(running.is_closed_within(SOON));
    // The same socket goes on, with the new rules.
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 400);
    let seen = s_client(&scene, weir.front(), &["-servername", "a.example.com"], ASK);
    assert!(seen.stdout.contains("HTTP/1.1 200"), "{seen:?}");
}

/// A kept TLS connection that trusts `ca`.
struct Kept(rustls::StreamOwned<rustls::ClientConnection, TcpStream>);

impl Kept {
    fn open(ca: &Authority, address: SocketAddr) -> Kept {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca.pem()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "a.example.com".try_into().unwrap();
        let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Kept(rustls::StreamOwned::new(session, stream))
    }

    /// The status of an answer without a body.
    fn head(&mut self) -> std::io::Result<String> {
        self.0.write_all(b"HEAD / HTTP/1.1\r\nHost: a.example.com\r\n\r\n")?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.extend(byte);
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        Ok(text.split(' ').nth(1).unwrap_or_default().to_owned())
    }

    /// Whether the peer ends it within [`SOON`].
    fn ends(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

#[test]
fn other_client_authorities_end_connections_and_a_renewed_certificate_does_not() {
    let Some(scene) = Scene::new("secure-ca", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (ca, other) = (Authority::new(&scene, "ca"), Authority::new(&scene, "other"));
    let pair = ca.issue("a", &["a.example.com"]);
    let with = |of: &Authority, pair: &Pair, more: &str| {
        let clients = format!(", client_certificates = {{ {}, required = false }}{more}", of.ca());
        config(&scene, &tls(pair, &clients), app.address(), "")
    };
    let weir = Weir::start(&scene, &with(&ca, &pair, ""));
    let mut kept = Kept::open(&ca, weir.front());
    assert_eq!(kept.head().unwrap(), "200");
    // A certificate that is renewed, in the same files or in others.
    let _ = ca.issue("a", &["a.example.com"]);
    reload(&scene, &weir, &with(&ca, &pair, ""));
    assert_eq!(kept.head().unwrap(), "200");
    let renewed = ca.issue("b", &["a.example.com"]);
    reload(&scene, &weir, &with(&ca, &renewed, ", hsts = \"1d\""));
    assert_eq!(kept.head().unwrap(), "200");

    reload(&scene, &weir, &with(&other, &renewed, ""));
    assert!(kept.ends(), "another authority");
    let mut kept = Kept::open(&ca, weir.front());
    assert_eq!(kept.head().unwrap(), "200");
    reload(&scene, &weir, &with(&other, &renewed, ", version_min = \"1.3\""));
    assert!(kept.ends(), "another oldest version");
}

#[test]
fn streams_of_http2_finish_and_the_connection_is_told_to_go_away() {
    let Some(scene) = Scene::new("secure-http2", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, "", app.address(), ""));
    let mut client = Frames::client(weir.front()).unwrap();
    client.headers(1, &frames::request("GET", "/?work_ms=700"), true).unwrap();
    wait::until("the request to run", SOON, || (app.stat("in_flight") == 1).then_some(()));
    reload(&scene, &weir, &config(&scene, &tls(&pair, ""), app.address(), ""));
    let goes = client.until(|frame| frame.kind == kind::GOAWAY).unwrap();
    assert_eq!(goes.code(), frames::code::NO_ERROR);
    assert_eq!(client.response(1).unwrap().0, 200);
    // The connection ends behind it.
    while client.next_frame().is_ok() {}
}

#[test]
fn tunnels_end_after_drain_max_and_say_why() {
    let Some(scene) = Scene::new("secure-tunnel", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let tcp = scene.address(1, 8081);
    let text = |secured: &str| {
        let tcp = format!(
            "[[listener]]\nname = \"tcp\"\naddress = \"{tcp}\"\nprotocol = \"tcp\"\n\
             service = \"app\"\n{secured}"
        );
        config(&scene, "", app.address(), &tcp)
    };
    let weir = Weir::start(&scene, &text(""));
    let mut tunnel = http::Connection::open(tcp).unwrap();
    assert_eq!(tunnel.get("/", &[]).unwrap().status, 200);
    // A reload that changes something else leaves it alone.
    reload(&scene, &weir, &text("connections_max = 100\n"));
    assert_eq!(tunnel.get("/", &[]).unwrap().status, 200);

    let changed = std::time::Instant::now();
    reload(&scene, &weir, &text(&tls(&pair, "")));
    assert_eq!(tunnel.get("/", &[]).unwrap().status, 200, "until its time is over");
    assert!(tunnel.is_closed_within(DRAIN + SOON));
    assert!(changed.elapsed() >= DRAIN, "after {:?}", changed.elapsed());
    let line = wait::until("its line", SOON, || {
        weir.access().into_iter().find(|line| line["listener"] == "tcp")
    });
    assert_eq!(line["cause"], "listener_changed", "{line}");
}

/// A reload gives a tcp listener another name or address, with other security settings or before
/// them: its tunnels end all the same.
#[test]
fn neither_a_new_name_nor_a_new_address_keeps_tunnels_alive() {
    let Some(scene) = Scene::new("secure-renamed", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let secured = tls(&pair, "");
    let text = |listeners: [(&str, SocketAddr, &str); 3]| {
        let tables = listeners.map(|(name, address, secured)| {
            format!(
                "[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n\
                 protocol = \"tcp\"\nservice = \"app\"\n{secured}"
            )
        });
        config(&scene, "", app.address(), &tables.concat())
    };
    let [at_once, in_steps, moved, elsewhere] =
        [8081, 8082, 8083, 8084].map(|port| scene.address(1, port));
    let first = [("at-once", at_once, ""), ("in-steps", in_steps, ""), ("moved", moved, "")];
    let weir = Weir::start(&scene, &text(first));
    let mut tunnels = [at_once, in_steps, moved].map(|at| http::Connection::open(at).unwrap());
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.get("/", &[]).unwrap().status, 200);
    }
    // A new name alone, twice, ends no tunnel.
    for name in ["renamed", "renamed-again"] {
        reload(&scene, &weir, &text([first[0], (name, in_steps, ""), first[2]]));
        wait::measure_for(DRAIN + Duration::from_millis(200));
        assert_eq!(tunnels[1].get("/", &[]).unwrap().status, 200);
    }

    let changed = std::time::Instant::now();
    let last = [
        ("another", at_once, &*secured),
        ("renamed-again", in_steps, &*secured),
        ("moved", elsewhere, &*secured),
    ];
    reload(&scene, &weir, &text(last));
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.get("/", &[]).unwrap().status, 200, "until its time is over");
    }
    for (tunnel, (name, ..)) in tunnels.iter_mut().zip(first) {
        assert!(tunnel.is_closed_within(DRAIN + SOON), "{name}");
        assert!(changed.elapsed() >= DRAIN, "{name} after {:?}", changed.elapsed());
    }
    for (name, ..) in first {
        let line = wait::until("its line", SOON, || {
            weir.access().into_iter().find(|line| line["listener"] == name)
        });
        assert_eq!(line["cause"], "listener_changed", "{line}");
    }
}

#[test]
fn a_removed_service_does_not_come_back_into_the_metrics() {
    let Some(scene) = Scene::new("secure-metrics", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let second = scene.address(1, 8081);
    let gone = format!(
        "[[listener]]\nname = \"gone\"\naddress = \"{second}\"\n\
         [[route]]\npath = \"/gone\"\nservice = \"gone\"\n[service.gone]\n{}",
        server_tables("gone", [app.address()])
    );
    let weir = Weir::start(&scene, &config(&scene, "", app.address(), &gone));
    let counted = || {
        let text = http::get(scene.admin(), "/metrics").unwrap().text();
        text.lines()
            .filter(|line| line.contains("=\"gone\""))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut running = http::Connection::open(second).unwrap();
    running.send(b"GET /gone?work_ms=700 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    wait::until("the request to run", SOON, || (app.stat("in_flight") == 1).then_some(()));
    assert!(!counted().is_empty());
    reload(&scene, &weir, &config(&scene, "", app.address(), ""));
    assert_eq!(running.response(false).unwrap().status, 200);
    assert!(running.is_closed_within(SOON));
    wait::until("its line", SOON, || {
        weir.access().into_iter().find(|line| line["path"] == "/gone")
    });
    assert_eq!(counted(), Vec::<String>::new());
}
