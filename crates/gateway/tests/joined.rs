//! What Gateways serve, joined with the configuration of the files: after any sequence of changes it is what a first
//! conversion makes, and what has not changed stays where it is in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use config::{Found, Unreadable};
use gateway::ir::RouteKind;
use gateway::ir::ingress::implied_key;
use gateway::objects::Key;
use gateway::objects::core::Service as CoreService;
use gateway::objects::gateway::{Gateway, GatewayClass};
use gateway::objects::ingress::{Ingress, IngressClass};
use gateway::objects::policy::{RoutePolicy, ServicePolicy};
use gateway::objects::route::HttpRoute;
use gateway::parts::{Bindings, Joined, Joiner, Templates};
use gateway::resolve::incremental::{Changes, Routes};
use gateway::resolve::ingress::Ingresses;
use gateway::resolve::{Checks, Objects, Settings, Surroundings, World, assemble};
use model::{Material, Route, Snapshot};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const FILES: &str = r#"
[[listener]]
name = "public"
address = "127.0.0.1:1"
[service.own]
server = [{ address = "127.0.0.1:2" }]
[service."n/s3:80"]
server = [{ address = "127.0.0.1:3" }]
[[route]]
service = "own"
[[route]]
path = "/a"
service = "n/s3:80"
"#;

struct NoFiles;

