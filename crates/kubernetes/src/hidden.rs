//! Objects of namespaces that the start did not wait for. They are kept apart until all kinds in their namespace are
//! listed: without a policy, a Service would be served in plaintext, and without a route, another one would get its
//! requests. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway::objects::Key;

use crate::item::Item;
use crate::kinds::{Kind, Source};

/// The objects of each source in these namespaces.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    namespaces: BTreeMap<Arc<str>, BTreeMap<Source, BTreeMap<Key, Item>>>,
}

/// Returns whether a source has objects of a namespace that users write: not those that Weir makes.
pub(crate) fn is_of(source: &Source, namespace: &str) -> bool {
    source.kind != Kind::OwnService && source.namespace.as_deref() == Some(namespace)
}

impl Hidden {
    /// Hides a namespace.
    pub(crate) fn hide(&mut self, namespace: Arc<str>) {
        self.namespaces.entry(namespace).or_default();
    }

    /// Returns whether a namespace is hidden.
    pub(crate) fn contains(&self, namespace: &str) -> bool {
        self.namespaces.contains_key(namespace)
    }

    /// Returns the hidden namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.keys()
    }

    /// Returns the objects of a source, if its namespace is hidden.
    pub(crate) fn of(&mut self, source: &Source) -> Option<&mut BTreeMap<Key, Item>> {
        let namespace = source.namespace.as_ref().filter(|one| is_of(source, one))?;
        Some(self.namespaces.get_mut(namespace)?.entry(source.clone()).or_default())
    }

    /// Stops hiding a namespace, and returns its objects.
    pub(crate) fn reveal(&mut self, namespace: &str) -> BTreeMap<Source, Vec<Item>> {
        let sources = self.namespaces.remove(namespace).unwrap_or_default();
        let items = |all: BTreeMap<Key, Item>| all.into_values().collect();
        sources.into_iter().map(|(source, all)| (source, items(all))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item;

    #[test]
    fn only_objects_of_users_in_the_namespace_are_hidden() {
        let source = |kind, namespace: &str| Source { kind, namespace: Some(namespace.into()) };
        let mut hidden = Hidden::default();
        hidden.hide("o".into());
        for (source, is_hidden) in [
            (source(Kind::Service, "o"), true),
            (source(Kind::OwnService, "o"), false),
            (source(Kind::Service, "n"), false),
            (Source { kind: Kind::Service, namespace: None }, false),
        ] {
            assert_eq!(hidden.of(&source).is_some(), is_hidden, "{source}");
        }
        let object = json!({"metadata": {"namespace": "o", "name": "a"}});
        let item = item::read(Kind::Service, object).unwrap();
        hidden.of(&source(Kind::Service, "o")).unwrap().insert(item.key.clone(), item);
        let revealed = hidden.reveal("o");
        assert_eq!(revealed[&source(Kind::Service, "o")].len(), 1);
        assert!(!hidden.contains("o") && hidden.reveal("o").is_empty());
    }
}
