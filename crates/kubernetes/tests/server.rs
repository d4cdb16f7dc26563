//! Against a small API server with faults (`fake`). Every wait is for a condition; no test judges by time.

#![cfg(feature = "client")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a helper that fails fails its test"
)]

mod fake;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake::{Cluster, text};
use gateway::objects::Key;
use gateway::served::{InForce, Served};
use kubernetes::{Event, Exposure, Handle, Health, Settings};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The longest that a condition is waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Weir {
    handle: Handle,
    in_force: watch::Sender<Arc<InForce>>,
    events: Arc<Mutex<Vec<Event>>>,
}

fn settings(cluster: &Cluster) -> Settings {
    Settings {
        kubeconfig: Some(cluster.kubeconfig()),
        controller_name: "a.example/weir".into(),
        ingress_controller_name: "a.example/weir-ingress".into(),
        namespaces: None,
        identity: "weir-0".into(),
        namespace: "weir".into(),
        lease: "weir".into(),
        zone: None,
        exposure: Exposure::Services {
            selector: [("app".to_owned(), "weir".to_owned())].into(),
            port_first: 20_000,
            port_last: 20_010,
            listen: "::".parse().unwrap(),
        },
        features: vec!["Gateway", "HTTPRoute"],
        experimental_features: vec!["HTTPRouteRetry"],
        allow_external_names: false,
        has_reviews: false,
        checks: gateway::resolve::Checks::none(),
    }
}

fn start(settings: Settings) -> Weir {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let (in_force, receiver) = watch::channel(Arc::default());
    let seen = Arc::clone(&events);
    let report = Box::new(move |event: Event| seen.lock().unwrap().push(event));
    let handle = kubernetes::start(settings, receiver, report).unwrap();
    Weir { handle, in_force, events }
}

/// Waits for a condition.
async fn wait<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(found) = condition() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, waited).await.unwrap_or_else(|_| panic!("waited for: {what}"))
}

impl Weir {
    fn served(&self) -> Arc<Served> {
        self.handle.served.borrow().clone()
    }

    fn health(&self) -> Arc<Health> {
        self.handle.health.borrow().clone()
    }

    /// Serves everything from now on.
    fn obey(&self) {
        let all = InForce { generation: u64::MAX, ..InForce::default() };
        self.in_force.send_replace(Arc::new(all));
    }

    fn has_event(&self, is_it: impl Fn(&Event) -> bool) -> bool {
        self.events.lock().unwrap().iter().any(is_it)
    }

    /// Returns the names of the routes of the Gateway `n/gw`.
    fn routes(&self) -> BTreeSet<String> {
        routes(&self.served())
    }

    async fn wait_for_routes(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|one| (*one).to_owned()).collect();
        let what = format!("the routes {expected:?}");
        wait(&what, || (self.routes() == expected).then_some(())).await;
    }
}

fn routes(served: &Served) -> BTreeSet<String> {
    let gateway = served.gateways.get(&Key::new("n", "gw"));
    let listeners = gateway.iter().flat_map(|gateway| gateway.ports.values().flatten());
    let routes = listeners.flat_map(|listener| &*listener.routes);
    routes.map(|attached| attached.route.key.name.to_string()).collect()
}

fn class() -> Value {
    json!({"kind": "GatewayClass", "metadata": {"name": "c"}, "spec": {"controllerName": "a.example/weir"}})
}

fn crd(channel: &str) -> Value {
    json!({
        "kind": "CustomResourceDefinition", "metadata": {
            "name": "httproutes.gateway.networking.k8s.io",
            "annotations": {"gateway.networking.k8s.io/channel": channel}
        }
    })
}

fn gateway(name: &str) -> Value {
    json!({
        "kind": "Gateway", "metadata": {"namespace": "n", "name": name},
        "spec": {
            "gatewayClassName": "c",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]
        }
    })
}

fn service(name: &str) -> Value {
    json!({"kind": "Service", "metadata": {"namespace": "n", "name": name}, "spec": {"ports": [{"port": 80}]}})
}

fn route(name: &str, service: &str) -> Value {
    json!({
        "kind": "HTTPRoute", "metadata": {"namespace": "n", "name": name},
        "spec": {
            "parentRefs": [{"name": "gw"}], "hostnames": [format!("{name}.example")],
            "rules": [{"backendRefs": [{"name": service, "port": 80}]}]
        }
    })
}

fn slice(addresses: &[&str]) -> Value {
    let endpoints: Vec<Value> = addresses.iter().map(|one| json!({"addresses": [one]})).collect();
    json!({
        "kind": "EndpointSlice",
        "metadata": {"namespace": "n", "name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 8080}]
    })
}

/// A cluster with one Gateway, one route and one Service.
fn cluster() -> Cluster {
    let cluster = Cluster::start();
    for object in [class(), gateway("gw"), service("s"), route("r", "s"), slice(&["10.0.0.1"])] {
        cluster.put(object);
    }
    cluster
}

/// Returns the status of a condition.
fn condition(object: &Value, list: &str, kind: &str) -> Option<(String, String)> {
    let conditions = object.pointer(list)?.as_array()?;
    let found = conditions.iter().find(|one| one["type"] == kind)?;
    Some((text(found, "/status").to_owned(), text(found, "/reason").to_owned()))
}

fn is_true(object: Option<Value>, list: &str, kind: &str) -> bool {
    object.is_some_and(|object| {
        condition(&object, list, kind).is_some_and(|(status, _)| status == "True")
    })
}

#[tokio::test]
async fn nothing_is_served_before_everything_was_read_once() {
    let cluster = cluster();
    cluster.fail("/secrets", 500);
    let weir = start(settings(&cluster));
    wait("only Secrets to be awaited", || {
        let awaited = &weir.health().awaited;
        (awaited.len() == 1 && awaited.contains("secrets")).then_some(())
    })
    .await;
    assert!(!weir.served().is_complete);
    cluster.fail("/secrets", 403);
    wait("the refusal to be reported", || {
        weir.health().forbidden.contains("list secrets").then_some(())
    })
    .await;
    assert!(!weir.served().is_complete);
    cluster.fail("/secrets", 0);
    weir.wait_for_routes(&["r"]).await;
    assert!(weir.served().is_complete);
    // The health is published after what is served.
    wait("nothing to be awaited", || weir.health().awaited.is_empty().then_some(())).await;
    wait("the permission", || weir.health().forbidden.is_empty().then_some(())).await;
    wait("a connection", || weir.health().is_connected.then_some(())).await;
    let pods = weir.handle.pods.borrow()[&(Key::new("n", "s"), None)].clone();
    assert_eq!(pods[0].address, "10.0.0.1:8080".parse().unwrap());
    assert!(weir.has_event(|event| *event == Event::Complete));
    weir.handle.stop();
}

#[tokio::test]
async fn statuses_are_written_when_they_are_true() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    // The leader makes a Service, from which the instances learn where to listen.
    let binding =
        wait("a binding", || weir.served().bindings.get(&(Key::new("n", "gw"), 80)).copied()).await;
    assert_eq!(binding, "[::]:20000".parse().unwrap());
    let find = || {
        let state = cluster.state.lock().unwrap();
        let services = state.data.objects["services"].values();
        services.into_iter().find(|one| one["metadata"]["namespace"] == "weir").cloned()
    };
    let made = find().unwrap();
    assert_eq!(made["spec"]["ports"][0]["targetPort"], 20_000);
    assert_eq!(made["spec"]["selector"], json!({"app": "weir"}));
    assert!(
        cluster.get("gateways", "n", "gw").unwrap().get("status").is_none(),
        "it is not in force"
    );

    cluster.change(|state| state.faults.conflicts = 3);
    weir.obey();
    let status = "/status/parents/0/conditions";
    wait("the status of the route", || {
        is_true(cluster.get("httproutes", "n", "r"), status, "Accepted").then_some(())
    })
    .await;
    let programmed =
        || condition(&cluster.get("gateways", "n", "gw")?, "/status/conditions", "Programmed");
    let expected = ("False".to_owned(), "AddressNotAssigned".to_owned());
    wait("no address", || (programmed()? == expected).then_some(())).await;
    let class = || cluster.get("gatewayclasses", "", "c");
    wait("the class", || is_true(class(), "/status/conditions", "Accepted").then_some(())).await;

    // The load balancer has an address.
    let mut made = made;
    made["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    cluster.put(made.clone());
    wait("an address", || {
        let gateway = cluster.get("gateways", "n", "gw")?;
        (text(&gateway, "/status/addresses/0/value") == "192.0.2.1").then_some(())
    })
    .await;
    assert_eq!(programmed().unwrap().0, "True");

    // Written again if someone removes it, and deleted when its Gateway belongs to another controller.
    cluster.delete("services", "weir", text(&made, "/metadata/name"));
    wait("the Service again", || {
        find().filter(|one| one["spec"]["ports"][0]["targetPort"] == 20_000)
    })
    .await;
    cluster.put(json!({
        "kind": "GatewayClass", "metadata": {"name": "other"}, "spec": {"controllerName": "a.example/other"}
    }));
    let mut moved = gateway("gw");
    moved["spec"]["gatewayClassName"] = "other".into();
    cluster.put(moved);
    wait("no Service", || find().is_none().then_some(())).await;
    wait("no entry of Weir", || {
        let route = cluster.get("httproutes", "n", "r")?;
        (route["status"]["parents"] == json!([])).then_some(())
    })
    .await;

    // Everything is written: nothing is written any more.
    wait("the end of all writes", || (weir.health().writes_waiting == 0).then_some(())).await;
    let before = cluster.state.lock().unwrap().count("/status");
    cluster.put(service("unrelated"));
    cluster.put(route("later", "s"));
    wait("the next route", || {
        cluster.get("httproutes", "n", "later")?.get("status").is_none().then_some(())
    })
    .await;
    assert_eq!(cluster.state.lock().unwrap().count("/status"), before);
    weir.handle.stop();
    // The Lease was given up.
    let lease = cluster.get("leases", "weir", "weir").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "");
}

