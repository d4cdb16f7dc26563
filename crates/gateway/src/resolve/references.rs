//! The Secrets and ConfigMaps that Gateways of Weir, their ListenerSets, Ingresses of Weir, and policies refer to. The
//! others need not be read.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::policy::{Reference, RouteTerms};

use super::cluster::{Cluster, Objects, Settings};
use super::gateway::own_class;
use super::ingress;
use super::ingress_classes::Classes;
use super::route_targets::{self, is_own_set, is_used};
use crate::grants::GroupKind;
use crate::ir::RouteId;
use crate::objects::gateway::{ClientTls, Gateway, Listener};
use crate::objects::reference::ObjectRef;
use crate::objects::{GATEWAY_GROUP, Key};

/// Returns the Secrets and the ConfigMaps that are referred to. References that another namespace does not permit are
/// none: a user of one namespace must not use up what Weir can read.
pub fn all(objects: &Objects, settings: &Settings) -> (BTreeSet<Key>, BTreeSet<Key>) {
    let cluster = Cluster::new(objects, settings);
    (secrets(&cluster), config_maps(&cluster))
}

fn secrets(cluster: &Cluster<'_>) -> BTreeSet<Key> {
    let of_gateways = own_gateways(cluster).flat_map(|gateway| {
        let home = &gateway.metadata.namespace;
        let tls = gateway.spec.tls.as_ref().and_then(|tls| tls.backend.as_ref());
        let own = tls.and_then(|tls| tls.client_certificate_ref.as_ref());
        let listeners = certificates(&gateway.spec.listeners);
        let all = own.into_iter().chain(listeners);
        all.map(move |one| key(cluster, "Gateway", home, "Secret", one))
    });
    let sets = cluster.objects.listener_sets.values().filter(|set| is_own_set(cluster, set));
    let of_sets = sets.flat_map(|set| {
        let home = &set.metadata.namespace;
        let all = certificates(&set.spec.listeners);
        all.map(move |one| key(cluster, "ListenerSet", home, "Secret", one))
    });
    let mut all: BTreeSet<Key> = of_gateways.chain(of_sets).flatten().collect();
    let classes = Classes::new(cluster.objects, cluster.settings);
    let ingresses = cluster.objects.ingresses.values().filter(|one| classes.of(one).is_some());
    all.extend(ingresses.flat_map(|one| ingress::references::secrets(one)));
    all.extend(of_route_policies(cluster).filter_map(|(reference, home)| match reference {
        Reference::UsersSecret(name) => Some(Key::new(Arc::clone(home), name)),
        Reference::KeysConfigMap(_) | Reference::SystemAuthorities => None,
    }));
    all
}

fn config_maps(cluster: &Cluster<'_>) -> BTreeSet<Key> {
    let of_gateways = own_gateways(cluster).flat_map(|gateway| {
        let home = &gateway.metadata.namespace;
        let all = client_authorities(gateway);
        all.map(move |one| key(cluster, "Gateway", home, "ConfigMap", one))
    });
    let of_policies = cluster.objects.policies.values().flat_map(|policy| {
        let home = &policy.metadata.namespace;
        let references = policy.spec.validation.ca_certificate_refs.iter();
        // References of a policy are local.
        let maps = references.filter(|one| one.is("", "ConfigMap", "ConfigMap"));
        maps.map(|one| Some(Key::new(Arc::clone(home), Arc::clone(&one.name))))
    });
    let of_routes = of_route_policies(cluster).filter_map(|(reference, home)| match reference {
        Reference::KeysConfigMap(name) => Some(Key::new(Arc::clone(home), name)),
        Reference::UsersSecret(_) | Reference::SystemAuthorities => None,
    });
    of_gateways.chain(of_policies).flatten().chain(of_routes).collect()
}

/// Returns what the RoutePolicies that Weir uses refer to, with their namespaces. Without a Gateway that takes its routes, a
/// user must not use up what Weir can read.
fn of_route_policies<'a>(
    cluster: &Cluster<'a>,
) -> impl Iterator<Item = (Reference<'a>, &'a Arc<str>)> {
    let policies = cluster.objects.route_policies.values();
    let referring = policies.filter_map(|policy| {
        let references = RouteTerms::references(&policy.spec.terms);
        let is_referring = !references.is_empty() && is_used(cluster, policy);
        is_referring.then_some((references, &policy.metadata.namespace))
    });
    referring.flat_map(|(all, home)| all.into_iter().map(move |one| (one, home)))
}

