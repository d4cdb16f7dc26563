//! Weir's types have the fields of the Gateway API's definitions, those left out below excepted: an object with every
//! field of the definition is read, and no field may be ignored unnoticed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;

use gateway::objects::gateway::{Gateway, GatewayClass, GatewayStatus, ListenerSet};
use gateway::objects::policy::{BackendTlsPolicy, ReferenceGrant};
use gateway::objects::route::{ConnectionRoute, GrpcRoute, HttpRoute};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What Weir does not read.
const IGNORED: &[&str] = &[
    // For people.
    "GatewayClass.spec.description",
    // Weir sets no status of these by reading them first.
    "BackendTLSPolicy.status",
    "GatewayClass.status",
    "Gateway.status",
    "ListenerSet.status",
    // Experimental: `authentication` of Weir's own policies does this.
    "HTTPRoute.spec.rules.?.filters.?.externalAuth",
    "HTTPRoute.spec.rules.?.backendRefs.?.filters.?.externalAuth",
    // Experimental: a Gateway by default. A route names its Gateways.
    "HTTPRoute.spec.useDefaultGateways",
    "GRPCRoute.spec.useDefaultGateways",
    "TLSRoute.spec.useDefaultGateways",
    "TCPRoute.spec.useDefaultGateways",
    "Gateway.spec.defaultScope",
];

fn definitions(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

/// Returns an object with every field of a definition.
fn full(definition: &Value) -> Value {
    match definition {
        Value::Object(fields) => {
            fields.iter().map(|(name, one)| (name.clone(), full(one))).collect()
        }
        Value::Array(items) => Value::Array(items.iter().map(full).collect()),
        Value::String(kind) => match kind.as_str() {
            "integer" | "int32" | "int64" => json!(1),
            "boolean" => json!(true),
            "map" => json!({ "a": "b" }),
            text => json!(text.split('|').next()),
        },
        other => panic!("{other} in a definition"),
    }
}

fn ignored<T: DeserializeOwned>(kind: &str, object: &Value) -> Vec<String> {
    let mut ignored = Vec::new();
    let read: Result<T, _> = serde_ignored::deserialize(object, |path| {
        // Indices and `Some` are `?`.
        let path: Vec<String> = path
            .to_string()
            .split('.')
            .map(
                |part| if part.parse::<usize>().is_ok() { "?".to_owned() } else { part.to_owned() },
            )
            .collect();
        ignored.push(format!("{kind}.{}", path.join(".").replace(".?.?", ".?")));
    });
    if let Err(error) = read {
        panic!("{kind}: {error}");
    }
    ignored
}

#[test]
fn all_fields_of_the_definitions_are_known() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for text in
        [include_str!("schema/standard-1.6.3.json"), include_str!("schema/experimental-1.6.3.json")]
    {
        for (kind, definition) in definitions(text) {
            let object = full(&definition);
            let found = match &*kind {
                "GatewayClass" => ignored::<GatewayClass>(&kind, &object),
                "Gateway" => ignored::<Gateway>(&kind, &object),
                "ListenerSet" => ignored::<ListenerSet>(&kind, &object),
                "HTTPRoute" => ignored::<HttpRoute>(&kind, &object),
                "GRPCRoute" => ignored::<GrpcRoute>(&kind, &object),
                "TLSRoute" | "TCPRoute" => ignored::<ConnectionRoute>(&kind, &object),
                "ReferenceGrant" => ignored::<ReferenceGrant>(&kind, &object),
                "BackendTLSPolicy" => ignored::<BackendTlsPolicy>(&kind, &object),
                // Weir forwards no UDP.
                "UDPRoute" => continue,
                other => panic!("{other} is a new kind"),
            };
            let unexpected: Vec<&String> =
                found.iter().filter(|path| !IGNORED.contains(&path.as_str())).collect();
            assert!(unexpected.is_empty(), "{kind}: {unexpected:#?}");
            seen.extend(found);
        }
    }
    let stale: Vec<_> = IGNORED.iter().filter(|path| !seen.contains(**path)).collect();
    assert!(stale.is_empty(), "not ignored any more: {stale:#?}");
}

#[test]
fn the_status_of_a_gateway_has_the_fields_of_the_definition() {
    let definitions = definitions(include_str!("schema/standard-1.6.3.json"));
    let status = full(&definitions["Gateway"]["status"]);
    let read: GatewayStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), status);
}