#[tokio::test]
async fn a_port_that_the_balancer_does_not_listen_on_is_not_programmed() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.obey();
    let find = || {
        let state = cluster.state.lock().unwrap();
        let services = state.data.objects["services"].values();
        services.into_iter().find(|one| one["metadata"]["namespace"] == "weir").cloned()
    };
    let mut made = wait("a Service", find).await;
    made["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    cluster.put(made);
    let programmed =
        || condition(&cluster.get("gateways", "n", "gw")?, "/status/conditions", "Programmed");
    wait("a Gateway that is served", || (programmed()?.0 == "True").then_some(())).await;

    let not_bound = |why: &str| {
        let not_bound = [((Key::new("n", "gw"), 80), why.into())].into();
        weir.in_force.send_replace(Arc::new(InForce { generation: u64::MAX, not_bound }));
    };
    not_bound("address in use");
    wait("the reason in the status", || {
        let gateway = cluster.get("gateways", "n", "gw")?;
        let conditions = gateway.pointer("/status/listeners/0/conditions")?.as_array()?;
        conditions.iter().any(|one| text(one, "/message").contains("address in use")).then_some(())
    })
    .await;
    assert_eq!(programmed().unwrap(), ("False".to_owned(), "Pending".to_owned()));
    weir.obey();
    wait("a Gateway that is served", || (programmed()?.0 == "True").then_some(())).await;
    // The Service was written once, however often it was looked at.
    let applied = cluster.state.lock().unwrap().count("PATCH /api/v1/namespaces/weir/services/");
    assert_eq!(applied, 1);
    weir.handle.stop();
}

#[tokio::test]
async fn faults_never_take_anything_away() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    // Whatever is published from now on has the route.
    let mut served = weir.handle.served.clone();
    let watched = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            while served.changed().await.is_ok() {
                let served = served.borrow_and_update();
                assert!(served.is_complete && routes(&served).contains("r"), "{served:?}");
            }
        });
    });

    // The versions are too old to be watched on.
    cluster.change(|state| {
        state.put(route("gone", "s"));
    });
    weir.wait_for_routes(&["gone", "r"]).await;
    cluster.compact();
    cluster.cut();
    cluster.change(|state| {
        state.put(route("a", "s"));
    });
    cluster.delete("httproutes", "n", "gone");
    cluster.compact();
    weir.wait_for_routes(&["a", "r"]).await;

    // Permissions are taken away.
    cluster.fail("/httproutes", 403);
    cluster.cut();
    wait("the refusal to be reported", || {
        weir.health().forbidden.contains("list or watch httproutes").then_some(())
    })
    .await;
    cluster.put(route("b", "s"));
    assert_eq!(weir.routes().len(), 2);
    cluster.fail("/httproutes", 0);
    weir.wait_for_routes(&["a", "b", "r"]).await;
    assert!(weir.has_event(
        |event| matches!(event, Event::Forbidden { what, .. } if what == "list or watch httproutes")
    ));
    // The watch begins after the list.
    wait("the permission", || {
        let is_it =
            |event: &Event| matches!(event, Event::Permitted { what } if what == "list or watch httproutes");
        weir.has_event(is_it).then_some(())
    })
    .await;

    // Errors, and no answer at all.
    for status in [500, 429, 401] {
        cluster.fail("/", status);
        cluster.cut();
        wait("an outage", || (!weir.health().is_connected).then_some(())).await;
        cluster.put(route(&format!("s{status}"), "s"));
        cluster.fail("/", 0);
        wait("the end of the outage", || weir.health().is_connected.then_some(())).await;
    }
    weir.wait_for_routes(&["a", "b", "r", "s401", "s429", "s500"]).await;
    cluster.change(|state| state.faults.is_down = true);
    cluster.cut();
    wait("an outage", || (!weir.health().is_connected).then_some(())).await;
    cluster.delete("httproutes", "n", "a");
    cluster.change(|state| state.faults.is_down = false);
    weir.wait_for_routes(&["b", "r", "s401", "s429", "s500"]).await;
    assert!(weir.has_event(|event| matches!(event, Event::Disconnected { .. })));
    weir.handle.stop();
    watched.join().unwrap();
}

#[tokio::test]
async fn an_older_state_is_restored() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.obey();
    weir.wait_for_routes(&["r"]).await;
    let backup = cluster.change(|state| state.data.clone());
    for number in 0..20 {
        cluster.put(route("later", &format!("s{number}")));
    }
    weir.wait_for_routes(&["later", "r"]).await;
    cluster.change(|state| {
        state.faults.is_down = true;
    });
    cluster.cut();
    wait("an outage", || (!weir.health().is_connected).then_some(())).await;
    cluster.change(|state| {
        state.data = backup;
        state.faults.is_down = false;
        state.put(route("other", "s"));
    });
    weir.wait_for_routes(&["other", "r"]).await;
    // It goes on from there, and statuses are written to the restored objects.
    cluster.put(route("next", "s"));
    weir.wait_for_routes(&["next", "other", "r"]).await;
    let status = "/status/parents/0/conditions";
    for name in ["r", "other", "next"] {
        wait("statuses", || {
            is_true(cluster.get("httproutes", "n", name), status, "Accepted").then_some(())
        })
        .await;
    }
    weir.handle.stop();
}

