//! Statuses as the API server stores them: merges the status that Weir wants into the present one.
//!
//! - A condition whose status does not change keeps its `lastTransitionTime`.
//! - Conditions of other types, and what other controllers wrote about their parents and ancestors, stay.
//! - Lists and messages stay within the limits of the API, otherwise the API server refuses the whole status.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::objects::gateway as object;
use crate::objects::reference::ParentRef;
use crate::objects::{self, GATEWAY_GROUP};
use crate::resolve::status::{
    ClassStatus, Condition, GatewayStatus, IngressStatus, ListenerSetStatus, ListenerStatus,
    PolicyStatus, RouteStatus,
};

/// At most this many parents in the status of a route.
const PARENTS_MAX: usize = 32;
/// At most this many ancestors in the status of a policy.
const ANCESTORS_MAX: usize = 16;
/// At most this many conditions in a list.
const CONDITIONS_MAX: usize = 8;
/// At most this many features of a GatewayClass.
const FEATURES_MAX: usize = 64;
/// At most this many addresses of a Gateway.
const ADDRESSES_MAX: usize = 16;
/// At most this many bytes of a message (the API counts characters).
const MESSAGE_BYTES_MAX: usize = 32_768;

/// The types of conditions that Weir writes for a whole object: they are replaced, others stay.
const OWN: [&str; 4] = ["Accepted", "Programmed", "ResolvedRefs", "InsecureFrontendValidationMode"];

