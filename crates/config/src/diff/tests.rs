//! Tests of the changes between two texts.

use std::sync::Arc;

use model::{Certificate, ListenerTls, Material, ServiceTls, TlsVersion};

use super::*;

fn snapshot(text: &str) -> Snapshot {
    match crate::check(text, "test.toml", &()) {
        Ok(checked) => checked.snapshot,
        Err(report) => panic!("{}", report.render(false)),
    }
}

const BEFORE: &str = r#"
zone = "a"
drain_max = "30s"
[[listener]]
name = "public"
address = "0.0.0.0:8080"
timeouts = { idle = "60s" }
[[listener]]
name = "old"
address = "0.0.0.0:8081"
[[listener]]
name = "raw"
address = "0.0.0.0:8082"
protocol = "tcp"
service = "stays"
[[route]]
service = "app"
[[route]]
name = "images"
path = "/images"
service = "app"
[[route]]
path = "/gone"
deny = 410
[[route]]
listener = "public"
path = "/stays"
service = "stays"
request_header = { set = { X-Secret = "one" } }
[service.app]
in_flight_max = 4
check = { path = "/status" }
[[service.app.server]]
address = "10.0.0.1:80"
[[service.app.server]]
address = "10.0.0.2:80"
[service.stays]
[[service.stays.server]]
address = "10.0.0.3:80"
[service.gone]
[[service.gone.server]]
address = "10.0.0.4:80"
"#;

fn changed(name: &str, what: &[&str]) -> Changed {
    Changed { name: name.to_owned(), what: what.iter().map(|&word| word.to_owned()).collect() }
}

#[test]
fn nothing_changes_from_a_file_to_itself() {
    let (before, after) = (snapshot(BEFORE), snapshot(BEFORE));
    let found = diff(&before, &after);
    assert!(found.is_empty(), "{found:?}");
    assert_eq!((found.listeners.unchanged, found.routes.unchanged), (3, 4));
    assert_eq!((found.services.unchanged, found.servers.unchanged), (3, 4));
}

#[test]
fn ids_that_move_are_no_change() {
    // A listener and a service before all others.
    let text = BEFORE.replacen(
        "[[listener]]",
        "[[listener]]\nname = \"first\"\naddress = \"0.0.0.0:8000\"\n[[listener]]",
        1,
    ) + "[service.aaa]\n[[service.aaa.server]]\naddress = \"10.0.0.9:80\"\n";
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.listeners.added, ["first"]);
    assert_eq!(found.services.added, ["aaa"]);
    let changed = [&found.listeners, &found.routes, &found.services, &found.servers]
        .map(|changes| changes.changed.len());
    assert_eq!(changed, [0; 4], "{found:?}");
    assert!(found.settings.is_empty() && found.routes.is_empty());
}

