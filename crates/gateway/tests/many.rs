//! Many routes, listeners and regular expressions. A route resolves by itself to what it resolves to among others, and
//! what many objects refer to is read once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway::ir::extras::Extras;
use gateway::ir::{RouteKind, Rules};
use gateway::objects::Key;
use gateway::objects::core::{Secret, Service};
use gateway::objects::gateway::{Gateway, GatewayClass};
use gateway::objects::policy::{BackendTlsPolicy, RoutePolicy, ServicePolicy};
use gateway::objects::route::{GrpcRoute, HttpRoute};
use gateway::resolve::incremental::{Changes, Routes};
use gateway::resolve::{Checks, Objects, Settings, Surroundings, World, assemble, resolve, route};
use model::AuthenticationScheme;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ROUTES: usize = 5_000;

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

fn http_route(number: usize) -> Arc<HttpRoute> {
    let name = format!("r{number}");
    read(json!({
        "metadata": {"namespace": "n", "name": name},
        "spec": {
            "parentRefs": [{"name": "gw"}],
            "hostnames": [format!("{name}.example.com")],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/a"}}],
                    "backendRefs": [{"name": format!("s{}", number % 100), "port": 80}]
                },
                {"backendRefs": [{"name": "absent", "port": 80}]}
            ]
        }
    }))
}

/// A `GRPCRoute` with a host of an `HTTPRoute`.
fn grpc_route() -> Arc<GrpcRoute> {
    read(json!({
        "metadata": {"namespace": "n", "name": "grpc"},
        "spec": {
            "parentRefs": [{"name": "gw"}],
            "hostnames": ["r5.example.com"],
            "rules": [{"backendRefs": [{"name": "only-grpc", "port": 80}]}]
        }
    }))
}

fn objects() -> Objects {
    let mut objects = Objects::default();
    let class: Arc<GatewayClass> =
        read(json!({"metadata": {"name": "c"}, "spec": {"controllerName": "a/b"}}));
    objects.classes.insert(Key::new("", "c"), class);
    let gateway: Arc<Gateway> = read(json!({
        "metadata": {"namespace": "n", "name": "gw"},
        "spec": {
            "gatewayClassName": "c",
            "listeners": [
                {"name": "a", "port": 80, "protocol": "HTTP"},
                {"name": "b", "port": 81, "protocol": "HTTP", "hostname": "*.example.com"}
            ]
        }
    }));
    objects.gateways.insert(Key::new("n", "gw"), gateway);
    for number in 0..100 {
        let name = format!("s{number}");
        let service: Arc<Service> = read(json!({
            "metadata": {"namespace": "n", "name": name}, "spec": {"ports": [{"port": 80}]}
        }));
        objects.services.insert(Key::new("n", name), service);
    }
    for number in 0..ROUTES {
        objects.http_routes.insert(Key::new("n", format!("r{number}")), http_route(number));
    }
    objects
}

#[test]
fn a_route_resolves_alone_as_among_many() {
    let objects = objects();
    let settings = settings();
    let world = World::new(&objects, &settings);
    let mut all = Routes::default();
    assert_eq!(all.update(&world, &Changes::all()), ROUTES);
    let addresses = BTreeMap::new();
    let surroundings = Surroundings { features: &[], addresses: &addresses };
    let outcome = assemble(&world, &all, surroundings);
    let status = &outcome.statuses.gateways[&Key::new("n", "gw")];
    let counts: Vec<u32> = status.listeners.iter().map(|one| one.attached_routes).collect();
    assert_eq!(counts, [ROUTES as u32, ROUTES as u32]);
    assert_eq!(outcome.gateways[&Key::new("n", "gw")].services.len(), 100);

    let mut few = objects.clone();
    few.http_routes.clear();
    let world = World::new(&few, &settings);
    for (route, expected) in objects.http_routes.values().zip(all.all()).step_by(501) {
        assert_eq!(route::http_route(&world, route), *expected);
    }
}

