//! The Services that Weir makes for Gateways: type LoadBalancer, in the namespace of Weir's Pods, since a selector only
//! works within a namespace.
//!
//! The `targetPort`s of a Service are where all instances listen: the leader chooses them, the others read them here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway::ir::ingress::is_implied;
use gateway::objects::Key;
use gateway::objects::gateway::{Address, Gateway, Infrastructure};
use gateway::objects::ingress::IngressClass;
use serde_json::{Map, Value, json};

use super::pool;
use super::ports::Targets;
use crate::text::{label_value, short_digest};

/// The Gateway of a Service, as `namespace/name`, or the IngressClass that implies one.
const GATEWAY: &str = "weir.dev/gateway";
/// A digest of what Weir wants the Service to be.
const WANTED: &str = "weir.dev/wanted";
/// A digest of Weir's name in GatewayClasses.
const CONTROLLER: &str = "weir.dev/controller";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// An annotation of a Gateway or an IngressClass: the `externalTrafficPolicy` of its Service.
const TRAFFIC_POLICY: &str = "weir.dev/external-traffic-policy";
/// The annotations of an IngressClass that its Service receives: those that configure load balancers. Others may be marks of
/// tools, such as Helm, which would then treat the Service as one of theirs.
const FOR_PROVIDERS: [&str; 10] = [
    "cloud.google.com/",
    "external-dns.alpha.kubernetes.io/",
    "kube-vip.io/",
    "lbipam.cilium.io/",
    "load-balancer.hetzner.cloud/",
    "metallb.io/",
    "metallb.universe.tf/",
    "networking.gke.io/",
    "service.beta.kubernetes.io/",
    "service.kubernetes.io/",
];

/// A Service that Weir made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnService {
    pub(crate) name: Arc<str>,
    /// The Gateway.
    pub(crate) gateway: Key,
    created: Option<String>,
    pub(crate) uid: Box<str>,
    /// The version of the object.
    pub(crate) version: Box<str>,
    is_being_deleted: bool,
    /// Where Weir's Pods listen.
    pub(crate) targets: Targets,
    /// The addresses of the load balancer.
    pub(crate) addresses: Vec<Address>,
    wanted: String,
    /// What must not have been changed by others.
    intact: Value,
}

/// What does not depend on the Gateway.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) controller_name: Arc<str>,
    /// The namespace of Weir's Pods.
    pub(crate) namespace: Arc<str>,
    /// Selects Weir's Pods.
    pub(crate) selector: BTreeMap<String, String>,
}

/// Returns the selector of the labels of all Services that Weir makes.
pub(crate) fn label_selector(controller_name: &str) -> String {
    format!("{MANAGED_BY}=weir,{CONTROLLER}={}", short_digest(controller_name))
}

/// Returns the name of the Service of a Gateway: at most 63 characters, of which the last are a digest, since
/// `namespace-name` can be the same for different Gateways.
pub(crate) fn name(gateway: &Key) -> String {
    const START_BYTES_MAX: usize = 63 - 17;
    let namespace = if is_implied(gateway) { "ingress" } else { &*gateway.namespace };
    let mut start = format!("weir-{namespace}-{}", gateway.name).replace('.', "-");
    start.truncate(start.floor_char_boundary(START_BYTES_MAX));
    format!("{}-{}", start.trim_end_matches('-'), short_digest(&gateway.to_string()))
}

/// Returns what a Service is for, for people.
pub(crate) fn owner(gateway: &Key) -> String {
    let kind = if is_implied(gateway) { "IngressClass" } else { "Gateway" };
    format!("{kind} {gateway}")
}

/// Reads a Service. `None`: it is not for a Gateway.
pub(crate) fn read(service: &Value) -> Option<OwnService> {
    let metadata = &service["metadata"];
    let spec = &service["spec"];
    let gateway =
        metadata["annotations"][GATEWAY].as_str().filter(|gateway| !gateway.is_empty())?;
    let (namespace, gateway) = gateway.split_once('/').unwrap_or(("", gateway));
    let number = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let targets = ports.iter().filter_map(|port| {
        let pair = (number(&port["port"])?, number(&port["targetPort"])?);
        (pair.0 != 0 && pair.1 != 0).then_some(pair)
    });
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    Some(OwnService {
        name: metadata["name"].as_str()?.into(),
        gateway: Key::new(namespace, gateway),
        created: text(&metadata["creationTimestamp"]),
        uid: metadata["uid"].as_str().unwrap_or_default().into(),
        version: metadata["resourceVersion"].as_str().unwrap_or_default().into(),
        is_being_deleted: !metadata["deletionTimestamp"].is_null(),
        targets: targets.collect(),
        addresses: addresses(&service["status"]["loadBalancer"]["ingress"]),
        wanted: text(&metadata["annotations"][WANTED]).unwrap_or_default(),
        intact: intact(spec),
    })
}

