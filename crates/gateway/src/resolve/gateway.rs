//! A Gateway with the listeners of its ListenerSets: which are valid, and its conditions.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::cluster::Cluster;
use super::listener::{Plan, conflict};
use super::namespaces;
use super::secret::{self, Referrer};
use super::status::Problem;
use crate::grants::GroupKind;
use crate::ir::{Certificate, ClientMode};
use crate::objects::gateway::{Gateway, GatewayClass, ListenerSet};
use crate::objects::{GATEWAY_GROUP, Key};

/// A Gateway that Weir manages: its GatewayClass names Weir as its controller.
#[derive(Clone, Debug)]
pub struct GatewayPlan<'a> {
    /// The Gateway.
    pub gateway: &'a Gateway,
    /// Its own listeners, then those of attached ListenerSets.
    pub listeners: Vec<Plan<'a>>,
    /// How many of them are its own.
    pub own: usize,
    /// Why it is not accepted.
    pub rejected: Option<Problem>,
    /// The certificate that it presents to servers.
    pub client_certificate: Option<Certificate>,
    /// Why `client_certificate` is invalid.
    pub unresolved: Option<Problem>,
    /// How many ListenerSets are accepted.
    pub attached_sets: u32,
}

impl GatewayPlan<'_> {
    /// Returns whether a listener accepts clients without a valid certificate.
    pub fn allows_insecure_clients(&self) -> bool {
        let validations = self.listeners.iter().filter_map(|plan| plan.client_validation.as_ref());
        validations.into_iter().any(|one| one.mode == ClientMode::AllowInsecureFallback)
    }
}

/// A ListenerSet whose parent is a Gateway that Weir manages.
#[derive(Clone, Debug)]
pub struct SetPlan<'a> {
    /// The ListenerSet.
    pub set: &'a ListenerSet,
    /// The Gateway.
    pub gateway: Key,
    /// Why its listeners were not added to the Gateway's.
    pub refused: Option<Problem>,
    /// Its listeners among those of the Gateway.
    pub listeners: Range<usize>,
}

/// The Gateways and ListenerSets that Weir manages.
#[derive(Clone, Debug, Default)]
pub struct Plans<'a> {
    /// The Gateways.
    pub gateways: BTreeMap<Key, GatewayPlan<'a>>,
    /// The ListenerSets.
    pub sets: BTreeMap<Key, SetPlan<'a>>,
}

impl<'a> Plans<'a> {
    /// Checks all Gateways that Weir manages, and their ListenerSets.
    pub fn new(cluster: &Cluster<'a>) -> Plans<'a> {
        let mut sets_of: HashMap<Key, Vec<&'a ListenerSet>> = HashMap::new();
        for set in cluster.objects.listener_sets.values() {
            if let Some(gateway) = gateway_of(set) {
                sets_of.entry(gateway).or_default().push(set);
            }
        }
        let mut plans = Plans::default();
        for (key, gateway) in &cluster.objects.gateways {
            let Some(class) = own_class(cluster, gateway) else { continue };
            let mut sets = sets_of.remove(key).unwrap_or_default();
            sets.sort_by(|a, b| a.metadata.age_order().cmp(&b.metadata.age_order()));
            let (gateway, sets) = plan(cluster, gateway, class, &sets);
            plans.gateways.insert(key.clone(), gateway);
            plans.sets.extend(sets.into_iter().map(|set| (set.set.metadata.key(), set)));
        }
        plans
    }
}

/// Returns the class of a Gateway that Weir manages.
pub fn own_class<'a>(cluster: &Cluster<'a>, gateway: &Gateway) -> Option<&'a GatewayClass> {
    let class = Key::new("", Arc::clone(&gateway.spec.gateway_class_name));
    let class = cluster.objects.classes.get(&class)?;
    (*class.spec.controller_name == *cluster.settings.controller_name).then_some(class)
}

/// Returns the Gateway of a ListenerSet.
pub fn gateway_of(set: &ListenerSet) -> Option<Key> {
    let parent = &set.spec.parent_ref;
    let is_gateway = parent.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
        && parent.kind.as_deref().unwrap_or("Gateway") == "Gateway";
    is_gateway.then(|| parent.key(&set.metadata.namespace))
}

