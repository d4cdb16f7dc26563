//! The results of all routes, kept between changes, so that a change costs what it touches.
//!
//! A result depends on its route, on the Services that the route may refer to, and on the [`World`] without its
//! Services: Gateways, ListenerSets, classes, grants, policies, namespaces, and the Secrets and ConfigMaps that Gateways
//! and policies refer to. A change to anything of the latter concerns all routes.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Objects;
use super::route::{self, Resolved};
use super::world::World;
use crate::ir::RouteKind;
use crate::objects::Key;

/// A route.
pub type RouteId = (RouteKind, Key);

/// What has changed since the last update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether something has changed that any route may depend on.
    pub is_all: bool,
    /// Routes that were added, changed or deleted.
    pub routes: BTreeSet<RouteId>,
    /// Services that were added, changed or deleted.
    pub services: BTreeSet<Key>,
}

impl Changes {
    /// Returns a change that concerns all routes.
    pub fn all() -> Changes {
        Changes { is_all: true, ..Changes::default() }
    }

    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        !self.is_all && self.routes.is_empty() && self.services.is_empty()
    }
}

/// The results of all routes.
#[derive(Debug, Default)]
pub struct Routes(BTreeMap<RouteId, Resolved>);

impl Routes {
    /// Returns the results, HTTPRoutes first.
    pub fn all(&self) -> impl Iterator<Item = &Resolved> + Clone {
        self.0.values()
    }

    /// Returns whether a change can change what is served or a status. Most Services of a cluster concern no route.
    pub fn are_concerned(&self, objects: &Objects, changes: &Changes) -> bool {
        let is_used =
            || self.0.values().any(|route| !route.services.is_disjoint(&changes.services));
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
        if !changes.services.is_empty() {
            let users =
                self.0.iter().filter(|(_, one)| !one.services.is_disjoint(&changes.services));
            concerned.extend(users.map(|(id, _)| id.clone()));
        }
        let count = concerned.len();
        for id in concerned {
            match resolve(world, &id) {
                Some(resolved) => self.0.insert(id, resolved),
                None => self.0.remove(&id),
            };
        }
        count
    }

    fn replace(&mut self, world: &World<'_>) -> usize {
        self.0.clear();
        let objects = world.cluster.objects;
        let http = objects.http_routes.values().map(|one| route::http_route(world, one));
        let grpc = objects.grpc_routes.values().map(|one| route::grpc_route(world, one));
        let tls = objects.tls_routes.values().map(|one| route::tls_route(world, one));
        let tcp = objects.tcp_routes.values().map(|one| route::tcp_route(world, one));
        let all = http.chain(grpc).chain(tls).chain(tcp);
        self.0.extend(all.map(|one| ((one.route.kind, one.route.key.clone()), one)));
        self.0.len()
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
    }
}

/// Returns whether a policy has one of these Services as a target.
fn is_target(objects: &Objects, services: &BTreeSet<Key>) -> bool {
    objects.policies.values().any(|policy| {
        let home = &policy.metadata.namespace;
        let targets = policy.spec.target_refs.iter();
        targets.into_iter().any(|target| {
            target.is("", "Service", "Service")
                && services.contains(&Key::new(home.clone(), target.name.clone()))
        })
    })
}
