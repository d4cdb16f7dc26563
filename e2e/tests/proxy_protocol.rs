//! The PROXY protocol both ways, with HAProxy before Weir, and HAProxy and nginx behind it: the
//! client's address must reach servers that request it, and only trusted peers may set it.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::clients::curl;
use e2e::{App, Authority, Finished, Haproxy, Nginx, Scene, Weir, http, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
const NEEDS: &[&str] = &["python3", "nginx", "haproxy", "curl"];

/// Where HAProxy connects to Weir from, and where its clients are, by host number.
const BALANCER: u8 = 50;
const CLIENT: u8 = 77;

fn wait_for_line(weir: &Weir, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    wait::until(what, SOON, || weir.access().into_iter().rev().find(&is_it))
}

/// GET from the client's address.
fn ask(scene: &Scene, words: &[&str], url: &str) -> Finished {
    let from = scene.ip(CLIENT).to_string();
    curl(scene, &[&["-k", "--interface", &from][..], words, &[url]].concat())
}

#[test]
fn a_balancer_before_weir_tells_who_the_client_is() {
    let Some(scene) = Scene::new("proxy-before", NEEDS) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["a.example.com"]);
    let bundle = [&pair.chain, &pair.key].map(|path| std::fs::read_to_string(path).unwrap());
    let bundle = scene.file("bundle.pem", bundle.concat()).display().to_string();
    let (clear, tls, balancer) = (scene.front(), scene.address(1, 8443), scene.ip(BALANCER));
    let listens = "proxy_protocol = [\"BALANCER/32\"]\n".replace("BALANCER", &balancer.to_string());
    let rest = format!(
        "{listens}[[listener]]\nname = \"tls\"\naddress = \"{tls}\"\n{listens}\
         tls = {{ certificates = [{}] }}\n[[route]]\nservice = \"app\"\n[service.app]\n{}",
        pair.table(),
        server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    // Each frontend of HAProxy hands its connections on in another way.
    let ways: [(&str, String, &[&str], &str); 5] = [
        ("v1", format!("{clear} send-proxy"), &[], "http"),
        ("v2", format!("{clear} send-proxy-v2"), &[], "http"),
        ("http2", format!("{clear} send-proxy-v2"), &["--http2-prior-knowledge"], "http"),
        // Spoken to the client by HAProxy, and named in the header.
        ("ssl", format!("{clear} send-proxy-v2-ssl-cn"), &["--http1.1"], "https"),
        // Spoken by Weir, behind the header.
        ("through", format!("{tls} send-proxy-v2"), &["--http2"], "https"),
    ];
    let mut config =
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 20s\n  timeout server 20s\n"
            .to_owned();
    for (port, (name, server, ..)) in (9001..).zip(&ways) {
        let bind = scene.address(2, port);
        let ssl = if *name == "ssl" { format!(" ssl crt {bundle}") } else { String::new() };
        config += &format!(
            "listen {name}\n  bind {bind}{ssl}\n  server weir {server} source {balancer}\n"
        );
    }
    let _haproxy = Haproxy::start(&scene, &config, scene.address(2, 9001));
    let client = scene.ip(CLIENT).to_string();
    for (port, (name, _, words, scheme)) in (9001..).zip(&ways) {
        let inside = matches!(*name, "ssl" | "through");
        let base = if inside { "https" } else { "http" };
        let url = format!("{base}://{}/{name}", scene.address(2, port));
        let seen = ask(&scene, words, &url);
        let echo: Value =
            serde_json::from_str(&seen.stdout).unwrap_or_else(|e| panic!("{name}: {e}: {seen:?}"));
        let fields = echo["fields"].as_array().expect("fields");
        let field = |name: &str| {
            let row = fields.iter().find(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
            row.and_then(|row| row[1].as_str()).unwrap_or_default().to_owned()
        };
        assert_eq!(field("x-forwarded-for"), client, "{name}: {echo}");
        assert_eq!(field("x-forwarded-proto"), *scheme, "{name}: {echo}");
        let line =
            wait_for_line(&weir, "the access line", |line| line["path"] == format!("/{name}"));
        let told = line["client"].as_str().unwrap_or_default();
        assert!(told.starts_with(&format!("{client}:")), "{name}: {line}");
    }

    // A peer that has to send a header, and does not.
    let from = balancer.to_string();
    for (url, more) in [(format!("http://{clear}/"), ""), (format!("https://{tls}/"), "-k")] {
        let words =
            [&["--interface", &from][..], if more.is_empty() { &[] } else { &["-k"] }, &[&url]];
        let seen = curl(&scene, &words.concat());
        assert_ne!(seen.code, Some(0), "{seen:?}");
    }
    let line = wait_for_line(&weir, "its cause", |line| line["cause"] == "proxy_protocol_error");
    assert!(line["detail"].as_str().is_some_and(|detail| detail.contains("PROXY")), "{line}");
    assert!(line["status"].is_null(), "{line}");
    // Anybody else who sends one.
    let forged = "PROXY TCP4 6.6.6.6 6.6.6.7 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = String::from_utf8(http::raw(clear, forged.as_bytes()).unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(!weir.access().iter().any(|line| line.to_string().contains("6.6.6.6")));
    // And anybody else who sends none, as before.
    assert_eq!(http::get(clear, "/").unwrap().status, 200);
}

#[test]
fn servers_behind_weir_are_told_who_the_client_is() {
    let Some(scene) = Scene::new("proxy-behind", NEEDS) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["a.example.com"]);
    let [nginx_at, haproxy_at, plain] =
        [(11, 8081), (12, 8080), (11, 8080)].map(|(host, port)| scene.address(host, port));
    let extra = format!(
        "listen {nginx_at} proxy_protocol;
         location = /who {{ return 200 '$proxy_protocol_addr $proxy_protocol_server_port'; }}"
    );
    let nginx = Nginx::start(&scene, 11, &extra);
    assert_eq!(nginx.address(), plain);
    let config = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 20s\n  timeout server 20s\n\
         frontend f\n  bind {haproxy_at} accept-proxy\n  http-request return status 200 \
         content-type text/plain lf-string \"%[src] %[dst_port] %[fc_pp_authority]\"\n"
    );
    let _haproxy = Haproxy::start(&scene, &config, haproxy_at);
    let (tls, raw) = (scene.address(1, 8443), scene.address(1, 8444));
    let check = "check = { path = \"/who\", interval = \"100ms\", rise = 1 }\n";
    let service = |name: &str, version: &str, server: SocketAddr| {
        format!(
            "[service.{name}]\nsend_proxy = \"{version}\"\n{}{}",
            if name == "raw" { "" } else { check },
            server_tables(name, [server])
        )
    };
    let route = |name: &str| {
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\nrewrite = {{ prefix = \"/who\" }}\n"
        )
    };
    let rest = format!(
        "[[listener]]\nname = \"tls\"\naddress = \"{tls}\"\ntls = {{ certificates = [{}] }}\n\
         [[listener]]\nname = \"raw\"\naddress = \"{raw}\"\nprotocol = \"tcp\"\nservice = \"raw\"\n\
         {}{}{}{}{}{}{}{}{}",
        pair.table(),
        route("n1"),
        route("n2"),
        route("h1"),
        route("h2"),
        service("n1", "v1", nginx_at),
        service("n2", "v2", nginx_at),
        service("h1", "v1", haproxy_at),
        service("h2", "v2", haproxy_at),
        service("raw", "v2", haproxy_at),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    // The checks begin with a header as well, without which these servers answer nothing.
    wait::until("all checks to pass", SOON, || {
        (weir.metric("weir_server_up", &[]) >= 4.0).then_some(())
    });
    let client = scene.ip(CLIENT).to_string();
    for name in ["n1", "n2", "h1", "h2"] {
        let url = format!("http://{}/{name}", weir.front());
        // Twice each: a connection that tells of one client is not used for another.
        let seen = ask(&scene, &[], &url).stdout;
        assert!(seen.starts_with(&format!("{client} {}", weir.front().port())), "{name}: {seen}");
        let other = http::get(weir.front(), &format!("/{name}")).unwrap().text();
        assert!(other.starts_with("127.0.0.1 "), "{name}: {other}");
    }
    let to = format!("a.example.com:8443:{}", scene.ip(1));
    let seen = ask(&scene, &["--resolve", &to], "https://a.example.com:8443/h2").stdout;
    assert_eq!(seen, format!("{client} 8443 a.example.com"));
    let seen = ask(&scene, &[], &format!("http://{raw}/")).stdout;
    assert!(seen.starts_with(&format!("{client} 8444")), "{seen}");
}
