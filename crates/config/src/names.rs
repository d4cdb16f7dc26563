//! Resolves the names in a file.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use model::{AuthenticationId, ListenerId, ServiceId};

use crate::raw::Document;

/// Names of a document and what they refer to; for a duplicate name, the first.
pub(crate) struct Names {
    pub(crate) listeners: HashMap<Arc<str>, ListenerId>,
    pub(crate) services: HashMap<Arc<str>, ServiceId>,
    pub(crate) services_known: bool,
    pub(crate) authentications: HashMap<Arc<str>, AuthenticationId>,
    pub(crate) authentications_known: bool,
    /// Every listener has a readable name.
    pub(crate) listeners_known: bool,
}

impl Names {
    pub(crate) fn of(document: &Document) -> Names {
        let mut listeners = HashMap::new();
        for (index, listener) in document.listeners.iter().enumerate() {
            let id = ListenerId(index as u32);
            listeners.entry(listener.name.value.clone()).or_insert(id);
        }
        let listeners_known = document.listeners.iter().all(|l| !l.name.value.is_empty());
        let mut services = HashMap::with_capacity(document.services.len());
        for (index, service) in document.services.iter().enumerate() {
            services.insert(service.service.name.clone(), ServiceId(index as u32));
        }
        let authentications = (0..).zip(&document.authentications);
        let authentications =
            authentications.map(|(index, raw)| (raw.name.clone(), AuthenticationId(index)));
        Names {
            listeners,
            services,
            services_known: document.services_known,
            authentications: authentications.collect(),
            authentications_known: document.authentications_known,
            listeners_known,
        }
    }

    pub(crate) fn authentication(&self, name: &str) -> Option<AuthenticationId> {
        self.authentications.get(name).copied()
    }

    pub(crate) fn listener(&self, name: &str) -> Option<ListenerId> {
        self.listeners.get(name).copied()
    }

    pub(crate) fn service(&self, name: &str) -> Option<ServiceId> {
        self.services.get(name).copied()
    }
}
