//! The status of BackendTLSPolicies at the Gateways that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

use crate::ir::{ListenerId, Protocol, RouteKind};
use crate::objects::reference::ParentRef;
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::incremental::Routes;
use crate::resolve::status::{AncestorStatus, PolicyStatus};
use crate::resolve::world::World;

/// At most this many Gateways are listed in the status of a policy (the API's limit).
const ANCESTORS_MAX: usize = 16;

/// Returns the status of the policies at the Gateways whose routes forward to their Services.
pub(super) fn statuses(world: &World<'_>, routes: &Routes) -> BTreeMap<Key, PolicyStatus> {
    let listeners = world.plans.gateways.values().flat_map(|plan| &plan.listeners);
    let protocols = listeners.filter_map(|plan| Some((&plan.id, plan.protocol?)));
    let protocols: HashMap<&ListenerId, Protocol> = protocols.collect();
    let mut services: BTreeMap<&Key, BTreeSet<&Key>> = BTreeMap::new();
    for service in world.policies.services() {
        for route in routes.users(service) {
            for (listener, _) in &route.attachments {
                let applies = match route.route.kind {
                    RouteKind::Http | RouteKind::Grpc => true,
                    RouteKind::Tls => {
                        protocols.get(listener).is_some_and(|protocol| protocol.terminates_tls())
                    }
                    RouteKind::Tcp | RouteKind::Ingress => false,
                };
                if applies {
                    services.entry(&listener.gateway).or_default().insert(service);
                }
            }
        }
    }
    let mut statuses: BTreeMap<Key, PolicyStatus> = BTreeMap::new();
    for (gateway, services) in services {
        let mut used = BTreeMap::new();
        used.extend(services.iter().flat_map(|service| world.policies.of_service(service)));
        for (key, plan) in used {
            let status = statuses.entry(key.clone()).or_insert_with(|| PolicyStatus {
                generation: plan.generation,
                ancestors: Vec::new(),
            });
            if status.ancestors.len() == ANCESTORS_MAX {
                continue;
            }
            status.ancestors.push(AncestorStatus {
                ancestor: ParentRef {
                    group: Some(GATEWAY_GROUP.into()),
                    kind: Some("Gateway".into()),
                    namespace: Some(Arc::clone(&gateway.namespace)),
                    name: Arc::clone(&gateway.name),
                    ..ParentRef::default()
                },
                controller_name: Arc::clone(&world.cluster.settings.controller_name),
                conditions: plan.conditions.clone(),
            });
        }
    }
    statuses
}