/// After each change, what was updated is equal to what is resolved from the start.
#[test]
fn changes_resolve_only_what_they_concern() {
    let mut objects = objects();
    let settings = settings();
    let addresses = BTreeMap::new();
    let surroundings = Surroundings { features: &[], addresses: &addresses };
    let mut routes = Routes::default();
    let gateway = Key::new("n", "gw");
    let mut step = |objects: &Objects, changes: &Changes| -> (bool, usize) {
        let is_concerned = routes.are_concerned(objects, changes);
        let world = World::new(objects, &settings);
        let before = assemble(&world, &routes, surroundings);
        let statuses = routes.statuses().clone();
        let count = routes.update(&world, changes);
        for (id, status) in routes.statuses() {
            // They are compared by their pointers.
            let before = statuses.get(id).filter(|before| *before == status);
            assert!(before.is_none_or(|before| Arc::ptr_eq(before, status)), "{id:?}");
        }
        let outcome = assemble(&world, &routes, surroundings);
        let expected = resolve(objects, &settings, surroundings);
        assert_eq!(outcome.statuses, expected.statuses);
        assert!(outcome.gateways[&gateway].is_same(&expected.gateways[&gateway]));
        assert_eq!(outcome.gateways, expected.gateways);
        let is_changed = !outcome.gateways[&gateway].is_same(&before.gateways[&gateway]);
        assert_eq!(is_changed, outcome.gateways != before.gateways);
        assert!(is_concerned || !is_changed);
        (is_concerned, count)
    };
    assert_eq!(step(&objects, &Changes::all()), (true, ROUTES));
    assert_eq!(step(&objects, &Changes::default()), (false, 0));

    let id = |number: usize| (RouteKind::Http, Key::new("n", format!("r{number}")));
    let mut changed = HttpRoute::clone(&objects.http_routes[&id(1).1]);
    changed.spec.hostnames.clear();
    objects.http_routes.insert(id(1).1, Arc::new(changed));
    objects.http_routes.remove(&id(2).1);
    objects.http_routes.insert(id(ROUTES).1, http_route(ROUTES));
    let changes = Changes { routes: [id(1), id(2), id(ROUTES)].into(), ..Changes::default() };
    assert_eq!(step(&objects, &changes), (true, 3));

    objects.services.remove(&Key::new("n", "s7"));
    let services =
        |name: &str| Changes { services: [Key::new("n", name)].into(), ..Changes::default() };
    assert_eq!(step(&objects, &services("s7")), (true, ROUTES / 100));
    assert_eq!(step(&objects, &services("other")), (false, 0));
    let service: Arc<Service> = read(json!({
        "metadata": {"namespace": "n", "name": "absent"}, "spec": {"ports": [{"port": 80}]}
    }));
    objects.services.insert(Key::new("n", "absent"), service);
    assert_eq!(step(&objects, &services("absent")), (true, ROUTES));

    let policy: Arc<BackendTlsPolicy> = read(json!({
        "metadata": {"namespace": "n", "name": "p"},
        "spec": {
            "targetRefs": [{"kind": "Service", "name": "later"}],
            "validation": {"wellKnownCACertificates": "System", "hostname": "a.example"}
        }
    }));
    objects.policies.insert(Key::new("n", "p"), policy);
    assert_eq!(step(&objects, &Changes::all()), (true, ROUTES));
    // No route refers to the Service, but the status of the policy depends on it.
    assert_eq!(step(&objects, &services("later")), (true, 0));

    // A GRPCRoute shares a host with an HTTPRoute until it is gone.
    let key = Key::new("n", "grpc");
    let changes = Changes { routes: [(RouteKind::Grpc, key.clone())].into(), ..Changes::default() };
    objects.grpc_routes.insert(key.clone(), grpc_route());
    assert_eq!(step(&objects, &changes), (true, 1));
    objects.grpc_routes.remove(&key);
    assert_eq!(step(&objects, &changes), (true, 1));
}

