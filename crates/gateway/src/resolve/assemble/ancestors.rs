//! The status of policies at the Gateways that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashMap;

use crate::ir::ingress::{implied_key, is_implied};
use crate::ir::{ListenerId, Protocol, RouteKind};
use crate::objects::ingress::NETWORKING_GROUP;
use crate::objects::reference::ParentRef;
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::incremental::Routes;
use crate::resolve::policy::{Policies, Report};
use crate::resolve::route::Resolved;
use crate::resolve::status::{AncestorStatus, PolicyStatus};
use crate::resolve::world::World;

/// At most this many Gateways are listed in the status of a policy (the API's limit).
const ANCESTORS_MAX: usize = 16;

/// The policies that each Gateway uses. What an IngressClass implies is among the Gateways.
type Used<'a> = BTreeMap<Key, BTreeMap<&'a Key, &'a Report>>;

/// Returns the status of the BackendTLSPolicies at the Gateways whose routes forward to their Services.
pub(super) fn of_tls(world: &World<'_>, routes: &Routes) -> BTreeMap<Key, PolicyStatus> {
    let listeners = world.plans.gateways.values().flat_map(|plan| &plan.listeners);
    let protocols = listeners.filter_map(|plan| Some((&plan.id, plan.protocol?)));
    let protocols: HashMap<&ListenerId, Protocol> = protocols.collect();
    let uses = |route: &Resolved, listener: &ListenerId| match route.route.kind {
        RouteKind::Http | RouteKind::Grpc => true,
        RouteKind::Tls => protocols.get(listener).is_some_and(|protocol| protocol.terminates_tls()),
        RouteKind::Tcp | RouteKind::Ingress => false,
    };
    let policies = &world.policies;
    statuses(world, used(policies, |service| routes.users(service), uses))
}

/// Returns the status of the ServicePolicies at the Gateways whose routes forward to their Services.
pub(super) fn of_services(world: &World<'_>, routes: &Routes) -> BTreeMap<Key, PolicyStatus> {
    let policies = &world.service_policies;
    statuses(world, used(policies, |service| routes.users(service), |_, _| true))
}

/// Returns the status of the RoutePolicies at the Gateways that their routes are attached to.
pub(super) fn of_routes(world: &World<'_>, routes: &Routes) -> BTreeMap<Key, PolicyStatus> {
    let policies = &world.route_policies;
    statuses(world, used(policies, |route| routes.get(route).into_iter(), |_, _| true))
}

/// Adds the IngressClasses whose Ingresses refer to Services of ServicePolicies.
pub fn add_classes<'a>(
    world: &World<'_>,
    ingresses: impl Iterator<Item = (&'a Arc<str>, &'a BTreeSet<Key>)>,
    to: &mut BTreeMap<Key, PolicyStatus>,
) {
    if world.service_policies.objects().next().is_none() {
        return;
    }
    let mut used = Used::new();
    for (class, services) in ingresses {
        let policies =
            services.iter().flat_map(|service| world.service_policies.of_object(service));
        let mut policies = policies.peekable();
        if policies.peek().is_some() {
            used.entry(implied_key(Arc::clone(class))).or_default().extend(policies);
        }
    }
    add(world, used, to);
}

/// Returns the policies that Gateways use: those for objects that routes have to do with, which are attached to listeners
/// where `uses` is true.
fn used<'a, 'r, T: Clone + Eq + Hash, P, I: Iterator<Item = &'r Resolved>>(
    policies: &'a Policies<T, P>,
    routes: impl Fn(&'a T) -> I,
    uses: impl Fn(&Resolved, &ListenerId) -> bool,
) -> Used<'a> {
    let mut gateways: BTreeMap<&Key, Vec<&'a T>> = BTreeMap::new();
    for object in policies.objects() {
        for route in routes(object) {
            for (listener, _) in &route.attachments {
                if uses(route, listener) {
                    let of_gateway = gateways.entry(&listener.gateway).or_default();
                    // A Service can have thousands of routes.
                    if of_gateway.last().is_none_or(|last| !std::ptr::eq(*last, object)) {
                        of_gateway.push(object);
                    }
                }
            }
        }
    }
    let used = gateways.into_iter().map(|(gateway, objects)| {
        let of_gateway = objects.into_iter().flat_map(|object| policies.of_object(object));
        (gateway.clone(), of_gateway.collect())
    });
    used.collect()
}

fn statuses(world: &World<'_>, used: Used<'_>) -> BTreeMap<Key, PolicyStatus> {
    let mut statuses = BTreeMap::new();
    add(world, used, &mut statuses);
    statuses
}

fn add(world: &World<'_>, used: Used<'_>, to: &mut BTreeMap<Key, PolicyStatus>) {
    for (gateway, policies) in used {
        for (key, report) in policies {
            let status = to.entry(key.clone()).or_insert_with(|| PolicyStatus {
                generation: report.generation,
                ancestors: Vec::new(),
            });
            if status.ancestors.len() == ANCESTORS_MAX {
                continue;
            }
            status.ancestors.push(AncestorStatus {
                ancestor: ancestor(&gateway),
                controller_name: Arc::clone(&world.cluster.settings.controller_name),
                conditions: report.conditions.clone(),
            });
        }
    }
}

fn ancestor(gateway: &Key) -> ParentRef {
    let name = Arc::clone(&gateway.name);
    if is_implied(gateway) {
        return ParentRef {
            group: Some(NETWORKING_GROUP.into()),
            kind: Some("IngressClass".into()),
            name,
            ..ParentRef::default()
        };
    }
    ParentRef {
        group: Some(GATEWAY_GROUP.into()),
        kind: Some("Gateway".into()),
        namespace: Some(Arc::clone(&gateway.namespace)),
        name,
        ..ParentRef::default()
    }
}
