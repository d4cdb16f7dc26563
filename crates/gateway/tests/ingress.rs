//! Ingresses among many, over changes, with hostile objects, and as parts of a configuration.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use gateway::ir::Rules;
use gateway::ir::ingress::implied_key;
use gateway::objects::Key;
use gateway::objects::ingress::Ingress;
use gateway::parts::{Bindings, Joiner, Templates};
use gateway::resolve::incremental::Changes;
use gateway::resolve::ingress::Ingresses;
use gateway::resolve::status::Notice;
use gateway::resolve::{Checks, Objects, Outcome, Settings, Surroundings, World, resolve};
use model::{
    Action, Address, Authentication, AuthenticationScheme, Balance, ClientAddress, ClientTimeouts,
    ForwardFields, HttpVersion, LimitScope, Listener, Material, Networks, Protocol, QueueLimits,
    RequestFilter, Retries, Service, ServiceTimeouts, Snapshot, SocketAccess, SplitTarget,
    WhenAllDown, ZonePolicy,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(object: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object).unwrap())
}

fn settings() -> Settings {
    Settings {
        controller_name: "a/b".into(),
        ingress_controller_name: "a/c".into(),
        allow_external_names: false,
        checks: Checks::none(),
    }
}

fn object(name: &str, annotations: &Value, rules: Value) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "annotations": annotations},
        "spec": {"ingressClassName": "weir", "rules": rules}
    })
}

fn path(path: &str, service: &str) -> Value {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    json!({"path": path, "pathType": "ImplementationSpecific", "backend": backend})
}

fn rule(host: &str, paths: &[Value]) -> Value {
    json!({"host": host, "http": {"paths": paths}})
}

/// A class, and the Services `s0` to `s9`.
fn objects() -> Objects {
    let mut objects = Objects::default();
    let class = json!({"metadata": {"name": "weir"}, "spec": {"controller": "a/c"}});
    objects.ingress_classes.insert(Key::new("", "weir"), read(class));
    for number in 0..10 {
        let name = format!("s{number}");
        let service = json!({"metadata": {"namespace": "n", "name": name}, "spec": {"ports": [{"port": 80}]}});
        objects.services.insert(Key::new("n", name), read(service));
    }
    objects
}

fn add(objects: &mut Objects, ingress: Value) {
    let ingress: Arc<Ingress> = read(ingress);
    objects.ingresses.insert(ingress.metadata.key(), ingress);
}

fn outcome(objects: &Objects) -> Outcome {
    let addresses = BTreeMap::new();
    resolve(objects, &settings(), Surroundings { features: &[], addresses: &addresses })
}

fn about<'a>(outcome: &'a Outcome, name: &str) -> Vec<&'a Notice> {
    outcome.notices.iter().filter(|notice| *notice.key.name == *name).collect()
}

