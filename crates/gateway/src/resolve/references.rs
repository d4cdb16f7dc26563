//! The Secrets and ConfigMaps that Gateways of Weir, their ListenerSets, Ingresses of Weir, and policies refer to. The
//! others need not be read.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::policy::{Reference, RouteTerms};

use super::cluster::{Cluster, Objects, Settings};
use super::gateway::{allows, gateway_of, own_class};
use super::ingress;
use super::ingress_classes::Classes;
use crate::grants::GroupKind;
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
    let sets = cluster.objects.listener_sets.values().filter(|set| {
        let gateway = gateway_of(set).and_then(|key| cluster.objects.gateways.get(&key));
        gateway.is_some_and(|gateway| {
            own_class(cluster, gateway).is_some() && allows(cluster, gateway, set)
        })
    });
    let of_sets = sets.flat_map(|set| {
        let home = &set.metadata.namespace;
        let all = certificates(&set.spec.listeners);
        all.map(move |one| key(cluster, "ListenerSet", home, "Secret", one))
    });
    let mut all: BTreeSet<Key> = of_gateways.chain(of_sets).flatten().collect();
    let classes = Classes::new(cluster.objects, cluster.settings);
    let ingresses = cluster.objects.ingresses.values().filter(|one| classes.of(one).is_some());
    all.extend(ingresses.flat_map(|one| ingress::references::secrets(one)));
    all.extend(of_route_policies(cluster.objects).filter_map(
        |(reference, home)| match reference {
            Reference::UsersSecret(name) => Some(Key::new(Arc::clone(home), name)),
            Reference::KeysConfigMap(_) | Reference::SystemAuthorities => None,
        },
    ));
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
    let of_routes =
        of_route_policies(cluster.objects).filter_map(|(reference, home)| match reference {
            Reference::KeysConfigMap(name) => Some(Key::new(Arc::clone(home), name)),
            Reference::UsersSecret(_) | Reference::SystemAuthorities => None,
        });
    of_gateways.chain(of_policies).flatten().chain(of_routes).collect()
}

/// Returns what RoutePolicies refer to, with their namespaces.
fn of_route_policies(objects: &Objects) -> impl Iterator<Item = (Reference<'_>, &Arc<str>)> {
    objects.route_policies.values().flat_map(|policy| {
        let references = RouteTerms::references(&policy.spec.terms);
        references.into_iter().map(|one| (one, &policy.metadata.namespace))
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

    /// Adds a policy for each kind of reference, and one that is damaged.
    fn add_route_policies(objects: &mut Objects) {
        for (name, authentication) in [
            ("users", json!({"basic": {"usersSecret": "users"}})),
            ("keys", json!({"jwt": {"keysConfigMap": "keys"}})),
            ("damaged", json!({"basic": {"usersSecret": 1}})),
        ] {
            let policy = read(json!({
                "metadata": {"namespace": "q", "name": name},
                "spec": {"authentication": authentication}
            }));
            objects.route_policies.insert(Key::new("q", name), policy);
        }
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
