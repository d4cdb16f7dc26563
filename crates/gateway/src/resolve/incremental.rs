//! The results of all routes, kept between changes, so that a change costs what it touches.
//!
//! A result depends on its route, on the Services that the route may refer to, on the ServicePolicies and RoutePolicies for
//! them, and on the rest of the [`World`]: Gateways, ListenerSets, classes, grants, BackendTLSPolicies, namespaces, and the
//! Secrets and ConfigMaps that Gateways and policies refer to. A change to anything of the latter concerns all routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

use super::attached::Attached;
use super::cluster::Objects;
use super::policy::tls;
use super::route::{self, Resolved};
use super::route_targets;
use super::status::RouteStatuses;
use super::world::World;
pub use crate::ir::RouteId;
use crate::ir::{AttachedRoute, ListenerId, RouteKind};
use crate::objects::policy::{RoutePolicy, ServicePolicy};
use crate::objects::reference::ObjectRef;
use crate::objects::{Key, Meta};

/// What has changed since the last update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether something has changed that any route may depend on.
    pub is_all: bool,
    /// Routes that were added, changed or deleted.
    pub routes: BTreeSet<RouteId>,
    /// Services that were added, changed or deleted.
    pub services: BTreeSet<Key>,
    /// Ingresses that were added, changed or deleted.
    pub ingresses: BTreeSet<Key>,
}

impl Changes {
    /// Returns a change that concerns all routes.
    pub fn all() -> Changes {
        Changes { is_all: true, ..Changes::default() }
    }

    /// Adds the targets of a ServicePolicy: one that is added or deleted, or one before and after a change. Whatever
    /// policies of other targets state stays as it was.
    pub fn add_service_policy(&mut self, policy: &ServicePolicy) {
        let targets = tls::services(&policy.spec.target_refs, &policy.metadata.namespace);
        self.services.extend(targets.map(|(service, _)| service));
    }

    /// Adds the targets of a RoutePolicy, as [`Changes::add_service_policy`] does.
    pub fn add_route_policy(&mut self, policy: &RoutePolicy) {
        let targets = route_targets::routes(&policy.spec.target_refs, &policy.metadata.namespace);
        self.routes.extend(targets.map(|(route, _)| route));
    }

    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        !self.is_all
            && self.routes.is_empty()
            && self.services.is_empty()
            && self.ingresses.is_empty()
    }
}

/// The routes that each listener accepts. A listener without routes has no entry.
pub type OfListeners = HashMap<ListenerId, Attached>;

/// The results of all routes. Results that have not changed stay where they are in memory.
#[derive(Debug, Default)]
pub struct Routes {
    all: BTreeMap<RouteId, Resolved>,
    statuses: RouteStatuses,
    attached: OfListeners,
    /// The routes that may refer to a Service.
    users: HashMap<Key, BTreeSet<RouteId>>,
}

impl Routes {
    /// Returns the results, HTTPRoutes first.
    pub fn all(&self) -> impl Iterator<Item = &Resolved> {
        self.all.values()
    }

    /// Returns the result of a route.
    pub fn get(&self, id: &RouteId) -> Option<&Resolved> {
        self.all.get(id)
    }

    /// Returns the results of the routes that may refer to a Service.
    pub fn users(&self, service: &Key) -> impl Iterator<Item = &Resolved> {
        self.users.get(service).into_iter().flatten().filter_map(|id| self.all.get(id))
    }

    /// Returns their statuses.
    pub fn statuses(&self) -> &RouteStatuses {
        &self.statuses
    }

    /// Returns the routes that each listener accepts.
    pub fn attached(&self) -> &OfListeners {
        &self.attached
    }

    /// Returns whether a change can change what is served or a status. Most Services of a cluster concern no route.
    pub fn are_concerned(&self, objects: &Objects, changes: &Changes) -> bool {
        let is_used = || changes.services.iter().any(|service| self.users.contains_key(service));
        changes.is_all
            || !changes.routes.is_empty()
            || (!changes.services.is_empty()
                && (is_used() || is_target(objects, &changes.services)))
    }

