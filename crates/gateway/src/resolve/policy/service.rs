//! ServicePolicies: which one applies to a Service's port, and what is wrong with each.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

use config::policy::{Mistake, ServiceTerms};
use model::{HttpVersion, Service};
use serde_json::{Map, Value};

use super::targets::{Target, oldest_first};
use super::tls::{missing_service, services};
use super::{MISTAKES_SHOWN_MAX, Policies, invalid};
use crate::grants::GroupKind;
use crate::ir::app_protocol::AppProtocol;
use crate::objects::policy::{ServicePolicy, Stated};
use crate::objects::{GATEWAY_GROUP, Key};
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
    note_misfits(cluster, &mut policies);
    policies
}

/// Notes in the status of each policy to which ports a part of it does not apply.
fn note_misfits(cluster: &Cluster<'_>, policies: &mut ServicePolicies) {
    let mut found: BTreeMap<Key, (Mistake, BTreeSet<(Key, u16)>)> = BTreeMap::new();
    let of_grpc = LazyCell::new(|| ports_of_grpc(cluster));
    for service in policies.objects() {
        let Some(spec) = cluster.objects.services.get(service) else { continue };
        for port in spec.spec.ports.iter().filter(|port| port.is_tcp()) {
            let Some((policy, Some(stated))) = policies.winner(service, port.name.as_ref()) else {
                continue;
            };
            let Some(misfit) = &stated.http2_misfit else { continue };
            let protocol = port.app_protocol.as_deref().map(AppProtocol::read);
            let is_http2 = match protocol {
                Some(protocol) => protocol.is_http2(),
                None => of_grpc.contains(&(service.clone(), port.port)),
            };
            if is_http2 {
                let of_policy = found.entry(policy.clone());
                let (_, ports) = of_policy.or_insert_with(|| (misfit.clone(), BTreeSet::new()));
                ports.insert((service.clone(), port.port));
            }
        }
    }
    for (policy, (Mistake { path, problem }, ports)) in found {
        let shown = ports.iter().take(MISTAKES_SHOWN_MAX);
        let shown = shown.map(|(service, port)| format!("port {port} of Service {service}"));
        let mut shown = shown.collect::<Vec<_>>().join(", ");
        if let Some(more) = ports.len().checked_sub(MISTAKES_SHOWN_MAX).filter(|more| *more > 0) {
            shown = format!("{shown} and {more} more");
        }
        policies.note(&policy, &format!("{path} does not apply to {shown}: {problem}."));
    }
}

/// Returns the ports that GRPCRoutes forward to: they have HTTP/2 unless their Service says otherwise.
fn ports_of_grpc(cluster: &Cluster<'_>) -> HashSet<(Key, u16)> {
    let from = GroupKind { group: GATEWAY_GROUP, kind: "GRPCRoute" };
    let routes = cluster.objects.grpc_routes.values().flat_map(|route| {
        let home = &route.metadata.namespace;
        let all = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
        all.filter(|one| one.is_service()).map(move |one| (home, one.key(home), one.port))
    });
    let permitted = routes.filter(|(home, key, _)| cluster.allows(from, home, "Service", key));
    permitted.filter_map(|(_, key, port)| Some((key, port?))).collect()
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
    let http2_misfit = http2_service().and_then(|service| terms.misfit(service));
    Ok(Stated { terms, pod_limit_max, http2_misfit })
}

/// Returns a service whose servers speak HTTP/2: what a policy states is compared with it.
fn http2_service() -> Option<&'static Service> {
    const TEXT: &str = "[[listener]]\naddress = \"127.0.0.1:1\"\n\
        [service.a]\nhttp = \"2\"\nserver = [{ address = \"192.0.2.1:80\" }]\n\
        [[route]]\nservice = \"a\"\n";
    static SERVICE: OnceLock<Option<Arc<Service>>> = OnceLock::new();
    let read = || {
        let checked = config::check(TEXT, "a service", &()).ok()?;
        checked.snapshot.services.into_iter().find(|service| service.http == HttpVersion::Http2)
    };
    SERVICE.get_or_init(read).as_deref()
}
