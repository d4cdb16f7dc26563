//! Ports of Services that objects refer to, with the policies for them.

use std::sync::Arc;

use crate::ir::app_protocol::AppProtocol;
use crate::ir::backend::{ServerTls, ServicePort};
use crate::objects::Key;
use crate::objects::core::{Service, ServicePort as ServicePortSpec};
use crate::objects::reference::BackendRef;
use crate::resolve::cluster::Cluster;
use crate::resolve::policy::service::ServicePolicies;
use crate::resolve::policy::tls::TlsPolicies;
use crate::resolve::secret::Referrer;
use crate::resolve::status::Problem;

/// What ports are looked up in.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'w> {
    /// The objects.
    pub cluster: &'w Cluster<'w>,
    /// The BackendTLSPolicies.
    pub tls: &'w TlsPolicies,
    /// The ServicePolicies.
    pub policies: &'w ServicePolicies,
}

impl Ports<'_> {
    /// Returns the Service that an object refers to, if it may.
    ///
    /// # Errors
    ///
    /// Why the reference cannot be used.
    pub fn permitted<F>(
        self,
        from: Referrer<'_>,
        reference: &BackendRef<F>,
    ) -> Result<Key, Problem> {
        if !reference.is_service() {
            let kind = reference.kind.as_deref().unwrap_or("Service");
            let group = reference.group.as_deref().filter(|group| !group.is_empty());
            let kind = group.map_or_else(|| kind.to_owned(), |group| format!("{kind}.{group}"));
            let name = &reference.name;
            let message =
                format!("{kind} {name} is not supported as a backend. Refer to a Service.");
            return Err(Problem::new("InvalidKind", message));
        }
        let key = reference.key(from.home);
        from.check_grant(self.cluster, "Service", &key)?;
        Ok(key)
    }

    /// Returns a port of a Service. `field` is the name of what refers to it.
    ///
    /// # Errors
    ///
    /// Why the reference cannot be used.
    pub fn port(self, key: &Key, number: Option<u16>, field: &str) -> Result<ServicePort, Problem> {
        let Some(service) = self.cluster.objects.services.get(key) else {
            let message = format!("Service {key} does not exist. Create it or change {field}.");
            return Err(Problem::new("BackendNotFound", message));
        };
        if let Some(message) = self.refused(key, service) {
            return Err(Problem::new("UnsupportedServiceType", message));
        }
        let Some(number) = number else {
            let message = format!("The reference to Service {key} has no port. State one.");
            return Err(Problem::new("BackendNotFound", message));
        };
        let mut ports = service.spec.ports.iter().filter(|port| port.port == number);
        let Some(port) = ports.clone().find(|port| port.is_tcp()) else {
            let (reason, what) = match ports.next() {
                Some(_) => ("UnsupportedProtocol", "is not a TCP port"),
                None => ("BackendNotFound", "does not exist"),
            };
            let message = format!("Port {number} of Service {key} {what}. Change {field}.");
            return Err(Problem::new(reason, message));
        };
        Ok(self.of(key, service, port))
    }

    /// Returns why a Service cannot be used, as a sentence.
    pub fn refused(self, key: &Key, service: &Service) -> Option<String> {
        let is_refused = is_external(service) && !self.cluster.settings.allow_external_names;
        is_refused.then(|| {
            format!(
                "Service {key} has the type ExternalName, which is refused because it can reach \
                 hosts outside of the user's namespace (CVE-2021-25740). Use a Service with Pods."
            )
        })
    }

    /// Returns a port of a Service.
    pub fn of(self, key: &Key, service: &Service, port: &ServicePortSpec) -> ServicePort {
        let stated = self.policies.of_port(key, port.name.as_ref());
        ServicePort {
            service: key.clone(),
            port: port.port,
            name: port.name.clone(),
            // The API server accepts the field for other types, too.
            external_name: service.spec.external_name.clone().filter(|_| is_external(service)),
            protocol: port.app_protocol.as_deref().map(AppProtocol::read),
            tls: self.tls.of_port(key, port.name.as_ref()),
            terms: stated.map(|stated| Arc::clone(&stated.terms)),
            pod_limit_max: stated.and_then(|stated| stated.pod_limit_max),
            settings: None,
        }
    }

    /// Returns a port for requests, unless its BackendTLSPolicy is invalid.
    ///
    /// # Errors
    ///
    /// A problem with the policy.
    pub fn usable(port: ServicePort) -> Result<ServicePort, Problem> {
        match &port.tls {
            ServerTls::Invalid { policy } => {
                let service = &port.service;
                let message = format!(
                    "BackendTLSPolicy {policy} for Service {service} is invalid, see its status."
                );
                Err(Problem::new("InvalidBackendTLSPolicy", message))
            }
            ServerTls::None | ServerTls::Verified(_) => Ok(port),
        }
    }
}

/// Returns whether a Service stands for a host outside of the cluster.
fn is_external(service: &Service) -> bool {
    service.spec.kind.as_deref() == Some("ExternalName")
}