/// A change of a policy of Weir's own concerns what has it as a target before or after, and nothing else.
#[test]
fn changes_of_policies_resolve_only_their_targets() {
    let mut objects = objects();
    let settings = settings();
    let addresses = BTreeMap::new();
    let surroundings = Surroundings { features: &[], addresses: &addresses };
    let mut routes = Routes::default();
    routes.update(&World::new(&objects, &settings), &Changes::all());
    let mut step = |objects: &Objects, changes: &Changes| -> (bool, usize) {
        let is_concerned = routes.are_concerned(objects, changes);
        let world = World::new(objects, &settings);
        let before = assemble(&world, &routes, surroundings).statuses;
        let count = routes.update(&world, changes);
        let outcome = assemble(&world, &routes, surroundings);
        let expected = resolve(objects, &settings, surroundings);
        assert_eq!(outcome.statuses, expected.statuses);
        assert_eq!(outcome.gateways, expected.gateways);
        assert!(is_concerned || before == outcome.statuses);
        (is_concerned, count)
    };
    let policy = |name: &str, service: &str| -> Arc<ServicePolicy> {
        read(json!({
            "metadata": {"namespace": "n", "name": name},
            "spec": {"targetRefs": [{"kind": "Service", "name": service}], "inFlightMax": 7}
        }))
    };
    let mut put = |objects: &mut Objects, name: &str, new: Option<Arc<ServicePolicy>>| {
        let before = objects.service_policies.remove(&Key::new("n", name));
        let mut changes = Changes::default();
        before.iter().chain(&new).for_each(|one| changes.add_service_policy(one));
        objects.service_policies.extend(new.map(|one| (Key::new("n", name), one)));
        step(objects, &changes)
    };
    let each = ROUTES / 100;
    assert_eq!(put(&mut objects, "p", Some(policy("p", "s1"))), (true, each));
    assert_eq!(put(&mut objects, "p", Some(policy("p", "s2"))), (true, 2 * each));
    // It is newer by its name, and applies when the other one is gone.
    assert_eq!(put(&mut objects, "q", Some(policy("q", "s2"))), (true, each));
    assert_eq!(put(&mut objects, "p", None), (true, each));
    assert_eq!(put(&mut objects, "r", Some(policy("r", "other"))), (true, 0));
    assert_eq!(put(&mut objects, "r", None), (false, 0));

    let policy: Arc<RoutePolicy> = read(json!({
        "metadata": {"namespace": "n", "name": "p"},
        "spec": {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r3"}
            ],
            "authentication": {"forward": {"backendRef": {"name": "auth", "port": 80}, "path": "/"}}
        }
    }));
    let mut changes = Changes::default();
    changes.add_route_policy(&policy);
    objects.route_policies.insert(Key::new("n", "p"), policy);
    assert_eq!(step(&objects, &changes), (true, 1));
    // The Service that it asks is there now.
    let service: Arc<Service> = read(json!({
        "metadata": {"namespace": "n", "name": "auth"}, "spec": {"ports": [{"port": 80}]}
    }));
    objects.services.insert(Key::new("n", "auth"), service);
    let changes = Changes { services: [Key::new("n", "auth")].into(), ..Changes::default() };
    assert_eq!(step(&objects, &changes), (true, 1));
    let gateway = &resolve(&objects, &settings, surroundings).gateways[&Key::new("n", "gw")];
    assert!(gateway.services.contains_key(&(Key::new("n", "auth"), 80)));
}

#[test]
fn listeners_share_what_was_read_from_a_secret() {
    let mut objects = Objects::default();
    let class: Arc<GatewayClass> =
        read(json!({"metadata": {"name": "c"}, "spec": {"controllerName": "a/b"}}));
    objects.classes.insert(Key::new("", "c"), class);
    let listeners: Vec<Value> = (0..64)
        .map(|number| {
            json!({
                "name": format!("l{number}"), "port": 443, "protocol": "HTTPS",
                "hostname": format!("h{number}.example.com"),
                "tls": {"certificateRefs": [{"name": "cert"}]}
            })
        })
        .collect();
    let gateway: Arc<Gateway> = read(json!({
        "metadata": {"namespace": "n", "name": "gw"},
        "spec": {"gatewayClassName": "c", "listeners": listeners}
    }));
    objects.gateways.insert(Key::new("n", "gw"), gateway);
    let block = |label: &str| {
        STANDARD.encode(format!("-----BEGIN {label}-----\naGVsbG8=\n-----END {label}-----\n"))
    };
    let secret: Arc<Secret> = read(json!({
        "metadata": {"namespace": "n", "name": "cert"},
        "data": {"tls.crt": block("CERTIFICATE"), "tls.key": block("PRIVATE KEY")}
    }));
    objects.secrets.insert(Key::new("n", "cert"), secret);
    let settings = settings();
    let world = World::new(&objects, &settings);
    let plan = &world.plans.gateways[&Key::new("n", "gw")];
    let first = &plan.listeners[0].certificates[0].chain;
    assert_eq!(plan.listeners.len(), 64);
    assert!(plan.listeners.iter().all(|one| Arc::ptr_eq(&one.certificates[0].chain, first)));
}

