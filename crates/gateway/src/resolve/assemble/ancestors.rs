//! The status of BackendTLSPolicies at the Gateways that use them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::ir::{ListenerId, Protocol, RouteKind};
use crate::objects::reference::ParentRef;
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::route::Resolved;
use crate::resolve::status::{AncestorStatus, PolicyStatus};
use crate::resolve::world::World;

/// At most this many Gateways are listed in the status of a policy (the API's limit).
const ANCESTORS_MAX: usize = 16;

/// The Services to which each Gateway applies policies.
#[derive(Debug)]
pub(super) struct Uses<'a> {
    protocols: HashMap<&'a ListenerId, Protocol>,
    services: BTreeMap<&'a Key, BTreeSet<&'a Key>>,
}

impl<'a> Uses<'a> {
    /// Begins without routes.
    pub(super) fn new(world: &'a World<'_>) -> Uses<'a> {
        let listeners = world.plans.gateways.values().flat_map(|plan| &plan.listeners);
        let protocols = listeners.filter_map(|plan| Some((&plan.id, plan.protocol?)));
        Uses { protocols: protocols.collect(), services: BTreeMap::new() }
    }

    /// Adds the Services of a route at the listeners that accept it.
    pub(super) fn add(&mut self, route: &'a Resolved) {
        for (listener, _) in &route.attachments {
            let applies = match route.route.kind {
                RouteKind::Http | RouteKind::Grpc => true,
                RouteKind::Tls => {
                    self.protocols.get(listener).is_some_and(|protocol| protocol.terminates_tls())
                }
                RouteKind::Tcp => false,
            };
            if applies {
                self.services.entry(&listener.gateway).or_default().extend(&route.services);
            }
        }
    }

    /// Returns the status of the policies for these Services.
    pub(super) fn statuses(&self, world: &World<'_>) -> BTreeMap<Key, PolicyStatus> {
        let mut statuses: BTreeMap<Key, PolicyStatus> = BTreeMap::new();
        for (gateway, services) in &self.services {
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
}
