//! Puts the resolved routes together with the Gateways: what is served, and the status of everything.

pub mod ancestors;
mod exclusive;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::gateway::GatewayPlan;
use super::incremental::Routes;
use super::status::{Notice, Statuses};
use super::world::World;
use crate::ir::{Gateway, Listener, ServicePorts};
use crate::objects::Key;
use crate::objects::gateway::Address;
use exclusive::Accepted;

/// What Weir serves, and the status of everything.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The accepted Gateways.
    pub gateways: BTreeMap<Key, Arc<Gateway>>,
    /// The status of all objects.
    pub statuses: Statuses,
    /// What users should know about Ingresses and IngressClasses, in order of the objects.
    pub notices: Arc<[Notice]>,
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
pub fn assemble(world: &World<'_>, routes: &Routes, surroundings: Surroundings<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let accepted = Accepted::of(routes.attached());
    outcome.statuses.routes = routes.statuses().clone();
    outcome.statuses.routes.extend(accepted.changed_statuses(routes));
    outcome.statuses.classes = status::classes(world, surroundings.features);
    for (key, plan) in &world.plans.gateways {
        let addresses = surroundings.addresses.get(key).map_or(&[][..], Vec::as_slice);
        let status = status::gateway_status(plan, addresses, &accepted);
        outcome.statuses.gateways.insert(key.clone(), status);
        if plan.rejected.is_none() {
            outcome.gateways.insert(key.clone(), Arc::new(gateway(plan, &accepted)));
        }
    }
    for (key, set) in &world.plans.sets {
        let plan = world.plans.gateways.get(&set.gateway);
        let listeners = plan.map_or(&[][..], |plan| &plan.listeners[set.listeners.clone()]);
        outcome
            .statuses
            .listener_sets
            .insert(key.clone(), status::set_status(set, listeners, &accepted));
    }
    outcome.statuses.policies = ancestors::of_tls(world, routes);
    outcome.statuses.service_policies = ancestors::of_services(world, routes);
    outcome.statuses.route_policies = ancestors::of_routes(world, routes);
    outcome
}

/// Adds ports that are not there yet. A copy that stays as it was still shares everything.
fn add(services: &mut ServicePorts, more: &ServicePorts) {
    if services.is_empty() {
        services.clone_from(more);
        return;
    }
    for (key, port) in more {
        if !services.contains_key(key) {
            services.insert(key.clone(), Arc::clone(port));
        }
    }
}

fn gateway(plan: &GatewayPlan<'_>, accepted: &Accepted<'_>) -> Gateway {
    let mut ports: BTreeMap<u16, Vec<Listener>> = BTreeMap::new();
    let mut services = ServicePorts::new();
    for listener in plan.listeners.iter().filter(|plan| plan.is_valid()) {
        let Some(protocol) = listener.protocol else { continue };
        let routes = accepted.at(&listener.id);
        add(&mut services, &accepted.services(&listener.id));
        ports.entry(listener.port()).or_default().push(Listener {
            id: listener.id.clone(),
            protocol,
            host: listener.host.clone(),
            certificates: listener.certificates.clone(),
            client_validation: listener.client_validation.clone(),
            routes: routes.cloned().unwrap_or_default(),
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
