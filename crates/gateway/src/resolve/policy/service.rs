//! ServicePolicies: which one applies to a Service's port, and what is wrong with each.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::policy::{Mistake, ServiceTerms};
use serde_json::{Map, Value};

use super::targets::{Target, oldest_first};
use super::tls::{missing_service, services};
use super::{Policies, invalid};
use crate::objects::Key;
use crate::objects::policy::{ServicePolicy, Stated};
use crate::resolve::cluster::Cluster;
use crate::resolve::status::Condition;

/// All ServicePolicies, with what they state. `None`: the policy is invalid, and applies to nothing.
pub type ServicePolicies = Policies<Key, Option<Stated>>;

/// The key that is for the objects of Kubernetes alone: Pods may state limits of their own.
const POD_LIMITS: &str = "podLimits";

/// Checks all policies. Of several with the same target, the oldest applies that is valid.
pub fn policies(cluster: &Cluster<'_>) -> ServicePolicies {
    let mut policies = ServicePolicies::default();
    for policy in oldest_first(cluster.objects.service_policies.values(), |one| &one.metadata) {
        let metadata = &policy.metadata;
        let targets = services(&policy.spec.target_refs, &metadata.namespace);
        let (accepted, stated) = match stated(policy) {
            Ok(stated) => {
                let missing = |target: &Target<Key>| missing_service(cluster, target);
                let claim = policies.targets.claim(&metadata.key(), false, targets, missing);
                (claim.accepted("ServicePolicy", None), Some(stated.clone()))
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
        policies.add(metadata, vec![accepted, resolved], stated);
    }
    policies
}

impl ServicePolicies {
    /// Returns what is stated for a port of a Service. A policy for the port precedes one for the Service.
    pub fn of_port(&self, service: &Key, port: Option<&Arc<str>>) -> Option<&Stated> {
        self.winner(service, port)?.1.as_ref()
    }
}

/// Returns the namespaces whose Pods may state limits of their own.
pub fn pod_namespaces<'a>(
    policies: impl IntoIterator<Item = &'a Arc<ServicePolicy>>,
) -> BTreeSet<Arc<str>> {
    let has_limits = |policy: &&Arc<ServicePolicy>| {
        stated(policy).is_ok_and(|stated| stated.pod_limit_max.is_some())
    };
    let with_limits = policies.into_iter().filter(has_limits);
    with_limits.map(|one| Arc::clone(&one.metadata.namespace)).collect()
}

fn stated(policy: &ServicePolicy) -> Result<&Stated, &[Mistake]> {
    policy.stated.or(|| read(&policy.spec.terms)).as_ref().map_err(Vec::as_slice)
}

fn read(spec: &Map<String, Value>) -> Result<Stated, Vec<Mistake>> {
    let mistake = |problem: &str| {
        let (path, problem) = (format!("spec.{POD_LIMITS}"), problem.to_owned());
        vec![Mistake { path, problem }]
    };
    let mut spec = spec.clone();
    let has_pod_limits = match spec.shift_remove(POD_LIMITS) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_on)) => is_on,
        Some(_) => return Err(mistake("`podLimits` must be true or false")),
    };
    let terms = Arc::new(ServiceTerms::read(&spec)?);
    let pod_limit_max = terms.in_flight_max().filter(|_| has_pod_limits);
    if has_pod_limits && pod_limit_max.is_none() {
        return Err(mistake("`podLimits` needs `inFlightMax`, the most that a Pod may state"));
    }
    Ok(Stated { terms, pod_limit_max })
}
