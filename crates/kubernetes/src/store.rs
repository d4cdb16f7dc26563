//! The objects of the cluster as far as they are known, and what has changed since they were last resolved. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway::objects::Key;
use gateway::objects::core::EndpointSlice;
use gateway::objects::gateway::Address;
use gateway::objects::ingress::Ingress;
use gateway::objects::policy::RoutePolicy;
use gateway::pods::ServicePortKey;
use gateway::pods::{self, Pod};
use gateway::resolve::incremental::Changes;
use gateway::resolve::ingress_classes::Classes;
use gateway::resolve::references;
use gateway::resolve::{Objects, Settings};
use serde_json::Value;

use crate::expose::service::{self, OwnService};
use crate::item::{self, Contents, Facts, Item, Object};
use crate::kinds::{Kind, Source};
use crate::text::is_older;

/// An object whose status Weir writes.
pub(crate) type Id = (Kind, Key);

/// At most this many unreadable objects are remembered, besides Gateways and IngressClasses: their Services stay.
const UNREADABLE_MAX: usize = 100;

/// The objects, and what has changed.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// What is resolved.
    pub(crate) objects: Objects,
    /// What the statuses of Gateways have as addresses.
    pub(crate) addresses: BTreeMap<Key, Vec<Address>>,
    /// The Services that Weir made.
    pub(crate) own_services: BTreeMap<Key, OwnService>,
    /// The versions of all objects of the kinds that are fetched.
    pub(crate) versions: BTreeMap<Id, Box<str>>,
    /// Those of them that something refers to.
    pub(crate) referred: BTreeSet<Id>,
    /// Why the contents of an object are unknown, for those that exist. In place of its contents, `objects` have one that
    /// says so: without it, the object would be taken for one that does not exist.
    unread: BTreeMap<Id, Arc<str>>,
    /// What cannot be read, and why.
    pub(crate) unreadable: BTreeMap<Id, Arc<str>>,
    /// What has changed.
    pub(crate) dirty: Dirty,
    facts: BTreeMap<Id, Facts>,
    slices: BTreeMap<Key, BTreeMap<Arc<str>, Arc<EndpointSlice>>>,
    /// The concurrency limits of the Pods that state one.
    pod_limits: BTreeMap<Key, u32>,
    /// The Service of each EndpointSlice.
    service_of: BTreeMap<Key, Key>,
}

/// What has changed since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    changes: Changes,
    /// Services whose EndpointSlices have changed.
    pub(crate) slices: BTreeSet<Key>,
    /// Objects whose status or generation has changed.
    pub(crate) statuses: BTreeSet<Id>,
    /// Whether Services that Weir made, addresses of Gateways, or what the CRDs have fields for, may have changed.
    pub(crate) has_surroundings: bool,
    /// Whether versions of objects that are referred to, or references, may have changed.
    pub(crate) has_references: bool,
    /// Whether the namespaces whose Pods may state limits may have changed.
    pub(crate) has_pod_policies: bool,
    /// Objects that have become unreadable.
    pub(crate) unreadable: Vec<(Id, Arc<str>)>,
    /// Whether `Store::unreadable` has changed.
    pub(crate) has_unreadable: bool,
}

impl Dirty {
    /// Returns whether there is something to resolve, or to publish.
    pub(crate) fn is_any(&self) -> bool {
        !self.changes.is_empty()
            || !self.statuses.is_empty()
            || self.has_surroundings
            || self.has_references
    }
}

impl Store {
    /// Replaces all objects of a source by those of a complete list, at once.
    pub(crate) fn replace(&mut self, source: &Source, items: Vec<Item>) {
        let listed: BTreeSet<Key> = items.iter().map(|item| item.key.clone()).collect();
        let is_gone = |key: &Key| {
            let is_inside = source.namespace.as_ref().is_none_or(|one| *one == key.namespace);
            is_inside && !listed.contains(key)
        };
        let gone: Vec<Key> = self.keys(source.kind).into_iter().filter(is_gone).collect();
        for key in gone {
            self.delete(source.kind, &key);
        }
        for item in items {
            // The list counts, even if what it has is older: the data of the API server may have been restored.
            if let Some(known) = self.facts.get_mut(&(source.kind, item.key.clone())) {
                known.version.clone_from(&item.facts.version);
            }
            self.apply(source.kind, item);
        }
    }

