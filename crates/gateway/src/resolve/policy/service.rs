//! ServicePolicies: which one applies to a Service's port, and what is wrong with each.

use std::sync::Arc;

use config::policy::{Mistake, ServiceTerms};

use super::targets::{Target, oldest_first};
use super::tls::{missing_service, services};
use super::{Policies, invalid};
use crate::objects::Key;
use crate::objects::policy::ServicePolicy;
use crate::resolve::cluster::Cluster;
use crate::resolve::status::Condition;

/// All ServicePolicies, with what they state. `None`: the policy is invalid, and applies to nothing.
pub type ServicePolicies = Policies<Key, Option<Arc<ServiceTerms>>>;

/// Checks all policies. Of several with the same target, the oldest applies that is valid.
pub fn policies(cluster: &Cluster<'_>) -> ServicePolicies {
    let mut policies = ServicePolicies::default();
    for policy in oldest_first(cluster.objects.service_policies.values(), |one| &one.metadata) {
        let metadata = &policy.metadata;
        let targets = services(&policy.spec.target_refs, &metadata.namespace);
        let (accepted, terms) = match terms(policy) {
            Ok(terms) => {
                let missing = |target: &Target<Key>| missing_service(cluster, target);
                let claim = policies.targets.claim(&metadata.key(), targets, missing);
                (claim.accepted("ServicePolicy", None), Some(Arc::clone(terms)))
            }
            Err(mistakes) => {
                targets.for_each(|(service, _)| {
                    policies.targets.mention(&metadata.key(), &service);
                });
                (Condition::no("Accepted", &invalid(mistakes)), None)
            }
        };
        let resolved =
            Condition::yes("ResolvedRefs", "ResolvedRefs", "The policy has no references.");
        policies.add(metadata, vec![accepted, resolved], terms);
    }
    policies
}

impl ServicePolicies {
    /// Returns what is stated for a port of a Service. A policy for the port precedes one for the Service.
    pub fn of_port(&self, service: &Key, port: Option<&Arc<str>>) -> Option<Arc<ServiceTerms>> {
        self.winner(service, port)?.1.clone()
    }
}

fn terms(policy: &ServicePolicy) -> Result<&Arc<ServiceTerms>, &[Mistake]> {
    let read = policy.terms.or(|| ServiceTerms::read(&policy.spec.terms).map(Arc::new));
    read.as_ref().map_err(Vec::as_slice)
}
