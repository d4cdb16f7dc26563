//! Ports of Gateways that clients cannot reach → the conditions that say so. Pure.
//!
//! `gateway` resolves objects as if everything could be served. Whether it is, depends on the ports and addresses that
//! Weir has, and on the sockets that the balancer could open.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway::ir;
use gateway::ir::ingress::is_implied;
use gateway::objects::Key;
use gateway::objects::ingress::IngressClass;
use gateway::resolve::status::{Condition, ListenerStatus, Notice, Problem, Statuses};

const PROGRAMMED: &str = "Programmed";
/// The reason of a Gateway without an address.
const NO_ADDRESS: &str = "AddressNotAssigned";

/// Ports of Gateways that clients cannot reach.
pub(crate) type Unserved = BTreeMap<(Key, u16), Why>;

/// Why clients cannot reach a port of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The Service of the Gateway does not have the port yet.
    Awaited,
    /// No port of Weir's Pods is left.
    NoPort,
    /// The Gateway has more ports than Weir serves.
    TooMany,
    /// No address is left for the Gateway.
    NoAddress,
    /// The balancer does not listen, with the reason.
    NotBound(Arc<str>),
}

impl Why {
    /// Returns what the status says.
    fn message(&self, port: u16) -> String {
        match self {
            Why::Awaited => {
                format!("Weir's Service for this Gateway does not have port {port} yet.")
            }
            Why::NoPort | Why::TooMany | Why::NoAddress => {
                format!("Port {port} is not served: {}.", self.advice().unwrap_or_default())
            }
            Why::NotBound(why) => format!("Weir does not listen for port {port}: {why}."),
        }
    }

    /// Returns why the Gateway is not exposed and what to do, if waiting does not help.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Why::Awaited | Why::NotBound(_) => None,
            Why::NoPort => Some("no port of Weir's Pods is left for it. Extend the range of ports"),
            Why::TooMany => Some("it has more ports than Weir serves for a Gateway, which are 64"),
            Why::NoAddress => Some(
                "none of Weir's addresses is left for it, or it requests one that Weir does not have. \
                 Add addresses",
            ),
        }
    }

    /// Returns the reason of the Gateway's condition, of those that the API defines.
    fn gateway_reason(&self) -> &'static str {
        match self {
            Why::Awaited | Why::NotBound(_) => "Pending",
            Why::NoPort | Why::TooMany => "NoResources",
            Why::NoAddress => NO_ADDRESS,
        }
    }
}

/// Returns notices about IngressClasses with such ports, as far as waiting does not help: they have no conditions.
pub(crate) fn notices<'a>(
    unserved: &'a Unserved,
    classes: &'a BTreeMap<Key, Arc<IngressClass>>,
) -> impl Iterator<Item = Notice> + 'a {
    unserved.iter().filter_map(|((gateway, port), why)| {
        why.advice()?;
        let class = classes.get(gateway)?;
        let problem = Problem::new("NotServed", why.message(*port));
        Some(Notice::new("IngressClass", &class.metadata, problem))
    })
}

/// Returns the statuses with `Programmed` as it is. `gateways` are those that the statuses are about. Those of Ingresses have
/// no such condition: the ports are left out.
pub(crate) fn mark(
    statuses: &Arc<Statuses>,
    gateways: &BTreeMap<Key, Arc<ir::Gateway>>,
    unserved: &Unserved,
) -> Arc<Statuses> {
    let mut marked = Arc::clone(statuses);
    for (key, gateway) in gateways {
        let why = |port: &u16| unserved.get(&(key.clone(), *port));
        let found: Vec<(u16, &Why)> =
            gateway.ports.keys().filter_map(|port| Some((*port, why(port)?))).collect();
        if !found.is_empty() {
            mark_gateway(Arc::make_mut(&mut marked), gateway, &found);
        }
    }
    marked
}

