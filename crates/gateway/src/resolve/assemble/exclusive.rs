//! HTTPRoutes and GRPCRoutes that share hosts at a listener: only the older one is accepted (the API's rule).

use std::sync::Arc;

use foldhash::HashMap;
use model::HostPattern;

use crate::hosts;
use crate::ir::{AttachedRoute, ListenerId, Route, RouteKind, ServicePorts};
use crate::resolve::attached;
use crate::resolve::incremental::{OfListeners, RouteId, Routes};
use crate::resolve::route::Resolved;
use crate::resolve::status::{Condition, ParentStatus, Problem, RouteStatus};

/// The hosts that routes of one kind serve at a listener.
#[derive(Debug, Default)]
struct Served {
    hosts: HashMap<Option<HostPattern>, Arc<Route>>,
    /// The patterns that cover one of the hosts.
    wider: HashMap<Option<HostPattern>, Arc<Route>>,
}

impl Served {
    fn add(&mut self, attached: &AttachedRoute) {
        for host in &attached.hosts {
            for wider in hosts::wider(host.as_ref()) {
                self.wider.entry(wider).or_insert_with(|| Arc::clone(&attached.route));
            }
            self.hosts.entry(host.clone()).or_insert_with(|| Arc::clone(&attached.route));
        }
    }

    /// Returns a route that serves some of the hosts of another route.
    fn shared(&self, attached: &AttachedRoute) -> Option<&Arc<Route>> {
        attached.hosts.iter().find_map(|host| {
            let equal_or_narrower = self.hosts.get(host).or_else(|| self.wider.get(host));
            let wider = || hosts::wider(host.as_ref());
            equal_or_narrower.or_else(|| wider().iter().find_map(|wider| self.hosts.get(wider)))
        })
    }
}

/// The routes that listeners serve.
#[derive(Debug)]
pub(super) struct Accepted<'a> {
    attached: &'a OfListeners,
    /// The routes of listeners that exclude some of theirs.
    rest: HashMap<&'a ListenerId, Arc<Vec<Arc<AttachedRoute>>>>,
    /// The routes that are excluded from listeners, each with the route that serves its hosts.
    excluded: HashMap<RouteId, HashMap<&'a ListenerId, Arc<Route>>>,
}

impl<'a> Accepted<'a> {
    /// Excludes routes from listeners.
    pub(super) fn of(attached: &'a OfListeners) -> Accepted<'a> {
        let mut accepted =
            Accepted { attached, rest: HashMap::default(), excluded: HashMap::default() };
        for (listener, of_listener) in attached {
            if of_listener.has_http_and_grpc() {
                accepted.exclude(listener, of_listener.routes());
            }
        }
        accepted
    }

    fn exclude(&mut self, listener: &'a ListenerId, routes: &[Arc<AttachedRoute>]) {
        let (mut http, mut grpc) = (Served::default(), Served::default());
        let mut rest = routes.to_vec();
        rest.retain(|one| {
            let (own, other) = match one.route.kind {
                RouteKind::Http => (&mut http, &grpc),
                RouteKind::Grpc => (&mut grpc, &http),
                RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress => return true,
            };
            let Some(winner) = other.shared(one) else {
                own.add(one);
                return true;
            };
            let id = (one.route.kind, one.route.key.clone());
            self.excluded.entry(id).or_default().insert(listener, Arc::clone(winner));
            false
        });
        if rest.len() != routes.len() {
            self.rest.insert(listener, Arc::new(rest));
        }
    }

    /// Returns the routes that a listener serves, oldest first.
    pub(super) fn at(&self, listener: &ListenerId) -> Option<&Arc<Vec<Arc<AttachedRoute>>>> {
        self.rest.get(listener).or_else(|| Some(self.attached.get(listener)?.routes()))
    }

    /// Returns the ports of Services that these routes forward to.
    pub(super) fn services(&self, listener: &ListenerId) -> ServicePorts {
        match self.rest.get(listener) {
            Some(rest) => {
                let ports = rest.iter().flat_map(|one| one.route.ports());
                ports.map(|port| (attached::key(port), Arc::clone(port))).collect()
            }
            None => {
                self.attached.get(listener).map(|one| one.services().clone()).unwrap_or_default()
            }
        }
    }

    /// Returns the statuses of the routes that are excluded from listeners.
    pub(super) fn changed_statuses(
        &self,
        routes: &Routes,
    ) -> impl Iterator<Item = (RouteId, Arc<RouteStatus>)> {
        self.excluded.iter().filter_map(|(id, winners)| {
            let status = status(routes.get(id)?, winners);
            Some((id.clone(), Arc::new(status)))
        })
    }
}

fn status(resolved: &Resolved, winners: &HashMap<&ListenerId, Arc<Route>>) -> RouteStatus {
    let mut status = RouteStatus::clone(&resolved.status);
    for (parent, listeners) in status.parents.iter_mut().zip(&resolved.listeners) {
        let lost = listeners.iter().filter_map(|listener| Some((listener, winners.get(listener)?)));
        let lost: Vec<(&ListenerId, &Arc<Route>)> = lost.collect();
        if let Some((listener, winner)) = lost.first() {
            reject(parent, listener, winner, lost.len() == listeners.len());
        }
    }
    status
}

/// Changes the conditions at a parent whose listener serves the hosts for another route.
fn reject(parent: &mut ParentStatus, listener: &ListenerId, winner: &Route, is_all: bool) {
    let message = format!(
        "{} {} serves the same hostname at listener {}, and precedes this route. An HTTPRoute and a \
         GRPCRoute cannot share a hostname. Change the hostnames of either.",
        winner.kind.name(),
        winner.key,
        listener.name
    );
    if is_all {
        // `PartiallyInvalid` is only for routes that are accepted.
        parent.conditions.retain(|one| one.kind == "ResolvedRefs");
        let accepted = Condition::no("Accepted", &Problem::new("HostnameConflict", message));
        parent.conditions.insert(0, accepted);
        return;
    }
    for one in parent.conditions.iter_mut().filter(|one| one.kind == "Accepted") {
        one.message = format!("The route is attached to some listeners only. {message}");
    }
}
