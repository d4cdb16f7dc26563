//! The backends of a route's rules: Services that exist and may be referred to.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::grants::GroupKind;
use crate::ir::RouteKind;
use crate::ir::app_protocol::AppProtocol;
use crate::ir::backend::{ServerTls, ServicePort, Target};
use crate::objects::core::{Service, ServicePort as ServicePortSpec};
use crate::objects::reference::BackendRef;
use crate::objects::{GATEWAY_GROUP, Key};
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
        if !reference.is_service() {
            let kind = reference.kind.as_deref().unwrap_or("Service");
            let group = reference.group.as_deref().filter(|group| !group.is_empty());
            let kind = group.map_or_else(|| kind.to_owned(), |group| format!("{kind}.{group}"));
            let name = &reference.name;
            let message =
                format!("{kind} {name} is not supported as a backend. Refer to a Service.");
            return Err(Problem::new("InvalidKind", message));
        }
        let key = reference.key(self.home);
        let kind = GroupKind { group: GATEWAY_GROUP, kind: self.kind.name() };
        let from = Referrer { kind, home: self.home };
        from.check_grant(&self.world.cluster, "Service", &key)?;
        self.services.insert(key.clone());
        let Some(service) = self.world.cluster.objects.services.get(&key) else {
            let message = format!("Service {key} does not exist. Create it or change backendRefs.");
            return Err(Problem::new("BackendNotFound", message));
        };
        if is_external(service) && !self.world.cluster.settings.allow_external_names {
            let message = format!(
                "Service {key} has the type ExternalName, which is refused because it can reach \
                 hosts outside of the user's namespace (CVE-2021-25740). Use a Service with Pods."
            );
            return Err(Problem::new("UnsupportedServiceType", message));
        }
        let port = self.port(&key, service, reference.port)?;
        let uses_policies = match self.kind {
            RouteKind::Http | RouteKind::Grpc | RouteKind::Ingress => true,
            // Only a listener that decrypts TLS uses the policy; whether there is one is not known here.
            RouteKind::Tls | RouteKind::Tcp => false,
        };
        match &port.tls {
            ServerTls::Invalid { policy } if uses_policies => {
                let service = &port.service;
                let message = format!(
                    "BackendTLSPolicy {policy} for Service {service} is invalid, see its status."
                );
                Err(Problem::new("InvalidBackendTLSPolicy", message))
            }
            ServerTls::None | ServerTls::Verified(_) | ServerTls::Invalid { .. } => Ok(port),
        }
    }

    fn port(
        &self,
        key: &Key,
        service: &Service,
        number: Option<u16>,
    ) -> Result<ServicePort, Problem> {
        let Some(number) = number else {
            let message = format!("The reference to Service {key} has no port. State one.");
            return Err(Problem::new("BackendNotFound", message));
        };
        let mut ports = service.spec.ports.iter().filter(|port| port.port == number);
        let is_tcp = |port: &&ServicePortSpec| port.protocol.as_deref().unwrap_or("TCP") == "TCP";
        let Some(port) = ports.clone().find(is_tcp) else {
            let (reason, what) = match ports.next() {
                Some(_) => ("UnsupportedProtocol", "is not a TCP port"),
                None => ("BackendNotFound", "does not exist"),
            };
            let message = format!("Port {number} of Service {key} {what}. Change backendRefs.");
            return Err(Problem::new(reason, message));
        };
        Ok(ServicePort {
            service: key.clone(),
            port: number,
            name: port.name.clone(),
            // The API server accepts the field for other types, too.
            external_name: service.spec.external_name.clone().filter(|_| is_external(service)),
            protocol: port.app_protocol.as_deref().map(AppProtocol::read),
            tls: self.world.policies.of_port(key, port.name.as_ref()),
            settings: None,
        })
    }
}

/// Returns whether a Service stands for a host outside of the cluster.
pub fn is_external(service: &Service) -> bool {
    service.spec.kind.as_deref() == Some("ExternalName")
}
