//! The routes that RoutePolicies are for.

use std::sync::Arc;

use super::cluster::Cluster;
use super::gateway::{allows, gateway_of, own_class};
use super::namespaces;
use super::policy::targets::{Target, section};
use crate::ir::{RouteId, RouteKind};
use crate::objects::gateway::ListenerSet;
use crate::objects::policy::RoutePolicy;
use crate::objects::reference::{ObjectRef, ParentRef};
use crate::objects::{GATEWAY_GROUP, Key};

/// The kinds of routes that policies may be for.
pub const KINDS: [RouteKind; 2] = [RouteKind::Http, RouteKind::Grpc];

/// Returns the routes, or rules of them by name, that a policy in the namespace `home` is for.
pub fn routes<'a>(
    references: &'a [ObjectRef],
    home: &'a Arc<str>,
) -> impl Iterator<Item = Target<RouteId>> + 'a {
    references.iter().filter_map(|target| {
        let is = |kind: RouteKind| target.is(GATEWAY_GROUP, kind.name(), "");
        let kind = KINDS.into_iter().find(|kind| is(*kind))?;
        let key = Key::new(Arc::clone(home), Arc::clone(&target.name));
        Some(((kind, key), section(target)))
    })
}

/// Returns whether one of a policy's targets is a route with a parent of Weir's that takes routes of its namespace. Other
/// policies change nothing, and need not be read.
pub fn is_used(cluster: &Cluster<'_>, policy: &RoutePolicy) -> bool {
    let home = &policy.metadata.namespace;
    let mut targets = routes(&policy.spec.target_refs, home);
    targets.any(|((kind, key), _)| {
        let parents = match kind {
            RouteKind::Http => {
                cluster.objects.http_routes.get(&key).map(|route| &route.spec.parent_refs)
            }
            RouteKind::Grpc => {
                cluster.objects.grpc_routes.get(&key).map(|route| &route.spec.parent_refs)
            }
            RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress => None,
        };
        parents.into_iter().flatten().any(|parent| takes_routes(cluster, parent, home))
    })
}

/// Returns whether a parent belongs to Weir, and has a listener that takes routes of the namespace `home`.
fn takes_routes(cluster: &Cluster<'_>, parent: &ParentRef, home: &Arc<str>) -> bool {
    let key = parent.key(home);
    let objects = cluster.objects;
    let listeners = match parent.gateway_kind() {
        Some("Gateway") => {
            let gateway = objects.gateways.get(&key);
            let own = gateway.filter(|gateway| own_class(cluster, gateway).is_some());
            own.map(|gateway| &gateway.spec.listeners)
        }
        Some("ListenerSet") => {
            let set = objects.listener_sets.get(&key).filter(|set| is_own_set(cluster, set));
            set.map(|set| &set.spec.listeners)
        }
        Some(_) | None => None,
    };
    listeners.into_iter().flatten().any(|listener| {
        let rule = listener.allowed_routes.namespaces.as_ref();
        namespaces::allow(cluster, rule, "Same", &key.namespace, home)
    })
}

/// Returns whether a ListenerSet adds its listeners to a Gateway of Weir.
pub fn is_own_set(cluster: &Cluster<'_>, set: &ListenerSet) -> bool {
    let gateway = gateway_of(set).and_then(|key| cluster.objects.gateways.get(&key));
    gateway.is_some_and(|gateway| {
        own_class(cluster, gateway).is_some() && allows(cluster, gateway, set)
    })
}