/// A Service takes the place of another one, and the API server comes back with the state before that.
#[tokio::test]
async fn a_state_is_served_once_all_of_it_has_been_listed() {
    let cluster = cluster();
    cluster.put(service("old"));
    cluster.put(route("moved", "old"));
    let weir = start(settings(&cluster));
    weir.obey();
    weir.wait_for_routes(&["moved", "r"]).await;
    let backup = cluster.change(|state| state.data.clone());
    cluster.put(service("new"));
    cluster.put(route("moved", "new"));
    cluster.delete("services", "n", "old");
    wait("the new Service", || uses(&weir, "new").then_some(())).await;
    let list = "/httproutes?limit=250";
    let count = |part: &str| cluster.state.lock().unwrap().count(part);
    cluster.change(|state| state.faults.is_down = true);
    cluster.cut();
    wait("an outage", || (!weir.health().is_connected).then_some(())).await;
    let before = weir.served().generation;
    let (lists, watches) = (count(list), count("/services?watch=true"));
    cluster.change(|state| {
        state.data = backup;
        state.faults.held.insert(list.to_owned());
        state.faults.is_down = false;
    });
    wait("the list of routes", || (count(list) > lists).then_some(())).await;
    wait("the Services", || (count("/services?watch=true") > watches).then_some(())).await;
    wait("the end of the outage", || weir.health().is_connected.then_some(())).await;
    // Neither a route without its Service, nor a change of Pods.
    assert_eq!(weir.served().generation, before);
    assert!(uses(&weir, "new") && !uses(&weir, "old"));
    cluster.change(|state| state.faults.held.clear());
    wait("the old Service", || uses(&weir, "old").then_some(())).await;
    wait("the next generation", || (weir.served().generation > before).then_some(())).await;
    assert_eq!(weir.served().generation, before + 1);
    weir.handle.stop();
}

/// Returns whether a Service of the namespace `n` is used.
fn uses(weir: &Weir, name: &str) -> bool {
    let pods = weir.handle.pods.borrow();
    pods.keys().any(|(service, _)| *service == Key::new("n", name))
}

/// Until a generation is in force, requests go to the Services of the one before.
#[tokio::test]
async fn pods_of_a_service_stay_until_no_generation_uses_it() {
    let cluster = cluster();
    for name in ["old", "new"] {
        cluster.put(service(name));
    }
    cluster.put(route("a", "old"));
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["a", "r"]).await;
    let apply = || {
        let generation = weir.served().generation;
        weir.in_force.send_replace(Arc::new(InForce { generation, ..InForce::default() }));
    };
    apply();
    cluster.put(route("a", "new"));
    wait("the new Service", || uses(&weir, "new").then_some(())).await;
    assert!(uses(&weir, "old"));
    apply();
    wait("the end of the old one", || (!uses(&weir, "old")).then_some(())).await;
    weir.handle.stop();
}

/// The API server comes back with a state that is older than what one watch knows, and newer than what the others know.
/// Their connections notice nothing.
#[tokio::test]
async fn older_data_that_one_watch_finds_are_listed_by_all() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.obey();
    weir.wait_for_routes(&["r"]).await;
    let backup = cluster.change(|state| state.data.clone());
    cluster.put(service("lost"));
    cluster.put(route("kept", "lost"));
    wait("the later Service", || uses(&weir, "lost").then_some(())).await;
    cluster.change(|state| {
        for number in 0..1000 {
            state.put(route("kept", if number % 2 == 0 { "s" } else { "lost" }));
        }
    });
    cluster.put(route("later", "s"));
    weir.wait_for_routes(&["kept", "later", "r"]).await;
    let early = weir.health().failing.clone();
    cluster.change(|state| {
        state.data = backup;
        // It grows beyond the version of the Service.
        for _ in 0..500 {
            state.put(route("kept", "lost"));
        }
        state.faults.cut = Some("httproutes".to_owned());
    });
    wait("no later Service", || (!uses(&weir, "lost")).then_some(())).await;
    cluster.change(|state| state.faults.cut = None);
    weir.wait_for_routes(&["kept", "r"]).await;
    // All follow the new state.
    for name in ["a", "b", "c"] {
        cluster.put(service(name));
        cluster.put(route("kept", name));
        wait("the next Service", || uses(&weir, name).then_some(())).await;
    }
    assert_eq!(weir.health().failing, early);
    weir.handle.stop();
}

/// Only one connection notices an outage. The others are checked before anything of the new state is served.
#[tokio::test]
async fn a_state_is_served_once_all_of_it_has_been_checked() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    wait("a connection", || weir.health().is_connected.then_some(())).await;
    wait("a binding", || (!weir.served().bindings.is_empty()).then_some(())).await;
    let count = |part: &str| cluster.state.lock().unwrap().count(part);
    let check = "/grpcroutes?limit=1";
    cluster.change(|state| {
        state.faults.broken = Some("/httproutes?".to_owned());
        state.faults.cut = Some("httproutes".to_owned());
        state.faults.held.insert(check.to_owned());
    });
    let before = (weir.served().generation, count("/httproutes?limit"));
    wait("a failure", || (count("/httproutes?limit") > before.1).then_some(())).await;
    cluster.put(route("next", "s"));
    let watches = count("/httproutes?watch=true");
    cluster.change(|state| (state.faults.broken, state.faults.cut) = (None, None));
    wait("the list of routes", || (count("/httproutes?watch=true") > watches).then_some(())).await;
    wait("the check", || (count(check) > 0).then_some(())).await;
    // Pods are of one state: they do not wait.
    cluster.put(slice(&["10.0.0.9"]));
    let port = (Key::new("n", "s"), None);
    let is_new = |one: &str| one.parse::<IpAddr>().unwrap();
    wait("the Pods", || {
        let pods = weir.handle.pods.borrow().get(&port).cloned()?;
        pods.iter().any(|pod| pod.address.ip() == is_new("10.0.0.9")).then_some(())
    })
    .await;
    assert_eq!(weir.served().generation, before.0);
    cluster.change(|state| state.faults.held.clear());
    weir.wait_for_routes(&["next", "r"]).await;
    weir.handle.stop();
}