    /// Adds or replaces an object.
    pub(crate) fn apply(&mut self, kind: Kind, item: Item) {
        let Item { key, facts, object, substitute } = item;
        let id = (kind, key);
        let object = match (object, substitute) {
            (Ok(object), _) => object,
            (Err(error), Some(policy)) => {
                self.substitute(id, facts, &error, policy);
                return;
            }
            (Err(error), None) => {
                self.delete(kind, &id.1);
                self.note_unreadable(id, error);
                return;
            }
        };
        self.dirty.has_unreadable |= self.unreadable.remove(&id).is_some();
        if kind.is_fetched() {
            let is_changed = self.versions.get(&id) != Some(&facts.version);
            self.dirty.has_references |= is_changed && self.referred.contains(&id);
            self.versions.insert(id, facts.version);
            return;
        }
        self.put(kind, &id.1, object);
        if kind.has_status() {
            self.update_facts(id, facts);
        }
    }

    /// Keeps the version of a RoutePolicy that could be read before, or puts `policy` in its place: its targets must not lose
    /// their authentication.
    fn substitute(&mut self, id: Id, facts: Facts, error: &str, policy: Arc<RoutePolicy>) {
        let is_kept = self.objects.route_policies.get(&id.1).is_some_and(|known| {
            // For targets that are new in it, only the substitute is there.
            let is_known = |target| known.spec.target_refs.contains(target);
            known.metadata.uid == policy.metadata.uid
                && known.spec.unreadable.is_none()
                && policy.spec.target_refs.iter().all(is_known)
        });
        let what = if is_kept {
            "the version that was read before stays in use"
        } else {
            self.put(id.0, &id.1, Object::RoutePolicy(policy));
            "requests for its targets are refused"
        };
        self.update_facts(id.clone(), facts);
        self.note_unreadable(id, format!("{error}; {what}").into());
    }

    fn note_unreadable(&mut self, id: Id, error: Arc<str>) {
        // The Service of a Gateway that exists is kept.
        let is_exposed = matches!(id.0, Kind::Gateway | Kind::IngressClass);
        let has_room = self.unreadable.len() < UNREADABLE_MAX || self.unreadable.contains_key(&id);
        if has_room || is_exposed {
            self.dirty.unreadable.push((id.clone(), Arc::clone(&error)));
            self.unreadable.insert(id, error);
            self.dirty.has_unreadable = true;
        }
    }

    /// Notes the version and status of an object, from a watch or from the answer to a write. An answer can overtake the
    /// watch: a version older than the known one is ignored.
    pub(crate) fn update_facts(&mut self, id: Id, facts: Facts) {
        let before = self.facts.get(&id);
        if before.is_some_and(|before| is_older(&facts.version, &before.version)) {
            return;
        }
        let is_changed = before.is_none_or(|before| {
            before.generation != facts.generation || before.status != facts.status
        });
        if is_changed {
            self.dirty.statuses.insert(id.clone());
        }
        self.facts.insert(id, facts);
    }

    /// Returns the version and status of an object.
    pub(crate) fn facts(&self, id: &Id) -> Option<&Facts> {
        self.facts.get(id)
    }

    fn put(&mut self, kind: Kind, key: &Key, object: Object) {
        let objects = &mut self.objects;
        let is_changed = match object {
            Object::Class(one) => replaces(&mut objects.classes, key, one, |a, b| a == b),
            Object::Gateway(one, addresses) => {
                let before = self.addresses.insert(key.clone(), addresses);
                self.dirty.has_surroundings |= before.as_ref() != self.addresses.get(key);
                replaces(&mut objects.gateways, key, one, |a, b| a == b)
            }
            Object::ListenerSet(one) => {
                replaces(&mut objects.listener_sets, key, one, |a, b| a == b)
            }
            Object::Http(one) => replaces(&mut objects.http_routes, key, one, |a, b| a == b),
            Object::Grpc(one) => replaces(&mut objects.grpc_routes, key, one, |a, b| a == b),
            Object::Connection(one) => {
                let is_tcp = kind == Kind::TcpRoute;
                let routes = if is_tcp { &mut objects.tcp_routes } else { &mut objects.tls_routes };
                replaces(routes, key, one, |a, b| a == b)
            }
            Object::Grant(one) => replaces(&mut objects.grants, key, one, |a, b| a.spec == b.spec),
            Object::Policy(one) => replaces(&mut objects.policies, key, one, |a, b| a == b),
            Object::ServicePolicy(one) => {
                let before = objects.service_policies.get(key).cloned();
                let all = &mut objects.service_policies;
                let is_changed = replaces(all, key, Arc::clone(&one), |a, b| a == b);
                for one in before.iter().chain([&one]).filter(|_| is_changed) {
                    self.dirty.changes.add_service_policy(one);
                }
                is_changed
            }
            Object::RoutePolicy(one) => {
                let before = objects.route_policies.get(key).cloned();
                let all = &mut objects.route_policies;
                let is_changed = replaces(all, key, Arc::clone(&one), |a, b| a == b);
                for one in before.iter().chain([&one]).filter(|_| is_changed) {
                    self.dirty.changes.add_route_policy(one);
                }
                is_changed
            }
            Object::Ingress(one) => replaces(&mut objects.ingresses, key, one, |a, b| a == b),
            Object::IngressClass(one) => {
                replaces(&mut objects.ingress_classes, key, one, |a, b| a == b)
            }
            Object::Namespace(one) => {
                let labels = |a: &_, b: &_| is_labelled_alike(a, b);
                replaces(&mut objects.namespaces, key, one, labels)
            }
            Object::Service(one) => {
                replaces(&mut objects.services, key, one, |a, b| a.spec == b.spec)
            }
            Object::Slice(one) => return self.put_slice(key, one),
            Object::Metadata => return,
            Object::Pod(limit) => return self.set_pod_limit(key, limit),
            Object::OwnService(existing) => {
                let before = match existing {
                    Some(existing) => self.own_services.insert(key.clone(), *existing),
                    None => self.own_services.remove(key),
                };
                self.dirty.has_surroundings |= before.as_ref() != self.own_services.get(key);
                return;
            }
        };
        if is_changed {
            self.note_change(kind, key);
        }
    }