fn mark_gateway(statuses: &mut Statuses, gateway: &ir::Gateway, unserved: &[(u16, &Why)]) {
    if is_implied(&gateway.key) {
        let ingresses = statuses.ingresses.values_mut().filter(|one| one.gateway == gateway.key);
        for ingress in ingresses {
            ingress.ports.retain(|port| unserved.iter().all(|(other, _)| other != port));
        }
        return;
    }
    for (port, why) in unserved {
        let problem = Problem::new("Pending", why.message(*port));
        for listener in gateway.ports.get(port).into_iter().flatten() {
            let listeners = match &listener.id.set {
                None => statuses.gateways.get_mut(&gateway.key).map(|one| &mut one.listeners),
                Some(set) => statuses.listener_sets.get_mut(set).map(|one| &mut one.listeners),
            };
            let mut listeners = listeners.into_iter().flatten();
            if let Some(status) = listeners.find(|one| one.name == listener.id.name) {
                set(&mut status.conditions, Condition::no(PROGRAMMED, &problem));
            }
        }
    }
    let sets = gateway.ports.values().flatten().filter_map(|listener| listener.id.set.as_ref());
    for key in sets {
        let Some(status) = statuses.listener_sets.get_mut(key) else { continue };
        if !status.listeners.iter().any(is_programmed) {
            let message = "No listener is served, see the conditions of the listeners.";
            let problem = Problem::new("Pending", message);
            set(&mut status.conditions, Condition::no(PROGRAMMED, &problem));
        }
    }
    if let Some(status) = statuses.gateways.get_mut(&gateway.key) {
        set(&mut status.conditions, programmed(gateway, unserved));
    }
}

/// Returns the condition of a Gateway.
fn programmed(gateway: &ir::Gateway, unserved: &[(u16, &Why)]) -> Condition {
    // The worst comes first: what does not end by itself.
    let first = unserved.iter().max_by_key(|(port, why)| {
        (why.advice().is_some(), matches!(why, Why::NotBound(_)), std::cmp::Reverse(*port))
    });
    match first {
        Some((port, why)) if unserved.len() == gateway.ports.len() => {
            let message = format!("No port of this Gateway is served. {}", why.message(*port));
            Condition::no(PROGRAMMED, &Problem::new(why.gateway_reason(), message))
        }
        Some(_) | None => {
            let ports: Vec<String> = unserved.iter().map(|(port, _)| port.to_string()).collect();
            let message = format!(
                "Weir serves this Gateway without these ports: {}. See the conditions of the \
                 listeners.",
                ports.join(", ")
            );
            Condition::yes(PROGRAMMED, PROGRAMMED, message)
        }
    }
}

fn is_programmed(listener: &ListenerStatus) -> bool {
    listener.conditions.iter().any(|one| one.kind == PROGRAMMED && one.is_true)
}

/// Replaces a condition that is true. One that is false keeps its reason, except for an absent address, which can have a
/// more exact one.
fn set(conditions: &mut [Condition], condition: Condition) {
    let found = conditions.iter_mut().find(|one| one.kind == condition.kind);
    let Some(found) = found else { return };
    let is_exact = !condition.is_true && condition.reason != "Pending";
    if found.is_true || (found.reason == NO_ADDRESS && is_exact) {
        *found = condition;
    }
}

#[cfg(test)]
mod tests {
    use gateway::objects::gateway::Address;
    use gateway::resolve::{Surroundings, World, assemble, incremental};
    use serde_json::json;

    use super::*;
    use crate::item;
    use crate::kinds::Kind;
    use crate::store::Store;

