//! The cases in `tests/cases`: objects as YAML, and what they and those of `base.yaml` resolve to as text.
//!
//! A comment `# address GATEWAY ADDRESS` in the YAML gives a Gateway an address; `/CLASS` is that of a class of
//! Ingresses. `UPDATE_EXPECT=1` rewrites the texts:
//! review the changes before committing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod render;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gateway::objects::Key;
use gateway::objects::gateway::Address;
use gateway::resolve::{Checks, Objects, Settings, Surroundings, resolve};
use model::Material;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn add<T: DeserializeOwned>(to: &mut BTreeMap<Key, Arc<T>>, object: Value) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let key = Key::new(text("namespace"), text("name"));
    let object = serde_json::from_value(object).unwrap_or_else(|error| panic!("{key}: {error}"));
    assert!(to.insert(key.clone(), Arc::new(object)).is_none(), "{key} exists twice");
}

fn objects(text: &str) -> Objects {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut objects = Objects::default();
    for document in documents {
        let kind = document["kind"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "GatewayClass" => add(&mut objects.classes, document),
            "Gateway" => add(&mut objects.gateways, document),
            "ListenerSet" => add(&mut objects.listener_sets, document),
            "HTTPRoute" => add(&mut objects.http_routes, document),
            "GRPCRoute" => add(&mut objects.grpc_routes, document),
            "TLSRoute" => add(&mut objects.tls_routes, document),
            "TCPRoute" => add(&mut objects.tcp_routes, document),
            "ReferenceGrant" => add(&mut objects.grants, document),
            "BackendTLSPolicy" => add(&mut objects.policies, document),
            "ServicePolicy" => add(&mut objects.service_policies, document),
            "RoutePolicy" => add(&mut objects.route_policies, document),
            "Service" => add(&mut objects.services, document),
            "Secret" => add(&mut objects.secrets, document),
            "ConfigMap" => add(&mut objects.config_maps, document),
            "Namespace" => add(&mut objects.namespaces, document),
            "Ingress" => add(&mut objects.ingresses, document),
            "IngressClass" => add(&mut objects.ingress_classes, document),
            other => panic!("{other} is no kind of object"),
        }
    }
    objects
}

fn addresses(text: &str) -> BTreeMap<Key, Vec<Address>> {
    let mut addresses: BTreeMap<Key, Vec<Address>> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# address ")) {
        let (gateway, value) = line.split_once(' ').unwrap();
        let (namespace, name) = gateway.split_once('/').unwrap();
        let address = Address { value: Some(value.to_owned()), ..Address::default() };
        addresses.entry(Key::new(namespace, name)).or_default().push(address);
    }
    addresses
}

fn resolved(text: &str) -> String {
    let objects = objects(text);
    let settings = Settings {
        controller_name: "weir.example/controller".into(),
        ingress_controller_name: "weir.example/ingress".into(),
        allow_external_names: text.contains("# allow external names"),
        checks: Checks {
            certificate: |one| match &*one.secret.name {
                "unusable" => Err("is invalid: tls.key belongs to another certificate".to_owned()),
                _ => Ok(()),
            },
            authorities: |_| Ok(()),
            system: || {
                let bytes = Arc::from(*include_bytes!("system.pem"));
                Some(Material { path: "system.pem".into(), bytes })
            },
        },
    };
    let addresses = addresses(text);
    let surroundings = Surroundings { features: &["HTTPRoute", "Gateway"], addresses: &addresses };
    render::outcome(&resolve(&objects, &settings, surroundings))
}

#[test]
fn objects_resolve_as_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let found = resolved(&format!("{}{text}", include_str!("base.yaml")));
        let expected_path = path.with_extension("expected.txt");
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found == expected {
            continue;
        }
        if update {
            std::fs::write(&expected_path, found).unwrap();
        } else {
            wrong.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(count >= 20, "only {count} cases");
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 rewrites):\n{}", wrong.join("\n"));
}