/// Returns whether a change of a route, or its deletion, can change what is referred to: a RoutePolicy that refers to
/// something has the route as a target.
pub fn depend_on(objects: &Objects, route: &RouteId) -> bool {
    let (kind, Key { namespace, name }) = route;
    if !route_targets::KINDS.contains(kind) {
        return false;
    }
    // Policies are in the namespace of their targets.
    let of_namespace = Key::new(Arc::clone(namespace), "")..;
    let policies = objects.route_policies.range(of_namespace);
    let mut policies = policies.take_while(|(key, _)| key.namespace == *namespace);
    policies.any(|(_, policy)| {
        let mut targets = policy.spec.target_refs.iter();
        targets.any(|target| target.name == *name && target.is(GATEWAY_GROUP, kind.name(), ""))
            && !RouteTerms::references(&policy.spec.terms).is_empty()
    })
}

fn own_gateways<'a>(cluster: &Cluster<'a>) -> impl Iterator<Item = &'a Arc<Gateway>> {
    let gateways = cluster.objects.gateways.values();
    gateways.filter(|gateway| own_class(cluster, gateway).is_some())
}

fn certificates(listeners: &[Listener]) -> impl Iterator<Item = &ObjectRef> {
    let tls = listeners.iter().filter_map(|listener| listener.tls.as_ref());
    tls.flat_map(|tls| &tls.certificate_refs)
}

fn client_authorities(gateway: &Gateway) -> impl Iterator<Item = &ObjectRef> {
    let frontend = gateway.spec.tls.iter().filter_map(|tls| tls.frontend.as_ref());
    let all = frontend.flat_map(|one| {
        let ports = one.per_port.iter().map(|port| &port.tls);
        std::iter::once(&one.default).chain(ports)
    });
    let validations = all.filter_map(|one: &ClientTls| one.validation.as_ref());
    validations.flat_map(|one| &one.ca_certificate_refs)
}