#[tokio::test]
async fn pods_change_without_resolving() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.obey();
    wait("a binding", || (!weir.served().bindings.is_empty()).then_some(())).await;
    let generation = weir.served().generation;
    // The health is published after what is served.
    let resolved = wait("the health", || {
        Some(weir.health().resolved).filter(|resolved| *resolved >= generation)
    })
    .await;
    let port = (Key::new("n", "s"), None);
    for addresses in [&["10.0.0.1", "10.0.0.2"][..], &[], &["10.0.0.3"]] {
        cluster.put(slice(addresses));
        wait("the Pods", || {
            let pods = weir.handle.pods.borrow().get(&port).cloned()?;
            let found: Vec<String> = pods.iter().map(|pod| pod.address.ip().to_string()).collect();
            (found == addresses).then_some(())
        })
        .await;
    }
    assert_eq!((weir.served().generation, weir.health().resolved), (generation, resolved));
    // Services that no Gateway uses have no Pods here.
    assert_eq!(weir.handle.pods.borrow().len(), 1);
    cluster.delete("httproutes", "n", "r");
    wait("no Pods", || weir.handle.pods.borrow().is_empty().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn only_one_instance_writes() {
    let cluster = cluster();
    let first = start(settings(&cluster));
    first.obey();
    wait("a leader", || first.health().is_leading.then_some(())).await;
    let second = start(Settings { identity: "weir-1".into(), ..settings(&cluster) });
    second.obey();
    second.wait_for_routes(&["r"]).await;
    // Both listen where the Service of the leader says.
    let key = (Key::new("n", "gw"), 80);
    let binding = wait("a binding", || second.served().bindings.get(&key).copied()).await;
    let of_first = wait("the same", || first.served().bindings.get(&key).copied()).await;
    assert_eq!(of_first, binding);
    wait("the first status", || cluster.get("httproutes", "n", "r")?.get("status").map(drop)).await;
    assert!(!second.health().is_leading);
    // It gives the Lease up when its drain begins, and goes on reading.
    let mut first = first;
    first.handle.leave();
    wait("another leader", || second.health().is_leading.then_some(())).await;
    assert!(!first.health().is_leading);
    cluster.put(route("drained", "s"));
    first.wait_for_routes(&["drained", "r"]).await;
    first.handle.stop();
    cluster.put(route("next", "s"));
    wait("the next status", || cluster.get("httproutes", "n", "next")?.get("status").map(drop))
        .await;
    // The Service is as the first leader made it.
    assert_eq!(second.served().bindings[&key], binding);
    second.handle.stop();
}

#[tokio::test]
async fn instances_with_one_name_are_told_apart() {
    let cluster = cluster();
    let all = [start(settings(&cluster)), start(settings(&cluster))];
    for weir in &all {
        weir.obey();
        weir.wait_for_routes(&["r"]).await;
    }
    wait("a leader", || all.iter().any(|weir| weir.health().is_leading).then_some(())).await;
    for name in ["a", "b", "c"] {
        cluster.put(route(name, "s"));
        wait("a status", || cluster.get("httproutes", "n", name)?.get("status").map(drop)).await;
        assert_eq!(all.iter().filter(|weir| weir.health().is_leading).count(), 1);
    }
    let lease = cluster.get("leases", "weir", "weir").unwrap();
    assert!(text(&lease, "/spec/holderIdentity").starts_with("weir-0_"), "{lease}");
    for weir in all {
        weir.handle.stop();
    }
}

#[tokio::test]
async fn kinds_can_be_missing_and_installed_later() {
    let cluster = cluster();
    cluster.change(|state| {
        state.kinds.remove("tlsroutes");
        state.kinds.remove("httproutes");
    });
    let weir = start(settings(&cluster));
    wait("the kinds to be awaited", || {
        weir.health().awaited.contains("the kinds of the Gateway API").then_some(())
    })
    .await;
    assert!(!weir.served().is_complete);
    cluster.change(|state| state.kinds.insert("httproutes".to_owned()));
    weir.wait_for_routes(&["r"]).await;
    assert_eq!(weir.health().absent, ["TLSRoute"].into());
    assert!(weir.has_event(|event| *event == Event::Absent { kinds: vec!["TLSRoute"] }));
    weir.handle.stop();
}

#[tokio::test]
async fn policies_of_weir_apply_once_their_kinds_are_installed() {
    let cluster = cluster();
    let kinds = ["servicepolicies", "routepolicies"];
    cluster.change(|state| state.kinds.retain(|kind| !kinds.contains(&kind.as_str())));
    let policy = |kind: &str, target: Value, mut spec: Value| {
        spec["targetRefs"] = json!([target]);
        json!({"kind": kind, "metadata": {"namespace": "n", "name": "p"}, "spec": spec})
    };
    cluster.put(policy(
        "ServicePolicy",
        json!({"group": "", "kind": "Service", "name": "s"}),
        json!({"inFlightMax": 3}),
    ));
    cluster.put(policy(
        "RoutePolicy",
        json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}),
        json!({"authentication": {"basic": {"usersSecret": "users"}}}),
    ));
    let weir = start(settings(&cluster));
    weir.obey();
    weir.wait_for_routes(&["r"]).await;
    assert!(weir.health().absent.is_empty());
    cluster.change(|state| state.kinds.extend(kinds.map(ToOwned::to_owned)));
    let condition = |plural: &str| {
        let policy = cluster.get(plural, "n", "p")?;
        let condition = &policy["status"]["ancestors"][0]["conditions"][0];
        Some((text(condition, "/status").to_owned(), text(condition, "/message").to_owned()))
    };
    wait("the status of the ServicePolicy", || {
        condition("servicepolicies").filter(|(status, _)| status == "True")
    })
    .await;
    let (status, message) =
        wait("the status of the RoutePolicy", || condition("routepolicies")).await;
    assert_eq!(status, "False");
    assert!(message.contains("Secret n/users does not exist"), "{message}");
    // Without its Secret, requests are refused.
    let extras = |served: &Served| {
        let gateway = served.gateways.get(&Key::new("n", "gw"))?;
        let mut routes = gateway.ports.values().flatten().flat_map(|one| &*one.routes);
        routes.find_map(|attached| attached.route.requests().first()?.extras.clone())
    };
    assert!(extras(&weir.served()).is_some_and(|extras| extras.refusal.is_some()));
    let users =
        "YW5uOiQyeSQwNSRjeFEuNS5nd3ZTTGxSMDVoUHF1YllPb1lNbmlkcFBPWTNCZ2d3UEpzYk9OTmV4SEpBU2g1Ngo=";
    cluster.put(json!({
        "kind": "Secret", "metadata": {"namespace": "n", "name": "users"}, "data": {"auth": users}
    }));
    wait("the users", || extras(&weir.served())?.authentication.clone()).await;
    wait("the status of the RoutePolicy", || {
        condition("routepolicies").filter(|(status, _)| status == "True")
    })
    .await;
    // Without the policy, the route requires no authentication.
    cluster.delete("routepolicies", "n", "p");
    wait("the route without the policy", || extras(&weir.served()).is_none().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn the_start_does_not_wait_for_pods() {
    let cluster = cluster();
    let target = json!({"group": "", "kind": "Service", "name": "s"});
    cluster.put(json!({
        "kind": "ServicePolicy", "metadata": {"namespace": "n", "name": "p"},
        "spec": {"targetRefs": [target], "inFlightMax": 3, "podLimits": true}
    }));
    cluster.fail("/namespaces/n/pods", 500);
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    wait("nothing to be awaited", || weir.health().awaited.is_empty().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn pods_state_limits_where_a_policy_permits_it() {
    let cluster = cluster();
    let pod = |limit: &str| {
        let annotations = json!({"weir.dev/in-flight-max": limit});
        json!({"kind": "Pod", "metadata": {"namespace": "n", "name": "p", "annotations": annotations}})
    };
    cluster.put(pod("8"));
    let mut slice = slice(&["10.0.0.1"]);
    slice["endpoints"][0]["targetRef"] = json!({"kind": "Pod", "name": "p", "uid": "u"});
    cluster.put(slice);
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    let limit = || {
        let pods = weir.handle.pods.borrow();
        pods.values().flat_map(|pods| pods.iter()).next().map(|pod| pod.in_flight_max)
    };
    let wait_for = async |expected: Option<u32>| {
        let what = format!("the limit {expected:?}");
        wait(&what, || (limit() == Some(expected)).then_some(())).await;
    };
    wait_for(None).await;
    assert_eq!(cluster.change(|state| state.count("/pods")), 0);
    let policy = |in_flight_max: u32, pod_limits: bool| {
        json!({"kind": "ServicePolicy", "metadata": {"namespace": "n", "name": "p"}, "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "s"}],
            "inFlightMax": in_flight_max, "podLimits": pod_limits
        }})
    };
    cluster.put(policy(10, true));
    wait_for(Some(8)).await;
    assert_eq!(cluster.change(|state| state.count("/api/v1/pods")), 0);
    cluster.put(pod("20"));
    wait_for(Some(10)).await;
    cluster.put(policy(5, true));
    wait_for(Some(5)).await;
    cluster.put(pod("many"));
    wait_for(None).await;
    assert!(weir.has_event(
        |event| matches!(event, Event::Unreadable { object, .. } if object == "Pod n/p")
    ));
    cluster.put(pod("3"));
    wait_for(Some(3)).await;
    cluster.put(policy(5, false));
    wait_for(None).await;
    weir.handle.stop();
}

#[tokio::test]
async fn features_of_experimental_fields_are_claimed_with_those_fields() {
    let base = ["Gateway", "HTTPRoute"];
    for (channel, status, expected) in [
        (None, 0, &base[..]),
        (Some("standard"), 0, &base),
        (Some("experimental"), 0, &["Gateway", "HTTPRoute", "HTTPRouteRetry"]),
        // Without the permission to read it.
        (Some("experimental"), 403, &base),
    ] {
        let cluster = cluster();
        channel.map(crd).into_iter().for_each(|crd| cluster.put(crd));
        cluster.fail("/customresourcedefinitions/", status);
        let weir = start(settings(&cluster));
        weir.obey();
        let features = wait("the status of the class", || {
            let class = cluster.get("gatewayclasses", "", "c")?;
            class.pointer("/status/supportedFeatures").cloned()
        })
        .await;
        let names: Vec<&str> =
            features.as_array().unwrap().iter().map(|one| text(one, "/name")).collect();
        assert_eq!(names, expected, "{channel:?} {status}");
        weir.handle.stop();
    }
}

#[tokio::test]
async fn only_config_maps_that_are_referred_to_are_read() {
    let cluster = cluster();
    let map = |name: &str, text: &str| json!({"kind": "ConfigMap", "metadata": {"namespace": "n", "name": name}, "data": {"ca.crt": text}});
    let certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    cluster.put(map("ca", certificate));
    cluster.put(map("other", certificate));
    cluster.put(json!({
        "kind": "BackendTLSPolicy", "metadata": {"namespace": "n", "name": "p"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "s"}],
            "validation": {
                "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}],
                "hostname": "s.example"
            }
        }
    }));
    let weir = start(settings(&cluster));
    weir.obey();
    let resolved = || {
        let policy = cluster.get("backendtlspolicies", "n", "p")?;
        condition(&policy, "/status/ancestors/0/conditions", "ResolvedRefs")
            .map(|(status, _)| status)
    };
    wait("a valid policy", || (resolved()? == "True").then_some(())).await;
    cluster.put(map("ca", "damaged"));
    wait("an invalid policy", || (resolved()? == "False").then_some(())).await;
    cluster.put(map("ca", certificate));
    wait("a valid policy", || (resolved()? == "True").then_some(())).await;
    cluster.delete("configmaps", "n", "ca");
    wait("an invalid policy", || (resolved()? == "False").then_some(())).await;
    assert_eq!(cluster.state.lock().unwrap().count("configmaps/other"), 0);
    weir.handle.stop();
}

