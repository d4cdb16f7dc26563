//! BackendTLSPolicies: which one applies to a Service's port, and what is wrong with each.

use std::sync::Arc;

use model::HostPattern;

use super::Policies;
use super::targets::{Target, oldest_first, section};
use crate::grants::GroupKind;
use crate::hosts;
use crate::ir::backend::{CertificateName, ServerTls, ServerVerification, Trust};
use crate::objects::policy::BackendTlsPolicy;
use crate::objects::reference::ObjectRef;
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::cluster::Cluster;
use crate::resolve::secret::{self, Referrer};
use crate::resolve::status::{Condition, Problem};

/// All BackendTLSPolicies, with how the certificates of servers are verified. `None`: the policy is invalid.
pub type TlsPolicies = Policies<Key, Option<Arc<ServerVerification>>>;

/// Checks all policies. Of several with the same target, the oldest applies.
pub fn policies(cluster: &Cluster<'_>) -> TlsPolicies {
    let mut policies = TlsPolicies::default();
    for policy in oldest_first(cluster.objects.policies.values(), |one| &one.metadata) {
        let metadata = &policy.metadata;
        let targets = services(&policy.spec.target_refs, &metadata.namespace);
        let missing = |target: &Target<Key>| missing_service(cluster, target);
        let claim = policies.targets.claim(&metadata.key(), false, targets, missing);
        let (resolved, verification) = verification(cluster, policy);
        let accepted = claim.accepted("BackendTLSPolicy", verification.as_ref().err());
        policies.add(metadata, vec![accepted, resolved], verification.ok().map(Arc::new));
    }
    policies
}

impl TlsPolicies {
    /// Returns how connections to a port of a Service use TLS. A policy for the port precedes one for the Service.
    pub fn of_port(&self, service: &Key, port: Option<&Arc<str>>) -> ServerTls {
        match self.winner(service, port) {
            None => ServerTls::None,
            Some((_, Some(verification))) => ServerTls::Verified(Arc::clone(verification)),
            Some((policy, None)) => ServerTls::Invalid { policy: policy.clone() },
        }
    }
}

/// Returns the Services, or ports of them by name, that a policy in the namespace `home` is for. A policy and its targets
/// are in the same namespace.
pub fn services<'a>(
    references: &'a [ObjectRef],
    home: &'a Arc<str>,
) -> impl Iterator<Item = Target<Key>> + 'a {
    let services = references.iter().filter(|target| target.is("", "Service", "Service"));
    services.map(|target| (Key::new(Arc::clone(home), Arc::clone(&target.name)), section(target)))
}

/// Returns a problem if a Service or a port of it does not exist.
pub fn missing_service(cluster: &Cluster<'_>, (service, section): &Target<Key>) -> Option<Problem> {
    let Some(found) = cluster.objects.services.get(service) else {
        let message = format!("Service {service} does not exist. Create it or change targetRefs.");
        return Some(Problem::new("TargetNotFound", message));
    };
    let section = section.as_deref()?;
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