#[test]
fn every_change_is_reported_in_the_files_terms() {
    let text = BEFORE
        .replace("drain_max = \"30s\"", "drain_max = \"1m\"")
        .replace("idle = \"60s\"", "idle = \"5s\", head = \"1s\"")
        .replace(
            "name = \"old\"\naddress = \"0.0.0.0:8081\"",
            "name = \"new\"\naddress = \"[::1]:81\"",
        )
        .replace(
            "path = \"/images\"\nservice = \"app\"",
            "path = \"/pictures\"\nservice = \"stays\"",
        )
        .replace("path = \"/gone\"", "path = \"/come\"")
        .replace("X-Secret = \"one\"", "X-Secret = \"two\"")
        .replace("in_flight_max = 4", "in_flight_max = 8\nbalance = \"random\"")
        .replace("path = \"/status\"", "path = \"/status\", interval = \"5s\", expect = 204")
        .replace(
            "address = \"10.0.0.2:80\"",
            "address = \"10.0.0.2:80\"\nweight = 3\nin_flight_max = 2",
        )
        .replace("address = \"10.0.0.1:80\"", "address = \"10.0.0.5:80\"")
        .replace("service.gone", "service.come");
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.settings, ["drain_max: 30s → 1m"]);
    let Changes { added, removed, changed: listeners, unchanged } = found.listeners;
    assert_eq!((added, removed, unchanged), (vec!["new".into()], vec!["old".into()], 1));
    assert_eq!(
        listeners,
        [changed("public", &["timeouts.head: 10s → 1s", "timeouts.idle: 1m → 5s"])]
    );
    let Changes { added, removed, changed: routes, unchanged } = found.routes;
    assert_eq!((added, removed, unchanged), (vec!["*/come".into()], vec!["*/gone".into()], 1));
    assert_eq!(
        routes,
        [
            changed("*/stays on public", &["request_header.set changed"]),
            changed("images", &["path: /images → /pictures", "service: app → stays"]),
        ]
    );
    let Changes { added, removed, changed: services, unchanged } = found.services;
    assert_eq!((added, removed, unchanged), (vec!["come".into()], vec!["gone".into()], 1));
    assert_eq!(
        services,
        [changed(
            "app",
            &[
                "balance: round-robin → random",
                "in_flight_max: 4 → 8",
                "check.expect: 200-399 → 204",
                "check.interval: 2s → 5s",
            ]
        )]
    );
    let Changes { added, removed, changed: servers, unchanged } = found.servers;
    assert_eq!(added, ["app: 10.0.0.5:80"]);
    assert_eq!(removed, ["app: 10.0.0.1:80"]);
    assert_eq!(
        servers,
        [changed("app: 10.0.0.2:80", &["weight: 1 → 3", "in_flight_max: the service's → 2"])]
    );
    assert_eq!(unchanged, 1);
}

#[test]
fn each_change_is_reported_once() {
    let text = BEFORE
        .replace(
            "in_flight_max = 4",
            "in_flight_max = 8\nbalance = \"random\"\nslow_start = \"1s\"\nhttp = \"2\"\n\
             when_full = 503\nwhen_all_down = \"try-all\"\naffinity = { cookie = \"c\" }\n\
             idle_connections_max = 3\nqueue = { length_max = 7, wait_max = \"3s\" }\n\
             retries = { max = 2, body_kept_max = \"1KiB\" }\n\
             zones = { ready_min = 0.1, ready_recovered = 0.2 }\n\
             timeouts = { connect = \"7s\", response = \"8s\", idle = \"9s\", \
             keep_alive = \"11s\", total = \"12s\" }",
        )
        .replace("timeouts = { idle = \"60s\" }", "timeouts = { idle = \"5s\", head = \"1s\" }")
        .replace("path = \"/status\"", "path = \"/other\", interval = \"5s\", expect = 204");
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    let key = |what: &String| what.split(':').next().unwrap_or_default().to_owned();
    let mut reported = Vec::new();
    for changes in [&found.listeners, &found.routes, &found.services, &found.servers] {
        for Changed { name, what } in &changes.changed {
            let mut keys: Vec<_> = what.iter().map(key).collect();
            reported.extend(keys.clone());
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), what.len(), "{name}: {what:?}");
        }
    }
    for key in ["timeouts.total", "timeouts.head", "queue.wait_max", "check", "http"] {
        assert!(reported.iter().any(|it| it == key), "{key} is missing in {reported:?}");
    }
}

#[test]
fn services_shared_with_the_configuration_before_make_no_difference() {
    let text = BEFORE.replace("in_flight_max = 4", "in_flight_max = 9");
    assert_ne!(text, BEFORE);
    let (before, separate) = (snapshot(BEFORE), snapshot(&text));
    let mut shared = separate.clone();
    shared.share_services(&before);
    assert_eq!(shared, separate);
    assert_eq!(diff(&before, &shared), diff(&before, &separate));
    for (old, new) in before.services.iter().zip(&shared.services) {
        assert_eq!(Arc::ptr_eq(old, new), *old.name != *"app", "{}", old.name);
    }
}