    /// Notes what has to be resolved again, since an object has changed, appeared or gone.
    fn note_change(&mut self, kind: Kind, key: &Key) {
        let changes = &mut self.dirty.changes;
        match kind {
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute => {
                let Some(kind) = kind.route() else { return };
                let id = (kind, key.clone());
                // In this order: what policies refer to is looked up only if it is not known to have changed.
                self.dirty.has_references =
                    self.dirty.has_references || references::depend_on(&self.objects, &id);
                changes.routes.insert(id);
            }
            Kind::Service => {
                changes.services.insert(key.clone());
            }
            Kind::Ingress => {
                changes.ingresses.insert(key.clone());
                self.dirty.has_references = true;
            }
            Kind::GatewayClass
            | Kind::Gateway
            | Kind::ListenerSet
            | Kind::ReferenceGrant
            | Kind::BackendTlsPolicy
            | Kind::IngressClass
            | Kind::Namespace => {
                changes.is_all = true;
                self.dirty.has_references = true;
            }
            // Its targets are noted where it changes.
            Kind::RoutePolicy => self.dirty.has_references = true,
            Kind::ServicePolicy => self.dirty.has_pod_policies = true,
            Kind::EndpointSlice | Kind::Secret | Kind::ConfigMap | Kind::Pod | Kind::OwnService => {
            }
        }
    }

    fn put_slice(&mut self, key: &Key, slice: Arc<EndpointSlice>) {
        let service = slice.service().map(|name| Key::new(Arc::clone(&key.namespace), name));
        if self.service_of.get(key) != service.as_ref() {
            self.delete_slice(key);
        }
        let Some(service) = service else { return };
        let slices = self.slices.entry(service.clone()).or_default();
        let is_same = |before: &Arc<EndpointSlice>| {
            (&before.endpoints, &before.ports) == (&slice.endpoints, &slice.ports)
                && before.address_type == slice.address_type
        };
        if !slices.get(&key.name).is_some_and(is_same) {
            self.dirty.slices.insert(service.clone());
        }
        slices.insert(Arc::clone(&key.name), slice);
        self.service_of.insert(key.clone(), service);
    }

    fn set_pod_limit(&mut self, pod: &Key, limit: Option<u32>) {
        let before = match limit {
            Some(limit) => self.pod_limits.insert(pod.clone(), limit),
            None => self.pod_limits.remove(pod),
        };
        if before != limit {
            // Which Services it is a Pod of is not known without a search, and limits change seldom.
            let start = Key::new(Arc::clone(&pod.namespace), "");
            let services = self.slices.range(start..).map(|(service, _)| service);
            let inside = services.take_while(|one| one.namespace == pod.namespace);
            self.dirty.slices.extend(inside.cloned());
        }
    }