impl config::Surroundings for NoFiles {
    fn file(&self, path: &Path) -> Result<Found, Unreadable> {
        panic!("{}", path.display())
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

fn files(text: &str) -> Arc<Snapshot> {
    let checked = config::check(text, "weir.toml", &NoFiles);
    Arc::new(checked.unwrap_or_else(|report| panic!("{}", report.render(false))).snapshot)
}

fn read<T: DeserializeOwned>(object: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A route whose host, path, Service, age and parent are drawn.
fn http_route(name: &str, rng: &mut fastrand::Rng) -> Arc<HttpRoute> {
    let mut rule = |name: &str| {
        json!({
            "name": name,
            "matches": [{"path": {"type": "PathPrefix", "value": format!("/{}", rng.u8(0..2))}}, {}],
            "backendRefs": [{"name": format!("s{}", rng.u8(0..5)), "port": 80}]
        })
    };
    let rules = [rule("first"), rule("second")];
    let mut parent = json!({"name": if rng.u8(0..8) == 0 { "absent" } else { "gw" }});
    if rng.bool() {
        parent["sectionName"] = json!(["a", "b", "c"][rng.usize(0..3)]);
    }
    read(json!({
        "metadata": {
            "namespace": "n", "name": name,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", rng.u8(1..3))
        },
        "spec": {
            "parentRefs": [parent],
            "hostnames": [format!("h{}.example.com", rng.u8(0..3))],
            "rules": rules
        }
    }))
}

fn gateway(rng: &mut fastrand::Rng) -> Arc<Gateway> {
    let mut listeners = vec![
        json!({"name": "a", "port": 80, "protocol": "HTTP"}),
        json!({"name": "b", "port": 81, "protocol": "HTTP", "hostname": "*.example.com"}),
    ];
    if rng.bool() {
        listeners.push(
            json!({"name": "c", "port": 80, "protocol": "HTTP", "hostname": "h1.example.com"}),
        );
    }
    read(json!({
        "metadata": {"namespace": "n", "name": "gw"},
        "spec": {"gatewayClassName": "c", "listeners": listeners}
    }))
}

/// An Ingress for the Services of the routes. What it states for them is drawn.
fn ingress(name: &str, rng: &mut fastrand::Rng) -> Arc<Ingress> {
    let mut annotations = serde_json::Map::new();
    let states: [&[(&str, &str)]; 4] = [
        &[("ssl-passthrough", "true"), ("backend-protocol", "GRPC")],
        &[("affinity", "cookie"), ("session-cookie-name", "c")],
        &[("canary", "true"), ("canary-weight", "30")],
        &[],
    ];
    for (name, value) in states[rng.usize(..states.len())] {
        annotations.insert(format!("nginx.ingress.kubernetes.io/{name}"), (*value).into());
    }
    let mut path = |path: &str| {
        let service = json!({"name": format!("s{}", rng.u8(0..2)), "port": {"number": 80}});
        json!({"path": path, "pathType": "Prefix", "backend": {"service": service}})
    };
    let paths = [path("/"), path("/a")];
    let other = [path("/b")];
    read(json!({
        "metadata": {
            "namespace": "n", "name": name, "annotations": annotations,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", rng.u8(1..3))
        },
        "spec": {"ingressClassName": "i", "rules": [
            {"host": "h.example.net", "http": {"paths": paths}},
            {"host": format!("{name}.example.net"), "http": {"paths": other}}
        ]}
    }))
}

/// A policy for one or two of the Services, or of a port of none. What it states is drawn.
fn service_policy(name: &str, rng: &mut fastrand::Rng) -> Arc<ServicePolicy> {
    let mut target = || {
        let mut target = json!({"kind": "Service", "name": format!("s{}", rng.u8(0..5))});
        if rng.u8(0..4) == 0 {
            target["sectionName"] = json!("absent");
        }
        target
    };
    let targets = [target(), target()];
    read(json!({
        "metadata": {
            "namespace": "n", "name": name,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", rng.u8(1..3))
        },
        // 0 is a mistake.
        "spec": {"targetRefs": targets, "inFlightMax": rng.u8(0..4)}
    }))
}

/// A policy for one or two of the routes, or rules of them. What it states is drawn.
fn route_policy(name: &str, rng: &mut fastrand::Rng) -> Arc<RoutePolicy> {
    let mut target = || {
        let name = format!("r{}", rng.u8(0..12));
        let mut target =
            json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name});
        if rng.u8(0..3) == 0 {
            target["sectionName"] = json!(["first", "absent"][rng.usize(0..2)]);
        }
        target
    };
    let targets = [target(), target()];
    let mut spec = json!({
        "targetRefs": targets, "rateLimit": [{"requests": rng.u8(0..3), "per": "1s"}]
    });
    match rng.u8(0..4) {
        0 => {
            let backend = json!({"name": format!("s{}", rng.u8(0..5)), "port": 80});
            spec["authentication"] = json!({"forward": {"backendRef": backend, "path": "/"}});
        }
        1 => spec["authentication"] = json!({"basic": {"usersSecret": "absent"}}),
        2 => spec["compress"] = json!(true),
        _ => {}
    }
    read(json!({
        "metadata": {
            "namespace": "n", "name": name,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", rng.u8(1..3))
        },
        "spec": spec
    }))
}

/// Adds, changes or deletes a policy.
fn change_policy(objects: &mut Objects, changes: &mut Changes, rng: &mut fastrand::Rng) {
    let key = Key::new("n", format!("p{}", rng.u8(0..4)));
    let is_deleted = rng.u8(0..3) == 0;
    if rng.bool() {
        let new = (!is_deleted).then(|| service_policy(&key.name, rng));
        let before = objects.service_policies.remove(&key);
        before.iter().chain(&new).for_each(|one| changes.add_service_policy(one));
        objects.service_policies.extend(new.map(|one| (key, one)));
    } else {
        let new = (!is_deleted).then(|| route_policy(&key.name, rng));
        let before = objects.route_policies.remove(&key);
        before.iter().chain(&new).for_each(|one| changes.add_route_policy(one));
        objects.route_policies.extend(new.map(|one| (key, one)));
    }
}

fn objects() -> Objects {
    let mut objects = Objects::default();
    let ingress_class: Arc<IngressClass> =
        read(json!({"metadata": {"name": "i"}, "spec": {"controller": "a/c"}}));
    objects.ingress_classes.insert(Key::new("", "i"), ingress_class);
    let class: Arc<GatewayClass> =
        read(json!({"metadata": {"name": "c"}, "spec": {"controllerName": "a/b"}}));
    objects.classes.insert(Key::new("", "c"), class);
    // The last one does not exist.
    for number in 0..4 {
        let name = format!("s{number}");
        let service: Arc<CoreService> = read(json!({
            "metadata": {"namespace": "n", "name": name}, "spec": {"ports": [{"port": 80}]}
        }));
        objects.services.insert(Key::new("n", name), service);
    }
    objects
}

fn settings() -> Settings {
    Settings {
        controller_name: "a/b".into(),
        ingress_controller_name: "a/c".into(),
        allow_external_names: false,
        checks: Checks::none(),
    }
}

/// What is kept between changes.
#[derive(Default)]
struct Kept {
    routes: Routes,
    ingresses: Ingresses,
    joiner: Joiner,
}

impl Kept {
    fn join(
        &mut self,
        files: &Arc<Snapshot>,
        (objects, changes): (&Objects, &Changes),
        ports: &[u16],
    ) -> Joined {
        let settings = settings();
        let world = World::new(objects, &settings);
        self.routes.update(&world, changes);
        self.ingresses.update(&world, changes);
        let addresses = BTreeMap::new();
        let surroundings = Surroundings { features: &[], addresses: &addresses };
        let mut outcome = assemble(&world, &self.routes, surroundings);
        self.ingresses.add(&world, &mut outcome, surroundings);
        let binding = |port: &u16| {
            let address = ([127, 0, 0, 1], 8000 + port).into();
            ((Key::new("n", "gw"), *port), address)
        };
        let mut bindings: Bindings = ports.iter().map(binding).collect();
        for port in [80, 443] {
            bindings.insert((implied_key("i"), port), ([127, 0, 0, 1], 9000 + port).into());
        }
        let templates = Templates {
            listener: &files.listeners[0],
            service: files.services.iter().find(|one| *one.name == *"own").unwrap(),
            authorities: &Material { path: "none".into(), bytes: Arc::from([]) },
        };
        self.joiner.join(files, outcome.gateways.values().map(AsRef::as_ref), &bindings, templates)
    }
}

#[test]
fn changes_end_where_a_first_conversion_does() {
    for seed in 0..20 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut files_now = files(FILES);
        let mut kept = Kept::default();
        let mut objects = objects();
        for step in 0..60 {
            let mut changes = Changes::default();
            match rng.u8(0..20) {
                0 => {
                    objects.gateways.insert(Key::new("n", "gw"), gateway(&mut rng));
                    changes.is_all = true;
                }
                1 => changes.services.extend(objects.services.pop_first().map(|(key, _)| key)),
                2 => {
                    let method = ["GET", "PUT"][step % 2];
                    files_now = files(&format!("{FILES}method = \"{method}\"\n"));
                }
                3..=6 => {
                    let key = Key::new("n", format!("i{}", rng.u8(0..3)));
                    if rng.bool() {
                        objects.ingresses.remove(&key);
                    } else {
                        let ingress = ingress(&key.name, &mut rng);
                        objects.ingresses.insert(key.clone(), ingress);
                    }
                    changes.ingresses.insert(key);
                }
                16..=19 => change_policy(&mut objects, &mut changes, &mut rng),
                what => {
                    let key = Key::new("n", format!("r{}", rng.u8(0..12)));
                    changes.routes.insert((RouteKind::Http, key.clone()));
                    if what < 9 {
                        objects.http_routes.remove(&key);
                    } else {
                        let route = http_route(&key.name, &mut rng);
                        objects.http_routes.insert(key, route);
                    }
                }
            }
            let ports = if rng.u8(0..8) == 0 { &[80][..] } else { &[80, 81] };
            let found = kept.join(&files_now, (&objects, &changes), ports);
            let expected = Kept::default().join(&files_now, (&objects, &Changes::all()), ports);
            let texts = |of: &Joined| {
                let shown =
                    |one: &Arc<Route>| format!("{} {:?} {:?}", one.name, one.matches, one.action);
                of.snapshot.routes.iter().map(shown).collect::<Vec<_>>().join("\n")
            };
            assert_eq!(texts(&found), texts(&expected), "seed {seed}, step {step}");
            assert_eq!(found.snapshot, expected.snapshot, "seed {seed}, step {step}");
            assert_eq!(found.ports, expected.ports, "seed {seed}, step {step}");
        }
    }
}

