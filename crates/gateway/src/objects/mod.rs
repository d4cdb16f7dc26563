//! Kubernetes objects as far as Weir reads them, and the parts of their status that it writes.
//!
//! Fields have the names of the API (camel case in JSON). What is absent has the API's default. Unknown fields are
//! ignored: an API server may have newer versions of the definitions.

pub mod core;
pub mod gateway;
pub mod ingress;
pub mod policy;
pub mod reference;
pub mod route;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::ObjectAge;
use serde::{Deserialize, Serialize};

/// The API group of the Gateway API.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The API group of Weir's own kinds.
pub const WEIR_GROUP: &str = "weir.dev";

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace; empty for objects that have none, such as a GatewayClass.
    pub namespace: Arc<str>,
    /// Unique in the cluster and over time.
    pub uid: Arc<str>,
    /// The number of the last change to its `spec`.
    pub generation: i64,
    /// When it was created (RFC 3339, in seconds): of two objects in conflict, the older one counts.
    pub creation_timestamp: Option<Arc<str>>,
    /// When its deletion began; it exists until its finalizers are done.
    pub deletion_timestamp: Option<Arc<str>>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Meta {
    /// Returns what objects in conflict are ordered by: the older one first, then by namespace and name
    /// (the Gateway API's rule; RFC 3339 in UTC is ordered like text).
    pub fn age_order(&self) -> (Option<&str>, &str, &str) {
        (self.creation_timestamp.as_deref(), &self.namespace, &self.name)
    }

    /// Returns the same as [`Meta::age_order`], to keep.
    pub fn age(&self) -> ObjectAge {
        ObjectAge {
            created: self.creation_timestamp.clone(),
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(&self.name),
        }
    }

    /// Returns its name within the cluster.
    pub fn key(&self) -> Key {
        Key { namespace: Arc::clone(&self.namespace), name: Arc::clone(&self.name) }
    }
}

/// Namespace and name of an object. Displayed as `namespace/name`, or the name alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Empty for objects without a namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Key {
    /// Creates a key.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A condition of an object's status, as it is written (`metav1.Condition`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about: `Accepted`, `Programmed` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word, for programs.
    pub reason: String,
    /// A sentence, for people.
    pub message: String,
    /// The generation of the object that it is about.
    pub observed_generation: i64,
    /// When `status` last changed (RFC 3339).
    pub last_transition_time: String,
}

/// Chooses objects by their labels (`metav1.LabelSelector`). An empty one chooses all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements, which must all be met.
    pub match_expressions: Vec<Requirement>,
}

/// A requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values of `In` and `NotIn`.
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Returns whether these labels meet it. Nothing meets a requirement with an unknown operator.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|one| one.is_met(labels))
    }
}

impl Requirement {
    fn is_met(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match &*self.operator {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            // As in Kubernetes, a label that is absent has none of the values.
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_choose_by_labels_and_expressions() {
        let labels: BTreeMap<_, _> = [("app", "web"), ("tier", "front")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let cases = [
            ("{}", true),
            (r#"{"matchLabels": {"app": "web"}}"#, true),
            (r#"{"matchLabels": {"app": "api"}}"#, false),
            (
                r#"{"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "web"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}"#,
                false,
            ),
            (r#"{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}"#, false),
            (r#"{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}"#, true),
            (
                r#"{"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}"#,
                false,
            ),
        ];
        for (text, expected) in cases {
            let selector: LabelSelector = serde_json::from_str(text).unwrap();
            assert_eq!(selector.selects(&labels), expected, "{text}");
        }
    }
}
