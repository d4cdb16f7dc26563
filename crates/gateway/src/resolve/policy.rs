//! BackendTLSPolicies: which one applies to a Service's port, and what is wrong with each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::HostPattern;

use super::cluster::Cluster;
use super::secret::{self, Referrer};
use super::status::{Condition, Problem};
use crate::grants::GroupKind;
use crate::hosts;
use crate::ir::backend::{CertificateName, ServerTls, ServerVerification, Trust};
use crate::objects::policy::BackendTlsPolicy;
use crate::objects::{GATEWAY_GROUP, Key};

/// A policy.
#[derive(Clone, Debug)]
pub struct PolicyPlan {
    /// The generation that was read.
    pub generation: i64,
    /// Its conditions, the same at each Gateway.
    pub conditions: Vec<Condition>,
    verification: Option<Arc<ServerVerification>>,
}

/// A Service, and the name of one of its ports if a policy is for that port alone.
type Target = (Key, Option<Arc<str>>);

/// All policies.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    plans: BTreeMap<Key, PolicyPlan>,
    /// The policy that applies to each target.
    winners: HashMap<Target, Key>,
    /// All policies with a Service as a target, those that do not apply included.
    by_service: HashMap<Key, Vec<Key>>,
}

impl Policies {
    /// Checks all policies. Of several with the same target, the oldest applies.
    pub fn new(cluster: &Cluster<'_>) -> Policies {
        let mut all: Vec<&BackendTlsPolicy> =
            cluster.objects.policies.values().map(AsRef::as_ref).collect();
        all.sort_by(|a, b| a.metadata.age_order().cmp(&b.metadata.age_order()));
        let mut policies = Policies::default();
        for policy in all {
            policies.add(cluster, policy);
        }
        policies
    }

    fn add(&mut self, cluster: &Cluster<'_>, policy: &BackendTlsPolicy) {
        let key = policy.metadata.key();
        let mut has_won = false;
        let mut lost_to = None;
        let mut missing = None;
        for target in &policy.spec.target_refs {
            if !target.is("", "Service", "Service") {
                continue;
            }
            // A policy and its targets are in the same namespace.
            let service = Key::new(Arc::clone(&key.namespace), Arc::clone(&target.name));
            let of_service = self.by_service.entry(service.clone()).or_default();
            // Policies are added one after the other.
            if of_service.last() != Some(&key) {
                of_service.push(key.clone());
            }
            // As in the API's own rules, an empty name is an absent one.
            let section = target.section_name.as_ref().filter(|name| !name.is_empty());
            if let Some(problem) = missing_target(cluster, &service, section.map(AsRef::as_ref)) {
                missing.get_or_insert(problem);
                continue;
            }
            let target = (service, section.cloned());
            let winner = self.winners.entry(target).or_insert_with(|| key.clone());
            if *winner == key {
                has_won = true;
            } else {
                lost_to = Some(winner.clone());
            }
        }
        let (resolved, verification) = verification(cluster, policy);
        let applies = match &lost_to {
            None => "The policy applies to its targets.".to_owned(),
            Some(winner) => format!(
                "The policy applies to its targets, except those that the older BackendTLSPolicy \
                 {winner} has."
            ),
        };
        let conflict = lost_to.filter(|_| !has_won).map(|winner| {
            let message = format!(
                "BackendTLSPolicy {winner} is older and has the same target. Delete one of them."
            );
            Problem::new("Conflicted", message)
        });
        let rejected = match (conflict, missing.filter(|_| !has_won), &verification) {
            (Some(problem), _, _) | (None, Some(problem), _) => Some(problem),
            (None, None, Err(problem)) => Some(problem.clone()),
            (None, None, Ok(_)) => None,
        };
        let accepted = match &rejected {
            Some(problem) => Condition::no("Accepted", problem),
            None => Condition::yes("Accepted", "Accepted", applies),
        };
        let plan = PolicyPlan {
            generation: policy.metadata.generation,
            conditions: vec![accepted, resolved],
            verification: verification.ok().map(Arc::new),
        };
        self.plans.insert(key, plan);
    }

    /// Returns how connections to a port of a Service use TLS. A policy for the port precedes one for the Service.
    pub fn of_port(&self, service: &Key, port: Option<&Arc<str>>) -> ServerTls {
        let named = port.and_then(|port| self.winners.get(&(service.clone(), Some(port.clone()))));
        let Some(policy) = named.or_else(|| self.winners.get(&(service.clone(), None))) else {
            return ServerTls::None;
        };
        match self.plans.get(policy).and_then(|plan| plan.verification.as_ref()) {
            Some(verification) => ServerTls::Verified(Arc::clone(verification)),
            None => ServerTls::Invalid { policy: policy.clone() },
        }
    }

