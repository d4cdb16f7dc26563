//! Listeners of one Gateway that are not distinct, and TLS listeners whose hosts overlap.
//!
//! Two listeners of a port are distinct if both are HTTP, or both are HTTPS or TLS, and their hosts differ. A TCP
//! listener shares its port with no other.

use std::collections::{HashMap, HashSet};

use model::HostPattern;

use super::Plan;
use crate::hosts;
use crate::ir::Protocol;
use crate::resolve::status::Problem;

/// What a port's first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Layer {
    Http,
    Tls,
    Tcp,
}

impl Layer {
    fn of(protocol: Protocol) -> Layer {
        match protocol {
            Protocol::Http => Layer::Http,
            Protocol::Https | Protocol::TlsTerminate | Protocol::TlsPassthrough => Layer::Tls,
            Protocol::Tcp => Layer::Tcp,
        }
    }
}

/// The listeners of a port: how many there are of each layer and host.
#[derive(Debug, Default)]
struct Port {
    layers: HashMap<Layer, usize>,
    hosts: HashMap<Option<HostPattern>, usize>,
}

impl Port {
    fn add(&mut self, layer: Layer, host: Option<&HostPattern>) {
        *self.layers.entry(layer).or_default() += 1;
        *self.hosts.entry(host.cloned()).or_default() += 1;
    }

    /// Returns the reason of a conflict with more than `own` listeners of the same layer and host.
    fn conflict(
        &self,
        layer: Layer,
        host: Option<&HostPattern>,
        own: usize,
    ) -> Option<&'static str> {
        let is_other_layer = self.layers.keys().any(|one| *one != layer);
        let is_shared_tcp =
            layer == Layer::Tcp && self.layers.get(&layer).is_some_and(|count| *count > own);
        if is_other_layer || is_shared_tcp {
            return Some("ProtocolConflict");
        }
        self.hosts
            .get(&host.cloned())
            .is_some_and(|count| *count > own)
            .then_some("HostnameConflict")
    }
}

/// Marks the listeners that are not distinct. `plans` has those of the Gateway first, then those of each ListenerSet
/// in order of precedence.
///
/// Between the Gateway and its ListenerSets, the earlier listener wins. Within one object, no listener of a conflict
/// wins (the API's rule).
pub fn mark(plans: &mut [Plan<'_>]) {
    let mut taken: HashMap<u16, Port> = HashMap::new();
    for group in plans.chunk_by_mut(|a, b| a.id.set == b.id.set) {
        mark_group(group, &taken, 0);
        let mut own: HashMap<u16, Port> = HashMap::new();
        add_all(&mut own, group);
        mark_group(group, &own, 1);
        add_all(&mut taken, group);
    }
    mark_overlaps(plans);
}

/// A listener that is rejected for another reason does not keep others from its port.
fn is_accepted(plan: &Plan<'_>) -> bool {
    plan.conflict.is_none() && plan.rejected.is_none()
}

/// Adds the listeners that are accepted so far.
fn add_all(ports: &mut HashMap<u16, Port>, group: &[Plan<'_>]) {
    for plan in group.iter().filter(|plan| is_accepted(plan)) {
        if let Some(protocol) = plan.protocol {
            ports.entry(plan.port()).or_default().add(Layer::of(protocol), plan.host.as_ref());
        }
    }
}

fn mark_group(group: &mut [Plan<'_>], ports: &HashMap<u16, Port>, own: usize) {
    for plan in group.iter_mut().filter(|plan| is_accepted(plan)) {
        let Some(protocol) = plan.protocol else { continue };
        let Some(port) = ports.get(&plan.port()) else { continue };
        let Some(reason) = port.conflict(Layer::of(protocol), plan.host.as_ref(), own) else {
            continue;
        };
        let number = plan.port();
        let message = match reason {
            "HostnameConflict" => {
                let host = plan.host.as_ref().map_or_else(
                    || "without a hostname".to_owned(),
                    |host| format!("with the hostname {host}"),
                );
                format!(
                    "Another listener {host} exists on port {number}. Change one of the hostnames."
                )
            }
            _ => format!(
                "Port {number} also has a listener that cannot share the port with the protocol \
                 {}. Use another port.",
                protocol.name()
            ),
        };
        plan.conflict = Some(Problem::new(reason, message));
    }
}

/// Marks the TLS listeners of a port of which one covers hosts of another.
fn mark_overlaps(plans: &mut [Plan<'_>]) {
    let is_tls = |plan: &Plan<'_>| {
        plan.is_valid() && plan.protocol.is_some_and(|protocol| Layer::of(protocol) == Layer::Tls)
    };
    let stated: HashSet<(u16, Option<HostPattern>)> = plans
        .iter()
        .filter(|plan| is_tls(plan))
        .map(|plan| (plan.port(), plan.host.clone()))
        .collect();
    let mut overlapping: HashSet<(u16, Option<HostPattern>)> = HashSet::new();
    for (port, host) in &stated {
        for wider in hosts::wider(host.as_ref()) {
            let wider = (*port, wider);
            if stated.contains(&wider) {
                overlapping.insert(wider);
                overlapping.insert((*port, host.clone()));
            }
        }
    }
    for plan in plans.iter_mut() {
        if is_tls(plan) {
            plan.is_overlapping = overlapping.contains(&(plan.port(), plan.host.clone()));
        }
    }
}
