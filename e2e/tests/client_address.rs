//! Who the client is when a real proxy is in front of Weir: rate limits, the access log, the hash and the
//! PROXY protocol towards servers must agree, and nothing that a client writes may change it.

use std::collections::BTreeMap;
use std::time::Duration;

use e2e::clients::curl;
use e2e::{App, Haproxy, Scene, Weir, http, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
/// Where HAProxy connects from, by host number.
const PROXY: u8 = 50;
const CLIENTS: [u8; 3] = [77, 78, 79];

/// A proxy that appends its client to X-Forwarded-For, in front of `weir`.
fn proxy(scene: &Scene, more: &str) -> Haproxy {
    let (bind, front, source) = (scene.address(2, 9001), scene.front(), scene.ip(PROXY));
    let config = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 20s\n  timeout server 20s\n\
         listen front\n  bind {bind}\n  option forwardfor\n  {more}\n  server weir {front} source {source}\n"
    );
    Haproxy::start(scene, &config, bind)
}

/// The status of a GET from a client, through the proxy.
fn ask(scene: &Scene, client: u8, path: &str, fields: &[&str]) -> u16 {
    let (from, url) =
        (scene.ip(client).to_string(), format!("http://{}{path}", scene.address(2, 9001)));
    let fields = fields.iter().flat_map(|field| ["-H", field]);
    let mut words = vec!["--interface", &from, "-o", "/dev/null", "-w", "%{http_code}"];
    words.extend(fields);
    words.push(&url);
    let seen = curl(scene, &words);
    seen.stdout.trim().parse().unwrap_or_else(|e| panic!("{e}: {seen:?}"))
}