#[tokio::test]
async fn objects_that_cannot_be_read_are_absent() {
    let cluster = cluster();
    let mut damaged = route("damaged", "s");
    damaged["spec"]["rules"] = "none".into();
    cluster.put(damaged);
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    wait("the report", || {
        weir.health().unreadable.contains_key("HTTPRoute n/damaged").then_some(())
    })
    .await;
    cluster.put(route("damaged", "s"));
    weir.wait_for_routes(&["damaged", "r"]).await;
    wait("no report", || weir.health().unreadable.is_empty().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn an_object_that_is_too_deep_does_not_affect_others() {
    let cluster = cluster();
    let policy = |name: &str, route: &str, users: Value| {
        let target =
            json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route});
        json!({
            "kind": "RoutePolicy", "metadata": {"namespace": "n", "name": name},
            "spec": {"targetRefs": [target], "authentication": {"basic": {"usersSecret": users}}}
        })
    };
    let deep = || (0..200).fold(json!([]), |inner, _| json!([inner]));
    for name in ["a", "b", "c"] {
        cluster.put(route(name, "s"));
    }
    cluster.put(policy("a", "a", deep()));
    cluster.put(policy("b", "b", "users".into()));
    let weir = start(settings(&cluster));
    weir.obey();
    weir.wait_for_routes(&["a", "b", "c", "r"]).await;
    let refuses = |route: &str| {
        let served = weir.served();
        let gateway = served.gateways.get(&Key::new("n", "gw"))?;
        let mut routes = gateway.ports.values().flatten().flat_map(|one| &*one.routes);
        let found = routes.find(|attached| &*attached.route.key.name == route)?;
        let extras = found.route.requests().first()?.extras.clone();
        Some(extras.is_some_and(|extras| extras.refusal.is_some()))
    };
    let refused = || ["a", "b", "c"].map(|name| refuses(name).unwrap_or_default());
    wait("the list", || (refused() == [true, true, false]).then_some(())).await;
    wait("the report", || {
        let why = weir.health().unreadable.get("RoutePolicy n/a")?.to_string();
        why.contains("recursion").then_some(())
    })
    .await;
    // One that was read stays as it was, and the watch goes on.
    let lists = || cluster.change(|state| state.count("routepolicies?limit"));
    let before = lists();
    cluster.put(policy("b", "b", deep()));
    cluster.put(policy("c", "c", "users".into()));
    wait("the watch", || (refused() == [true, true, true]).then_some(())).await;
    cluster.delete("routepolicies", "n", "c");
    wait("the end of the policy", || (refused() == [true, true, false]).then_some(())).await;
    assert!(weir.health().unreadable.contains_key("RoutePolicy n/b"));
    cluster.delete("routepolicies", "n", "b");
    cluster.put(policy("a", "c", "users".into()));
    wait("the policies as they are", || (refused() == [false, false, true]).then_some(())).await;
    wait("no report", || weir.health().unreadable.is_empty().then_some(())).await;
    assert_eq!(lists(), before);
    weir.handle.stop();
}

#[tokio::test]
async fn single_namespaces_are_watched_one_by_one() {
    let cluster = cluster();
    let mut other = route("other", "s");
    other["metadata"]["namespace"] = "m".into();
    cluster.put(other);
    let settings =
        Settings { namespaces: Some(vec!["n".into(), "o".into()]), ..settings(&cluster) };
    let weir = start(settings);
    weir.wait_for_routes(&["r"]).await;
    let requests = cluster.state.lock().unwrap().requests.clone();
    let is_lists = |path: &str| {
        requests.iter().any(|one| one.split('?').next() == Some(&format!("GET {path}")))
    };
    assert!(is_lists("/api/v1/namespaces/o/secrets") && !is_lists("/api/v1/secrets"));
    assert!(is_lists("/api/v1/namespaces/weir/services"), "the Services that Weir makes");
    assert!(is_lists("/apis/gateway.networking.k8s.io/v1/gatewayclasses"));
    weir.handle.stop();
}