/// After each change, what was updated is equal to what is resolved from the start.
#[test]
fn changes_resolve_only_what_they_concern() {
    let mut objects = objects();
    for number in 0..200 {
        let host = format!("h{}.example.com", number % 150);
        let paths = [path("/", &format!("s{}", number % 10))];
        add(&mut objects, object(&format!("i{number}"), &json!({}), json!([rule(&host, &paths)])));
    }
    let settings = settings();
    let addresses = BTreeMap::new();
    let surroundings = Surroundings { features: &[], addresses: &addresses };
    let mut kept = Ingresses::default();
    let mut step = |objects: &Objects, changes: &Changes| -> (bool, usize) {
        let is_concerned = kept.are_concerned(changes);
        let world = World::new(objects, &settings);
        let count = kept.update(&world, changes);
        let mut found = Outcome::default();
        kept.add(&world, &mut found, surroundings);
        let expected = outcome(objects);
        assert_eq!(found.gateways, expected.gateways);
        assert_eq!(found.statuses.ingresses, expected.statuses.ingresses);
        assert_eq!(found.notices, expected.notices);
        (is_concerned, count)
    };
    let keys = |names: &[&str]| -> BTreeSet<Key> {
        names.iter().map(|name| Key::new("n", *name)).collect()
    };
    assert_eq!(step(&objects, &Changes::all()), (true, 200));
    let of_ingresses = |names: &[&str]| Changes { ingresses: keys(names), ..Changes::default() };
    let of_services = |names: &[&str]| Changes { services: keys(names), ..Changes::default() };

    objects.ingresses.remove(&Key::new("n", "i7"));
    let changed = object("i8", &json!({}), json!([rule("new.example.com", &[path("/", "s1")])]));
    add(&mut objects, changed);
    add(
        &mut objects,
        object("i200", &json!({}), json!([rule("h1.example.com", &[path("/a", "s9")])])),
    );
    assert_eq!(step(&objects, &of_ingresses(&["i7", "i8", "i200"])), (true, 3));

    objects.services.remove(&Key::new("n", "s3"));
    assert_eq!(step(&objects, &of_services(&["s3"])), (true, 20));
    assert_eq!(step(&objects, &of_services(&["other"])), (false, 0));

    objects.ingress_classes.clear();
    assert_eq!(step(&objects, &Changes::all()), (true, 0));
    assert!(outcome(&objects).gateways.is_empty());
}

#[test]
fn many_hosts_and_paths_are_bounded() {
    let mut objects = objects();
    let good = object("good", &json!({}), json!([rule("good.example.com", &[path("/", "s0")])]));
    add(&mut objects, good);
    let before = outcome(&objects);
    let hosts: Vec<Value> = (0..5000)
        .map(|number| rule(&format!("h{number}.example.com"), &[path("/", "s1")]))
        .collect();
    add(&mut objects, object("hosts", &json!({}), hosts.into()));
    let paths: Vec<Value> = (0..5000).map(|number| path(&format!("/p{number}"), "s1")).collect();
    add(&mut objects, object("paths", &json!({}), json!([rule("p.example.com", &paths)])));
    let expressions: Vec<Value> =
        (0..500).map(|number| path(&format!("/e{number}[a-z]*"), "s1")).collect();
    let regex = json!({"nginx.ingress.kubernetes.io/use-regex": "true"});
    add(&mut objects, object("expressions", &regex, json!([rule("e.example.com", &expressions)])));
    let long = rule("l.example.com", &[path(&format!("/{}", "a".repeat(100_000)), "s1")]);
    add(&mut objects, object("long", &json!({}), json!([long])));
    let found = outcome(&objects);
    for (name, reason) in [
        ("hosts", "TooManyHosts"),
        ("paths", "TooManyPaths"),
        ("expressions", "TooManyExpressions"),
        ("long", "InvalidPath"),
    ] {
        let notices = about(&found, name);
        assert!(
            notices.len() <= 17 && notices.iter().any(|one| one.reason == reason),
            "{notices:?}"
        );
        assert!(notices.iter().all(|one| one.message.len() <= Notice::MESSAGE_MAX_BYTES));
    }
    assert!(about(&found, "good").is_empty());
    let rules = |outcome: &Outcome, name: &str| -> usize {
        let listeners = &outcome.gateways[&implied_key("weir")].ports[&80];
        let routes = listeners.iter().flat_map(|listener| &*listener.routes);
        let own = routes.filter(|one| *one.route.key.name == *name);
        own.map(|one| one.route.requests().len()).sum()
    };
    assert_eq!(rules(&found, "good"), rules(&before, "good"));
    assert_eq!(rules(&found, "hosts"), 500);
    // The paths, and the end of the host.
    assert_eq!(rules(&found, "paths"), 2001);
    assert_eq!(rules(&found, "expressions"), 101);
}