    fn delete_slice(&mut self, key: &Key) {
        let Some(service) = self.service_of.remove(key) else { return };
        if let Some(slices) = self.slices.get_mut(&service) {
            slices.remove(&key.name);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        self.dirty.slices.insert(service);
    }

    /// Removes an object.
    pub(crate) fn delete(&mut self, kind: Kind, key: &Key) {
        let id = (kind, key.clone());
        self.dirty.has_unreadable |= self.unreadable.remove(&id).is_some();
        if kind.has_status() {
            self.facts.remove(&id);
        }
        let objects = &mut self.objects;
        let is_known = match kind {
            Kind::GatewayClass => objects.classes.remove(key).is_some(),
            Kind::Gateway => {
                self.addresses.remove(key);
                objects.gateways.remove(key).is_some()
            }
            Kind::ListenerSet => objects.listener_sets.remove(key).is_some(),
            Kind::ReferenceGrant => objects.grants.remove(key).is_some(),
            Kind::BackendTlsPolicy => objects.policies.remove(key).is_some(),
            Kind::ServicePolicy => {
                let before = objects.service_policies.remove(key);
                if let Some(one) = &before {
                    self.dirty.changes.add_service_policy(one);
                }
                before.is_some()
            }
            Kind::RoutePolicy => {
                let before = objects.route_policies.remove(key);
                if let Some(one) = &before {
                    self.dirty.changes.add_route_policy(one);
                }
                before.is_some()
            }
            Kind::Ingress => objects.ingresses.remove(key).is_some(),
            Kind::IngressClass => objects.ingress_classes.remove(key).is_some(),
            Kind::Namespace => objects.namespaces.remove(key).is_some(),
            Kind::HttpRoute => objects.http_routes.remove(key).is_some(),
            Kind::GrpcRoute => objects.grpc_routes.remove(key).is_some(),
            Kind::TlsRoute => objects.tls_routes.remove(key).is_some(),
            Kind::TcpRoute => objects.tcp_routes.remove(key).is_some(),
            Kind::Service => objects.services.remove(key).is_some(),
            Kind::EndpointSlice => return self.delete_slice(key),
            Kind::Pod => return self.set_pod_limit(key, None),
            Kind::Secret | Kind::ConfigMap => {
                let is_known = self.versions.remove(&id).is_some();
                self.dirty.has_references |= is_known && self.referred.contains(&id);
                return;
            }
            Kind::OwnService => {
                self.dirty.has_surroundings |= self.own_services.remove(key).is_some();
                return;
            }
        };
        if is_known {
            self.note_change(kind, key);
        }
    }

    /// Sets whether a namespace counts as one of which nothing is known.
    pub(crate) fn set_hidden(&mut self, namespace: &Arc<str>, is_hidden: bool) {
        if is_hidden {
            self.objects.hidden.insert(Arc::clone(namespace));
        } else {
            self.objects.hidden.remove(namespace);
        }
        self.dirty.changes.is_all = true;
    }

    /// Finds the objects that others refer to, and returns them.
    pub(crate) fn find_references(&mut self, settings: &Settings) -> &BTreeSet<Id> {
        let (secrets, maps) = references::all(&self.objects, settings);
        let secrets = secrets.into_iter().map(|key| (Kind::Secret, key));
        let maps = maps.into_iter().map(|key| (Kind::ConfigMap, key));
        self.referred = secrets.chain(maps).collect();
        &self.referred
    }

    /// Sets the contents of an object that is referred to.
    pub(crate) fn set_contents(&mut self, key: &Key, contents: Contents) {
        let objects = &mut self.objects;
        let (kind, is_changed) = match contents {
            Contents::Secret(one) => {
                let is_changed = replaces(&mut objects.secrets, key, one, |a, b| a.data == b.data);
                (Kind::Secret, is_changed)
            }
            Contents::ConfigMap(one) => {
                let maps = &mut objects.config_maps;
                (Kind::ConfigMap, replaces(maps, key, one, |a, b| a.data == b.data))
            }
        };
        let was_unread = self.unread.remove(&(kind, key.clone())).is_some();
        self.dirty.changes.is_all |= is_changed || was_unread;
    }

    /// Sets which objects have unknown contents, and why. Contents that were read before stay.
    pub(crate) fn set_unread(&mut self, mut unread: BTreeMap<Id, Arc<str>>) {
        unread.retain(|id, _| self.unread.contains_key(id) || !self.has_contents(id));
        let over: Vec<Id> =
            self.unread.keys().filter(|id| !unread.contains_key(*id)).cloned().collect();
        for id in over {
            self.remove_contents(&id);
        }
        for (id, why) in unread {
            if self.unread.get(&id) == Some(&why) {
                continue;
            }
            let (objects, key) = (&mut self.objects, id.1.clone());
            if id.0 == Kind::Secret {
                objects.secrets.insert(key, Arc::new(item::unread_secret(&why)));
            } else {
                objects.config_maps.insert(key, Arc::new(item::unread_config_map(&why)));
            }
            self.unread.insert(id, why);
            self.dirty.changes.is_all = true;
        }
    }

    fn has_contents(&self, (kind, key): &Id) -> bool {
        match kind {
            Kind::Secret => self.objects.secrets.contains_key(key),
            _ => self.objects.config_maps.contains_key(key),
        }
    }

    /// Removes the contents of an object that does not exist or that nothing refers to.
    pub(crate) fn remove_contents(&mut self, id: &Id) {
        self.unread.remove(id);
        let (kind, key) = id;
        self.dirty.changes.is_all |= match kind {
            Kind::Secret => self.objects.secrets.remove(key).is_some(),
            _ => self.objects.config_maps.remove(key).is_some(),
        };
    }

    /// Returns the addresses that the status of each Ingress of this class has.
    pub(crate) fn ingress_addresses(
        &self,
        classes: &Classes,
        class: Arc<str>,
    ) -> impl Iterator<Item = Vec<Address>> {
        let is_of_class = move |one: &&Arc<Ingress>| classes.of(one) == Some(&class);
        let ingresses = self.objects.ingresses.values().filter(is_of_class);
        ingresses.filter_map(|ingress| {
            let facts = self.facts.get(&(Kind::Ingress, ingress.metadata.key()))?;
            let status: Value = serde_json::from_str(&facts.status).ok()?;
            Some(service::addresses(&status["loadBalancer"]["ingress"]))
        })
    }

    /// Takes what has changed for routes and Gateways.
    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.dirty.changes)
    }

    /// Returns the Pods of a Service's port. They may state concurrency limits of at most `limit_max`, if there is one.
    pub(crate) fn pods(
        &self,
        (service, port): &ServicePortKey,
        limit_max: Option<u32>,
        zone: Option<&str>,
    ) -> Arc<[Pod]> {
        let slices = self.slices.get(service).into_iter().flat_map(BTreeMap::values);
        let mut pods = pods::pods(slices.map(AsRef::as_ref), port.as_deref(), zone);
        if let Some(max) = limit_max {
            for pod in pods.iter_mut().filter(|pod| pod.uid.is_some()) {
                let key = Key::new(Arc::clone(&service.namespace), Arc::clone(&pod.name));
                pod.in_flight_max = self.pod_limits.get(&key).map(|limit| *limit.min(&max));
            }
        }
        pods.into()
    }

    /// Returns the names of all objects of a kind, those that cannot be read included.
    fn keys(&self, kind: Kind) -> Vec<Key> {
        let objects = &self.objects;
        let mut keys: Vec<Key> = match kind {
            Kind::GatewayClass => objects.classes.keys().cloned().collect(),
            Kind::Gateway => objects.gateways.keys().cloned().collect(),
            Kind::ListenerSet => objects.listener_sets.keys().cloned().collect(),
            Kind::HttpRoute => objects.http_routes.keys().cloned().collect(),
            Kind::GrpcRoute => objects.grpc_routes.keys().cloned().collect(),
            Kind::TlsRoute => objects.tls_routes.keys().cloned().collect(),
            Kind::TcpRoute => objects.tcp_routes.keys().cloned().collect(),
            Kind::ReferenceGrant => objects.grants.keys().cloned().collect(),
            Kind::BackendTlsPolicy => objects.policies.keys().cloned().collect(),
            Kind::ServicePolicy => objects.service_policies.keys().cloned().collect(),
            Kind::RoutePolicy => objects.route_policies.keys().cloned().collect(),
            Kind::Ingress => objects.ingresses.keys().cloned().collect(),
            Kind::IngressClass => objects.ingress_classes.keys().cloned().collect(),
            Kind::Namespace => objects.namespaces.keys().cloned().collect(),
            Kind::Service => objects.services.keys().cloned().collect(),
            Kind::EndpointSlice => self.service_of.keys().cloned().collect(),
            Kind::Secret | Kind::ConfigMap => {
                let of_kind = self.versions.keys().filter(|(one, _)| *one == kind);
                of_kind.map(|(_, key)| key.clone()).collect()
            }
            Kind::Pod => self.pod_limits.keys().cloned().collect(),
            Kind::OwnService => self.own_services.keys().cloned().collect(),
        };
        let unreadable = self.unreadable.keys().filter(|(one, _)| *one == kind);
        keys.extend(unreadable.map(|(_, key)| key.clone()));
        keys
    }
}