#[tokio::test]
async fn gateways_share_a_pool_of_addresses() {
    let cluster = cluster();
    let addresses: Vec<IpAddr> =
        ["192.0.2.1", "192.0.2.2"].iter().map(|one| one.parse().unwrap()).collect();
    let weir = start(Settings { exposure: Exposure::Pool { addresses }, ..settings(&cluster) });
    weir.obey();
    cluster.put(gateway("second"));
    cluster.put(gateway("third"));
    let address = |name: &str| {
        let binding = weir.served().bindings.get(&(Key::new("n", name), 80)).copied();
        binding.map(|address| address.to_string())
    };
    wait("two addresses", || {
        (address("gw")? == "192.0.2.1:80" && address("second")? == "192.0.2.2:80").then_some(())
    })
    .await;
    wait("a report", || {
        weir.has_event(
            |event| matches!(event, Event::NotExposed { what, .. } if what == "Gateway n/third"),
        )
        .then_some(())
    })
    .await;
    wait("a status", || {
        let second = cluster.get("gateways", "n", "second")?;
        (text(&second, "/status/addresses/0/value") == "192.0.2.2").then_some(())
    })
    .await;
    // It keeps its address when an older one is gone.
    cluster.delete("gateways", "n", "gw");
    wait("the free address", || (address("third")? == "192.0.2.1:80").then_some(())).await;
    assert_eq!(address("second").unwrap(), "192.0.2.2:80");
    weir.handle.stop();
}

#[tokio::test]
async fn long_lists_are_read_in_pages() {
    let cluster = cluster();
    cluster.change(|state| {
        for number in 0..600 {
            state.put(route(&format!("r{number}"), "s"));
        }
    });
    let weir = start(settings(&cluster));
    wait("all routes", || (weir.routes().len() == 601).then_some(())).await;
    assert!(cluster.state.lock().unwrap().count("/httproutes?limit=250&continue=") >= 2);
    weir.handle.stop();
}

/// A Gateway `n/gw` with the certificate in the Secret `n/cert`.
fn secure_gateway() -> Value {
    let mut gateway = gateway("gw");
    gateway["spec"]["listeners"][0] = json!({
        "name": "https", "port": 443, "protocol": "HTTPS",
        "tls": {"certificateRefs": [{"name": "cert"}]}
    });
    gateway
}