fn policy(name: &str, route: &str) -> Arc<RoutePolicy> {
    read(json!({
        "metadata": {"namespace": "n", "name": name},
        "spec": {
            "targetRefs": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route}
            ],
            "authentication": {"basic": {"usersSecret": "users"}}
        }
    }))
}

/// Returns what policies state for the only rule of a route.
fn extras(objects: &Objects, route: &str) -> Option<Arc<Extras>> {
    let settings = settings();
    let world = World::new(objects, &settings);
    let resolved = route::http_route(&world, &objects.http_routes[&Key::new("n", route)]);
    resolved.route.requests()[0].extras.clone()
}

#[test]
fn policies_share_what_was_read_from_a_secret() {
    let mut objects = objects();
    let text = "ann:$2y$05$cxQ.5.gwvSLlR05hPqubYOoYMnidpPOY3BggwPJsbONNexHJASh56\n";
    let secret: Arc<Secret> = read(json!({
        "metadata": {"namespace": "n", "name": "users"}, "data": {"auth": STANDARD.encode(text)}
    }));
    objects.secrets.insert(Key::new("n", "users"), secret);
    let users = |objects: &Objects, route: &str| {
        let extras = extras(objects, route).unwrap();
        match &extras.authentication.as_ref().unwrap().rules.scheme {
            AuthenticationScheme::Basic { users } => Arc::clone(&users.bytes),
            other => panic!("{other:?}"),
        }
    };
    for number in [1, 2] {
        let one = policy(&format!("p{number}"), &format!("r{number}"));
        objects.route_policies.insert(one.metadata.key(), one);
    }
    let first = users(&objects, "r1");
    assert!(Arc::ptr_eq(&first, &users(&objects, "r2")));
    assert!(Arc::ptr_eq(&first, &users(&objects, "r1")));
    // The policy is read again when the Secret changes.
    let other: Arc<Secret> = read(json!({
        "metadata": {"namespace": "n", "name": "users"},
        "data": {"auth": STANDARD.encode(text.replace("ann", "bob"))}
    }));
    objects.secrets.insert(Key::new("n", "users"), other);
    assert!(users(&objects, "r1").starts_with(b"bob"));
}

#[test]
fn a_policy_that_cannot_be_read_refuses_the_requests_for_its_targets() {
    let mut objects = objects();
    let RoutePolicy { metadata, spec, .. } = RoutePolicy::clone(&policy("p", "r1"));
    let unreadable = RoutePolicy::unreadable(metadata, spec.target_refs, "its spec is damaged");
    objects.route_policies.insert(unreadable.metadata.key(), Arc::new(unreadable));
    assert!(extras(&objects, "r1").is_some_and(|extras| extras.refusal.is_some()));
    assert!(extras(&objects, "r2").is_none());
    let settings = settings();
    let surroundings = Surroundings { features: &[], addresses: &BTreeMap::new() };
    let statuses = resolve(&objects, &settings, surroundings).statuses;
    let accepted = &statuses.route_policies[&Key::new("n", "p")].ancestors[0].conditions[0];
    assert!(!accepted.is_true && accepted.reason == "Invalid");
    assert_eq!(
        accepted.message,
        "The policy cannot be read: its spec is damaged. Requests for its targets receive the \
         status 503 until the policy is corrected, since it may state authentication."
    );
}

#[test]
fn regular_expressions_of_a_route_are_bounded() {
    let one = json!({"type": "RegularExpression", "name": "a", "value": "b"});
    let rule = |count: usize| json!({"matches": vec![json!({"headers": [one]}); count]});
    let route: Arc<HttpRoute> = read(json!({
        "metadata": {"namespace": "n", "name": "r"},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": [rule(200), rule(100), rule(56)]}
    }));
    let mut objects = objects();
    objects.http_routes.clear();
    let settings = settings();
    let world = World::new(&objects, &settings);
    let Rules::Requests(rules) = &route::http_route(&world, &route).route.rules else {
        panic!("not the rules of requests")
    };
    assert_eq!(rules.iter().map(|rule| rule.index).collect::<Vec<_>>(), [0, 2]);
}