/// Values that no annotation may have.
fn hostile_values() -> Vec<String> {
    vec![
        "\r\nSet-Cookie: a=b".to_owned(),
        "/a\r\nSet-Cookie: a=b".to_owned(),
        "\0".to_owned(),
        "é\u{202e}".repeat(3000),
        "x".repeat(200_000),
        ",".repeat(10_000),
        "a,".repeat(8000),
        "(((((".to_owned(),
        "(a{1000}){1000}".to_owned(),
        "$".repeat(100),
        "http://".to_owned(),
        "http://[::1]:80/".to_owned(),
        "http://s0.n.svc:80/\u{7f}".to_owned(),
        "-1".to_owned(),
        "18446744073709551616".to_owned(),
        "NaN".to_owned(),
        "n/..".to_owned(),
        "/".to_owned(),
    ]
}

/// Annotations that take a value.
const NAMES: &[&str] = &[
    "affinity",
    "affinity-mode",
    "allowlist-source-range",
    "app-root",
    "auth-method",
    "auth-realm",
    "auth-response-headers",
    "auth-secret",
    "auth-secret-type",
    "auth-signin",
    "auth-type",
    "auth-url",
    "backend-protocol",
    "canary-by-cookie",
    "canary-by-header",
    "canary-by-header-pattern",
    "canary-by-header-value",
    "canary-weight",
    "canary-weight-total",
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
    "denylist-source-range",
    "force-ssl-redirect",
    "from-to-www-redirect",
    "limit-burst-multiplier",
    "limit-rpm",
    "limit-rps",
    "load-balance",
    "mirror-target",
    "permanent-redirect",
    "permanent-redirect-code",
    "preserve-trailing-slash",
    "proxy-connect-timeout",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-send-timeout",
    "proxy-ssl-name",
    "proxy-ssl-secret",
    "proxy-ssl-server-name",
    "proxy-ssl-verify",
    "rewrite-target",
    "server-alias",
    "session-cookie-expires",
    "session-cookie-max-age",
    "session-cookie-name",
    "session-cookie-path",
    "session-cookie-samesite",
    "session-cookie-secure",
    "ssl-passthrough",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-hash-by",
    "upstream-vhost",
    "use-regex",
    "whitelist-source-range",
    "x-forwarded-prefix",
    "unknown",
];

#[test]
fn hostile_annotations_are_refused_and_affect_no_other_ingress() {
    let mut objects = objects();
    let good = object("good", &json!({}), json!([rule("good.example.com", &[path("/", "s0")])]));
    add(&mut objects, good);
    let good_of = |outcome: &Outcome| {
        let listeners = &outcome.gateways[&implied_key("weir")].ports[&80];
        let routes = listeners.iter().flat_map(|listener| &*listener.routes);
        routes.filter(|one| *one.route.key.name == *"good").cloned().collect::<Vec<_>>()
    };
    let before = good_of(&outcome(&objects));
    for value in &hostile_values() {
        for canary in ["false", "true"] {
            // One by one, and all together.
            let single = NAMES.iter().map(|name| vec![*name]);
            for names in single.chain([NAMES.to_vec()]) {
                let mut annotations = serde_json::Map::new();
                let on = ["enable-cors", "canary"]
                    .map(|name| (name, if name == "canary" { canary } else { "true" }));
                let hostile = names.iter().map(|name| (*name, value.as_str()));
                for (name, value) in on.into_iter().chain(hostile) {
                    annotations.insert(format!("nginx.ingress.kubernetes.io/{name}"), value.into());
                }
                let rules =
                    json!([rule("a.example.com", &[path("/x(/|$)(.*)", "s1"), path("/y", "s2")])]);
                add(&mut objects, object("hostile", &annotations.into(), rules));
                let found = outcome(&objects);
                let notices = about(&found, "hostile");
                assert!(notices.len() <= 18, "{names:?} {}", notices.len());
                for Notice { message, .. } in notices {
                    let is_plain =
                        message.len() <= 1024 && !message.contains(|c: char| c.is_control());
                    assert!(is_plain, "{names:?} {message:?}");
                }
                assert_eq!(good_of(&found), before);
                check_text(&found);
            }
        }
    }
}