fn secret(marker: &str) -> Value {
    // Of PEM with the bytes `hello`.
    let certificate =
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFHVnNiRzg9Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K";
    let key =
        "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCmFHVnNiRzg9Ci0tLS0tRU5EIFBSSVZBVEUgS0VZLS0tLS0K";
    json!({
        "kind": "Secret", "metadata": {"namespace": "n", "name": "cert", "labels": {"a": marker}},
        "data": {"tls.crt": certificate, "tls.key": key}
    })
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_not_one_that_does_not_exist() {
    let cluster = cluster();
    cluster.put(secure_gateway());
    cluster.put(secret("1"));
    cluster.fail("/secrets/cert", 403);
    let weir = start(settings(&cluster));
    weir.obey();
    wait("the Secret to be awaited", || {
        let health = weir.health();
        let is_forbidden = health.forbidden.contains("get secrets of namespace n");
        (is_forbidden && health.awaited.contains("Secret n/cert")).then_some(())
    })
    .await;
    assert!(weir.health().failing.contains_key("Secret n/cert"));
    wait("several attempts", || {
        (cluster.state.lock().unwrap().count("/secrets/cert") > 3).then_some(())
    })
    .await;
    assert!(!weir.served().is_complete, "the start waits longer than for three attempts");
    wait("the end of the wait", || weir.served().is_complete.then_some(())).await;
    let resolved = || {
        let gateway = cluster.get("gateways", "n", "gw")?;
        let conditions = gateway.pointer("/status/listeners/0/conditions")?.as_array()?.clone();
        conditions.into_iter().find(|one| one["type"] == "ResolvedRefs")
    };
    let condition = wait("a status", resolved).await;
    let message = text(&condition, "/message");
    assert!(message.contains("Grant get on secrets"), "{message}");

    cluster.fail("/secrets/cert", 0);
    wait("the certificate", || (text(&resolved()?, "/status") == "True").then_some(())).await;
    wait("the permission", || weir.health().forbidden.is_empty().then_some(())).await;
    // A newer version cannot be read: what was read before stays in use.
    cluster.fail("/secrets/cert", 500);
    cluster.put(secret("2"));
    wait("the failure", || weir.health().failing.contains_key("Secret n/cert").then_some(())).await;
    cluster.put(service("unrelated"));
    cluster.put(route("next", "s"));
    weir.wait_for_routes(&["next", "r"]).await;
    let condition = wait("a status", resolved).await;
    assert_eq!(text(&condition, "/status"), "True");
    cluster.fail("/secrets/cert", 0);
    cluster.delete("secrets", "n", "cert");
    wait("the truth", || text(&resolved()?, "/message").contains("does not exist").then_some(()))
        .await;
    weir.handle.stop();
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_completely_is_left_out() {
    let cluster = cluster();
    let mut shared = gateway("gw");
    shared["spec"]["listeners"][0]["allowedRoutes"] = json!({"namespaces": {"from": "All"}});
    cluster.put(shared);
    let inside = |mut object: Value| {
        object["metadata"]["namespace"] = "o".into();
        object
    };
    let attached = |name: &str| {
        let mut route = inside(route(name, "s"));
        route["spec"]["parentRefs"][0]["namespace"] = "n".into();
        route
    };
    for object in [inside(service("s")), inside(gateway("gw")), attached("a")] {
        cluster.put(object);
    }
    // Without the policies, its Services would be served in plaintext.
    cluster.fail("/namespaces/o/backendtlspolicies", 403);
    let namespaces = Some(vec!["n".into(), "o".into()]);
    let weir = start(Settings { namespaces, ..settings(&cluster) });
    weir.obey();
    wait("only the policies to be awaited", || {
        let awaited = &weir.health().awaited;
        (awaited.len() == 1 && awaited.contains("backendtlspolicies of namespace o")).then_some(())
    })
    .await;
    assert!(!weir.served().is_complete);
    weir.wait_for_routes(&["r"]).await;
    assert!(
        weir.has_event(
            |event| matches!(event, Event::Skipped { namespace } if &**namespace == "o")
        )
    );
    cluster.put(attached("b"));
    cluster.delete("httproutes", "o", "a");
    cluster.put(attached("c"));
    cluster.put(route("next", "s"));
    weir.wait_for_routes(&["next", "r"]).await;
    assert!(!weir.served().gateways.contains_key(&Key::new("o", "gw")));
    let health = weir.health();
    assert!(health.awaited.is_empty() && health.is_connected);
    assert!(health.failing.contains_key("backendtlspolicies of namespace o"));
    assert!(health.failing.contains_key("namespace o"));
    assert!(health.not_followed_since.is_some());
    // It is served once everything in it can be read.
    cluster.fail("/namespaces/o/backendtlspolicies", 0);
    weir.wait_for_routes(&["b", "c", "next", "r"]).await;
    assert!(weir.served().gateways.contains_key(&Key::new("o", "gw")));
    wait("the namespace", || weir.health().failing.is_empty().then_some(())).await;
    assert_eq!(weir.health().not_followed_since, None);
    assert!(
        weir.has_event(
            |event| matches!(event, Event::Included { namespace } if &**namespace == "o")
        )
    );
    weir.handle.stop();
}

#[tokio::test]
async fn everything_is_followed_without_the_lease() {
    let cluster = cluster();
    cluster.fail("/leases", 403);
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    wait("the failure", || weir.health().failing.contains_key("the Lease").then_some(())).await;
    wait("only the failure", || (weir.health().failing.len() == 1).then_some(())).await;
    let health = weir.health();
    assert!(health.is_connected && health.not_followed_since.is_none(), "{health:?}");
    weir.handle.stop();
}

#[tokio::test]
async fn a_list_without_a_watch_is_failing() {
    let cluster = cluster();
    cluster.fail("/httproutes?watch=true", 403);
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    let lists = || cluster.state.lock().unwrap().count("/httproutes?limit=250");
    wait("several attempts", || (lists() > 3).then_some(())).await;
    let health = weir.health();
    assert!(health.forbidden.contains("list or watch httproutes") && health.is_connected);
    assert!(health.failing.contains_key("httproutes") && health.not_followed_since.is_some());
    assert!(!weir.has_event(|event| matches!(event, Event::Permitted { .. })), "it is not over");
    cluster.fail("/httproutes?watch=true", 0);
    wait("the permission", || weir.health().failing.is_empty().then_some(())).await;
    assert!(weir.has_event(|event| matches!(event, Event::Permitted { .. })));
    weir.handle.stop();
}

#[tokio::test]
async fn watches_that_end_at_once_are_failing_although_lists_are_read() {
    let cluster = cluster();
    cluster.change(|state| state.faults.early = Some("httproutes".to_owned()));
    let weir = start(settings(&cluster));
    let ends_early =
        || weir.health().failing.get("httproutes").is_some_and(|why| &**why == "watches end early");
    wait("the failure", || ends_early().then_some(())).await;
    cluster.put(route("next", "s"));
    weir.wait_for_routes(&["next", "r"]).await;
    assert!(ends_early() && weir.health().is_connected);
    cluster.change(|state| state.faults.early = None);
    wait("a watch that lasts", || weir.health().failing.is_empty().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn one_kind_that_fails_is_no_outage() {
    let cluster = cluster();
    let weir = start(settings(&cluster));
    weir.wait_for_routes(&["r"]).await;
    wait("a connection", || weir.health().is_connected.then_some(())).await;
    cluster.change(|state| state.faults.broken = Some("/httproutes".to_owned()));
    cluster.cut();
    let failures = || cluster.state.lock().unwrap().count("/httproutes?limit=250");
    let before = failures();
    wait("several attempts", || (failures() > before + 3).then_some(())).await;
    assert!(weir.health().failing.contains_key("httproutes"));
    assert!(weir.health().is_connected);
    assert!(!weir.has_event(|event| matches!(event, Event::Disconnected { .. })));
    weir.handle.stop();
}

#[tokio::test]
async fn reads_that_arrive_together_are_resolved_together() {
    const COUNT: usize = 8;
    let cluster = cluster();
    let certificate = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let map = |number: usize, text: &str| json!({"kind": "ConfigMap", "metadata": {"namespace": "n", "name": format!("ca{number}")}, "data": {"ca.crt": text}});
    for number in 0..COUNT {
        let name = format!("s{number}");
        cluster.put(service(&name));
        cluster.put(route(&name, &name));
        cluster.put(map(number, certificate));
        cluster.put(json!({
            "kind": "BackendTLSPolicy", "metadata": {"namespace": "n", "name": name},
            "spec": {
                "targetRefs": [{"group": "", "kind": "Service", "name": name}],
                "validation": {
                    "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": format!("ca{number}")}],
                    "hostname": "s.example"
                }
            }
        }));
    }
    let weir = start(settings(&cluster));
    weir.obey();
    let all = |expected: &str| {
        let is_it = |number: usize| {
            let policy = cluster.get("backendtlspolicies", "n", &format!("s{number}"))?;
            let found = condition(&policy, "/status/ancestors/0/conditions", "ResolvedRefs")?;
            (found.0 == expected).then_some(())
        };
        (0..COUNT).all(|number| is_it(number).is_some()).then_some(())
    };
    wait("valid policies", || all("True")).await;
    let reads = || cluster.state.lock().unwrap().count("/configmaps/ca");
    let before = reads();
    let path = |number: usize| format!("/configmaps/ca{number}");
    cluster.change(|state| state.faults.held = (0..COUNT).map(path).collect());
    for number in 0..COUNT {
        cluster.put(map(number, "damaged"));
    }
    wait("all to be read", || (reads() == before + COUNT).then_some(())).await;
    let resolved = weir.health().resolved;
    // Written statuses would be further changes.
    cluster.fail("/status", 500);
    let began = os::clock::now();
    for number in 0..COUNT {
        cluster.change(|state| state.faults.held.remove(&path(number)));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // One at the beginning, and then at most one in each 50 ms. Without a wait, each read would have its own.
    let count_max = 2 + os::clock::now().since(began).as_millis() / 50;
    cluster.fail("/status", 0);
    wait("invalid policies", || all("False")).await;
    let count = weir.health().resolved - resolved;
    assert!(u128::from(count) <= count_max, "{count} resolutions, at most {count_max}");
    weir.handle.stop();
}

#[tokio::test]
async fn a_new_leader_writes_all_statuses() {
    let cluster = cluster();
    let mut first = start(settings(&cluster));
    wait("a leader", || first.health().is_leading.then_some(())).await;
    // The first leader has nothing in force, so it writes no status.
    let second = start(Settings { identity: "weir-1".into(), ..settings(&cluster) });
    second.obey();
    second.wait_for_routes(&["r"]).await;
    wait("a Service", || (!second.served().bindings.is_empty()).then_some(())).await;
    let has_status = |plural: &str, namespace: &str, name: &str| {
        cluster.get(plural, namespace, name)?.get("status").map(drop)
    };
    assert!(has_status("httproutes", "n", "r").is_none());
    first.handle.leave();
    for (plural, namespace, name) in
        [("httproutes", "n", "r"), ("gateways", "n", "gw"), ("gatewayclasses", "", "c")]
    {
        wait(plural, || has_status(plural, namespace, name)).await;
    }
    first.handle.stop();
    second.handle.stop();
}

#[tokio::test]
async fn a_leader_that_leads_again_has_no_memory_of_its_last_term() {
    let cluster = cluster();
    cluster.fail("/httproutes/r/status", 422);
    let weir = start(settings(&cluster));
    weir.obey();
    wait("the refusal", || {
        let is_it =
            |event: &Event| matches!(event, Event::Refused { what, .. } if what.ends_with("n/r"));
        weir.has_event(is_it).then_some(())
    })
    .await;
    cluster.fail("/httproutes/r/status", 0);
    // Another instance takes the Lease, and releases it.
    let hold = |holder: &str| {
        cluster.change(|state| {
            let mut lease = state.get("leases", "weir", "weir").unwrap().clone();
            lease["spec"]["holderIdentity"] = holder.into();
            state.put(lease);
        });
    };
    hold("another");
    wait("no leader", || (!weir.health().is_leading).then_some(())).await;
    assert!(cluster.get("httproutes", "n", "r").unwrap().get("status").is_none());
    hold("");
    wait("a status", || cluster.get("httproutes", "n", "r")?.get("status").map(drop)).await;
    weir.handle.stop();
}

#[tokio::test]
async fn a_credential_plugin_that_does_not_end_blocks_nothing() {
    let cluster = cluster();
    let plugin = |name: &str, script: &str| {
        let user = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "IfAvailable"
        }});
        let kubeconfig = Some(cluster.kubeconfig_for(name, &user));
        Settings { kubeconfig, ..settings(&cluster) }
    };
    let go = std::env::temp_dir().join(format!("weir-plugin-{}", std::process::id()));
    let _ = std::fs::remove_file(&go);
    let go = go.display().to_string();
    // It ends some time, whatever becomes of the test.
    let loops = format!("for n in $(seq 3000); do [ -e {go} ] && exit; sleep 0.05; done");
    let hangs = format!("touch {go}.begun; {loops}");
    let weir = start(plugin("-hangs", &hangs));
    wait("the plugin", || std::fs::exists(format!("{go}.begun")).unwrap().then_some(())).await;
    // Its thread would wait for the plugin for ever.
    weir.handle.stop();
    std::fs::write(&go, "").unwrap();

    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}"#;
    let weir = start(plugin("-works", &format!("echo '{credential}'")));
    weir.wait_for_routes(&["r"]).await;
    weir.handle.stop();
    for file in [go.clone(), format!("{go}.begun")] {
        std::fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn a_credential_plugin_that_does_not_renew_its_token_runs_once() {
    let cluster = cluster();
    let directory = std::env::temp_dir().join(format!("weir-renewal-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    // Its first token has expired, so that it is renewed at once. Each run leaves a file.
    let script = format!(
        r#"cd {} && touch "run.$$"
        expiry=2020-01-01T00:00:00Z
        if [ "$(ls run.* | wc -l)" -gt 1 ]; then
            while [ ! -e go ]; do sleep 0.05; done
            expiry=2999-01-01T00:00:00Z
        fi
        echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {{"token": "t", "expirationTimestamp": "'$expiry'"}}}}'"#,
        directory.display()
    );
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
        "interactiveMode": "IfAvailable"
    }});
    let kubeconfig = Some(cluster.kubeconfig_for("-renews", &user));
    let weir = start(Settings { kubeconfig, ..settings(&cluster) });
    wait("the reason", || {
        let health = weir.health();
        health.last_error.as_deref().is_some_and(|why| why.contains("plugin")).then_some(())
    })
    .await;
    let runs = || {
        let files = std::fs::read_dir(&directory).unwrap();
        let names = files.map(|file| file.unwrap().file_name().display().to_string());
        names.filter(|name| name.starts_with("run.")).count()
    };
    assert_eq!(runs(), 2, "many requests wait for the renewal");
    std::fs::write(directory.join("go"), "").unwrap();
    weir.wait_for_routes(&["r"]).await;
    assert_eq!(runs(), 2);
    weir.handle.stop();
    std::fs::remove_dir_all(&directory).unwrap();
}

