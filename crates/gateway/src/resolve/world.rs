//! Everything that routes are resolved against, indexed once for all of them.

use super::cluster::{Cluster, Objects, Settings};
use super::gateway::Plans;
use super::ingress_classes::Classes;
use super::policy::service::{self, ServicePolicies};
use super::policy::tls::{self, TlsPolicies};
use super::ports::Ports;
use super::route_policy::{self, RoutePolicies};

/// The Gateways, listeners, policies and Services that routes refer to.
///
/// The cost of building it grows with the number of Gateways, listeners, policies and grants, not with that of routes
/// and Services.
#[derive(Debug)]
pub struct World<'a> {
    /// The objects.
    pub cluster: Cluster<'a>,
    /// The Gateways and ListenerSets that Weir manages.
    pub plans: Plans<'a>,
    /// The BackendTLSPolicies.
    pub policies: TlsPolicies,
    /// The ServicePolicies.
    pub service_policies: ServicePolicies,
    /// The RoutePolicies.
    pub route_policies: RoutePolicies,
    /// The IngressClasses that Weir serves.
    pub ingress_classes: Classes,
}

impl<'a> World<'a> {
    /// Checks and indexes all objects that routes refer to.
    pub fn new(objects: &'a Objects, settings: &'a Settings) -> World<'a> {
        let cluster = Cluster::new(objects, settings);
        let plans = Plans::new(&cluster);
        let policies = tls::policies(&cluster);
        let service_policies = service::policies(&cluster);
        let ports = Ports { cluster: &cluster, tls: &policies, policies: &service_policies };
        let route_policies = route_policy::policies(ports);
        let ingress_classes = Classes::new(objects, settings);
        World { cluster, plans, policies, service_policies, route_policies, ingress_classes }
    }

    /// Returns what ports of Services are looked up in.
    pub fn ports(&self) -> Ports<'_> {
        Ports { cluster: &self.cluster, tls: &self.policies, policies: &self.service_policies }
    }
}