    /// Returns the Services that policies have as a target.
    pub fn services(&self) -> impl Iterator<Item = &Key> {
        self.by_service.keys()
    }

    /// Returns the policies with a Service as a target, those that do not apply included.
    pub fn of_service(&self, service: &Key) -> impl Iterator<Item = (&Key, &PolicyPlan)> {
        let keys = self.by_service.get(service).into_iter().flatten();
        keys.filter_map(|key| self.plans.get_key_value(key))
    }
}

/// Returns a problem if a Service or a port of it does not exist.
fn missing_target(cluster: &Cluster<'_>, service: &Key, section: Option<&str>) -> Option<Problem> {
    let Some(found) = cluster.objects.services.get(service) else {
        let message = format!("Service {service} does not exist. Create it or change targetRefs.");
        return Some(Problem::new("TargetNotFound", message));
    };
    let section = section?;
    let ports = &found.spec.ports;
    if ports.iter().any(|port| port.name.as_deref() == Some(section)) {
        return None;
    }
    let message =
        format!("Service {service} has no port with the name {section}. Change sectionName.");
    Some(Problem::new("TargetNotFound", message))
}

/// Returns the condition `ResolvedRefs`, and how certificates are verified or why the policy is not accepted.
fn verification(
    cluster: &Cluster<'_>,
    policy: &BackendTlsPolicy,
) -> (Condition, Result<ServerVerification, Problem>) {
    let stated = &policy.spec.validation;
    let kind = GroupKind { group: GATEWAY_GROUP, kind: "BackendTLSPolicy" };
    let from = Referrer { kind, home: &policy.metadata.namespace };
    let mut authorities = Vec::new();
    let mut problems = Vec::new();
    for reference in &stated.ca_certificate_refs {
        // References of a policy are local.
        let mut local = reference.clone();
        local.namespace = None;
        match secret::authorities(cluster, from, &local, "InvalidCACertificateRef", "InvalidKind") {
            Ok(one) => authorities.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    let resolved = match Problem::first(&problems) {
        Some(problem) => Condition::no("ResolvedRefs", &problem),
        None => Condition::yes("ResolvedRefs", "ResolvedRefs", "All references are valid."),
    };
    let well_known = stated.well_known_ca_certificates.as_deref().filter(|text| !text.is_empty());
    let trust = match (stated.ca_certificate_refs.is_empty(), well_known) {
        (true, Some("System")) => Ok(Trust::System),
        (true, Some(other)) => Err(Problem::new(
            "Invalid",
            format!("wellKnownCACertificates {other} is not supported. Use System."),
        )),
        (true, None) | (false, Some(_)) => Err(Problem::new(
            "Invalid",
            "The policy must state either caCertificateRefs or wellKnownCACertificates.",
        )),
        (false, None) if authorities.is_empty() => Err(Problem::new(
            "NoValidCACertificate",
            "caCertificateRefs has no valid reference, see the condition ResolvedRefs.",
        )),
        (false, None) => Ok(Trust::Authorities(authorities)),
    };
    let result = trust.and_then(|trust| {
        Ok(ServerVerification {
            policy: policy.metadata.key(),
            trust,
            hostname: host_name("hostname", &stated.hostname, false)?,
            names: names(policy)?,
        })
    });
    (resolved, result)
}

fn names(policy: &BackendTlsPolicy) -> Result<Vec<CertificateName>, Problem> {
    let names = policy.spec.validation.subject_alt_names.iter();
    let read = names.map(|name| match &*name.kind {
        "Hostname" => {
            let host = host_name("The hostname of subjectAltNames", &name.hostname, true)?;
            Ok(CertificateName::Host(host))
        }
        "URI" if name.uri.contains(':') && name.uri.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(CertificateName::Uri(name.uri.clone()))
        }
        "URI" => {
            let message = format!(
                "The uri {:?} of subjectAltNames is not a URI. Use a form like spiffe://a/b.",
                name.uri
            );
            Err(Problem::new("Invalid", message))
        }
        other => {
            let message = format!("subjectAltNames has the type {other}. Use Hostname or URI.");
            Err(Problem::new("Invalid", message))
        }
    });
    read.collect()
}

/// Reads a host name: Weir sends it to servers, or compares it with their certificates.
fn host_name(what: &str, text: &str, allows_wildcard: bool) -> Result<String, Problem> {
    let problem = |why: &str| Problem::new("Invalid", format!("{what} {text:?} {why}."));
    match hosts::host(text).map_err(problem)? {
        HostPattern::Wildcard(_) if !allows_wildcard => {
            Err(problem("has a wildcard; use the name of one host"))
        }
        HostPattern::Exact(_) | HostPattern::Wildcard(_) => Ok(text.to_owned()),
    }
}
