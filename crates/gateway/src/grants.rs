//! References across namespaces: a ReferenceGrant in the namespace of the target must permit each.

use std::collections::HashMap;
use std::sync::Arc;

use crate::objects::Key;
use crate::objects::policy::{GrantFrom, GrantTo, ReferenceGrant};

/// The group and kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKind<'a> {
    /// Empty: the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// All ReferenceGrants, by namespace.
#[derive(Debug, Default)]
pub struct Grants(HashMap<Arc<str>, Vec<Grant>>);

/// The objects that may refer, and those that may be referred to.
type Grant = (Vec<GrantFrom>, Vec<GrantTo>);

impl Grants {
    /// Collects the grants.
    pub fn new<'a>(all: impl IntoIterator<Item = &'a ReferenceGrant>) -> Grants {
        let mut grants = Grants::default();
        for ReferenceGrant { metadata, spec } in all {
            let of_namespace = grants.0.entry(Arc::clone(&metadata.namespace)).or_default();
            of_namespace.push((spec.from.clone(), spec.to.clone()));
        }
        grants
    }

    /// Returns whether an object in the namespace `home` may refer to `target`.
    pub fn allow(&self, from: GroupKind<'_>, home: &str, to: GroupKind<'_>, target: &Key) -> bool {
        if *target.namespace == *home {
            return true;
        }
        let is_from = |one: &GrantFrom| {
            *one.group == *from.group && *one.kind == *from.kind && *one.namespace == *home
        };
        let is_to = |one: &GrantTo| {
            let is_named = one.name.as_ref().is_none_or(|name| *name == target.name);
            *one.group == *to.group && *one.kind == *to.kind && is_named
        };
        let grants = self.0.get(&target.namespace).into_iter().flatten();
        grants.into_iter().any(|(froms, tos)| froms.iter().any(is_from) && tos.iter().any(is_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_grant_names_may_be_referred_to() {
        let text = r#"{
            "metadata": {"name": "g", "namespace": "certs"},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra"}],
                "to": [{"group": "", "kind": "Secret", "name": "a"}, {"group": "", "kind": "ConfigMap"}]
            }
        }"#;
        let grant: ReferenceGrant = serde_json::from_str(text).unwrap();
        let grants = Grants::new([&grant]);
        let gateway = GroupKind { group: "gateway.networking.k8s.io", kind: "Gateway" };
        let route = GroupKind { kind: "HTTPRoute", ..gateway };
        let secret = GroupKind { group: "", kind: "Secret" };
        let config_map = GroupKind { group: "", kind: "ConfigMap" };
        for (from, home, to, namespace, name, expected) in [
            (gateway, "infra", secret, "certs", "a", true),
            (gateway, "infra", secret, "certs", "b", false),
            (gateway, "infra", config_map, "certs", "b", true),
            (gateway, "other", secret, "certs", "a", false),
            (route, "infra", secret, "certs", "a", false),
            (gateway, "infra", secret, "elsewhere", "a", false),
            (gateway, "infra", secret, "infra", "b", true),
            (gateway, "infra", GroupKind { group: "x", kind: "Secret" }, "certs", "a", false),
        ] {
            let target = Key::new(namespace, name);
            assert_eq!(
                grants.allow(from, home, to, &target),
                expected,
                "{from:?} {home} {to:?} {target}"
            );
        }
    }
}