#[test]
fn a_tcp_listener_names_its_service_and_a_route_what_becomes_of_it() {
    let text = BEFORE
        .replace("service = \"stays\"\n[[route]]", "service = \"app\"\n[[route]]")
        .replace("deny = 410", "redirect = { host = \"example.com\" }");
    let found = diff(&snapshot(BEFORE), &snapshot(&text));
    assert_eq!(found.listeners.changed, [changed("raw", &["protocol: tcp to stays → tcp to app"])]);
    assert_eq!(
        found.routes.changed,
        [changed("*/gone", &["action: deny 410 → redirect 308 example.com"])]
    );
}

fn material(path: &str, bytes: &str) -> Material {
    Material { path: path.into(), bytes: bytes.as_bytes().into() }
}

#[test]
fn a_renewed_certificate_is_reported_without_its_bytes() {
    let with = |chain: &str, key: &str, ca: &str| {
        let mut snapshot = snapshot(BEFORE);
        snapshot.listeners[0].tls = Some(ListenerTls {
            certificates: vec![Certificate {
                chain: material("a.pem", chain),
                key: material("a.key", key),
                ocsp: None,
                acme: None,
            }],
            unknown_names: model::UnknownNames::First,
            version_min: TlsVersion::Tls12,
            client_certificates: None,
            ciphers: Vec::new(),
            hsts: None,
        });
        let app = snapshot.services.iter_mut().find(|service| &*service.name == "app").unwrap();
        Arc::make_mut(app).tls = Some(Arc::new(ServiceTls {
            name: None,
            names: Vec::new(),
            verify: true,
            ca: material("ca.pem", ca),
            certificate: None,
        }));
        snapshot
    };
    let before = with("one", "secret", "one");
    let found = diff(&before, &with("two", "other secret", "two"));
    assert_eq!(
        found.listeners.changed,
        [changed("public", &["tls.certificates: the certificate in a.pem was replaced"])]
    );
    assert_eq!(
        found.services.changed,
        [changed("app", &["tls.ca: the contents of ca.pem changed"])]
    );
    assert!(diff(&before, &before.clone()).is_empty());

    let mut next = with("one", "secret", "one");
    let tls = next.listeners[0].tls.as_mut().unwrap();
    tls.certificates.push(tls.certificates[0].clone());
    tls.certificates[1].chain.path = "b.pem".into();
    tls.version_min = TlsVersion::Tls13;
    next.listeners[0].http2 = None;
    let what = &[
        "tls.certificates: a.pem → a.pem b.pem",
        "tls.version_min: 1.2 → 1.3",
        "http2: 100 streams → off",
    ];
    assert_eq!(diff(&before, &next).listeners.changed, [changed("public", what)]);
    assert_eq!(
        diff(&snapshot(BEFORE), &before).listeners.changed,
        [changed("public", &["tls: off → on"])]
    );
}

#[test]
fn a_check_that_becomes_grpc_is_reported_with_its_service() {
    let grpc = |check: &str| {
        let check = format!("http = \"2\"\ncheck = {{ kind = \"grpc\"{check} }}");
        snapshot(&BEFORE.replace("check = { path = \"/status\" }", &check))
    };
    let before = grpc("");
    let what = |before: &Snapshot, after: &Snapshot, what: &[&str]| {
        assert_eq!(diff(before, after).services.changed, [changed("app", what)]);
    };
    what(&snapshot(BEFORE), &before, &["check: GET /status → grpc", "http: 1.1 → 2"]);
    let named = grpc(", grpc_service = \"a.B\", host = \"h\"");
    what(&before, &named, &["check: grpc → grpc a.B", "check.host: the server's address → h"]);
}