/// Returns what others might change and Weir depends on.
fn intact(spec: &Value) -> Value {
    json!([spec["type"], spec["selector"], spec["loadBalancerIP"], spec["externalTrafficPolicy"]])
}

/// Reads the addresses in the status of a Service of type LoadBalancer, or of an Ingress.
pub(crate) fn addresses(ingress: &Value) -> Vec<Address> {
    /// The API's limit for a Gateway.
    const ADDRESSES_MAX: usize = 16;
    let ingress = ingress.as_array().map_or(&[][..], Vec::as_slice);
    let found = ingress.iter().filter_map(|one| {
        let text = |name: &str| one[name].as_str().filter(|text| !text.is_empty());
        let (kind, value) = match (text("ip"), text("hostname")) {
            (Some(ip), _) => ("IPAddress", ip),
            (None, Some(hostname)) => ("Hostname", hostname),
            (None, None) => return None,
        };
        Some(Address { kind: kind.to_owned(), value: Some(value.to_owned()) })
    });
    found.take(ADDRESSES_MAX).collect()
}

/// Returns the Services that count: one for each Gateway, and no two with the same target. Of several the oldest counts.
pub(crate) fn one_per_gateway<'a>(
    existing: impl IntoIterator<Item = &'a OwnService>,
) -> BTreeMap<Key, OwnService> {
    let mut all: Vec<&OwnService> =
        existing.into_iter().filter(|one| *one.name == *name(&one.gateway)).collect();
    all.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    let mut used = std::collections::BTreeSet::new();
    let mut chosen = BTreeMap::new();
    for one in all {
        let mut one = one.clone();
        one.targets.retain(|_, target| used.insert(*target));
        chosen.entry(one.gateway.clone()).or_insert(one);
    }
    chosen
}

/// Returns what an IngressClass implies, as far as exposing it needs a Gateway.
pub(crate) fn implied(class: &IngressClass) -> Gateway {
    let is_for_provider = |name: &str| FOR_PROVIDERS.iter().any(|start| name.starts_with(start));
    let for_provider = class.metadata.annotations.iter().filter(|(name, _)| is_for_provider(name));
    let annotations = for_provider.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut gateway = Gateway { metadata: class.metadata.clone(), ..Gateway::default() };
    gateway.spec.gateway_class_name = Arc::clone(&class.metadata.name);
    gateway.spec.infrastructure = Some(Infrastructure { annotations, ..Infrastructure::default() });
    gateway
}

/// Returns the Service for a Gateway.
pub(crate) fn wanted(shared: &Shared, gateway: &Gateway, targets: &Targets) -> Value {
    let key = gateway.metadata.key();
    let infrastructure = gateway.spec.infrastructure.as_ref();
    let mut labels: Map<String, Value> = Map::new();
    let mut annotations: Map<String, Value> = Map::new();
    if let Some(stated) = infrastructure {
        labels.extend(copied(&stated.labels));
        annotations.extend(copied(&stated.annotations));
    }
    // Weir's own come last: a Gateway's user cannot replace them.
    for (name, value) in [
        (MANAGED_BY, "weir".to_owned()),
        (CONTROLLER, short_digest(&shared.controller_name)),
        ("gateway.networking.k8s.io/gateway-name", label_value(&key.name)),
        (
            "gateway.networking.k8s.io/gateway-class-name",
            label_value(&gateway.spec.gateway_class_name),
        ),
        ("weir.dev/gateway-namespace", label_value(&key.namespace)),
    ] {
        labels.insert(name.to_owned(), value.into());
    }
    annotations.insert(GATEWAY.to_owned(), key.to_string().into());
    let ports = targets.iter().map(|(port, target)| {
        json!({"name": format!("port-{port}"), "port": port, "protocol": "TCP", "targetPort": target})
    });
    let policy = gateway.metadata.annotations.get(TRAFFIC_POLICY).map(String::as_str);
    let mut spec = json!({
        "type": "LoadBalancer", "selector": shared.selector, "ports": ports.collect::<Vec<_>>(),
        "externalTrafficPolicy": if policy == Some("Local") { "Local" } else { "Cluster" },
        "ipFamilyPolicy": "PreferDualStack"
    });
    if let Some(address) = pool::requested(gateway).first() {
        spec["loadBalancerIP"] = IpAddr::to_string(address).into();
    }
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name(&key), "namespace": &*shared.namespace,
            "labels": labels, "annotations": annotations
        },
        "spec": spec
    });
    let digest = short_digest(&service.to_string());
    service["metadata"]["annotations"][WANTED] = digest.into();
    service
}