#[test]
fn servers_get_the_address_in_x_real_ip() {
    let Some(scene) = Scene::new("client-real-ip", &["python3", "haproxy", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let rest = format!(
        "trusted = [\"{}/32\"]\nforward_fields = [\"x-real-ip\"]\n[[route]]\nservice = \"app\"\n[service.app]\n{}",
        scene.ip(PROXY),
        server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("", &rest));
    let _proxy = proxy(&scene, "");
    let url = format!("http://{}/", scene.address(2, 9001));
    let client = scene.ip(77).to_string();
    let words = ["--interface", &client, "-H", "X-Real-IP: 9.9.9.9", &url];
    let seen: Value = serde_json::from_str(&curl(&scene, &words).stdout).unwrap();
    assert_eq!(real_ips(&seen), [client]);
    // One that is not trusted is the client.
    let forged = http::get_with(weir.front(), "/", &["X-Real-IP: 9.9.9.9"]).unwrap();
    let ips = real_ips(&forged.json());
    assert!(ips.len() == 1 && ips[0] != "9.9.9.9", "{ips:?}");
}

/// The values of X-Real-IP that the server got.
fn real_ips(echo: &Value) -> Vec<String> {
    let rows = echo["fields"].as_array().into_iter().flatten();
    let named = rows
        .filter(|row| row[0].as_str().is_some_and(|name| name.eq_ignore_ascii_case("x-real-ip")));
    named.filter_map(|row| row[1].as_str().map(str::to_owned)).collect()
}

#[test]
fn clients_behind_a_trusted_proxy_are_told_apart() {
    let Some(scene) = Scene::new("client-address", &["python3", "haproxy", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let rest = format!(
        "trusted = [\"{}/32\"]\n[[route]]\nservice = \"app\"\n\
         rate_limit = {{ requests = 1, per = \"1h\", burst = 2 }}\n[service.app]\n{}",
        scene.ip(PROXY),
        server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let _proxy = proxy(&scene, "");
    // Each has an allowance of two, whatever it claims to be.
    for client in CLIENTS {
        let others = scene.ip(if client == 77 { 78 } else { 77 });
        let claims = [
            format!("X-Forwarded-For: {others}"),
            format!("X-Forwarded-For: 10.1.2.{client}"),
            "Forwarded: for=9.9.9.9".to_owned(),
        ];
        let statuses = claims.each_ref().map(|claim| {
            ask(&scene, client, &format!("/{client}"), &[claim, "X-Real-IP: 9.9.9.9"])
        });
        assert_eq!(statuses, [200, 200, 429], "client {client}");
    }
    // A peer that is not trusted is the client, whatever it sends.
    let forged = format!("X-Forwarded-For: {}", scene.ip(80));
    let direct = |_| http::get_with(weir.front(), "/direct", &[&forged]).unwrap().status;
    assert_eq!([1, 2, 3].map(direct), [200, 200, 429]);

    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 12)
    });
    for line in &lines {
        let path = line["path"].as_str().unwrap();
        let (client, peer) = (line["client"].as_str().unwrap(), &line["peer"]);
        if let Ok(host) = path[1..].parse::<u8>() {
            assert_eq!(client, scene.ip(host).to_string(), "{line}");
            let proxy = format!("{}:", scene.ip(PROXY));
            assert!(peer.as_str().is_some_and(|peer| peer.starts_with(&proxy)), "{line}");
        } else {
            assert!(client.starts_with("127.0.0.1:") && *peer == Value::Null, "{line}");
        }
    }
    let count = |result: &str| {
        let label = format!("result=\"{result}\"");
        weir.metric("weir_listener_client_addresses_total", &[&label]) as u32
    };
    assert_eq!(["found", "missing", "invalid"].map(count), [9, 0, 0]);
}

#[test]
fn a_misconfigured_chain_is_counted_and_not_guessed() {
    let Some(scene) = Scene::new("client-address-wrong", &["python3", "haproxy", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    // The proxy writes X-Forwarded-For only.
    let rest = format!(
        "trusted = [\"{}/32\"]\nclient_address = {{ field = \"CF-Connecting-IP\" }}\n\
         [[route]]\nservice = \"app\"\n[service.app]\n{}",
        scene.ip(PROXY),
        server_tables("app", [app.address()])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let _proxy = proxy(&scene, "");
    assert_eq!(ask(&scene, 77, "/missing", &[]), 200);
    assert_eq!(ask(&scene, 77, "/invalid", &["CF-Connecting-IP: me"]), 200);
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 2)
    });
    for line in &lines {
        let proxy = format!("{}:", scene.ip(PROXY));
        assert!(line["client"].as_str().unwrap().starts_with(&proxy), "{line}");
        assert_eq!(line["peer"], Value::Null, "{line}");
    }
    for result in ["missing", "invalid"] {
        let label = format!("result=\"{result}\"");
        let count = weir.metric("weir_listener_client_addresses_total", &[&label]) as u32;
        assert_eq!(count, 1, "{result}");
    }
}

#[test]
fn the_hash_and_the_proxy_header_use_the_clients_address() {
    let Some(scene) = Scene::new("client-address-used", &["python3", "haproxy", "curl"]) else {
        return;
    };
    let apps = [11, 12, 13, 14].map(|host| App::start(&scene, host, &[]));
    let inner = scene.address(3, 8081);
    let listener = |name: &str, address, keys: &str| {
        format!("[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n{keys}\n")
    };
    let rest = format!(
        "trusted = [\"{}/32\"]\n{}[[route]]\npath = \"/hash\"\nservice = \"hash\"\n\
         [[route]]\nlistener = \"public\"\npath = \"/proxy\"\nservice = \"inner\"\n\
         [[route]]\nlistener = \"inner\"\npath = \"/proxy\"\nservice = \"hash\"\n\
         [service.hash]\nbalance = \"hash\"\nhash = {{ on = \"client\", load_factor = 100 }}\n{}\n\
         [service.inner]\nsend_proxy = \"v2\"\n{}",
        scene.ip(PROXY),
        listener("inner", inner, "proxy_protocol = [\"127.0.0.0/8\"]"),
        server_tables("hash", apps.each_ref().map(App::address)),
        server_tables("inner", [inner]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let _proxy = proxy(&scene, "");
    let clients: Vec<u8> = (80..96).collect();
    for _ in 0..2 {
        for client in &clients {
            assert_eq!(ask(&scene, *client, &format!("/hash/{client}"), &[]), 200);
        }
    }
    assert_eq!(ask(&scene, 77, "/proxy", &[]), 200);
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 2 * clients.len() + 2)
    });
    // Each client always had the same server, and not all had the same.
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["path"].as_str().unwrap().starts_with("/hash")) {
        let server = line["server"].as_str().unwrap();
        servers.entry(line["path"].as_str().unwrap()).or_default().push(server);
    }
    assert!(servers.values().all(|two| two[0] == two[1]), "{servers:#?}");
    let different: std::collections::BTreeSet<_> = servers.values().map(|two| two[0]).collect();
    assert!(different.len() > 1, "{servers:#?}");
    let inner = lines.iter().find(|line| line["listener"] == "inner").expect("the inner line");
    assert!(inner["client"].as_str().unwrap().starts_with(&scene.ip(77).to_string()), "{inner}");
}