/// Returns the target of a reference from an object of the kind `from` in the namespace `home`, if it is permitted.
fn key(
    cluster: &Cluster<'_>,
    from: &str,
    home: &Arc<str>,
    kind: &str,
    reference: &ObjectRef,
) -> Option<Key> {
    let target = reference.is("", kind, kind).then(|| reference.key(home))?;
    let from = GroupKind { group: GATEWAY_GROUP, kind: from };
    cluster.allows(from, home, kind, &target).then_some(target)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ir::RouteKind;
    use crate::objects::route::GrpcRoute;
    use crate::resolve::cluster::Checks;

    fn read<T: serde::de::DeserializeOwned>(object: Value) -> Arc<T> {
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn shown(keys: BTreeSet<Key>) -> String {
        keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
    }

    /// A Gateway with all kinds of references.
    fn one_gateway() -> Objects {
        let mut objects = Objects::default();
        for (name, controller) in [("ours", "a/b"), ("theirs", "c/d")] {
            let class = read(json!({
                "metadata": {"name": name}, "spec": {"controllerName": controller}
            }));
            objects.classes.insert(Key::new("", name), class);
        }
        let gateway = read(json!({
            "metadata": {"namespace": "n", "name": "g"},
            "spec": {
                "gatewayClassName": "ours",
                "allowedListeners": {"namespaces": {"from": "All"}},
                "listeners": [
                    {"name": "a", "tls": {"certificateRefs": [
                        {"name": "one"}, {"name": "two", "namespace": "m", "kind": "Secret", "group": ""},
                        {"name": "three", "group": "example.com", "kind": "Secret"}
                    ]}},
                    {"name": "b"}
                ],
                "tls": {
                    "backend": {"clientCertificateRef": {"name": "own"}},
                    "frontend": {
                        "default": {"validation": {"caCertificateRefs": [{"name": "ca", "kind": "ConfigMap"}]}},
                        "perPort": [{"port": 1, "tls": {"validation": {"caCertificateRefs": [
                            {"name": "ca2", "kind": "ConfigMap", "namespace": "m"},
                            {"name": "ca3", "kind": "Secret"}
                        ]}}}]
                    }
                }
            }
        }));
        objects.gateways.insert(Key::new("n", "g"), gateway);
        objects
    }

    /// Adds a policy for each kind of reference, one that is damaged, and those of routes that no Gateway of Weir takes.
    fn add_route_policies(objects: &mut Objects) {
        let gateway = read(json!({
            "metadata": {"namespace": "n", "name": "open"},
            "spec": {"gatewayClassName": "ours", "listeners": [
                {"name": "a", "allowedRoutes": {"namespaces": {"from": "All"}}}
            ]}
        }));
        objects.gateways.insert(Key::new("n", "open"), gateway);
        // `g` takes no routes of other namespaces.
        for (name, parent) in [("open", "open"), ("closed", "g"), ("foreign", "foreign")] {
            let route: Arc<GrpcRoute> = read(json!({
                "metadata": {"namespace": "q", "name": name},
                "spec": {"parentRefs": [{"namespace": "n", "name": parent}]}
            }));
            objects.grpc_routes.insert(Key::new("q", name), route);
        }
        for (name, route, authentication) in [
            ("users", "open", json!({"basic": {"usersSecret": "users"}})),
            ("keys", "open", json!({"jwt": {"keysConfigMap": "keys"}})),
            ("damaged", "open", json!({"basic": {"usersSecret": 1}})),
            ("closed", "closed", json!({"basic": {"usersSecret": "of-closed"}})),
            ("foreign", "foreign", json!({"jwt": {"keysConfigMap": "of-foreign"}})),
            ("absent", "absent", json!({"basic": {"usersSecret": "of-absent"}})),
        ] {
            let policy = read(json!({
                "metadata": {"namespace": "q", "name": name},
                "spec": {
                    "targetRefs": [{"group": GATEWAY_GROUP, "kind": "GRPCRoute", "name": route}],
                    "authentication": authentication
                }
            }));
            objects.route_policies.insert(Key::new("q", name), policy);
        }
        let depend = |route| depend_on(objects, &(RouteKind::Grpc, Key::new("q", route)));
        assert!(depend("open") && depend("absent") && !depend("other"));
    }

    #[test]
    fn references_to_secrets_and_config_maps_are_found() {
        let mut objects = one_gateway();
        for (name, class) in [("foreign", "theirs"), ("without", "missing"), ("closed", "ours")] {
            let gateway = read(json!({
                "metadata": {"namespace": "n", "name": name},
                "spec": {"gatewayClassName": class, "listeners": [
                    {"name": "a", "tls": {"certificateRefs": [{"name": format!("of-{name}")}]}}
                ]}
            }));
            objects.gateways.insert(Key::new("n", name), gateway);
        }
        for (name, gateway) in [("four", "g"), ("five", "closed"), ("six", "foreign")] {
            let set = read(json!({
                "metadata": {"namespace": "s", "name": name},
                "spec": {
                    "parentRef": {"namespace": "n", "name": gateway},
                    "listeners": [{"name": "a", "tls": {"certificateRefs": [{"name": name}]}}]
                }
            }));
            objects.listener_sets.insert(Key::new("s", name), set);
        }
        let policy = read(json!({
            "metadata": {"namespace": "p", "name": "policy"},
            "spec": {"validation": {"caCertificateRefs": [
                {"name": "ca", "kind": "ConfigMap", "namespace": "ignored"}, {"name": "ca4", "kind": "Secret"}
            ]}}
        }));
        objects.policies.insert(Key::new("p", "policy"), policy);
        add_route_policies(&mut objects);
        for (name, controller) in [("in", "a/i"), ("out", "c/d")] {
            let class =
                read(json!({"metadata": {"name": name}, "spec": {"controller": controller}}));
            objects.ingress_classes.insert(Key::new("", name), class);
            let ingress = read(json!({
                "metadata": {"namespace": "i", "name": name},
                "spec": {"ingressClassName": name, "tls": [{"secretName": format!("of-{name}")}]}
            }));
            objects.ingresses.insert(Key::new("i", name), ingress);
        }
        let settings = Settings {
            controller_name: "a/b".into(),
            ingress_controller_name: "a/i".into(),
            allow_external_names: false,
            checks: Checks::none(),
        };
        let found = |objects: &Objects| {
            let (secrets, maps) = all(objects, &settings);
            (shown(secrets), shown(maps))
        };
        let expected = |secrets: &str, maps: &str| (secrets.to_owned(), maps.to_owned());
        assert_eq!(
            found(&objects),
            expected("i/of-in n/of-closed n/one n/own q/users s/four", "n/ca p/ca q/keys")
        );
        // References to other namespaces need a grant.
        let grant = read(json!({
            "metadata": {"namespace": "m", "name": "g"},
            "spec": {
                "from": [{"group": GATEWAY_GROUP, "kind": "Gateway", "namespace": "n"}],
                "to": [{"group": "", "kind": "Secret"}, {"group": "", "kind": "ConfigMap"}]
            }
        }));
        objects.grants.insert(Key::new("m", "g"), grant);
        let secrets = "i/of-in m/two n/of-closed n/one n/own q/users s/four";
        assert_eq!(found(&objects), expected(secrets, "m/ca2 n/ca p/ca q/keys"));
    }
}