/// What is written to connections has no line breaks.
fn check_text(outcome: &Outcome) {
    let listeners = outcome.gateways.values().flat_map(|gateway| gateway.ports.values().flatten());
    for route in listeners.flat_map(|listener| &*listener.routes) {
        let Rules::Requests(rules) = &route.route.rules else { continue };
        for rule in rules {
            let mut text = String::new();
            let filters = &rule.filters;
            let rewrite = &filters.rewrite;
            write!(text, "{:?}", filters.redirect).unwrap();
            write!(text, "{rewrite:?} {:?} {:?}", filters.request_headers, filters.cors).unwrap();
            for backend in &rule.backends {
                let settings = backend.target.service().and_then(|port| port.settings.as_ref());
                write!(text, "{:?}", settings.and_then(|one| one.affinity.clone())).unwrap();
            }
            if let Some(one) =
                rule.extras.as_ref().and_then(|extras| extras.authentication.as_ref())
            {
                write!(text, "{:?}", one.rules).unwrap();
            }
            // Control characters are escaped in these texts.
            assert!(
                !text.contains("\\r") && !text.contains("\\n") && !text.contains("\\0"),
                "{text}"
            );
        }
    }
}

fn listener() -> Listener {
    let second = Duration::from_secs(1);
    Listener {
        name: "template".into(),
        address: Address::find("127.0.0.1:1").unwrap(),
        socket: SocketAccess::default(),
        protocol: Protocol::Http,
        backlog: None,
        connections_max: 1,
        trusted: Networks::default(),
        client_address: ClientAddress::default(),
        forward_fields: ForwardFields {
            x_forwarded: true,
            forwarded: false,
            request_id: false,
            traceparent: false,
            real_ip: false,
            via: false,
        },
        timeouts: ClientTimeouts { head: second, idle: second, body: second },
        head_max_bytes: 1024,
        body_max_bytes: None,
        proxy_status: false,
        error_pages: Vec::new(),
        tls: None,
        http2: None,
        hosts: None,
        upgrade_protocols: Vec::new(),
        proxy_protocol: Networks::default(),
        register: None,
    }
}

fn service() -> Service {
    let second = Duration::from_secs(1);
    Service {
        name: "template".into(),
        balance: Balance::RoundRobin,
        in_flight_max: None,
        in_flight_scope: LimitScope::Balancer,
        queue: QueueLimits { length_max: 0, wait_max: second },
        when_full: 503,
        when_all_down: WhenAllDown::Refuse,
        check: None,
        passive: None,
        zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.5 },
        affinity: None,
        slow_start: None,
        timeouts: ServiceTimeouts {
            connect: second,
            response: second,
            idle: second,
            tunnel: second,
            keep_alive: second,
            total: None,
        },
        retries: Retries { attempts_max: 1, ..Retries::default() },
        scaling: None,
        idle_connections_max: 1,
        tls: None,
        http: HttpVersion::Http11,
        send_proxy: None,
        version_field: None,
        maintenance: None,
        error_pages: Vec::new(),
        servers: Vec::new(),
        discover: None,
    }
}

/// Joins what Ingresses serve with a configuration that has a service and an authentication.
fn joined(outcome: &Outcome) -> Snapshot {
    let authorities = Material { path: "system".into(), bytes: Arc::from(&b""[..]) };
    let (listener, service) = (listener(), service());
    let templates = Templates { listener: &listener, service: &service, authorities: &authorities };
    let bindings: Bindings = outcome
        .gateways
        .iter()
        .flat_map(|(key, gateway)| gateway.ports.keys().map(|port| (key.clone(), *port)))
        .map(|port| (port.clone(), ([127, 0, 0, 1], 8000 + port.1).into()))
        .collect();
    let mut files = Snapshot::empty();
    files.services.push(Arc::new(Service { name: "n".into(), ..service.clone() }));
    files.authentications.push(Authentication {
        name: "of-files".into(),
        realm: "files".to_owned(),
        scheme: AuthenticationScheme::Basic { users: authorities.clone() },
        identity_fields: Vec::new(),
        forwards_credentials: true,
    });
    let gateways = outcome.gateways.values().map(AsRef::as_ref);
    Joiner::default().join(&Arc::new(files), gateways, &bindings, templates).snapshot
}

