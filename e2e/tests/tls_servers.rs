//! TLS to servers, TLS passthrough, and TLS termination in TCP mode.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use e2e::clients::{curl, s_client};
use e2e::rogue::Rogue;
use e2e::{
    App, Authority, Finished, Nginx, Pair, Scene, Weir, http, server_tables, speak_tls, wait,
};

const SOON: Duration = Duration::from_secs(10);
const ASK: &str = "GET /status HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

/// Lines of nginx's server block that let it speak TLS at `address` as well.
fn ssl(address: SocketAddr, pair: &Pair, more: &str) -> String {
    format!(
        "listen {address} ssl http2; ssl_certificate {}; ssl_certificate_key {};
         location = /who {{ return 200 '$ssl_server_name $server_protocol $ssl_client_s_dn'; }}
         {more}",
        pair.chain.display(),
        pair.key.display()
    )
}

/// Services `NAME`, each with lines of its own and one server, reached by a path `/NAME`.
fn services(services: &[(&str, String, SocketAddr)]) -> String {
    let tables = services.iter().map(|(name, lines, server)| {
        format!(
            "[[route]]\npath = \"/{name}/\"\nservice = \"{name}\"\nrewrite = {{ prefix = \"/\" }}\n\
             [service.{name}]\n{lines}\n{}",
            server_tables(name, [server])
        )
    });
    tables.collect()
}

