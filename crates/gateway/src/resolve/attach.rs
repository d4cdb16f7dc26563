//! Which listeners a route attaches to.

use std::sync::Arc;

use model::HostPattern;

use super::gateway::{GatewayPlan, SetPlan};
use super::listener::Plan;
use super::namespaces;
use super::status::Problem;
use super::world::World;
use crate::hosts;
use crate::ir::{ListenerId, RouteKind};
use crate::objects::reference::ParentRef;

/// A listener that a route attaches to, and the hosts that the route serves there.
pub type Attachment = (ListenerId, Vec<Option<HostPattern>>);

/// What attaches: a route without its rules.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its kind.
    pub kind: RouteKind,
    /// Its namespace.
    pub home: &'a Arc<str>,
    /// Its hosts. Empty: those of the listeners.
    pub hosts: &'a [HostPattern],
}

/// Returns the listeners of one parent that a route attaches to, or why it attaches to none. `None`: Weir does
/// not manage the parent.
pub fn attach(
    world: &World<'_>,
    route: Candidate<'_>,
    parent: &ParentRef,
) -> Option<Result<Vec<Attachment>, Problem>> {
    let key = parent.key(route.home);
    let listeners = match parent.gateway_kind()? {
        "Gateway" => {
            let plan = world.plans.gateways.get(&key)?;
            &plan.listeners[..plan.own]
        }
        "ListenerSet" => {
            let set = world.plans.sets.get(&key)?;
            let plan = world.plans.gateways.get(&set.gateway)?;
            if let Some(problem) = not_attached(plan, set) {
                return Some(Err(problem));
            }
            &plan.listeners[set.listeners.clone()]
        }
        _ => return None,
    };
    Some(among(world, route, parent, listeners))
}

/// Returns a problem if the listeners of a ListenerSet were not added to its Gateway.
fn not_attached(plan: &GatewayPlan<'_>, set: &SetPlan<'_>) -> Option<Problem> {
    let refused = set.refused.as_ref()?;
    let message = format!(
        "ListenerSet {} is not attached to Gateway {}: {}",
        set.set.metadata.key(),
        plan.gateway.metadata.key(),
        refused.message
    );
    Some(Problem::new("NoMatchingParent", message))
}

fn among(
    world: &World<'_>,
    route: Candidate<'_>,
    parent: &ParentRef,
    listeners: &[Plan<'_>],
) -> Result<Vec<Attachment>, Problem> {
    let key = parent.key(route.home);
    let kind = parent.gateway_kind().unwrap_or_default();
    let is_named = |plan: &&Plan<'_>| {
        parent.section_name.as_ref().is_none_or(|name| *name == plan.id.name)
            && parent.port.is_none_or(|port| port == plan.port())
    };
    let named: Vec<&Plan<'_>> = listeners.iter().filter(is_named).collect();
    if named.is_empty() {
        let message = format!(
            "{kind} {key} has no listener with the sectionName or port of this parentRef. Correct \
             the parentRef."
        );
        return Err(Problem::new("NoMatchingParent", message));
    }
    let is_allowed = |plan: &&&Plan<'_>| {
        let rule = plan.spec.allowed_routes.namespaces.as_ref();
        plan.kinds.contains(&route.kind)
            && namespaces::allow(&world.cluster, rule, "Same", plan.home, route.home)
    };
    let allowed: Vec<&Plan<'_>> = named.iter().filter(is_allowed).copied().collect();
    if allowed.is_empty() {
        let message = format!(
            "No listener of {kind} {key} allows {}s from namespace {}. Check allowedRoutes and the \
             protocols of its listeners.",
            route.kind.name(),
            route.home
        );
        return Err(Problem::new("NotAllowedByListeners", message));
    }
    let with_hosts = allowed.iter().map(|plan| {
        let hosts = match route.kind {
            RouteKind::Tcp => vec![None],
            RouteKind::Http | RouteKind::Grpc | RouteKind::Tls | RouteKind::Ingress => {
                hosts::in_common(plan.host.as_ref(), route.hosts)
            }
        };
        (plan.id.clone(), hosts)
    });
    let attached: Vec<Attachment> = with_hosts.filter(|(_, hosts)| !hosts.is_empty()).collect();
    if attached.is_empty() {
        let message = format!(
            "No hostname of this route matches that of a listener of {kind} {key}. Change the \
             hostnames of either."
        );
        return Err(Problem::new("NoMatchingListenerHostname", message));
    }
    Ok(attached)
}