    /// Resolves the routes that a change concerns, and returns how many there are. `world` has the objects after the
    /// change.
    pub fn update(&mut self, world: &World<'_>, changes: &Changes) -> usize {
        if changes.is_all {
            return self.replace(world);
        }
        let mut concerned: BTreeSet<RouteId> = changes.routes.clone();
        let users = changes.services.iter().filter_map(|service| self.users.get(service));
        concerned.extend(users.flatten().cloned());
        let count = concerned.len();
        for id in concerned {
            match resolve(world, &id) {
                Some(resolved) if self.all.get(&id) == Some(&resolved) => {}
                Some(mut resolved) => {
                    let status = self.statuses.get(&id).filter(|one| **one == resolved.status);
                    if let Some(status) = status {
                        resolved.status = Arc::clone(status);
                    }
                    self.remove(&id);
                    for (listener, attached) in &resolved.attachments {
                        self.attached.entry(listener.clone()).or_default().insert(attached);
                    }
                    self.add(id, resolved);
                }
                None => self.remove(&id),
            }
        }
        count
    }

    fn replace(&mut self, world: &World<'_>) -> usize {
        let mut before = std::mem::take(self).all;
        let objects = world.cluster.objects;
        let http = objects.http_routes.values().map(|one| route::http_route(world, one));
        let grpc = objects.grpc_routes.values().map(|one| route::grpc_route(world, one));
        let tls = objects.tls_routes.values().map(|one| route::tls_route(world, one));
        let tcp = objects.tcp_routes.values().map(|one| route::tcp_route(world, one));
        let mut attached: HashMap<ListenerId, Vec<Arc<AttachedRoute>>> = HashMap::default();
        for resolved in http.chain(grpc).chain(tls).chain(tcp) {
            let id = (resolved.route.kind, resolved.route.key.clone());
            let resolved =
                before.remove(&id).filter(|known| *known == resolved).unwrap_or(resolved);
            for (listener, route) in &resolved.attachments {
                attached.entry(listener.clone()).or_default().push(Arc::clone(route));
            }
            self.add(id, resolved);
        }
        let attached = attached.into_iter();
        self.attached = attached.map(|(id, routes)| (id, Attached::new(routes))).collect();
        self.all.len()
    }

    /// Adds a result that is already among those of its listeners.
    fn add(&mut self, id: RouteId, resolved: Resolved) {
        for service in &resolved.services {
            self.users.entry(service.clone()).or_default().insert(id.clone());
        }
        self.statuses.insert(id.clone(), Arc::clone(&resolved.status));
        self.all.insert(id, resolved);
    }

    fn remove(&mut self, id: &RouteId) {
        let Some(resolved) = self.all.remove(id) else { return };
        self.statuses.remove(id);
        for service in &resolved.services {
            let Some(users) = self.users.get_mut(service) else { continue };
            users.remove(id);
            if users.is_empty() {
                self.users.remove(service);
            }
        }
        for (listener, attached) in &resolved.attachments {
            let Some(of_listener) = self.attached.get_mut(listener) else { continue };
            of_listener.remove(attached);
            if of_listener.routes().is_empty() {
                self.attached.remove(listener);
            }
        }
    }
}

/// Resolves a route, if it exists.
fn resolve(world: &World<'_>, (kind, key): &RouteId) -> Option<Resolved> {
    let objects = world.cluster.objects;
    match kind {
        RouteKind::Http => objects.http_routes.get(key).map(|one| route::http_route(world, one)),
        RouteKind::Grpc => objects.grpc_routes.get(key).map(|one| route::grpc_route(world, one)),
        RouteKind::Tls => objects.tls_routes.get(key).map(|one| route::tls_route(world, one)),
        RouteKind::Tcp => objects.tcp_routes.get(key).map(|one| route::tcp_route(world, one)),
        // See `ingress::Ingresses`.
        RouteKind::Ingress => None,
    }
}

/// Returns whether a policy has one of these Services as a target.
fn is_target(objects: &Objects, services: &BTreeSet<Key>) -> bool {
    let has_one = |metadata: &Meta, references: &[ObjectRef]| {
        let mut targets = tls::services(references, &metadata.namespace);
        targets.any(|(service, _)| services.contains(&service))
    };
    objects.policies.values().any(|one| has_one(&one.metadata, &one.spec.target_refs))
        || objects
            .service_policies
            .values()
            .any(|one| has_one(&one.metadata, &one.spec.target_refs))
}
