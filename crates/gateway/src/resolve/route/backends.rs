//! The backends of a route's rules: Services that exist and may be referred to.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::grants::GroupKind;
use crate::ir::RouteKind;
use crate::ir::backend::{ServicePort, Target};
use crate::objects::reference::BackendRef;
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::ports::Ports;
use crate::resolve::secret::Referrer;
use crate::resolve::status::Problem;
use crate::resolve::world::World;

/// Resolves the backends of one route, and collects what is wrong with them.
#[derive(Debug)]
pub struct Backends<'w> {
    world: &'w World<'w>,
    kind: RouteKind,
    home: &'w Arc<str>,
    /// References that are invalid, in the order of the route.
    pub problems: Vec<Problem>,
    /// The Services that the route may refer to, those that do not exist included.
    pub services: BTreeSet<Key>,
}

impl<'w> Backends<'w> {
    /// Begins with a route in the namespace `home`.
    pub fn new(world: &'w World<'w>, kind: RouteKind, home: &'w Arc<str>) -> Backends<'w> {
        Backends { world, kind, home, problems: Vec::new(), services: BTreeSet::new() }
    }

    /// Returns the target of a reference.
    pub fn target<F>(&mut self, reference: &BackendRef<F>) -> Target {
        match self.service_port(reference) {
            Ok(port) => Target::Service(Arc::new(port)),
            Err(problem) => self.invalid(problem),
        }
    }

    /// Records a problem, and returns the target of a reference that has it.
    pub fn invalid(&mut self, problem: Problem) -> Target {
        let reason = problem.reason;
        self.problems.push(problem);
        Target::Invalid { reason }
    }

    fn service_port<F>(&mut self, reference: &BackendRef<F>) -> Result<ServicePort, Problem> {
        let kind = GroupKind { group: GATEWAY_GROUP, kind: self.kind.name() };
        let from = Referrer { kind, home: self.home };
        let ports = self.world.ports();
        let key = ports.permitted(from, reference)?;
        self.services.insert(key.clone());
        let port = ports.port(&key, reference.port, "backendRefs")?;
        match self.kind {
            RouteKind::Http | RouteKind::Grpc | RouteKind::Ingress => Ports::usable(port),
            // Only a listener that decrypts TLS uses the policy; whether there is one is not known here.
            RouteKind::Tls | RouteKind::Tcp => Ok(port),
        }
    }
}
