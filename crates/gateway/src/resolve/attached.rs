//! The routes of a listener, with what is needed of all of them together. A change of a route costs what it touches, not what
//! the listener has.

use std::sync::Arc;

use foldhash::HashMap;

use crate::ir::backend::ServicePort;
use crate::ir::{AttachedRoute, RouteKind, ServicePorts};
use crate::objects::Key;

/// The routes that a listener accepts.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// Oldest first.
    routes: Arc<Vec<Arc<AttachedRoute>>>,
    http: usize,
    grpc: usize,
    services: ServicePorts,
    /// How often each of `services` is referred to.
    uses: HashMap<(Key, u16), usize>,
}

impl Attached {
    /// Creates it from routes in any order.
    pub fn new(mut routes: Vec<Arc<AttachedRoute>>) -> Attached {
        routes.sort_by(|a, b| a.route.order().cmp(&b.route.order()));
        let mut attached = Attached::default();
        for route in &routes {
            attached.count(route);
        }
        attached.routes = Arc::new(routes);
        attached
    }

    /// Returns them, oldest first.
    pub fn routes(&self) -> &Arc<Vec<Arc<AttachedRoute>>> {
        &self.routes
    }

    /// Returns the ports of Services that they forward to.
    pub fn services(&self) -> &ServicePorts {
        &self.services
    }

    /// Returns whether there are both HTTPRoutes and GRPCRoutes, which cannot share hosts.
    pub fn has_http_and_grpc(&self) -> bool {
        self.http > 0 && self.grpc > 0
    }

    /// Adds a route that is not among them.
    pub fn insert(&mut self, attached: &Arc<AttachedRoute>) {
        let routes = Arc::make_mut(&mut self.routes);
        if let Err(place) = place(routes, attached) {
            routes.insert(place, Arc::clone(attached));
            self.count(attached);
        }
    }

    /// Removes a route that is among them.
    pub fn remove(&mut self, attached: &AttachedRoute) {
        let routes = Arc::make_mut(&mut self.routes);
        let Ok(place) = place(routes, attached) else { return };
        routes.remove(place);
        match attached.route.kind {
            RouteKind::Http => self.http -= 1,
            RouteKind::Grpc => self.grpc -= 1,
            RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress => {}
        }
        for port in attached.route.ports() {
            let key = key(port);
            let Some(uses) = self.uses.get_mut(&key) else { continue };
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(&key);
                self.services.remove(&key);
            }
        }
    }

    fn count(&mut self, attached: &AttachedRoute) {
        match attached.route.kind {
            RouteKind::Http => self.http += 1,
            RouteKind::Grpc => self.grpc += 1,
            RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress => {}
        }
        for port in attached.route.ports() {
            let key = key(port);
            *self.uses.entry(key.clone()).or_default() += 1;
            // The newest one counts: all routes of a Service that has changed are resolved again.
            if self.services.get(&key) != Some(port) {
                self.services.insert(key, Arc::clone(port));
            }
        }
    }
}

/// Returns what identifies the port of a Service.
pub fn key(port: &ServicePort) -> (Key, u16) {
    (port.service.clone(), port.port)
}

/// Returns where a route stands among others, or where it belongs.
fn place(routes: &[Arc<AttachedRoute>], attached: &AttachedRoute) -> Result<usize, usize> {
    routes.binary_search_by(|one| one.route.order().cmp(&attached.route.order()))
}
