//! What objects resolve to, as text: stable, one fact a line.

mod served;

use std::fmt::Write;

use gateway::objects::reference::ParentRef;
use gateway::resolve::Outcome;
use gateway::resolve::status::{Condition, ListenerStatus, Notice};

/// Renders the status of each object, then what is served.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let mut text = String::new();
    statuses(&mut text, outcome);
    ingresses(&mut text, outcome);
    for gateway in outcome.gateways.values() {
        served::gateway(&mut text, gateway);
    }
    text
}

fn statuses(text: &mut String, outcome: &Outcome) {
    let statuses = &outcome.statuses;
    for (key, status) in &statuses.classes {
        line(text, 0, &format!("GatewayClass {key}"));
        conditions(text, 1, &status.conditions);
        line(text, 1, &format!("features: {}", status.supported_features.join(" ")));
    }
    for (key, status) in &statuses.gateways {
        line(text, 0, &format!("Gateway {key}"));
        for address in &status.addresses {
            let value = address.value.as_deref().unwrap_or_default();
            line(text, 1, &format!("address {} {value}", address.kind));
        }
        conditions(text, 1, &status.conditions);
        line(text, 1, &format!("attached ListenerSets: {}", status.attached_listener_sets));
        listeners(text, &status.listeners);
    }
    for (key, status) in &statuses.listener_sets {
        line(text, 0, &format!("ListenerSet {key}"));
        conditions(text, 1, &status.conditions);
        listeners(text, &status.listeners);
    }
    for ((kind, key), status) in &statuses.routes {
        line(text, 0, &format!("{} {key}", kind.name()));
        for parent in &status.parents {
            line(text, 1, &format!("parent {}", reference(&parent.parent_ref)));
            conditions(text, 2, &parent.conditions);
        }
    }
    for (kind, policies) in [
        ("BackendTLSPolicy", &statuses.policies),
        ("ServicePolicy", &statuses.service_policies),
        ("RoutePolicy", &statuses.route_policies),
    ] {
        for (key, status) in policies {
            line(text, 0, &format!("{kind} {key}"));
            for ancestor in &status.ancestors {
                line(text, 1, &format!("ancestor {}", reference(&ancestor.ancestor)));
                conditions(text, 2, &ancestor.conditions);
            }
        }
    }
}

fn ingresses(text: &mut String, outcome: &Outcome) {
    for (key, status) in &outcome.statuses.ingresses {
        let addresses = status.addresses.iter().filter_map(|one| one.value.as_deref());
        let addresses: Vec<&str> = addresses.collect();
        line(text, 0, &format!("Ingress {key} at [{}] {:?}", addresses.join(" "), status.ports));
    }
    for Notice { kind, key, uid: _, reason, message } in outcome.notices.iter() {
        assert!(message.len() <= Notice::MESSAGE_MAX_BYTES && !message.contains(['\r', '\n']));
        line(text, 0, &format!("notice on {kind} {key}: {reason}: {message}"));
    }
}

fn listeners(text: &mut String, listeners: &[ListenerStatus]) {
    for listener in listeners {
        let kinds: Vec<&str> = listener.supported_kinds.iter().map(|kind| kind.name()).collect();
        let count = listener.attached_routes;
        line(
            text,
            1,
            &format!("listener {}: {count} routes, kinds [{}]", listener.name, kinds.join(" ")),
        );
        conditions(text, 2, &listener.conditions);
    }
}

fn conditions(text: &mut String, depth: usize, conditions: &[Condition]) {
    for one in conditions {
        let Condition { kind, is_true, reason, message } = one;
        let status = if *is_true { "True" } else { "False" };
        line(text, depth, &format!("{kind}={status} {reason}: {message}"));
    }
}

fn reference(parent: &ParentRef) -> String {
    let mut text = parent.kind.as_deref().unwrap_or("Gateway").to_owned();
    let namespace = parent.namespace.as_deref().map(|namespace| format!("{namespace}/"));
    let _ = write!(text, " {}{}", namespace.unwrap_or_default(), parent.name);
    if let Some(section) = &parent.section_name {
        let _ = write!(text, " section {section}");
    }
    if let Some(port) = parent.port {
        let _ = write!(text, " port {port}");
    }
    text
}

/// Adds a line, indented.
fn line(text: &mut String, depth: usize, line: &str) {
    let _ = writeln!(text, "{:1$}{line}", "", depth * 2);
}
