//! RoutePolicies: which one applies to a rule of a route, and what is wrong with each.

use std::sync::Arc;

use config::policy::{AuthenticationTerms, BackendRef, CompressionTerms, Reference, RouteTerms};
use model::{Material, ServiceId};

use super::policy::targets::{Target, oldest_first};
use super::policy::{Policies, invalid};
use crate::grants::GroupKind;
use crate::ir::backend::Target as BackendTarget;
use crate::ir::extras::{Authentication, Extras, Owner, UNUSABLE};
use crate::ir::{RouteId, RouteKind};
use crate::objects::policy::{Contents, RoutePolicy};
use crate::objects::reference;
use crate::objects::{Key, WEIR_GROUP};
use crate::resolve::cluster::Cluster;
use crate::resolve::ports::Ports;
use crate::resolve::route_targets;
use crate::resolve::secret::Referrer;
use crate::resolve::status::{Condition, Problem};

/// All RoutePolicies, with what they state.
pub type RoutePolicies = Policies<RouteId, Stated>;

/// What a policy states for the rules that it applies to.
#[derive(Clone, Debug)]
pub struct Stated {
    /// What happens to their requests. If the policy is invalid and states authentication, they are refused: they must not
    /// pass without.
    pub extras: Arc<Extras>,
    /// The Service that is asked about their requests, whether it exists or not.
    pub asked: Option<Key>,
}

/// What a policy is found to state, or what is wrong with it.
struct Found {
    extras: Result<Extras, Problem>,
    /// References that cannot be resolved.
    unresolved: Vec<Problem>,
    asked: Option<Key>,
}

impl RoutePolicies {
    /// Returns what applies to a rule of a route: the limits and the compression of the policy that applies, and the
    /// authentication of the first policy that states one.
    pub fn of_rule(&self, route: &RouteId, rule: Option<&Arc<str>>) -> Option<Stated> {
        let (_, winner) = self.winner(route, rule)?;
        let Some(guard) = self.guard(route, rule) else { return Some(winner.clone()) };
        if Arc::ptr_eq(&winner.extras, &guard.extras) {
            return Some(winner.clone());
        }
        let extras = Extras {
            refusal: guard.extras.refusal,
            authentication: guard.extras.authentication.clone(),
            limits: winner.extras.limits.clone(),
            compression: winner.extras.compression.clone(),
        };
        Some(Stated { extras: Arc::new(extras), asked: guard.asked.clone() })
    }
}

/// Checks the policies that Weir uses. Of several with the same target, the oldest applies that is valid or states
/// authentication.
pub fn policies(ports: Ports<'_>) -> RoutePolicies {
    let cluster = ports.cluster;
    let mut policies = RoutePolicies::default();
    let all = cluster.objects.route_policies.values();
    let used = all.filter(|policy| route_targets::is_used(cluster, policy));
    for policy in oldest_first(used, |one| &one.metadata) {
        let metadata = &policy.metadata;
        let key = metadata.key();
        let targets = route_targets::routes(&policy.spec.target_refs, &metadata.namespace);
        let Found { extras, unresolved, asked } = found(policy, ports);
        let protects = policy.states_authentication();
        let accepted = match &extras {
            Err(problem) if !protects => {
                targets.for_each(|(route, _)| policies.targets.mention(&key, &route));
                Condition::no("Accepted", problem)
            }
            extras => {
                let extras = extras.as_ref().map_err(|problem| refused(policy, problem));
                let missing = |target: &Target<RouteId>| missing_route(cluster, target);
                let claim = policies.targets.claim(&key, protects, targets, missing);
                claim.accepted("RoutePolicy", extras.err().as_ref())
            }
        };
        let resolved = match Problem::first(&unresolved) {
            Some(problem) => Condition::no("ResolvedRefs", &problem),
            None => Condition::yes("ResolvedRefs", "ResolvedRefs", "All references are valid."),
        };
        let extras = Arc::new(extras.unwrap_or_else(|_| Extras::refusing(UNUSABLE)));
        policies.add(metadata, vec![accepted, resolved], Stated { extras, asked });
    }
    policies
}

/// Returns what is wrong with a policy that states authentication, and what that means.
fn refused(policy: &RoutePolicy, problem: &Problem) -> Problem {
    let states = match policy.spec.unreadable {
        None => "states",
        Some(_) => "may state",
    };
    let message = format!(
        "{} Requests for its targets receive the status {} until the policy is corrected, since it \
         {states} authentication.",
        problem.message, UNUSABLE.status
    );
    Problem::new(problem.reason, message)
}

/// Returns a problem if a route or a rule of it does not exist.
fn missing_route(
    cluster: &Cluster<'_>,
    ((kind, key), section): &Target<RouteId>,
) -> Option<Problem> {
    let objects = cluster.objects;
    let is_named = |name: &Option<Arc<str>>| *name == *section;
    // Whether the route exists, and whether the rule does.
    let has_rule = match kind {
        RouteKind::Http => objects
            .http_routes
            .get(key)
            .map(|route| route.spec.rules.iter().any(|rule| is_named(&rule.name))),
        RouteKind::Grpc => objects
            .grpc_routes
            .get(key)
            .map(|route| route.spec.rules.iter().any(|rule| is_named(&rule.name))),
        RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress => None,
    };
    let kind = kind.name();
    let message = match (has_rule, section) {
        (None, _) => format!("{kind} {key} does not exist. Create it or change targetRefs."),
        (Some(false), Some(name)) => {
            format!("{kind} {key} has no rule with the name {name}. Change sectionName.")
        }
        (Some(_), None) | (Some(true), Some(_)) => return None,
    };
    Some(Problem::new("TargetNotFound", message))
}