/// Stores an object, and returns whether it differs from the one before.
fn replaces<T>(
    map: &mut BTreeMap<Key, Arc<T>>,
    key: &Key,
    object: Arc<T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> bool {
    let Some(before) = map.get_mut(key) else {
        map.insert(key.clone(), object);
        return true;
    };
    let is_changed = !is_same(before, &object);
    *before = object;
    is_changed
}

fn is_labelled_alike(
    a: &gateway::objects::core::Namespace,
    b: &gateway::objects::core::Namespace,
) -> bool {
    a.metadata.labels == b.metadata.labels
}

#[cfg(test)]
mod tests {
    use gateway::ir::RouteKind;
    use serde_json::{Value, json};

    use super::*;

    fn all(kind: Kind) -> Source {
        Source { kind, namespace: None }
    }

    fn items(kind: Kind, objects: &[Value]) -> Vec<Item> {
        objects.iter().map(|object| item::read(kind, object.clone()).unwrap()).collect()
    }

    fn route(name: &str, host: &str, status: &str) -> Value {
        json!({
            "metadata": {"namespace": "n", "name": name}, "spec": {"hostnames": [host]},
            "status": {"parents": [{"controllerName": status}]}
        })
    }

    fn routes(store: &mut Store) -> String {
        let changes = store.take_changes();
        assert!(!changes.is_all);
        let names: Vec<String> =
            changes.routes.iter().map(|(kind, key)| format!("{kind:?} {}", key.name)).collect();
        names.join(" ")
    }

    #[test]
    fn a_list_replaces_what_was_known_at_once() {
        let mut store = Store::default();
        let listed = items(
            Kind::HttpRoute,
            &[route("a", "x", ""), route("b", "x", ""), route("c", "x", "")],
        );
        store.replace(&all(Kind::HttpRoute), listed);
        assert_eq!(routes(&mut store), "Http a Http b Http c");
        let listed = items(
            Kind::HttpRoute,
            &[route("a", "x", ""), route("b", "y", ""), route("d", "x", "")],
        );
        store.replace(&all(Kind::HttpRoute), listed);
        assert_eq!(routes(&mut store), "Http b Http c Http d");
        assert_eq!(store.objects.http_routes.len(), 3);
        assert_eq!(routes(&mut store), "");
    }

    #[test]
    fn a_list_of_one_namespace_leaves_the_others() {
        let mut store = Store::default();
        let other = json!({"metadata": {"namespace": "m", "name": "a"}});
        store.replace(&all(Kind::HttpRoute), items(Kind::HttpRoute, &[route("a", "x", ""), other]));
        routes(&mut store);
        let source = Source { kind: Kind::HttpRoute, namespace: Some("n".into()) };
        store.replace(&source, vec![]);
        assert_eq!(
            store.objects.http_routes.keys().map(|key| &*key.namespace).collect::<Vec<_>>(),
            ["m"]
        );
    }

    #[test]
    fn a_new_status_changes_no_route() {
        let mut store = Store::default();
        store.replace(&all(Kind::HttpRoute), items(Kind::HttpRoute, &[route("a", "x", "")]));
        routes(&mut store);
        store.dirty.statuses.clear();
        let id = (Kind::HttpRoute, Key::new("n", "a"));
        for (status, is_new) in [("", false), ("other", true), ("other", false)] {
            store.apply(
                Kind::HttpRoute,
                item::read(Kind::HttpRoute, route("a", "x", status)).unwrap(),
            );
            assert_eq!(std::mem::take(&mut store.dirty.statuses).contains(&id), is_new);
            assert_eq!(routes(&mut store), "");
        }
    }

    #[test]
    fn a_route_policy_that_cannot_be_read_stays() {
        let policy = |name: &str, targets: Value, uid: &str| {
            let object = json!({
                "metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": "7"},
                "spec": {"targetRefs": targets, "authentication": {"basic": {"usersSecret": "u"}}}
            });
            item::read_text(Kind::RoutePolicy, &object.to_string()).unwrap()
        };
        let target = |name: &str| json!({"kind": "HTTPRoute", "name": name});
        let mut store = Store::default();
        let targets = |store: &Store, name: &str| {
            let policy = store.objects.route_policies.get(&Key::new("n", name))?;
            let targets = policy.spec.target_refs.iter().map(|one| one.name.to_string());
            Some((targets.collect::<Vec<_>>().join(" "), policy.spec.unreadable.is_none()))
        };
        // More cannot be read than is remembered.
        for number in 0..UNREADABLE_MAX {
            let damaged = json!({"metadata": {"name": number.to_string()}, "spec": 1});
            store.apply(Kind::HttpRoute, item::read(Kind::HttpRoute, damaged).unwrap());
        }
        let mut apply = |item: Item| {
            store.apply(Kind::RoutePolicy, item);
            store.objects.route_policies.len()
        };
        apply(policy("read", json!([target("a")]), "1"));
        apply(policy("read", json!([target("a"), 1]), "1"));
        apply(policy("never", json!([target("b"), 1]), "1"));
        assert_eq!(apply(policy("never", json!([target("c"), 1]), "1")), 2);
        assert_eq!(targets(&store, "read"), Some(("a".to_owned(), true)));
        assert_eq!(targets(&store, "never"), Some(("c".to_owned(), false)));
        assert_eq!(store.unreadable.len(), UNREADABLE_MAX);
        for name in ["read", "never"] {
            assert!(store.facts(&(Kind::RoutePolicy, Key::new("n", name))).is_some());
        }
        // Another one with the same name, and one that can be read again.
        store.apply(Kind::RoutePolicy, policy("read", json!([target("b"), 1]), "2"));
        assert_eq!(targets(&store, "read"), Some(("b".to_owned(), false)));
        store.apply(Kind::RoutePolicy, policy("read", json!([target("d")]), "2"));
        store.apply(Kind::RoutePolicy, policy("read", json!([target("d"), 1]), "2"));
        assert_eq!(targets(&store, "read"), Some(("d".to_owned(), true)));
        // With a new target, which must not be open.
        store.apply(Kind::RoutePolicy, policy("read", json!([target("d"), target("e"), 1]), "2"));
        assert_eq!(targets(&store, "read"), Some(("d e".to_owned(), false)));
        store.replace(&all(Kind::RoutePolicy), vec![]);
        assert!(store.objects.route_policies.is_empty());
    }

    #[test]
    fn an_answer_that_overtakes_the_watch_counts() {
        let versioned = |version: &str, status: &str| {
            let mut object = route("a", "x", status);
            object["metadata"]["resourceVersion"] = version.into();
            item::read(Kind::HttpRoute, object).unwrap()
        };
        let id = (Kind::HttpRoute, Key::new("n", "a"));
        let mut store = Store::default();
        store.apply(Kind::HttpRoute, versioned("7", "old"));
        for (version, status, expected) in [
            ("9", "new", "9"),
            ("8", "old", "9"),
            ("9", "new", "9"),
            ("10", "old", "10"),
            // Not a number: nothing is known about the order.
            ("x", "new", "x"),
            ("3", "new", "3"),
        ] {
            store.dirty.statuses.clear();
            let before = store.facts(&id).unwrap().status.clone();
            store.update_facts(id.clone(), versioned(version, status).facts);
            let facts = store.facts(&id).unwrap();
            assert_eq!(&*facts.version, expected);
            assert_eq!(store.dirty.statuses.contains(&id), before != facts.status, "{version}");
        }
        // Data that were restored are older, and are listed.
        store.replace(&all(Kind::HttpRoute), vec![versioned("2", "restored")]);
        assert_eq!(&*store.facts(&id).unwrap().version, "2");
    }

    #[test]
    fn unreadable_objects_are_absent_until_they_are_readable() {
        let mut store = Store::default();
        store.replace(&all(Kind::HttpRoute), items(Kind::HttpRoute, &[route("a", "x", "")]));
        routes(&mut store);
        let damaged = json!({"metadata": {"namespace": "n", "name": "a"}, "spec": []});
        let damaged = || {
            items(
                Kind::HttpRoute,
                &[json!({"metadata": {"namespace": "n", "name": "a"}, "spec": 1}), damaged.clone()],
            )
            .remove(0)
        };
        store.apply(Kind::HttpRoute, damaged());
        assert_eq!(routes(&mut store), "Http a");
        assert!(store.objects.http_routes.is_empty());
        assert_eq!(store.unreadable.len(), 1);
        store.replace(&all(Kind::HttpRoute), vec![damaged()]);
        assert_eq!(store.unreadable.len(), 1);
        store.apply(Kind::HttpRoute, item::read(Kind::HttpRoute, route("a", "x", "")).unwrap());
        assert_eq!((routes(&mut store).as_str(), store.unreadable.len()), ("Http a", 0));
        store.apply(Kind::HttpRoute, damaged());
        store.replace(&all(Kind::HttpRoute), vec![]);
        assert!(store.unreadable.is_empty());
        for number in 0..2 * UNREADABLE_MAX {
            let object = json!({"metadata": {"name": format!("{number}")}, "spec": 1});
            store.apply(Kind::HttpRoute, item::read(Kind::HttpRoute, object).unwrap());
        }
        assert_eq!(store.unreadable.len(), UNREADABLE_MAX);
    }

    #[test]
    fn only_secrets_that_are_referred_to_matter() {
        let mut store = Store::default();
        let settings = Settings {
            controller_name: "a/b".into(),
            ingress_controller_name: "a/i".into(),
            allow_external_names: false,
            checks: gateway::resolve::Checks::none(),
        };
        let gateway = json!({"metadata": {"namespace": "n", "name": "g"}, "spec": {
            "gatewayClassName": "c",
            "listeners": [{"name": "a", "tls": {"certificateRefs": [{"name": "used"}]}}]
        }});
        store.replace(&all(Kind::Gateway), items(Kind::Gateway, &[gateway]));
        assert!(store.take_changes().is_all && store.dirty.has_references);
        assert!(store.find_references(&settings).is_empty(), "its class is unknown");
        store.dirty = Dirty::default();
        let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "a/b"}});
        store.replace(&all(Kind::GatewayClass), items(Kind::GatewayClass, &[class]));
        assert!(store.dirty.has_references);
        assert_eq!(store.find_references(&settings).len(), 1);
        store.dirty = Dirty::default();
        let secret = |name: &str, version: &str| {
            json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": version},
                "data": {"tls.crt": version}})
        };
        for (name, version, expected) in
            [("other", "1", false), ("used", "1", true), ("used", "1", false), ("used", "2", true)]
        {
            store.apply(Kind::Secret, item::read(Kind::Secret, secret(name, version)).unwrap());
            assert_eq!(std::mem::take(&mut store.dirty.has_references), expected, "{name}");
            assert!(!store.take_changes().is_all);
        }
        let used = Key::new("n", "used");
        for (version, expected) in [("1", true), ("1", false), ("2", true)] {
            store.set_contents(
                &used,
                item::contents(Kind::Secret, secret("used", version)).unwrap(),
            );
            assert_eq!(store.take_changes().is_all, expected, "{version}");
        }
        store.delete(Kind::Secret, &used);
        assert!(store.dirty.has_references);
        store.remove_contents(&(Kind::Secret, used));
        assert!(store.take_changes().is_all && store.objects.secrets.is_empty());
    }

    #[test]
    fn unknown_contents_never_replace_known_ones() {
        let mut store = Store::default();
        let id = |name: &str| (Kind::Secret, Key::new("n", name));
        let unread = |all: &[(&str, &str)]| -> BTreeMap<Id, Arc<str>> {
            all.iter().map(|(name, why)| (id(name), Arc::from(*why))).collect()
        };
        let contents = || {
            let secret = json!({"metadata": {"namespace": "n", "name": "a"}, "data": {}});
            item::contents(Kind::Secret, secret).unwrap()
        };
        let why = |store: &Store, name: &str| -> String {
            let secret = store.objects.secrets.get(&id(name).1);
            secret.map_or("absent", |secret| secret.unknown.as_deref().unwrap_or("is read")).into()
        };
        store.set_contents(&id("a").1, contents());
        store.take_changes();
        store.set_unread(unread(&[("a", "x"), ("b", "x")]));
        assert!(store.take_changes().is_all);
        assert_eq!((why(&store, "a"), why(&store, "b")), ("is read".into(), "x".into()));
        store.set_unread(unread(&[("b", "x")]));
        assert!(store.take_changes().is_empty());
        store.set_unread(unread(&[("b", "y"), ("c", "y")]));
        assert_eq!((why(&store, "b"), why(&store, "c")), ("y".into(), "y".into()));
        // It is read, or does not exist any more.
        store.take_changes();
        store.set_contents(&id("b").1, contents());
        assert!(store.take_changes().is_all, "although the data are as empty as before");
        store.set_unread(unread(&[]));
        assert_eq!((why(&store, "b"), why(&store, "c")), ("is read".into(), "absent".into()));
    }

    #[test]
    fn slices_follow_their_service() {
        let mut store = Store::default();
        let slice = |service: &str, address: &str| {
            let slice = json!({
                "metadata": {"namespace": "n", "name": "s", "labels": {"kubernetes.io/service-name": service}},
                "endpoints": [{"addresses": [address]}], "ports": [{"port": 80}]
            });
            item::read(Kind::EndpointSlice, slice).unwrap()
        };
        let count = |store: &Store, service: &str| {
            store.pods(&(Key::new("n", service), None), None, None).len()
        };
        let dirty = |store: &mut Store| {
            let services: Vec<String> = std::mem::take(&mut store.dirty.slices)
                .iter()
                .map(|key| key.name.to_string())
                .collect();
            services.join(" ")
        };
        store.apply(Kind::EndpointSlice, slice("a", "10.0.0.1"));
        assert_eq!((dirty(&mut store).as_str(), count(&store, "a")), ("a", 1));
        store.apply(Kind::EndpointSlice, slice("a", "10.0.0.1"));
        assert_eq!(dirty(&mut store), "");
        store.apply(Kind::EndpointSlice, slice("b", "10.0.0.1"));
        assert_eq!(
            (dirty(&mut store).as_str(), count(&store, "a"), count(&store, "b")),
            ("a b", 0, 1)
        );
        assert!(!store.dirty.is_any(), "slices need no resolve");
        store.replace(&all(Kind::EndpointSlice), vec![]);
        assert_eq!((dirty(&mut store).as_str(), count(&store, "b")), ("b", 0));
    }

    #[test]
    fn services_matter_by_what_they_state() {
        let mut store = Store::default();
        let service = |port: u16, label: &str| {
            let service = json!({
                "metadata": {"namespace": "n", "name": "s", "labels": {"a": label}},
                "spec": {"ports": [{"port": port}]}
            });
            item::read(Kind::Service, service).unwrap()
        };
        for (item, expected) in [(service(1, "x"), 1), (service(1, "y"), 0), (service(2, "y"), 1)] {
            store.apply(Kind::Service, item);
            let changes = store.take_changes();
            assert_eq!((changes.services.len(), changes.is_all), (expected, false));
        }
        let kinds: Vec<RouteKind> = Kind::ALL.into_iter().filter_map(Kind::route).collect();
        assert_eq!(kinds.len(), 4);
    }
}
