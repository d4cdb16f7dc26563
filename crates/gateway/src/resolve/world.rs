//! Everything that routes are resolved against, indexed once for all of them.

use super::cluster::{Cluster, Objects, Settings};
use super::gateway::Plans;
use super::ingress_classes::Classes;
use super::policy::tls::Policies;

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
    pub policies: Policies,
    /// The IngressClasses that Weir serves.
    pub ingress_classes: Classes,
}

impl<'a> World<'a> {
    /// Checks and indexes all objects that routes refer to.
    pub fn new(objects: &'a Objects, settings: &'a Settings) -> World<'a> {
        let cluster = Cluster::new(objects, settings);
        let plans = Plans::new(&cluster);
        let policies = Policies::new(&cluster);
        let ingress_classes = Classes::new(objects, settings);
        World { cluster, plans, policies, ingress_classes }
    }
}