fn plan<'a>(
    cluster: &Cluster<'a>,
    gateway: &'a Gateway,
    class: &GatewayClass,
    sets: &[&'a ListenerSet],
) -> (GatewayPlan<'a>, Vec<SetPlan<'a>>) {
    let home = &gateway.metadata.namespace;
    let own = gateway.spec.listeners.iter();
    let mut listeners: Vec<Plan<'a>> =
        own.map(|one| Plan::new(cluster, gateway, None, home, one)).collect();
    let own = listeners.len();
    let mut planned = Vec::new();
    for set in sets {
        let start = listeners.len();
        let refused = refusal(cluster, gateway, set);
        if refused.is_none() {
            let home = &set.metadata.namespace;
            let key = set.metadata.key();
            let added = set.spec.listeners.iter();
            listeners
                .extend(added.map(|one| Plan::new(cluster, gateway, Some(key.clone()), home, one)));
        }
        let range = start..listeners.len();
        let gateway = gateway.metadata.key();
        planned.push(SetPlan { set, gateway, refused, listeners: range });
    }
    conflict::mark(&mut listeners);
    let rejected = rejection(gateway, class, &listeners[..own]);
    if rejected.is_some() {
        listeners.truncate(own);
        for set in &mut planned {
            set.listeners = 0..0;
            set.refused.get_or_insert_with(|| {
                let message = format!("Gateway {} is not accepted, see its status.", set.gateway);
                Problem::new("ParentNotAccepted", message)
            });
        }
    }
    let has_valid =
        |set: &&SetPlan<'_>| listeners[set.listeners.clone()].iter().any(Plan::is_valid);
    let attached_sets = planned.iter().filter(has_valid).count() as u32;
    let (client_certificate, unresolved) = client_certificate(cluster, gateway);
    let plan = GatewayPlan {
        gateway,
        listeners,
        own,
        rejected,
        client_certificate,
        unresolved,
        attached_sets,
    };
    (plan, planned)
}

/// Returns whether a Gateway allows a ListenerSet.
pub fn allows(cluster: &Cluster<'_>, gateway: &Gateway, set: &ListenerSet) -> bool {
    let allowed = gateway.spec.allowed_listeners.as_ref();
    let rule = allowed.and_then(|allowed| allowed.namespaces.as_ref());
    let home = &gateway.metadata.namespace;
    namespaces::allow(cluster, rule, "None", home, &set.metadata.namespace)
}

/// Returns why a Gateway does not allow a ListenerSet.
fn refusal(cluster: &Cluster<'_>, gateway: &Gateway, set: &ListenerSet) -> Option<Problem> {
    if allows(cluster, gateway, set) {
        return None;
    }
    let message = format!(
        "Gateway {} does not allow ListenerSets of namespace {}. Change its allowedListeners.",
        gateway.metadata.key(),
        set.metadata.namespace
    );
    Some(Problem::new("NotAllowed", message))
}

/// Returns why a GatewayClass is not accepted.
pub fn class_rejection(class: &GatewayClass) -> Option<Problem> {
    class.spec.parameters_ref.as_ref().map(|parameters| {
        let kind = parameters.kind.as_deref().unwrap_or("object");
        let message = format!(
            "parametersRef refers to {kind} {}, but Weir has no parameters. Remove parametersRef.",
            parameters.name
        );
        Problem::new("InvalidParameters", message)
    })
}

/// Returns why a Gateway is not accepted.
fn rejection(gateway: &Gateway, class: &GatewayClass, own: &[Plan<'_>]) -> Option<Problem> {
    if class_rejection(class).is_some() {
        let name = &class.metadata.name;
        let message = format!("GatewayClass {name} is not accepted, see its status.");
        return Some(Problem::new("InvalidParameters", message));
    }
    let infrastructure = gateway.spec.infrastructure.as_ref();
    if let Some(parameters) = infrastructure.and_then(|one| one.parameters_ref.as_ref()) {
        let kind = parameters.kind.as_deref().unwrap_or("object");
        let message = format!(
            "infrastructure.parametersRef refers to {kind} {}, but Weir has no parameters. Remove \
             parametersRef.",
            parameters.name
        );
        return Some(Problem::new("InvalidParameters", message));
    }
    let is_supported = |kind: &str| matches!(kind, "IPAddress" | "Hostname");
    if let Some(address) = gateway.spec.addresses.iter().find(|one| !is_supported(&one.kind)) {
        let message = format!(
            "Addresses of the type {} are not supported. Use IPAddress or Hostname.",
            address.kind
        );
        return Some(Problem::new("UnsupportedAddress", message));
    }
    if own.iter().any(Plan::is_valid) {
        return None;
    }
    let message = "No listener is valid, see the conditions of the listeners.";
    Some(Problem::new("ListenersNotValid", message))
}

fn client_certificate(
    cluster: &Cluster<'_>,
    gateway: &Gateway,
) -> (Option<Certificate>, Option<Problem>) {
    let tls = gateway.spec.tls.as_ref().and_then(|tls| tls.backend.as_ref());
    let Some(reference) = tls.and_then(|tls| tls.client_certificate_ref.as_ref()) else {
        return (None, None);
    };
    let kind = GroupKind { group: GATEWAY_GROUP, kind: "Gateway" };
    let from = Referrer { kind, home: &gateway.metadata.namespace };
    match secret::certificate(cluster, from, reference, "InvalidClientCertificateRef") {
        Ok(certificate) => (Some(certificate), None),
        Err(problem) => (None, Some(problem)),
    }
}
