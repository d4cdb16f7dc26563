//! The status of GatewayClasses, Gateways, ListenerSets and their listeners.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exclusive::Accepted;
use crate::objects::Key;
use crate::objects::gateway::Address;
use crate::resolve::gateway::{GatewayPlan, SetPlan, class_rejection};
use crate::resolve::listener::Plan;
use crate::resolve::status::{
    ClassStatus, Condition, GatewayStatus, ListenerSetStatus, ListenerStatus, Problem,
};
use crate::resolve::world::World;

/// Returns the status of the GatewayClasses that name Weir as their controller.
pub(super) fn classes(world: &World<'_>, features: &[&str]) -> BTreeMap<Key, ClassStatus> {
    let name = &world.cluster.settings.controller_name;
    let classes = world.cluster.objects.classes.iter();
    let ours = classes.filter(|(_, class)| *class.spec.controller_name == **name);
    let mut supported: Vec<String> = features.iter().map(|one| (*one).to_owned()).collect();
    supported.sort();
    let status = ours.map(|(key, class)| {
        let accepted = match class_rejection(class) {
            Some(problem) => Condition::no("Accepted", &problem),
            None => {
                Condition::yes("Accepted", "Accepted", "Weir serves the Gateways of this class.")
            }
        };
        let status = ClassStatus {
            generation: class.metadata.generation,
            conditions: vec![accepted],
            supported_features: supported.clone(),
        };
        (key.clone(), status)
    });
    status.collect()
}

/// Returns the status of a Gateway.
pub(super) fn gateway_status(
    plan: &GatewayPlan<'_>,
    addresses: &[Address],
    served: &Accepted<'_>,
) -> GatewayStatus {
    let own = &plan.listeners[..plan.own];
    let problem = plan.rejected.as_ref().map(|problem| problem.message.as_str());
    let invalid: Vec<&str> =
        own.iter().filter(|plan| !plan.is_valid()).map(|plan| &*plan.id.name).collect();
    let accepted = match &plan.rejected {
        Some(problem) => Condition::no("Accepted", problem),
        None if invalid.is_empty() => {
            Condition::yes("Accepted", "Accepted", "Weir accepts this Gateway.")
        }
        None => Condition::yes(
            "Accepted",
            "ListenersNotValid",
            format!("These listeners are not served: {}. The others are.", invalid.join(", ")),
        ),
    };
    let unresolved = own.iter().find(|plan| !plan.unresolved.is_empty());
    let resolved = match (&plan.unresolved, unresolved) {
        (Some(problem), _) => Condition::no("ResolvedRefs", problem),
        (None, Some(listener)) => {
            let name = &listener.id.name;
            let message = format!("Listener {name} has invalid references, see its conditions.");
            Condition::no("ResolvedRefs", &Problem::new("ListenersNotResolved", message))
        }
        (None, None) => Condition::yes("ResolvedRefs", "ResolvedRefs", "All references are valid."),
    };
    let mut conditions = vec![accepted, programmed(plan, addresses), resolved];
    if plan.allows_insecure_clients() {
        let message = "A listener accepts clients without a valid certificate: tls.frontend has \
        the mode AllowInsecureFallback.";
        let kind = "InsecureFrontendValidationMode";
        conditions.push(Condition::yes(kind, "ConfigurationChanged", message));
    }
    GatewayStatus {
        generation: plan.gateway.metadata.generation,
        addresses: addresses.to_vec(),
        conditions,
        listeners: own.iter().map(|plan| listener_status(plan, served, problem)).collect(),
        attached_listener_sets: plan.attached_sets,
    }
}

fn programmed(plan: &GatewayPlan<'_>, addresses: &[Address]) -> Condition {
    if let Some(problem) = &plan.rejected {
        return Condition::no("Programmed", &Problem::new("Invalid", problem.message.clone()));
    }
    let wanted = plan.gateway.spec.addresses.iter();
    let is_missing = |address: &&Address| {
        address.value.as_deref().is_some_and(|value| !value.is_empty())
            && !addresses.contains(address)
    };
    let missing: Vec<&str> =
        wanted.filter(is_missing).filter_map(|address| address.value.as_deref()).collect();
    if !missing.is_empty() {
        let message = format!(
            "These addresses of spec.addresses are not assigned to Weir: {}. Assign them or remove \
             them.",
            missing.join(", ")
        );
        return Condition::no("Programmed", &Problem::new("AddressNotUsable", message));
    }
    if addresses.is_empty() {
        let message =
            "No address is known yet. If this does not change, check the status of Weir's Service.";
        return Condition::no("Programmed", &Problem::new("AddressNotAssigned", message));
    }
    Condition::yes("Programmed", "Programmed", "Weir serves this Gateway.")
}

/// Returns the status of a ListenerSet, whose listeners are among those of its Gateway.
pub(super) fn set_status(
    set: &SetPlan<'_>,
    listeners: &[Plan<'_>],
    served: &Accepted<'_>,
) -> ListenerSetStatus {
    let invalid: Vec<&str> =
        listeners.iter().filter(|plan| !plan.is_valid()).map(|plan| &*plan.id.name).collect();
    let rejected = set.refused.clone().or_else(|| {
        let message = "No listener is valid, see the conditions of the listeners.";
        (invalid.len() == listeners.len()).then(|| Problem::new("ListenersNotValid", message))
    });
    let conditions = if let Some(problem) = &rejected {
        vec![Condition::no("Accepted", problem), Condition::no("Programmed", problem)]
    } else {
        let gateway = &set.gateway;
        let (reason, message) = match &invalid[..] {
            [] => ("Accepted", format!("The listeners are added to Gateway {gateway}.")),
            some => (
                "ListenersNotValid",
                format!("These listeners are not served: {}. The others are.", some.join(", ")),
            ),
        };
        let programmed = format!("Gateway {gateway} serves the valid listeners.");
        vec![
            Condition::yes("Accepted", reason, message),
            Condition::yes("Programmed", "Programmed", programmed),
        ]
    };
    ListenerSetStatus {
        generation: set.set.metadata.generation,
        conditions,
        listeners: listeners.iter().map(|plan| listener_status(plan, served, None)).collect(),
    }
}

fn listener_status(
    plan: &Plan<'_>,
    served: &Accepted<'_>,
    gateway_problem: Option<&str>,
) -> ListenerStatus {
    ListenerStatus {
        name: Arc::clone(&plan.id.name),
        supported_kinds: plan.kinds.clone(),
        attached_routes: served.at(&plan.id).map_or(0, |routes| routes.len()) as u32,
        conditions: plan.conditions(gateway_problem),
    }
}