    /// Resolves a Gateway with the ports 80 and 81 and a ListenerSet with port 82.
    fn resolved(address: Option<&str>) -> (Arc<Statuses>, BTreeMap<Key, Arc<ir::Gateway>>) {
        let listener =
            |port: u16| json!({"name": format!("p{port}"), "port": port, "protocol": "HTTP"});
        let mut store = Store::default();
        for (kind, object) in [
            (
                Kind::GatewayClass,
                json!({"metadata": {"name": "c"}, "spec": {"controllerName": "a/b"}}),
            ),
            (
                Kind::Gateway,
                json!({"metadata": {"namespace": "n", "name": "g"}, "spec": {
                    "gatewayClassName": "c", "listeners": [listener(80), listener(81)],
                    "allowedListeners": {"namespaces": {"from": "Same"}}
                }}),
            ),
            (
                Kind::ListenerSet,
                json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {
                    "parentRef": {"name": "g"}, "listeners": [listener(82)]
                }}),
            ),
        ] {
            store.apply(kind, item::read(kind, object).unwrap());
        }
        let settings = gateway::resolve::Settings {
            controller_name: "a/b".into(),
            ingress_controller_name: "a/c".into(),
            allow_external_names: false,
            checks: gateway::resolve::Checks::none(),
        };
        let address = address.map(|value| {
            let address = Address { value: Some(value.to_owned()), ..Address::default() };
            (Key::new("n", "g"), vec![address])
        });
        let addresses = address.into_iter().collect();
        let world = World::new(&store.objects, &settings);
        let routes = incremental::Routes::default();
        let surroundings = Surroundings { features: &[], addresses: &addresses };
        let outcome = assemble(&world, &routes, surroundings);
        (Arc::new(outcome.statuses), outcome.gateways)
    }

    /// Shows `Programmed` of the Gateway, its listeners, the ListenerSet and its listener.
    fn shown(statuses: &Statuses) -> String {
        let (gateway, set) =
            (&statuses.gateways[&Key::new("n", "g")], &statuses.listener_sets[&Key::new("n", "s")]);
        let programmed = |conditions: &[Condition]| {
            let found = conditions.iter().find(|one| one.kind == PROGRAMMED).unwrap();
            if found.is_true { "yes" } else { found.reason }
        };
        let own = gateway.listeners.iter().map(|one| programmed(&one.conditions));
        let added = set.listeners.iter().map(|one| programmed(&one.conditions));
        let all = [programmed(&gateway.conditions)].into_iter().chain(own);
        all.chain([programmed(&set.conditions)]).chain(added).collect::<Vec<_>>().join(" ")
    }

    fn unserved(ports: &[(u16, Why)]) -> Unserved {
        ports.iter().map(|(port, why)| ((Key::new("n", "g"), *port), why.clone())).collect()
    }

    #[test]
    fn statuses_say_what_is_not_served() {
        let busy = || Why::NotBound("address in use".into());
        let (statuses, gateways) = resolved(Some("192.0.2.1"));
        let cases: [(&[(u16, Why)], &str); 6] = [
            (&[], "yes yes yes yes yes"),
            (&[(80, busy())], "yes Pending yes yes yes"),
            (&[(82, busy())], "yes yes yes Pending Pending"),
            (
                &[(80, Why::Awaited), (81, busy()), (82, Why::Awaited)],
                "Pending Pending Pending Pending Pending",
            ),
            (
                &[(80, Why::Awaited), (81, Why::NoPort), (82, busy())],
                "NoResources Pending Pending Pending Pending",
            ),
            (&[(80, Why::TooMany), (9, busy())], "yes Pending yes yes yes"),
        ];
        for (ports, expected) in cases {
            let marked = mark(&statuses, &gateways, &unserved(ports));
            assert_eq!(shown(&marked), expected, "{ports:?}");
        }
        assert!(Arc::ptr_eq(&mark(&statuses, &gateways, &Unserved::new()), &statuses));
    }

    #[test]
    fn a_message_names_the_port_and_the_reason() {
        let (statuses, gateways) = resolved(Some("192.0.2.1"));
        let message = |ports: &[(u16, Why)]| {
            let marked = mark(&statuses, &gateways, &unserved(ports));
            let gateway = &marked.gateways[&Key::new("n", "g")];
            let of = |conditions: &[Condition]| {
                conditions.iter().find(|one| one.kind == PROGRAMMED).unwrap().message.clone()
            };
            (of(&gateway.conditions), of(&gateway.listeners[1].conditions))
        };
        let busy = || Why::NotBound("address in use".into());
        let (of_gateway, of_listener) = message(&[(81, busy())]);
        assert_eq!(of_listener, "Weir does not listen for port 81: address in use.");
        assert!(of_gateway.contains("without these ports: 81."), "{of_gateway}");
        let all = [(80, Why::Awaited), (81, busy()), (82, Why::Awaited)];
        let (of_gateway, _) = message(&all);
        assert_eq!(
            of_gateway,
            "No port of this Gateway is served. Weir does not listen for port 81: address in use."
        );
    }

    #[test]
    fn an_absent_address_has_the_most_exact_reason() {
        let (statuses, gateways) = resolved(None);
        for (why, expected) in [
            (Why::Awaited, "No address is known yet."),
            (Why::NoPort, "No port of this Gateway is served. Port 80 is not served: no port"),
            (Why::NoAddress, "No port of this Gateway is served. Port 80 is not served: none of"),
        ] {
            let ports = [80, 81, 82].map(|port| (port, why.clone()));
            let marked = mark(&statuses, &gateways, &unserved(&ports));
            let conditions = &marked.gateways[&Key::new("n", "g")].conditions;
            let found = conditions.iter().find(|one| one.kind == PROGRAMMED).unwrap();
            assert!(found.message.starts_with(expected), "{why:?}: {}", found.message);
        }
    }
}
