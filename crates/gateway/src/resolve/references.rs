//! The Secrets and ConfigMaps that Gateways, ListenerSets and policies refer to. The others need not be read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster::Objects;
use super::ingress;
use crate::objects::Key;
use crate::objects::gateway::{ClientTls, Gateway, Listener};
use crate::objects::reference::ObjectRef;

/// Returns the Secrets that Gateways, ListenerSets and Ingresses refer to, of other controllers, too.
pub fn secrets(objects: &Objects) -> BTreeSet<Key> {
    let of_gateways = objects.gateways.values().flat_map(|gateway| {
        let home = &gateway.metadata.namespace;
        let tls = gateway.spec.tls.as_ref().and_then(|tls| tls.backend.as_ref());
        let own = tls.and_then(|tls| tls.client_certificate_ref.as_ref());
        let listeners = certificates(&gateway.spec.listeners);
        own.into_iter().chain(listeners).map(move |one| key(one, "Secret", home))
    });
    let of_sets = objects.listener_sets.values().flat_map(|set| {
        let home = &set.metadata.namespace;
        certificates(&set.spec.listeners).map(move |one| key(one, "Secret", home))
    });
    let mut all: BTreeSet<Key> = of_gateways.chain(of_sets).flatten().collect();
    all.extend(objects.ingresses.values().flat_map(|one| ingress::references::secrets(one)));
    all
}

/// Returns the ConfigMaps that Gateways and BackendTLSPolicies refer to.
pub fn config_maps(objects: &Objects) -> BTreeSet<Key> {
    let of_gateways = objects.gateways.values().flat_map(|gateway| {
        let home = &gateway.metadata.namespace;
        client_authorities(gateway).map(move |one| key(one, "ConfigMap", home))
    });
    let of_policies = objects.policies.values().flat_map(|policy| {
        let home = &policy.metadata.namespace;
        let references = policy.spec.validation.ca_certificate_refs.iter();
        // References of a policy are local.
        let maps = references.filter(|one| one.is("", "ConfigMap", "ConfigMap"));
        maps.map(|one| Some(Key::new(Arc::clone(home), Arc::clone(&one.name))))
    });
    of_gateways.chain(of_policies).flatten().collect()
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

fn key(reference: &ObjectRef, kind: &str, home: &Arc<str>) -> Option<Key> {
    reference.is("", kind, kind).then(|| reference.key(home))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(object: Value) -> Arc<T> {
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn shown(keys: BTreeSet<Key>) -> String {
        keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn references_to_secrets_and_config_maps_are_found() {
        let mut objects = Objects::default();
        let gateway = read(json!({
            "metadata": {"namespace": "n", "name": "g"},
            "spec": {
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
        let set = read(json!({
            "metadata": {"namespace": "s", "name": "set"},
            "spec": {"listeners": [{"name": "a", "tls": {"certificateRefs": [{"name": "four"}]}}]}
        }));
        objects.listener_sets.insert(Key::new("s", "set"), set);
        let policy = read(json!({
            "metadata": {"namespace": "p", "name": "policy"},
            "spec": {"validation": {"caCertificateRefs": [
                {"name": "ca", "kind": "ConfigMap", "namespace": "ignored"}, {"name": "ca4", "kind": "Secret"}
            ]}}
        }));
        objects.policies.insert(Key::new("p", "policy"), policy);
        assert_eq!(shown(secrets(&objects)), "m/two n/one n/own s/four");
        assert_eq!(shown(config_maps(&objects)), "m/ca2 n/ca p/ca");
    }
}
