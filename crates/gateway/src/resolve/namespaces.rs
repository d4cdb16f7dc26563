//! Which namespaces a Gateway or a listener allows.

use std::sync::Arc;

use super::cluster::Cluster;
use crate::objects::gateway::Namespaces;

/// Returns whether objects in the namespace `candidate` are allowed. `home` is the namespace of the object that has
/// the rule, and `default` applies if it states nothing. An unknown value allows nothing.
pub fn allow(
    cluster: &Cluster<'_>,
    rule: Option<&Namespaces>,
    default: &str,
    home: &Arc<str>,
    candidate: &Arc<str>,
) -> bool {
    let from = rule.and_then(|rule| rule.from.as_deref()).unwrap_or(default);
    match from {
        "All" => true,
        "Same" => home == candidate,
        "Selector" => {
            let selector = rule.and_then(|rule| rule.selector.as_ref());
            let labels = cluster.labels(candidate);
            selector.zip(labels).is_some_and(|(selector, labels)| selector.selects(labels))
        }
        _ => false,
    }
}

/// Returns the first word of the rule that is unknown.
pub fn unknown(rule: Option<&Namespaces>) -> Option<&str> {
    let from = rule?.from.as_deref()?;
    (!matches!(from, "All" | "Same" | "Selector" | "None")).then_some(from)
}