#[test]
fn a_fleet_is_compared_key_by_key_without_its_secrets() {
    let with = |fleet: &str| {
        let keys = "keys = [\"hunter2 hunter2 hunter2 hunter2 hunter2\"]";
        snapshot(&format!("{BEFORE}\n[fleet]\n{keys}\n{fleet}"))
    };
    let one = with("address = \"10.0.0.5:7946\"\nmembers = []");
    let settings = |before: &Snapshot, after: &Snapshot| diff(before, after).settings;
    assert_eq!(settings(&snapshot(BEFORE), &one), ["fleet.address: no fleet → 10.0.0.5:7946"]);
    assert_eq!(
        settings(
            &one,
            &with(
                "address = \"0.0.0.0:7946\"\nadvertise = \"10.0.0.6:7946\"\nname = \"edge-1\"\nhost = \"rack-7\"\n\
                 members = [\"10.0.0.7:7946\", \"balancers.internal:7946\"]\nprobers = 3\n\
                 discover = { dns_srv = \"_weir._udp.example\" }"
            )
        ),
        [
            "fleet.address: 10.0.0.5:7946 → 0.0.0.0:7946",
            "fleet.advertise: 10.0.0.5:7946 → 10.0.0.6:7946",
            "fleet.name: the machine's → edge-1",
            "fleet.host: the machine's → rack-7",
            "fleet.members: none → 10.0.0.7:7946 balancers.internal:7946",
            "fleet.discover: none → dns_srv _weir._udp.example",
            "fleet.probers: 2 → 3",
        ]
    );
    let mut other = one.clone();
    let fleet = Arc::make_mut(other.fleet.as_mut().unwrap());
    fleet.tls = Some(model::FleetTls {
        certificate: Certificate {
            chain: material("a.pem", "one"),
            key: material("a.key", "secret"),
            ocsp: None,
            acme: None,
        },
        ca: material("ca.pem", "one"),
        name: None,
    });
    assert_eq!(settings(&one, &other), ["fleet.tls: off → on"]);
    let mut changed = other.clone();
    let tls = Arc::make_mut(changed.fleet.as_mut().unwrap()).tls.as_mut().unwrap();
    (tls.ca, tls.name) = (material("ca.pem", "other"), Some("members.internal".into()));
    assert_eq!(
        settings(&other, &changed),
        ["fleet.tls.name: any → members.internal", "fleet.tls.ca: the contents of ca.pem changed"]
    );
    let mut other = one.clone();
    let fleet = Arc::make_mut(other.fleet.as_mut().unwrap());
    fleet.keys = vec![model::Text::secret("another secret".to_owned())];
    assert_eq!(settings(&one, &other), ["fleet.keys changed"]);
    assert!(!format!("{one:?}").contains("hunter"), "a secret even if it is not from a file");
}

#[test]
fn a_limit_that_becomes_one_over_the_fleet_is_reported() {
    let fleet = "[fleet]\nkeys = [\"hunter2 hunter2 hunter2 hunter2 hunter2\"]\n\
                 address = \"10.0.0.5:7946\"\nmembers = []";
    let before = format!("{BEFORE}\n{fleet}");
    let after =
        before.replace("in_flight_max = 4", "in_flight_max = 4\nin_flight_scope = \"fleet\"");
    assert_eq!(
        diff(&snapshot(&before), &snapshot(&after)).services.changed,
        [changed("app", &["in_flight_scope: balancer → fleet"])]
    );
}

#[test]
fn a_source_of_members_is_compared_with_its_registry() {
    let with = |discover: &str| {
        let keys = "keys = [\"hunter2 hunter2 hunter2 hunter2 hunter2\"]";
        let fleet = format!("address = \"10.0.0.5:7946\"\ndiscover = {{ {discover} }}");
        snapshot(&format!("{BEFORE}\n[fleet]\n{keys}\n{fleet}"))
    };
    let found =
        diff(&with("consul = \"weir\""), &with("nomad = \"weir\", port = 7946, hold_max = \"1m\""));
    assert_eq!(
        found.settings,
        [
            "consul.address: http://127.0.0.1:8500/ → not used",
            "nomad.address: not used → http://127.0.0.1:4646/",
            "fleet.discover: consul weir → nomad weir",
            "fleet.discover.port: the source's → 7946",
            "fleet.discover.hold_max: 10m → 1m",
        ]
    );
}
