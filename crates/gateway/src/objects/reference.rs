//! References from one object to another. An absent namespace is that of the object that has the reference.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{GATEWAY_GROUP, Key};

/// A reference to an object with a group and a kind, of which some have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// Its API group; empty or absent: the core group.
    pub group: Option<Arc<str>>,
    /// Its kind; absent: as the field that has the reference says.
    pub kind: Option<Arc<str>>,
    /// Its namespace.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// A part of it, such as a port of a Service.
    #[serde(rename = "sectionName")]
    pub section_name: Option<Arc<str>>,
}

impl ObjectRef {
    /// Returns whether it refers to this group and kind; `default_kind` is the kind of a reference without one.
    pub fn is(&self, group: &str, kind: &str, default_kind: &str) -> bool {
        self.group.as_deref().unwrap_or_default() == group
            && self.kind.as_deref().unwrap_or(default_kind) == kind
    }

    /// Returns the object's key; `home` is the namespace of the object that has the reference.
    pub fn key(&self, home: &Arc<str>) -> Key {
        Key::new(Arc::clone(self.namespace.as_ref().unwrap_or(home)), Arc::clone(&self.name))
    }
}

/// A reference from a route to a Gateway or a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentRef {
    /// Absent: the group of the Gateway API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
    /// Absent: `Gateway`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// One listener of it; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<Arc<str>>,
    /// Its listeners with this port; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

impl ParentRef {
    /// Returns the kind, if it is of the Gateway API.
    pub fn gateway_kind(&self) -> Option<&str> {
        let is_ours = self.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP;
        is_ours.then(|| self.kind.as_deref().unwrap_or("Gateway"))
    }

    /// Returns the parent's key; `home` is the route's namespace.
    pub fn key(&self, home: &Arc<str>) -> Key {
        Key::new(Arc::clone(self.namespace.as_ref().unwrap_or(home)), Arc::clone(&self.name))
    }
}

/// A reference from a route to what its requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BackendRef<F = ()> {
    /// The API group of the object; absent: the core group.
    pub group: Option<Arc<str>>,
    /// Its kind; absent: `Service`.
    pub kind: Option<Arc<str>>,
    /// Its namespace.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
    /// The Service's port.
    pub port: Option<u16>,
    /// Its share of the requests, in proportion to the others' sum.
    pub weight: u32,
    /// Filters for requests to it alone.
    pub filters: Vec<F>,
}

impl<F> BackendRef<F> {
    /// Returns whether it refers to a Service.
    pub fn is_service(&self) -> bool {
        self.group.as_deref().unwrap_or_default().is_empty()
            && self.kind.as_deref().unwrap_or("Service") == "Service"
    }

    /// Returns the object's key; `home` is the route's namespace.
    pub fn key(&self, home: &Arc<str>) -> Key {
        Key::new(Arc::clone(self.namespace.as_ref().unwrap_or(home)), Arc::clone(&self.name))
    }
}

impl<F> Default for BackendRef<F> {
    fn default() -> BackendRef<F> {
        BackendRef {
            group: None,
            kind: None,
            namespace: None,
            name: Arc::default(),
            port: None,
            weight: 1,
            filters: Vec::new(),
        }
    }
}