/// The status that Weir wants for an object.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// Of a GatewayClass.
    Class(&'a ClassStatus),
    /// Of a Gateway.
    Gateway(&'a GatewayStatus),
    /// Of a ListenerSet.
    ListenerSet(&'a ListenerSetStatus),
    /// Of a route.
    Route(&'a RouteStatus),
    /// Of a policy.
    Policy(&'a PolicyStatus),
    /// Of an Ingress.
    Ingress(&'a IngressStatus),
}

impl Wanted<'_> {
    /// Returns the generation of the object that the status is about.
    pub fn generation(self) -> i64 {
        match self {
            Wanted::Class(status) => status.generation,
            Wanted::Gateway(status) => status.generation,
            Wanted::ListenerSet(status) => status.generation,
            Wanted::Route(status) => status.generation,
            Wanted::Policy(status) => status.generation,
            Wanted::Ingress(status) => status.generation,
        }
    }
}

/// A status to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The whole status.
    pub status: Value,
    /// How many of Weir's entries do not fit, because the API limits the list and others have entries in it.
    pub left_out: usize,
}

/// Merges a status into the present one (`null` if there is none). `None`: nothing is to be written. `now` is the time in
/// RFC 3339.
pub fn merge(
    present: &Value,
    wanted: Wanted<'_>,
    controller_name: &str,
    now: &str,
) -> Option<Merged> {
    let mut merge = Merge { present, changes: Map::new(), now, left_out: 0 };
    match wanted {
        Wanted::Class(status) => merge.class(status),
        Wanted::Gateway(status) => merge.gateway(status),
        Wanted::ListenerSet(status) => {
            merge.conditions(&status.conditions, status.generation);
            merge.listeners(&status.listeners, status.generation);
        }
        Wanted::Route(status) => {
            let parents = status.parents.iter().map(|one| (&one.parent_ref, &one.conditions[..]));
            let list = List { name: "parents", reference: "parentRef", max: PARENTS_MAX };
            merge.entries(list, controller_name, &parents.collect::<Vec<_>>(), status.generation);
        }
        Wanted::Policy(status) => {
            let ancestors = status.ancestors.iter().map(|one| (&one.ancestor, &one.conditions[..]));
            let list = List { name: "ancestors", reference: "ancestorRef", max: ANCESTORS_MAX };
            merge.entries(list, controller_name, &ancestors.collect::<Vec<_>>(), status.generation);
        }
        Wanted::Ingress(status) => merge.ingress(status),
    }
    if merge.changes.is_empty() {
        return None;
    }
    let mut status = present.as_object().cloned().unwrap_or_default();
    status.extend(merge.changes);
    Some(Merged { status: Value::Object(status), left_out: merge.left_out })
}

/// A list with one entry for each parent or ancestor.
#[derive(Clone, Copy)]
struct List {
    name: &'static str,
    /// The field of an entry that names the parent.
    reference: &'static str,
    max: usize,
}

struct Merge<'a> {
    present: &'a Value,
    changes: Map<String, Value>,
    now: &'a str,
    left_out: usize,
}

impl Merge<'_> {
    fn class(&mut self, status: &ClassStatus) {
        self.conditions(&status.conditions, status.generation);
        let features = status.supported_features.iter().take(FEATURES_MAX);
        let features: Vec<object::Feature> =
            features.map(|name| object::Feature { name: name.clone() }).collect();
        self.set("supportedFeatures", &features);
    }

    fn ingress(&mut self, status: &IngressStatus) {
        let ports = status.ports.iter().map(|port| json!({"port": port, "protocol": "TCP"}));
        let ports: Vec<Value> = ports.collect();
        let addresses = status.addresses.iter().take(ADDRESSES_MAX).filter_map(|address| {
            let name = if address.kind == "Hostname" { "hostname" } else { "ip" };
            Some(json!({name: address.value.as_deref()?, "ports": ports.clone()}))
        });
        let addresses: Vec<Value> = addresses.collect();
        // Absent and empty mean the same.
        let present = self.present["loadBalancer"]["ingress"].as_array();
        if present.map_or(&[][..], Vec::as_slice) != addresses {
            self.changes.insert("loadBalancer".to_owned(), json!({"ingress": addresses}));
        }
    }

    fn gateway(&mut self, status: &GatewayStatus) {
        self.conditions(&status.conditions, status.generation);
        self.listeners(&status.listeners, status.generation);
        let addresses = status.addresses.len().min(ADDRESSES_MAX);
        self.set("addresses", &status.addresses[..addresses]);
        let count = status.attached_listener_sets;
        if self.present["attachedListenerSets"].as_u64().unwrap_or(0) != u64::from(count) {
            self.changes.insert("attachedListenerSets".to_owned(), count.into());
        }
    }

    /// Sets a list, unless it is the present one. An absent list is an empty one.
    fn set<T: Serialize + DeserializeOwned + PartialEq>(&mut self, name: &str, wanted: &[T]) {
        if read::<Vec<T>>(&self.present[name]).unwrap_or_default() == wanted {
            return;
        }
        if let Ok(value) = serde_json::to_value(wanted) {
            self.changes.insert(name.to_owned(), value);
        }
    }

    /// Sets Weir's conditions. Those of others stay as they are, with fields that Weir does not know.
    fn conditions(&mut self, wanted: &[Condition], generation: i64) {
        let present = self.present["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let (own, others): (Vec<&Value>, Vec<&Value>) = present
            .iter()
            .partition(|one| one["type"].as_str().is_none_or(|kind| OWN.contains(&kind)));
        let own: Vec<(objects::Condition, &Value)> =
            own.into_iter().filter_map(|one| Some((read(one)?, one))).collect();
        let before: Vec<objects::Condition> = own.iter().map(|(one, _)| one.clone()).collect();
        let merged = conditions(&before, wanted, generation, self.now);
        let merged = merged.iter().map(|one| {
            let same = own.iter().find(|(before, _)| before == one);
            // It has no keys that are not text.
            same.map_or_else(
                || serde_json::to_value(one).unwrap_or_default(),
                |(_, value)| (*value).clone(),
            )
        });
        let merged: Vec<Value> =
            merged.chain(others.into_iter().cloned()).take(CONDITIONS_MAX).collect();
        if merged != present {
            self.changes.insert("conditions".to_owned(), Value::Array(merged));
        }
    }

    fn listeners(&mut self, wanted: &[ListenerStatus], generation: i64) {
        let present: Vec<object::ListenerStatus> =
            read(&self.present["listeners"]).unwrap_or_default();
        let merged = wanted.iter().map(|listener| {
            let before = present.iter().find(|one| one.name == listener.name);
            let before = before.map_or(&[][..], |one| &one.conditions);
            let kinds = listener.supported_kinds.iter().map(|kind| object::RouteGroupKind {
                group: Some(GATEWAY_GROUP.to_owned()),
                kind: kind.name().to_owned(),
            });
            object::ListenerStatus {
                name: listener.name.clone(),
                supported_kinds: kinds.collect(),
                attached_routes: listener.attached_routes,
                conditions: conditions(before, &listener.conditions, generation, self.now),
            }
        });
        let merged: Vec<object::ListenerStatus> = merged.collect();
        self.set("listeners", &merged);
    }

    /// Merges entries that belong to one controller each. Those of others stay as they are.
    fn entries(
        &mut self,
        list: List,
        controller_name: &str,
        wanted: &[(&ParentRef, &[Condition])],
        generation: i64,
    ) {
        let present = self.present[list.name].as_array().map_or(&[][..], Vec::as_slice);
        let is_own = |entry: &Value| entry["controllerName"].as_str() == Some(controller_name);
        let others = present.iter().filter(|entry| !is_own(entry)).count();
        let room = list.max.saturating_sub(others);
        self.left_out = wanted.len().saturating_sub(room);
        let wanted = &wanted[..wanted.len() - self.left_out];
        let mut is_placed = vec![false; wanted.len()];
        let mut merged: Vec<Value> = Vec::with_capacity(present.len() + wanted.len());
        for entry in present {
            if !is_own(entry) {
                merged.push(entry.clone());
                continue;
            }
            let reference: Option<ParentRef> = read(&entry[list.reference]);
            let Some(reference) = reference else { continue };
            let place = wanted
                .iter()
                .zip(&is_placed)
                .position(|((wanted, _), is_placed)| !is_placed && is_equal(wanted, &reference));
            if let Some(place) = place {
                is_placed[place] = true;
                merged.push(self.entry(list, controller_name, wanted[place], generation, entry));
            }
        }
        for (one, _) in wanted.iter().zip(&is_placed).filter(|(_, is_placed)| !**is_placed) {
            merged.push(self.entry(list, controller_name, *one, generation, &Value::Null));
        }
        if merged != present {
            self.changes.insert(list.name.to_owned(), Value::Array(merged));
        }
    }

    /// Returns an entry; the present one if it does not change.
    fn entry(
        &self,
        list: List,
        controller_name: &str,
        (reference, wanted): (&ParentRef, &[Condition]),
        generation: i64,
        present: &Value,
    ) -> Value {
        let before: Vec<objects::Condition> = read(&present["conditions"]).unwrap_or_default();
        let merged = conditions(&before, wanted, generation, self.now);
        if !present.is_null() && merged == before {
            return present.clone();
        }
        let mut entry = Map::new();
        // Neither has keys that are not text.
        entry
            .insert(list.reference.to_owned(), serde_json::to_value(reference).unwrap_or_default());
        entry.insert("controllerName".to_owned(), controller_name.into());
        entry.insert("conditions".to_owned(), serde_json::to_value(merged).unwrap_or_default());
        Value::Object(entry)
    }
}

/// Returns whether two references are equal once the API's defaults are set.
fn is_equal(a: &ParentRef, b: &ParentRef) -> bool {
    let group = |one: &ParentRef| one.group.clone().unwrap_or_else(|| GATEWAY_GROUP.into());
    let kind = |one: &ParentRef| one.kind.clone().unwrap_or_else(|| "Gateway".into());
    (group(a), kind(a)) == (group(b), kind(b))
        && (&a.namespace, &a.name) == (&b.namespace, &b.name)
        && (&a.section_name, a.port) == (&b.section_name, b.port)
}

/// Returns the wanted conditions. The time is that of the present one of the same type and status.
fn conditions(
    present: &[objects::Condition],
    wanted: &[Condition],
    generation: i64,
    now: &str,
) -> Vec<objects::Condition> {
    let merged = wanted.iter().take(CONDITIONS_MAX).map(|one| {
        let status = if one.is_true { "True" } else { "False" };
        let before = present.iter().find(|before| before.kind == one.kind);
        let since = before.filter(|before| before.status == status);
        objects::Condition {
            kind: one.kind.to_owned(),
            status: status.to_owned(),
            reason: one.reason.to_owned(),
            message: bounded(&one.message).to_owned(),
            observed_generation: generation,
            last_transition_time: since.map_or(now, |one| &one.last_transition_time).to_owned(),
        }
    });
    merged.collect()
}

fn bounded(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]
}

/// Reads a part of a status. What does not fit is as if it were absent: others may write statuses, too.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::ir::RouteKind;
    use crate::objects::gateway::Address;
    use crate::resolve::status::{AncestorStatus, ParentStatus, Problem};

    const NOW: &str = "2026-01-02T03:04:05Z";
    const OWN_NAME: &str = "weir.example/controller";

    fn accepted() -> Condition {
        Condition::yes("Accepted", "Accepted", "fine")
    }

    fn written(status: &str, time: &str) -> Value {
        json!({
            "type": "Accepted", "status": status, "reason": "Accepted", "message": "fine",
            "observedGeneration": 3, "lastTransitionTime": time
        })
    }

    fn merged(present: &Value, wanted: Wanted<'_>) -> Option<Merged> {
        let merged = merge(present, wanted, OWN_NAME, NOW)?;
        // Writing it again changes nothing.
        assert_eq!(merge(&merged.status, wanted, OWN_NAME, "2030-01-01T00:00:00Z"), None);
        Some(merged)
    }

    fn parent(name: &str) -> ParentRef {
        ParentRef { name: name.into(), ..ParentRef::default() }
    }

    fn route(parents: &[&str]) -> RouteStatus {
        let parents = parents.iter().map(|name| ParentStatus {
            parent_ref: parent(name),
            controller_name: OWN_NAME.into(),
            conditions: vec![accepted()],
        });
        RouteStatus { generation: 3, parents: parents.collect() }
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_only() {
        let status =
            ClassStatus { generation: 3, conditions: vec![accepted()], supported_features: vec![] };
        let wanted = Wanted::Class(&status);
        let earlier = "2020-01-01T00:00:00Z";
        for (present, expected) in [
            (json!(null), Some(NOW)),
            (json!({}), Some(NOW)),
            (json!({"conditions": "damaged"}), Some(NOW)),
            (json!({"conditions": [written("Unknown", earlier)]}), Some(NOW)),
            (json!({"conditions": [written("False", earlier)]}), Some(NOW)),
            (json!({"conditions": [written("True", earlier)]}), None),
        ] {
            let found = merged(&present, wanted).map(|one| one.status);
            let expected = expected.map(|time| json!({"conditions": [written("True", time)]}));
            assert_eq!(found, expected, "{present}");
        }
        let mut old = written("True", earlier);
        old["observedGeneration"] = 2.into();
        let found = merged(&json!({"conditions": [old]}), wanted).unwrap().status;
        assert_eq!(found, json!({"conditions": [written("True", earlier)]}));
    }

    #[test]
    fn conditions_of_others_stay_and_former_ones_of_weir_go() {
        let status = GatewayStatus {
            generation: 3,
            addresses: vec![],
            conditions: vec![accepted()],
            listeners: vec![],
            attached_listener_sets: 0,
        };
        // With a field that Weir does not know, and without others.
        let other = json!({"type": "example.com/Audited", "status": 1, "auditor": "x"});
        let mut former = written("True", NOW);
        former["type"] = "InsecureFrontendValidationMode".into();
        let present =
            json!({"conditions": [former, other.clone(), written("True", NOW)], "more": 1});
        let found = merged(&present, Wanted::Gateway(&status)).unwrap().status;
        assert_eq!(found, json!({"conditions": [written("True", NOW), other], "more": 1}));
    }

    #[test]
    fn a_gateway_has_addresses_and_listeners() {
        let mut status = GatewayStatus {
            generation: 3,
            addresses: vec![Address { value: Some("10.0.0.1".to_owned()), ..Address::default() }],
            conditions: vec![],
            listeners: vec![ListenerStatus {
                name: "http".into(),
                supported_kinds: vec![RouteKind::Http],
                attached_routes: 2,
                conditions: vec![accepted()],
            }],
            attached_listener_sets: 1,
        };
        let found = merged(&Value::Null, Wanted::Gateway(&status)).unwrap().status;
        let expected = json!({
            "listeners": [{
                "name": "http", "attachedRoutes": 2, "conditions": [written("True", NOW)],
                "supportedKinds": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]
            }],
            "addresses": [{"type": "IPAddress", "value": "10.0.0.1"}],
            "attachedListenerSets": 1
        });
        assert_eq!(found, expected);
        status.addresses.clear();
        status.attached_listener_sets = 0;
        let found = merged(&found, Wanted::Gateway(&status)).unwrap().status;
        assert_eq!(found["addresses"], json!([]));
        assert_eq!(found["attachedListenerSets"], 0);
    }

    #[test]
    fn an_ingress_has_addresses_and_ports() {
        let address = |kind: &str, value: &str| Address {
            kind: kind.to_owned(),
            value: Some(value.to_owned()),
        };
        let mut status = IngressStatus {
            gateway: crate::ir::ingress::implied_key("c"),
            generation: 1,
            addresses: vec![address("IPAddress", "192.0.2.1"), address("Hostname", "lb.example")],
            ports: vec![80, 443],
        };
        let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP"}]);
        let found = merged(&Value::Null, Wanted::Ingress(&status)).unwrap().status;
        let expected = json!({"loadBalancer": {"ingress": [
            {"ip": "192.0.2.1", "ports": ports.clone()}, {"hostname": "lb.example", "ports": ports}
        ]}});
        assert_eq!(found, expected);
        status.addresses.clear();
        let found = merged(&found, Wanted::Ingress(&status)).unwrap().status;
        assert_eq!(found, json!({"loadBalancer": {"ingress": []}}));
        assert_eq!(merged(&json!({"loadBalancer": {}}), Wanted::Ingress(&status)), None);
    }

    #[test]
    fn entries_of_other_controllers_stay_where_they_are() {
        let entry = |name: &str, controller: &str, time: &str| {
            json!({
                "parentRef": {"name": name, "group": GATEWAY_GROUP, "kind": "Gateway"},
                "controllerName": controller, "conditions": [written("True", time)]
            })
        };
        let other = || entry("a", "example.com/other", "2020-01-01T00:00:00Z");
        let present = json!({"parents": [
            entry("gone", OWN_NAME, NOW), other(), entry("b", OWN_NAME, NOW)
        ]});
        let found = merged(&present, Wanted::Route(&route(&["a", "b"]))).unwrap().status;
        let new = json!({
            "parentRef": {"name": "a"}, "controllerName": OWN_NAME,
            "conditions": [written("True", NOW)]
        });
        assert_eq!(found, json!({"parents": [other(), entry("b", OWN_NAME, NOW), new]}));
        let found = merged(&found, Wanted::Route(&route(&[]))).unwrap().status;
        assert_eq!(found, json!({"parents": [other()]}));
        assert_eq!(merged(&found, Wanted::Route(&route(&[]))), None);
        assert_eq!(merged(&Value::Null, Wanted::Route(&route(&[]))), None);
    }

    #[test]
    fn lists_and_messages_stay_within_the_limits() {
        let others: Vec<Value> = (0..14)
            .map(|number| json!({"controllerName": "example.com/other", "ancestorRef": {"name": number}}))
            .collect();
        let ancestors = (0..4).map(|number| AncestorStatus {
            ancestor: parent(&format!("g{number}")),
            controller_name: OWN_NAME.into(),
            conditions: vec![Condition::no("Accepted", &Problem::new("R", "é".repeat(20_000)))],
        });
        let status = PolicyStatus { generation: 1, ancestors: ancestors.collect() };
        let found = merged(&json!({"ancestors": others}), Wanted::Policy(&status)).unwrap();
        assert_eq!(found.left_out, 2);
        let list = found.status["ancestors"].as_array().unwrap();
        assert_eq!(list.len(), 16);
        assert_eq!(list[14]["ancestorRef"]["name"], "g0");
        let message = list[15]["conditions"][0]["message"].as_str().unwrap();
        assert_eq!(message.len(), MESSAGE_BYTES_MAX);

        let names: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = merged(&Value::Null, Wanted::Route(&route(&names))).unwrap();
        assert_eq!((found.left_out, found.status["parents"].as_array().unwrap().len()), (8, 32));

        let features: Vec<String> = (0..70).map(|number| format!("f{number}")).collect();
        let status =
            ClassStatus { generation: 1, conditions: vec![], supported_features: features };
        let found = merged(&Value::Null, Wanted::Class(&status)).unwrap();
        assert_eq!(found.status["supportedFeatures"].as_array().unwrap().len(), 64);
    }

    #[test]
    fn any_present_status_is_survived() {
        let list: Arc<[Value]> = [
            json!(1), json!("x"), json!([]), json!([[]]), json!({"parents": {}}),
            json!({"parents": [1, null, {"controllerName": OWN_NAME}, {"controllerName": OWN_NAME, "parentRef": 1}]}),
        ]
        .into();
        for present in list.iter() {
            let found = merged(present, Wanted::Route(&route(&["a"]))).unwrap().status;
            let parents = found["parents"].as_array().unwrap();
            assert_eq!(parents.last().unwrap()["parentRef"]["name"], "a", "{present}");
        }
    }
}