/// Returns the labels or annotations of a Gateway's `infrastructure` that its Service receives: not those of Kubernetes
/// itself, of kubectl, and of Weir.
fn copied(stated: &BTreeMap<String, String>) -> impl Iterator<Item = (String, Value)> {
    const RESERVED: [&str; 3] = ["kubernetes.io/", "kubectl.", "weir.dev/"];
    let is_reserved = |key: &str| RESERVED.iter().any(|start| key.starts_with(start));
    let copied = stated.iter().filter(move |(key, _)| !is_reserved(key));
    copied.map(|(key, value)| (key.clone(), value.as_str().into()))
}

/// Returns the digest of a Service that [`wanted`] returned.
pub(crate) fn digest(wanted: &Value) -> &str {
    wanted["metadata"]["annotations"][WANTED].as_str().unwrap_or_default()
}

/// Returns whether a Service must be written.
pub(crate) fn differs(existing: &OwnService, wanted: &Value) -> bool {
    let metadata = &wanted["metadata"];
    let is_written = metadata["annotations"][WANTED] == *existing.wanted
        && intact(&wanted["spec"]) == existing.intact
        && read(wanted).is_some_and(|wanted| wanted.targets == existing.targets);
    // One that is being deleted is created again once it is gone.
    !is_written && !existing.is_being_deleted
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shared() -> Shared {
        Shared {
            controller_name: "a/b".into(),
            namespace: "weir".into(),
            selector: [("app".to_owned(), "weir".to_owned())].into(),
        }
    }

    fn gateway(spec: Value) -> Gateway {
        serde_json::from_value(
            json!({"metadata": {"namespace": "n", "name": "gw.a"}, "spec": spec}),
        )
        .unwrap()
    }

    fn stored(service: &Value) -> OwnService {
        let mut service = service.clone();
        service["metadata"]["resourceVersion"] = "7".into();
        service["spec"]["clusterIP"] = "10.96.0.1".into();
        service["status"] = json!({"loadBalancer": {"ingress": [
            {"ip": "192.0.2.1", "hostname": "ignored"}, {"hostname": "lb.example"}, {}, 1
        ]}});
        read(&service).unwrap()
    }

    #[test]
    fn names_are_bounded_and_differ() {
        let long = name(&Key::new("n".repeat(63), "g".repeat(253)));
        assert!(long.len() <= 63, "{long}");
        assert_ne!(name(&Key::new("a-b", "c")), name(&Key::new("a", "b-c")));
        let short = name(&Key::new("0n", "gw.a"));
        assert!(short.starts_with("weir-0n-gw-a-"), "{short}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let targets: Targets = [(80, 31_000), (443, 31_001)].into();
        let service = wanted(&shared(), &gateway(json!({})), &targets);
        let existing = stored(&service);
        assert_eq!(existing.targets, targets);
        assert_eq!(existing.gateway, Key::new("n", "gw.a"));
        let shown: Vec<String> = existing
            .addresses
            .iter()
            .map(|one| format!("{} {}", one.kind, one.value.as_deref().unwrap()))
            .collect();
        assert_eq!(shown, ["IPAddress 192.0.2.1", "Hostname lb.example"]);
        assert!(!differs(&existing, &service));

        let moved = wanted(&shared(), &gateway(json!({})), &[(80, 31_000)].into());
        assert!(differs(&existing, &moved));
        let mut drifted = service.clone();
        drifted["spec"]["selector"] = json!({"app": "other"});
        assert!(differs(&stored(&drifted), &service));
        drifted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert!(!differs(&stored(&drifted), &service));
    }

    #[test]
    fn infrastructure_adds_labels_but_replaces_none() {
        let service = wanted(
            &shared(),
            &gateway(json!({
                "addresses": [{"type": "Hostname", "value": "a.example"}, {"value": "192.0.2.7"}],
                "infrastructure": {
                    "labels": {"team": "x", "app.kubernetes.io/managed-by": "y"},
                    "annotations": {
                        "cloud": "internal", "service.beta.kubernetes.io/load-balancer-type": "x",
                        "weir.dev/gateway": "other/other", "weir.dev/other": "x",
                        "kubectl.kubernetes.io/last-applied-configuration": "{}",
                        "kubernetes.io/ingress.class": "x"
                    }
                }
            })),
            &Targets::new(),
        );
        let metadata = &service["metadata"];
        assert_eq!(metadata["labels"]["team"], "x");
        assert_eq!(metadata["labels"][MANAGED_BY], "weir");
        let annotations: Vec<&str> =
            metadata["annotations"].as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["cloud", "service.beta.kubernetes.io/load-balancer-type", GATEWAY, WANTED];
        assert_eq!(BTreeSet::from_iter(annotations), expected.into());
        assert_eq!(metadata["annotations"][GATEWAY], "n/gw.a");
        assert_eq!(service["spec"]["loadBalancerIP"], "192.0.2.7");
    }

    #[test]
    fn an_ingress_class_says_what_its_service_is_like() {
        let class = serde_json::from_value(json!({"metadata": {"name": "c", "annotations": {
            "weir.dev/external-traffic-policy": "Local",
            "service.beta.kubernetes.io/aws-load-balancer-type": "nlb",
            "ingressclass.kubernetes.io/is-default-class": "true",
            "meta.helm.sh/release-name": "weir"
        }}}));
        let service = wanted(&shared(), &implied(&class.unwrap()), &[(80, 31_000)].into());
        assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
        let annotations = service["metadata"]["annotations"].as_object().unwrap();
        let names: Vec<&str> = annotations.keys().map(String::as_str).collect();
        let of_provider = "service.beta.kubernetes.io/aws-load-balancer-type";
        assert_eq!(BTreeSet::from_iter(names), [of_provider, GATEWAY, WANTED].into());
        assert_eq!(read(&service).unwrap().gateway, Key::new("", "c"));
    }

    #[test]
    fn an_annotation_keeps_the_addresses_of_clients() {
        let policy = |value: &str| {
            let mut gateway = gateway(json!({}));
            gateway.metadata.annotations.insert(TRAFFIC_POLICY.to_owned(), value.to_owned());
            wanted(&shared(), &gateway, &Targets::new())
        };
        let (local, other) = (policy("Local"), policy("anything"));
        assert_eq!(local["spec"]["externalTrafficPolicy"], "Local");
        assert_eq!(other["spec"]["externalTrafficPolicy"], "Cluster");
        assert!(differs(&stored(&other), &local));
    }

    #[test]
    fn the_oldest_service_has_a_target_that_two_have() {
        let existing = |namespace: &str, created: &str, targets: Targets| {
            let key = Key::new(namespace, "g");
            OwnService {
                name: name(&key).into(),
                gateway: key,
                created: Some(created.to_owned()),
                uid: "".into(),
                version: "".into(),
                is_being_deleted: false,
                targets,
                addresses: vec![],
                wanted: String::new(),
                intact: Value::Null,
            }
        };
        let young = existing("a", "2026-01-02T00:00:00Z", [(80, 1), (81, 3)].into());
        let old = existing("b", "2026-01-01T00:00:00Z", [(80, 1), (82, 2)].into());
        let other_name = OwnService { name: "x".into(), ..old.clone() };
        let found = one_per_gateway([&young, &old, &other_name]);
        assert_eq!(found[&young.gateway].targets, [(81, 3)].into());
        assert_eq!(found[&old.gateway].targets, [(80, 1), (82, 2)].into());
    }

    #[test]
    fn other_services_are_no_ones() {
        for service in [
            json!(null),
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "a", "annotations": {"weir.dev/gateway": ""}}}),
        ] {
            assert_eq!(read(&service), None, "{service}");
        }
        let odd = json!({
            "metadata": {"name": "a", "annotations": {"weir.dev/gateway": "n/g"}},
            "spec": {"ports": [{"port": 0, "targetPort": 1}, {"port": 70_000, "targetPort": 1},
                {"port": 1, "targetPort": "named"}, 1]},
            "status": {"loadBalancer": {"ingress": {}}}
        });
        assert!(read(&odd).unwrap().targets.is_empty());
    }
}