#[test]
fn servers_are_verified() {
    let Some(scene) = Scene::new("tls-servers", &["nginx"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let other = Authority::new(&scene, "other");
    let [speaks, clear, stale, asks] = [8443, 8444, 8445, 8446].map(|port| scene.address(11, port));
    let expired = scene.address(12, 8080);
    let pair = ca.issue("server", &["server.internal", &scene.ip(11).to_string()]);
    let old = ca.issue_expired("old", &["server.internal"]);
    let mine = ca.issue("mine", &["weir"]);
    let _nginx = Nginx::start(&scene, 11, &ssl(speaks, &pair, ""));
    // A second server block would need another nginx: these end this block and begin one.
    let strict = format!(
        "}} server {{ {} ssl_verify_client on; ssl_client_certificate {};",
        ssl(asks, &pair, ""),
        ca.pem().display()
    );
    let dated = format!("}} server {{ {}", ssl(stale, &old, ""));
    let _more = Nginx::start(&scene, 12, &format!("{strict}{dated}"));
    let tls = |ca: &Authority, more: &str| format!("tls = {{ {}{more} }}", ca.ca());
    let all = [
        ("by-address", tls(&ca, ""), speaks),
        ("by-name", tls(&ca, ", name = \"server.internal\""), speaks),
        ("by-name-http2", tls(&ca, ", name = \"server.internal\"") + "\nhttp = \"2\"", speaks),
        ("wrong-name", tls(&ca, ", name = \"another.internal\""), speaks),
        ("wrong-ca", tls(&other, ""), speaks),
        ("system-ca", "tls = {}".to_owned(), speaks),
        ("anyone", "tls = { verify = false }".to_owned(), stale),
        ("stale", tls(&ca, ", name = \"server.internal\""), stale),
        ("clear-text", tls(&ca, ""), expired),
        ("nobody", tls(&ca, ""), clear),
        ("known", tls(&ca, &format!(", certificate = {}", mine.table())), asks),
    ];
    let weir = Weir::start(&scene, &scene.config("workers = 2", &services(&all)));
    for (service, expected) in [
        ("by-address", Ok("HTTP/1.1")),
        ("by-name", Ok("server.internal HTTP/1.1")),
        ("by-name-http2", Ok("server.internal HTTP/2.0")),
        ("wrong-name", Err("tls_certificate_error")),
        ("wrong-ca", Err("tls_certificate_error")),
        ("system-ca", Err("tls_certificate_error")),
        ("anyone", Ok("HTTP/1.1")),
        ("stale", Err("tls_certificate_error")),
        ("clear-text", Err("tls_protocol_error")),
        ("nobody", Err("connection_refused")),
        ("known", Ok("HTTP/1.1 CN=weir")),
    ] {
        let answer = http::get(weir.front(), &format!("/{service}/who")).unwrap();
        let seen = match answer.status {
            200 => Ok(answer.text().trim().to_owned()),
            502 => Err(answer.field("proxy-status").unwrap_or_default().to_owned()),
            status => panic!("{service}: {status} {}", answer.text()),
        };
        match (expected, seen) {
            (Ok(expected), Ok(seen)) => assert_eq!(seen, expected, "{service}"),
            (Err(cause), Err(seen)) => {
                assert!(seen.starts_with(&format!("weir; error={cause}")), "{service}: {seen}");
            }
            (expected, seen) => panic!("{service}: {seen:?}, not {expected:?}"),
        }
    }
}

/// Servers of HTTP/2 over TLS that tell their health in clear text on another port.
#[test]
fn checks_may_use_a_port_without_tls_and_read_the_body() {
    let Some(scene) = Scene::new("tls-checks", &["nginx"]) else { return };
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("server", &["server.internal"]);
    let (speaks, health) = (scene.address(11, 8443), scene.address(11, 9090));
    let told = format!(
        "}} server {{ listen {health}; default_type application/json;
         location /health {{ return 200 '{{\"status\":\"UP\",\"db\":{{\"up\":true}},\"roles\":[\"web\"]}}'; }}
         location /long {{ alias {}; }}
         location /text {{ return 200 'Ready: yes'; }}",
        scene.file("long", "x".repeat(70_000)).display()
    );
    let _nginx = Nginx::start(&scene, 11, &(ssl(speaks, &pair, "") + &told));
    let all: Vec<_> = [
        ("json", "path = \"/health\", expect_json = { status = \"UP\", \"db.up\" = \"true\", roles = \"web\" }", None),
        ("text", "path = \"/text\", expect_body = \"^Ready: (yes|true)$\"", None),
        ("value", "path = \"/health\", expect_json = { \"db.up\" = \"false\" }", Some("not as in expect_json")),
        ("member", "path = \"/health\", expect_json = { \"db.down\" = \"true\" }", Some("lacks a member")),
        ("no-json", "path = \"/text\", expect_json = { status = \"UP\" }", Some("not a JSON object")),
        ("no-match", "path = \"/text\", expect_body = \"^yes\"", Some("does not match expect_body")),
        ("long", "path = \"/long\", expect_json = { status = \"UP\" }", Some("too long")),
        ("begins", "path = \"/long\", expect_body = \"^xx\"", None),
        ("http2", "path = \"/text\", http = \"2\"", Some("")),
    ]
    .into_iter()
    .map(|(name, check, down)| {
        let http = if name == "http2" { "" } else { ", http = \"1.1\"" };
        let lines = format!(
            "http = \"2\"\ntls = {{ {}, name = \"server.internal\" }}\n\
             check = {{ {check}, port = 9090, tls = false{http}, interval = \"50ms\", timeout = \"5s\" }}",
            ca.ca()
        );
        (name, lines, down)
    })
    .collect();
    let tables: Vec<_> =
        all.iter().map(|(name, lines, _)| (*name, lines.clone(), speaks)).collect();
    let weir = Weir::start(&scene, &scene.config("workers = 1", &services(&tables)));
    for (name, _, down) in &all {
        let health = wait::until("a verdict", SOON, || {
            let servers = weir.api(&format!("/api/v1/services/{name}"));
            let server = servers["servers"][0].clone();
            (server["health"] != "unknown").then_some(server)
        });
        let expected = if down.is_none() { "up" } else { "down" };
        assert_eq!(health["health"], expected, "{name}: {health}");
        if let Some(why) = down {
            weir.wait_for_log(&[name, "down", why], SOON);
        }
        // Requests use HTTP/2 over TLS all the same.
        if down.is_none() {
            let answer = http::get(weir.front(), &format!("/{name}/who")).unwrap();
            assert_eq!(answer.text().trim(), "server.internal HTTP/2.0", "{name}");
        }
    }
}

#[test]
fn servers_hear_that_the_client_speaks_tls() {
    let Some(scene) = Scene::new("tls-fields", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["a.example.com"]);
    let [front, address] = [scene.front(), scene.address(1, 8081)];
    let text = scene.config(
        "workers = 2",
        &format!(
            "tls = {{ certificates = [{}] }}\n[[listener]]\naddress = \"{address}\"\n\
             [[route]]\nservice = \"app\"\n[service.app]\n{}",
            pair.table(),
            server_tables("app", [app.address()])
        ),
    );
    let _weir = Weir::start(&scene, &text);
    let to = format!("a.example.com:8080:{}", scene.ip(1));
    let ca = ca.pem().to_string_lossy().into_owned();
    for version in ["--http1.1", "--http2"] {
        let words = ["--cacert", &ca, "--resolve", &to, version, "https://a.example.com:8080/x"];
        let seen = curl(&scene, &words);
        let echo: serde_json::Value = serde_json::from_str(&seen.stdout).expect("an echo");
        let fields = echo["fields"].as_array().expect("fields");
        let field = |name: &str| {
            let row = fields.iter().find(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
            row.and_then(|row| row[1].as_str()).unwrap_or_default().to_owned()
        };
        assert_eq!(field("x-forwarded-proto"), "https", "{version}: {echo}");
        assert_eq!(field("x-forwarded-for"), "127.0.0.1", "{version}: {echo}");
        assert_eq!(field("host"), "a.example.com:8080", "{version}: {echo}");
        assert!(field("forwarded").contains("proto=https"), "{version}: {echo}");
    }
    // The clear-text listener beside it is no way to be taken for one of TLS.
    let echo = http::get_with(address, "/", &["X-Forwarded-Proto: https"]).unwrap().json();
    assert!(!echo.to_string().contains("https"), "{echo}");
    assert_ne!(front, address);
}

/// The common name of the certificate that is shown, if any is.
fn shown(finished: &Finished) -> Option<&str> {
    let subject = finished.stdout.lines().find_map(|line| line.strip_prefix("subject="));
    subject.and_then(|subject| subject.split("CN = ").nth(1))
}

#[test]
fn tls_is_passed_through_by_server_name() {
    let Some(scene) = Scene::new("tls-passthrough", &["nginx", "openssl", "curl"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let [a, b] = [11, 12].map(|host| scene.address(host, 8443));
    let mut running = Vec::new();
    for (host, address, names) in [(11, a, ["a.example.com"]), (12, b, ["*.b.example.com"])] {
        let pair = ca.issue(&format!("server{host}"), &names);
        running.push(Nginx::start(&scene, host, &ssl(address, &pair, "")));
    }
    let [by_name, with_fallback] = [8443, 8444].map(|port| scene.address(1, port));
    let names = "server_names = { \"a.example.com\" = \"a\", \"*.b.example.com\" = \"b\" }";
    let listener = |name: &str, address: SocketAddr, more: &str| {
        format!(
            "[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\nprotocol = \"tcp\"\n\
             {names}\n{more}\n"
        )
    };
    let text = format!(
        "workers = 2\n[admin]\naddress = \"{}\"\n{}{}[service.a]\n{}[service.b]\n{}",
        scene.admin(),
        listener("by-name", by_name, "timeouts = { head = \"1s\" }"),
        listener("with-fallback", with_fallback, "service = \"b\""),
        server_tables("a", [a]),
        server_tables("b", [b])
    );
    let weir = Weir::start(&scene, &text);
    for (address, words, expected) in [
        (by_name, &["-servername", "a.example.com"][..], Some("a.example.com")),
        (by_name, &["-servername", "A.EXAMPLE.com"], Some("a.example.com")),
        (by_name, &["-servername", "x.b.example.com"], Some("*.b.example.com")),
        (by_name, &["-servername", "c.example.com"], None),
        (by_name, &["-noservername"], None),
        (with_fallback, &["-servername", "a.example.com"], Some("a.example.com")),
        (with_fallback, &["-servername", "c.example.com"], Some("*.b.example.com")),
        (with_fallback, &["-noservername"], Some("*.b.example.com")),
    ] {
        let seen = s_client(&scene, address, words, ASK);
        assert_eq!(shown(&seen), expected, "{address} {words:?} {seen:?}");
        assert_eq!(seen.stdout.contains("HTTP/1.1 200"), expected.is_some(), "{words:?} {seen:?}");
    }
    let cause = |cause: &str, least: usize| {
        wait::until(&format!("{least} lines with {cause}"), SOON, || {
            let lines = weir.access();
            let of_it = lines.iter().filter(|line| line["cause"] == cause);
            (of_it.count() >= least).then_some(())
        });
    };
    cause("destination_not_found", 2);
    // Whatever is spoken inside is the servers' own business: HTTP/2 here.
    let to = format!("a.example.com:8443:{}", scene.ip(1));
    let ca = ca.pem().to_string_lossy().into_owned();
    let words = ["--cacert", &ca, "--resolve", &to, "--http2", "https://a.example.com:8443/who"];
    assert_eq!(curl(&scene, &words).stdout, "a.example.com HTTP/2.0 ");
    // What is no TLS, and what does not end.
    assert_eq!(http::raw(by_name, ASK.as_bytes()).unwrap_or_default(), b"");
    let mut half = http::Connection::open(by_name).unwrap();
    half.send(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).unwrap();
    assert!(half.is_closed_within(SOON));
    cause("client_tls_error", 2);
}

#[test]
fn tls_is_taken_off_for_a_tcp_service() {
    let Some(scene) = Scene::new("tls-tcp", &["nginx", "openssl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["a.example.com"]);
    let inner = scene.address(12, 8443);
    let _inner = Nginx::start(&scene, 12, &ssl(inner, &ca.issue("inner", &["inner"]), ""));
    let [clear, again] = [8443, 8444].map(|port| scene.address(1, port));
    let listener = |address: SocketAddr, service: &str| {
        format!(
            "[[listener]]\naddress = \"{address}\"\nprotocol = \"tcp\"\nservice = \"{service}\"\n\
             tls = {{ certificates = [{}] }}\n",
            pair.table()
        )
    };
    let text = format!(
        "workers = 2\n[admin]\naddress = \"{}\"\n{}{}[service.clear]\n{}\
         [service.again]\ntls = {{ name = \"inner\", {} }}\n{}",
        scene.admin(),
        listener(clear, "clear"),
        listener(again, "again"),
        server_tables("clear", [nginx.address()]),
        ca.ca(),
        server_tables("again", [inner])
    );
    let _weir = Weir::start(&scene, &text);
    scene.file("large", vec![b'x'; 3_000_000]);
    for address in [clear, again] {
        let seen = s_client(&scene, address, &["-servername", "a.example.com"], ASK);
        assert_eq!(shown(&seen), Some("a.example.com"), "{seen:?}");
        assert!(seen.stdout.contains("HTTP/1.1 200"), "{seen:?}");
        assert!(!seen.stderr.contains("unexpected eof"), "{seen:?}");
        let url = format!("https://{address}/files/large");
        let seen = curl(&scene, &["-k", "-o", "/dev/null", "-w", "%{size_download}", &url]);
        assert_eq!(seen.stdout, "3000000", "{seen:?}");
    }
}

#[test]
fn tls_is_taken_off_by_server_name() {
    let Some(scene) = Scene::new("tls-tcp-names", &["openssl"]) else {
        return;
    };
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com", "*.b.example.com"]);
    let says = |host: u8, text: &'static str| {
        Rogue::start(scene.address(host, 8080), move |peer| {
            peer.head();
            peer.say(format!("HTTP/1.0 200 OK\r\n\r\n{text}"));
        })
    };
    let _servers = [says(11, "from a"), says(12, "from b")];
    let front = scene.address(1, 8443);
    let text = format!(
        "workers = 2\n[admin]\naddress = \"{}\"\n\
         [[listener]]\naddress = \"{front}\"\nprotocol = \"tcp\"\n\
         server_names = {{ \"a.example.com\" = \"a\", \"*.b.example.com\" = \"b\" }}\n\
         tls = {{ certificates = [{}] }}\n[service.a]\n{}[service.b]\n{}",
        scene.admin(),
        pair.table(),
        server_tables("a", [scene.address(11, 8080)]),
        server_tables("b", [scene.address(12, 8080)])
    );
    let weir = Weir::start(&scene, &text);
    for (words, expected) in [
        (&["-servername", "a.example.com"][..], Some("from a")),
        (&["-servername", "X.B.example.com"], Some("from b")),
        (&["-servername", "c.example.com"], None),
        (&["-noservername"], None),
    ] {
        let seen = s_client(&scene, front, words, ASK);
        assert_eq!(shown(&seen), expected.map(|_| "a.example.com"), "{words:?} {seen:?}");
        let text = expected.unwrap_or_default();
        assert!(seen.stdout.contains(text), "{words:?} {seen:?}");
    }
    wait::until("two connections for names without a service", SOON, || {
        let lines = weir.access();
        let refused = lines.iter().filter(|line| line["cause"] == "destination_not_found");
        (refused.count() == 2).then_some(())
    });
}

#[test]
fn an_idle_tunnel_ends_with_close_notify_on_both_sides() {
    let Some(scene) = Scene::new("tls-tcp-idle", &["openssl"]) else {
        return;
    };
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let (said, ends) = mpsc::channel();
    let server = Rogue::start(scene.address(11, 8443), move |peer| {
        said.send(speak_tls(peer, "inner")).expect("the test to wait for it");
    });
    let front = scene.address(1, 8443);
    let text = format!(
        "[admin]\naddress = \"{}\"\n\
         [[listener]]\naddress = \"{front}\"\nprotocol = \"tcp\"\nservice = \"a\"\n\
         tls = {{ certificates = [{}] }}\n\
         [service.a]\ntls = {{ name = \"inner\", verify = false }}\n\
         timeouts = {{ idle = \"300ms\" }}\n{}",
        scene.admin(),
        pair.table(),
        server_tables("a", [server.address()])
    );
    let _weir = Weir::start(&scene, &text);
    let seen = s_client(&scene, front, &["-servername", "a.example.com"], "hello");
    assert_eq!(shown(&seen), Some("a.example.com"), "{seen:?}");
    assert!(!seen.stderr.contains("unexpected eof"), "{seen:?}");
    assert!(ends.recv_timeout(SOON).expect("the server's end"), "the server saw a truncation");
}