#[test]
fn what_ingresses_state_becomes_a_configuration() {
    let prefix = "nginx.ingress.kubernetes.io";
    let mut objects = objects();
    let annotations = json!({
        format!("{prefix}/auth-url"): "http://s9/verify",
        format!("{prefix}/auth-response-headers"): "X-Auth-Request-User",
        format!("{prefix}/limit-rps"): "10",
        format!("{prefix}/enable-cors"): "true",
        format!("{prefix}/allowlist-source-range"): "10.0.0.0/8",
        format!("{prefix}/backend-protocol"): "GRPCS",
        format!("{prefix}/proxy-connect-timeout"): "7",
        format!("{prefix}/proxy-next-upstream"): "off",
        format!("{prefix}/affinity"): "cookie",
        format!("{prefix}/load-balance"): "ewma",
    });
    let rules = json!([rule("a.example.com", &[path("/", "s1")])]);
    add(&mut objects, object("all", &annotations, rules));
    add(
        &mut objects,
        object("plain", &json!({}), json!([rule("b.example.com", &[path("/", "s1")])])),
    );
    let snapshot = joined(&outcome(&objects));
    let names: Vec<&str> = snapshot.services.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["n", "n/s1:80", "n/s1:80/as/n/all", "n/s9:80"]);
    let with_settings = &snapshot.services[2];
    assert_eq!(with_settings.http, HttpVersion::Http2);
    assert_eq!(with_settings.balance, Balance::PeakEwma);
    assert_eq!(with_settings.timeouts.connect, Duration::from_secs(7));
    assert_eq!(with_settings.timeouts.response, Duration::from_secs(1));
    assert_eq!(with_settings.retries.attempts_max, 0);
    assert_eq!(with_settings.affinity.as_ref().unwrap().cookie, "INGRESSCOOKIE");
    assert!(!with_settings.tls.as_ref().unwrap().verify);
    assert_eq!(snapshot.services[1].tls, None);

    let authentications: Vec<&str> =
        snapshot.authentications.iter().map(|one| &*one.name).collect();
    assert_eq!(authentications, ["of-files", "kubernetes/ingress/n/all"]);
    let AuthenticationScheme::Forward(asked) = &snapshot.authentications[1].scheme else {
        panic!("another scheme")
    };
    assert_eq!(&*snapshot.service(asked.service).name, "n/s9:80");

    let own: Vec<_> =
        snapshot.routes.iter().filter(|route| *route.name == *"n/all/ingress/0").collect();
    assert_eq!(own.len(), 2);
    let Action::Forward(forward) = &own[0].action else { panic!("not forwarded") };
    let SplitTarget::Service(service) = forward.to[0].to else { panic!("refused") };
    assert_eq!(&*snapshot.service(service).name, "n/s1:80/as/n/all");
    let id = own[0].authentication().unwrap();
    assert_eq!(&*snapshot.authentication(id).name, "kubernetes/ingress/n/all");
    assert!(matches!(
        &own[0].filters[..],
        [RequestFilter::RateLimits(_), RequestFilter::Cors(_), RequestFilter::Authenticate(_)]
    ));
    // Clients that are not allowed.
    assert!(matches!(&own[1].action, Action::Deny(denial) if denial.status == 403));
    assert_eq!(own[0].matches.conditions.len(), 1);
}
