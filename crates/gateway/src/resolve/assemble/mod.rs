//! Puts the resolved routes together with the Gateways: what is served, and the status of everything.

mod ancestors;
mod exclusive;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::gateway::GatewayPlan;
use super::route::Resolved;
use super::status::Statuses;
use super::world::World;
use crate::ir::backend::{ServicePort, Target};
use crate::ir::{AttachedRoute, Gateway, Listener, Route, Rules};
use crate::objects::Key;
use crate::objects::gateway::Address;
use ancestors::Uses;
use exclusive::Excluded;
use status::Attached;

/// What Weir serves, and the status of everything.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The accepted Gateways.
    pub gateways: BTreeMap<Key, Gateway>,
    /// The status of all objects.
    pub statuses: Statuses,
}

/// What depends on more than one object, from outside of the cluster's objects.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The features of the Gateway API that Weir supports.
    pub features: &'a [&'a str],
    /// The known addresses of each Gateway.
    pub addresses: &'a BTreeMap<Key, Vec<Address>>,
}

/// Puts the resolved routes together with the Gateways.
pub fn assemble<'r>(
    world: &'r World<'_>,
    routes: impl IntoIterator<Item = &'r Resolved> + Clone,
    surroundings: Surroundings<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut attached = Attached::new();
    let mut uses = Uses::new(world);
    for resolved in routes.clone() {
        let id = (resolved.route.kind, resolved.route.key.clone());
        outcome.statuses.routes.insert(id, resolved.status.clone());
        for (listener, hosts) in &resolved.attachments {
            let route = Arc::clone(&resolved.route);
            attached
                .entry(listener)
                .or_default()
                .push(AttachedRoute { route, hosts: hosts.clone() });
        }
        uses.add(resolved);
    }
    for routes in attached.values_mut() {
        routes.sort_by(|a, b| {
            a.route.age_order().cmp(&b.route.age_order()).then(a.route.kind.cmp(&b.route.kind))
        });
    }
    let excluded = Excluded::remove(&mut attached);
    for resolved in routes {
        if let Some(status) = excluded.status(resolved) {
            let id = (resolved.route.kind, resolved.route.key.clone());
            outcome.statuses.routes.insert(id, status);
        }
    }
    outcome.statuses.classes = status::classes(world, surroundings.features);
    for (key, plan) in &world.plans.gateways {
        let addresses = surroundings.addresses.get(key).map_or(&[][..], Vec::as_slice);
        let status = status::gateway_status(plan, addresses, &attached);
        outcome.statuses.gateways.insert(key.clone(), status);
        if plan.rejected.is_none() {
            outcome.gateways.insert(key.clone(), gateway(plan, &attached));
        }
    }
    for (key, set) in &world.plans.sets {
        let plan = world.plans.gateways.get(&set.gateway);
        let listeners = plan.map_or(&[][..], |plan| &plan.listeners[set.listeners.clone()]);
        outcome
            .statuses
            .listener_sets
            .insert(key.clone(), status::set_status(set, listeners, &attached));
    }
    outcome.statuses.policies = uses.statuses(world);
    outcome
}

fn gateway(plan: &GatewayPlan<'_>, attached: &Attached<'_>) -> Gateway {
    let mut ports: BTreeMap<u16, Vec<Listener>> = BTreeMap::new();
    let mut services = BTreeMap::new();
    for listener in plan.listeners.iter().filter(|plan| plan.is_valid()) {
        let Some(protocol) = listener.protocol else { continue };
        let routes = attached.get(&listener.id).cloned().unwrap_or_default();
        for port in routes.iter().flat_map(|attached| service_ports(&attached.route)) {
            services.entry((port.service.clone(), port.port)).or_insert_with(|| Arc::clone(port));
        }
        ports.entry(listener.port()).or_default().push(Listener {
            id: listener.id.clone(),
            protocol,
            host: listener.host.clone(),
            certificates: listener.certificates.clone(),
            client_validation: listener.client_validation.clone(),
            routes,
        });
    }
    Gateway {
        key: plan.gateway.metadata.key(),
        class: Arc::clone(&plan.gateway.spec.gateway_class_name),
        addresses: plan.gateway.spec.addresses.clone(),
        ports,
        client_certificate: plan.client_certificate.clone(),
        services,
    }
}

/// Returns the ports of Services that a route forwards to, mirrors included.
fn service_ports(route: &Route) -> Vec<&Arc<ServicePort>> {
    match &route.rules {
        Rules::Requests(rules) => {
            let backends = rules.iter().flat_map(|rule| &rule.backends);
            let mirrors = rules.iter().flat_map(|rule| &rule.filters.mirrors);
            let targets = backends.map(|one| &one.target).chain(mirrors.map(|one| &one.target));
            targets.filter_map(Target::service).collect()
        }
        Rules::Connections(rules) => {
            let backends = rules.iter().flat_map(|rule| &rule.backends);
            backends.filter_map(|one| one.target.service()).collect()
        }
    }
}
