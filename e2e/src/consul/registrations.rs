//! What an agent does with its own services, as far as Weir registers: `PUT` and `GET` below `/v1/agent/`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answer::{Health, Instance};
use crate::polling::Services;

/// Does what a `PUT` request asks. Returns status and text of the answer, which are Consul's.
pub(super) fn put(path: &str, body: &[u8], services: &mut Services<Instance>) -> (u16, String) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if path == "/v1/agent/service/register" {
        return match instance(&body) {
            Some((service, instance)) => {
                services.remove(|one| one.id == instance.id);
                services.add(&service, instance);
                (200, String::new())
            }
            None => (400, "Missing service name".to_owned()),
        };
    }
    if let Some(id) = path.strip_prefix("/v1/agent/check/update/service:") {
        return match health(&body["Status"]) {
            Some(health) if services.edit(|one| one.id == id, |one| one.health = health) => {
                (200, String::new())
            }
            Some(_) => (404, format!("Unknown check ID \"service:{id}\".")),
            None => (400, format!("Invalid check status: {}", body["Status"])),
        };
    }
    match path.strip_prefix("/v1/agent/service/deregister/") {
        Some(id) if services.remove(|one| one.id == id) => (200, String::new()),
        Some(id) => (404, format!("Unknown service ID \"{id}\".")),
        None => (404, "Invalid URL path: not a recognized HTTP API endpoint\n".to_owned()),
    }
}

/// Answers a `GET` about a service of the agent with status and text; `None`: another path.
pub(super) fn get(path: &str, services: &Services<Instance>) -> Option<(u16, String)> {
    let id = path.strip_prefix("/v1/agent/service/")?;
    let Some((service, one)) = services.find(|one| one.id == id) else {
        return Some((404, format!("unknown service ID: {id}")));
    };
    let Instance { tags, meta, port, address, weights, .. } = one;
    let said = json!({
        "ID": id, "Service": service, "Tags": tags, "Meta": meta, "Port": port, "Address": address,
        "Weights": { "Passing": weights.0, "Warning": weights.1 }, "EnableTagOverride": false,
        "ContentHash": "5ec4e70000000000", "Datacenter": "dc1",
    });
    Some((200, said.to_string()))
}

fn health(status: &Value) -> Option<Health> {
    match status.as_str()? {
        "passing" => Some(Health::Passing),
        "critical" => Some(Health::Critical),
        _ => None,
    }
}

/// The service and the instance that a registration describes.
fn instance(body: &Value) -> Option<(String, Instance)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let meta: BTreeMap<String, String> = serde_json::from_value(body["Meta"].clone()).ok()?;
    let instance = Instance {
        id: text(&body["ID"])?,
        node: "node1".to_owned(),
        node_address: "127.0.0.1".to_owned(),
        node_meta: BTreeMap::new(),
        address: text(&body["Address"]).unwrap_or_default(),
        port: body["Port"].as_u64()?.try_into().ok()?,
        tags: serde_json::from_value(body["Tags"].clone()).ok()?,
        meta,
        weights: (1, 1),
        health: health(&body["Check"]["Status"])?,
    };
    Some((text(&body["Name"])?, instance))
}