/// Of one Ingress, the requests of a canary and the others go to one Service with different settings.
#[test]
fn changes_of_ingresses_end_where_a_first_conversion_does() {
    let files = files(FILES);
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut kept = Kept::default();
        let mut objects = objects();
        for step in 0..12 {
            let key = Key::new("n", format!("i{}", rng.u8(0..3)));
            if rng.u8(0..3) == 0 {
                objects.ingresses.remove(&key);
            } else {
                objects.ingresses.insert(key.clone(), ingress(&key.name, &mut rng));
            }
            let changes = Changes { ingresses: [key].into(), ..Changes::default() };
            let found = kept.join(&files, (&objects, &changes), &[]);
            let expected = Kept::default().join(&files, (&objects, &Changes::all()), &[]);
            assert_eq!(found.snapshot, expected.snapshot, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn many_routes_can_go_at_once() {
    let mut rng = fastrand::Rng::with_seed(2);
    let files = files(FILES);
    let mut kept = Kept::default();
    let mut objects = objects();
    objects.gateways.insert(Key::new("n", "gw"), gateway(&mut rng));
    for count in [100, 20, 150, 149, 0, 3] {
        let all: Vec<Key> = (0..150).map(|number| Key::new("n", format!("r{number}"))).collect();
        for (number, key) in all.iter().enumerate() {
            if number < count {
                let known = objects.http_routes.entry(key.clone());
                known.or_insert_with(|| http_route(&key.name, &mut rng));
            } else {
                objects.http_routes.remove(key);
            }
        }
        let routes = all.into_iter().map(|key| (RouteKind::Http, key)).collect();
        let changes = Changes { routes, ..Changes::default() };
        let found = kept.join(&files, (&objects, &changes), &[80, 81]);
        let expected = Kept::default().join(&files, (&objects, &Changes::all()), &[80, 81]);
        assert_eq!(found.snapshot, expected.snapshot, "{count}");
    }
}

#[test]
fn routes_and_services_that_have_not_changed_stay_where_they_are() {
    let mut rng = fastrand::Rng::with_seed(1);
    let files = files(FILES);
    let mut kept = Kept::default();
    let mut objects = objects();
    objects.gateways.insert(Key::new("n", "gw"), gateway(&mut rng));
    let route = |name: &str, host: &str, service: &str| -> Arc<HttpRoute> {
        read(json!({
            "metadata": {"namespace": "n", "name": name},
            "spec": {
                "parentRefs": [{"name": "gw", "sectionName": "a"}],
                "hostnames": [host],
                "rules": [{"backendRefs": [{"name": service, "port": 80}]}]
            }
        }))
    };
    for number in 0..100 {
        let (name, service) = (format!("r{number}"), format!("s{}", number % 3));
        let one = route(&name, &format!("{name}.example.org"), &service);
        objects.http_routes.insert(Key::new("n", name), one);
    }
    let mut places = |objects: &Objects, changes: &Changes| {
        let joined = kept.join(&files, (objects, changes), &[80, 81]).snapshot;
        let routes: HashSet<usize> =
            joined.routes.iter().map(|one| Arc::as_ptr(one) as usize).collect();
        let services: HashSet<usize> =
            joined.services.iter().map(|one| Arc::as_ptr(one) as usize).collect();
        (joined, routes, services)
    };
    let (_first, routes, services) = places(&objects, &Changes::all());
    let key = Key::new("n", "r7");
    let changed = route("r7", "other.example.org", "s2");
    objects.http_routes.insert(key.clone(), changed);
    let changes = Changes { routes: [(RouteKind::Http, key)].into(), ..Changes::default() };
    let (_second, new_routes, new_services) = places(&objects, &changes);
    assert_eq!(new_routes.difference(&routes).count(), 1);
    assert_eq!(new_routes.len(), routes.len());
    assert_eq!(new_services, services);
    // Everything was resolved again, to the same.
    let (_third, all_routes, all_services) = places(&objects, &Changes::all());
    assert_eq!(all_routes, new_routes);
    assert_eq!(all_services, new_services);
}