fn found(policy: &RoutePolicy, ports: Ports<'_>) -> Found {
    if let Some(why) = &policy.spec.unreadable {
        let problem = Problem::new("Invalid", format!("The policy cannot be read: {why}."));
        return Found { extras: Err(problem), unresolved: Vec::new(), asked: None };
    }
    let key = policy.metadata.key();
    let references = RouteTerms::references(&policy.spec.terms);
    let materials: Vec<Contents> =
        references.iter().map(|one| Contents(material(ports.cluster, &key, *one))).collect();
    let why = materials.iter().filter_map(|Contents(one)| one.as_ref().err());
    let mut unresolved: Vec<Problem> =
        why.map(|why| Problem::new("InvalidRef", format!("{why}."))).collect();
    let read = policy.terms.or(materials, |materials| {
        let material = |wanted: Reference<'_>| {
            let place = references.iter().position(|one| *one == wanted);
            match place.and_then(|place| materials.get(place)) {
                Some(Contents(found)) => found.clone(),
                None => material(ports.cluster, &key, wanted),
            }
        };
        RouteTerms::read(&policy.spec.terms, &material).map(Arc::new)
    });
    let terms = match read {
        Ok(terms) => terms,
        Err(mistakes) => {
            return Found { extras: Err(invalid(&mistakes)), unresolved, asked: None };
        }
    };
    let backend = terms.authentication.as_ref().and_then(|one| one.backend.as_ref());
    let (asked, target) = match backend.map(|stated| asked(stated, &key, ports)) {
        None => (None, Ok(None)),
        Some((asked, Ok(target))) => (asked, Ok(Some(target))),
        Some((asked, Err(problem))) => {
            unresolved.push(problem.clone());
            (asked, Err(Problem::new("Invalid", problem.message)))
        }
    };
    let authentication = target.map(|target| {
        let stated = terms.authentication.as_ref();
        stated.map(|stated| authentication(stated, &key, target))
    });
    let extras = authentication.map(|authentication| Extras {
        refusal: None,
        limits: terms.limits.clone(),
        compression: match &terms.compression {
            CompressionTerms::On(compression) => Some(compression.clone()),
            // Routes of Gateways have none by themselves.
            CompressionTerms::Off | CompressionTerms::Unstated => None,
        },
        authentication: authentication.map(Arc::new),
    });
    Found { extras, unresolved, asked }
}

/// Returns what a policy refers to in its namespace. An error is a sentence without its end.
fn material(
    cluster: &Cluster<'_>,
    policy: &Key,
    reference: Reference<'_>,
) -> Result<Material, String> {
    let key = |name: &str| Key::new(Arc::clone(&policy.namespace), name);
    let (what, found) = match reference {
        Reference::UsersSecret(name) => {
            let key = key(name);
            (format!("Secret {key}"), cluster.users(&key))
        }
        Reference::KeysConfigMap(name) => {
            let key = key(name);
            (format!("ConfigMap {key}"), cluster.keys(&key))
        }
        // Those that the configuration has then take their place when the policy becomes a part of it.
        Reference::SystemAuthorities => {
            let found = (cluster.settings.checks.system)();
            return found.ok_or_else(|| "this system has no authorities".to_owned());
        }
    };
    match found {
        Ok(bytes) => Ok(Material { path: what.into(), bytes }),
        Err(why) => Err(format!("{what} {why}")),
    }
}

/// Returns the Service that is asked, if the policy may refer to it, and where requests to it go.
fn asked(
    stated: &BackendRef,
    policy: &Key,
    ports: Ports<'_>,
) -> (Option<Key>, Result<BackendTarget, Problem>) {
    let BackendRef { namespace, name, port, path: _ } = stated;
    let reference = reference::BackendRef::<()> {
        namespace: namespace.as_deref().map(Into::into),
        name: name.as_str().into(),
        port: Some(*port),
        ..reference::BackendRef::default()
    };
    let kind = GroupKind { group: WEIR_GROUP, kind: "RoutePolicy" };
    let from = Referrer { kind, home: &policy.namespace };
    match ports.permitted(from, &reference) {
        Ok(service) => {
            let port = ports.port(&service, reference.port, "backendRef");
            let port = port.and_then(Ports::usable);
            (Some(service), port.map(|port| BackendTarget::Service(Arc::new(port))))
        }
        Err(problem) => (None, Err(problem)),
    }
}

fn authentication(
    stated: &AuthenticationTerms,
    policy: &Key,
    asked: Option<BackendTarget>,
) -> Authentication {
    // Its name becomes the realm if none is stated.
    let rules = stated.named(&policy.name, ServiceId(0));
    Authentication { owner: Owner::RoutePolicy(policy.clone()), rules, asked }
}