fn ingress_class() -> Value {
    json!({"kind": "IngressClass", "metadata": {"name": "i"}, "spec": {"controller": "a.example/weir-ingress"}})
}

fn ingress(name: &str) -> Value {
    json!({
        "kind": "Ingress",
        "metadata": {"namespace": "n", "name": name, "annotations": {
            "nginx.ingress.kubernetes.io/server-snippet": "return 200;"
        }},
        "spec": {"ingressClassName": "i", "rules": [{"host": format!("{name}.example"), "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}
        ]}}]}
    })
}

/// Returns the names of the Ingresses that are served.
fn ingresses(weir: &Weir) -> BTreeSet<String> {
    let served = weir.served();
    let gateway = served.gateways.get(&Key::new("", "i"));
    let listeners = gateway.iter().flat_map(|gateway| gateway.ports.values().flatten());
    let routes = listeners.flat_map(|listener| &*listener.routes);
    routes.map(|attached| attached.route.key.name.to_string()).collect()
}

#[tokio::test]
async fn ingresses_have_a_service_statuses_and_events() {
    let cluster = cluster();
    cluster.put(ingress_class());
    cluster.put(ingress("shop"));
    let weir = start(settings(&cluster));
    weir.obey();
    let find = || {
        let state = cluster.state.lock().unwrap();
        let services = state.data.objects["services"].values();
        let is_it = |one: &&Value| text(one, "/metadata/name").starts_with("weir-ingress-i-");
        services.into_iter().find(is_it).cloned()
    };
    let mut made = wait("a Service", find).await;
    assert_eq!(made["spec"]["ports"][0]["port"], 80);
    let key = (Key::new("", "i"), 80);
    wait("a binding", || weir.served().bindings.get(&key).copied()).await;
    made["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    cluster.put(made);
    wait("an address", || {
        let ingress = cluster.get("ingresses", "n", "shop")?;
        (text(&ingress, "/status/loadBalancer/ingress/0/ip") == "192.0.2.1").then_some(())
    })
    .await;
    let events = || {
        let state = cluster.state.lock().unwrap();
        let events = state.data.objects.get("events").into_iter().flat_map(BTreeMap::values);
        events.cloned().collect::<Vec<_>>()
    };
    let event = wait("an event", || events().first().cloned()).await;
    let ingress_uid = cluster.get("ingresses", "n", "shop").unwrap()["metadata"]["uid"].clone();
    assert_eq!(event["involvedObject"]["uid"], ingress_uid);
    assert!(text(&event, "/message").contains("server-snippet"), "{event}");

    // The annotations change: another event is not written again, and what is gone is not either.
    let mut plain = ingress("shop");
    plain["metadata"]["annotations"] = json!({});
    cluster.put(plain);
    cluster.put(ingress("more"));
    wait("both", || (ingresses(&weir).len() == 2).then_some(())).await;
    wait("an event on the other", || {
        events().iter().any(|one| text(one, "/involvedObject/name") == "more").then_some(())
    })
    .await;
    wait("the end of all writes", || (weir.health().writes_waiting == 0).then_some(())).await;
    assert!(events().iter().all(|one| one["count"] == 1));
    // Without Ingresses there is no Service.
    cluster.delete("ingresses", "n", "shop");
    cluster.delete("ingresses", "n", "more");
    wait("no port", || weir.served().bindings.get(&key).is_none().then_some(())).await;
    weir.handle.stop();
}

#[tokio::test]
async fn gateways_are_served_without_permissions_for_ingresses() {
    let cluster = cluster();
    cluster.put(ingress_class());
    cluster.put(ingress("shop"));
    cluster.fail("networking.k8s.io/v1/namespaces/n/ingresses", 403);
    cluster.fail("/ingressclasses", 403);
    let settings = Settings { namespaces: Some(vec!["n".into()]), ..settings(&cluster) };
    let weir = start(settings);
    weir.obey();
    // Permissions may follow soon.
    wait("only them to be awaited", || {
        let awaited = &weir.health().awaited;
        (*awaited == ["ingressclasses", "ingresses of namespace n"].map(String::from).into())
            .then_some(())
    })
    .await;
    assert!(!weir.served().is_complete);
    weir.wait_for_routes(&["r"]).await;
    wait("the report", || {
        let forbidden = &weir.health().forbidden;
        let is_reported = forbidden.contains("list ingresses of namespace n")
            && forbidden.contains("list ingressclasses");
        is_reported.then_some(())
    })
    .await;
    wait("an end of the failures", || {
        let health = weir.health();
        (health.failing.is_empty() && health.not_followed_since.is_none()).then_some(())
    })
    .await;
    assert!(!weir.has_event(|event| matches!(event, Event::Skipped { .. })), "it is served");
    cluster.fail("networking.k8s.io/v1/namespaces/n/ingresses", 0);
    cluster.fail("/ingressclasses", 0);
    wait("the Ingress", || (ingresses(&weir) == ["shop".to_owned()].into()).then_some(())).await;
    weir.handle.stop();
}
