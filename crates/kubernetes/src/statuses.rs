//! Which statuses are to be written: those that Weir wants and the objects do not have. Pure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gateway::objects::Key;
use gateway::resolve::status::{self, PolicyStatus, Statuses};
use gateway::status_json::{self, Wanted};
use model::Moment;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::store::{Id, Store};
use crate::text::short_digest;

/// The same status is written again after this time at the earliest: the API server may drop a field that it does not
/// know, or another program may write the same status.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// The wanted statuses.
#[derive(Debug)]
pub(crate) struct Wants {
    controller_name: Arc<str>,
    statuses: Arc<Statuses>,
    /// The digest of what was written last for an object, and when.
    written: HashMap<Id, (String, Moment)>,
    /// The digest of what the API server refused.
    refused: HashMap<Id, String>,
}

/// What to do about an object.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Nothing.
    Keep,
    /// Ask again after a while, or when the object has changed.
    Wait(Duration),
    /// Write.
    Write(Box<Patch>),
}

/// A status to be written.
#[derive(Debug, PartialEq)]
pub(crate) struct Patch {
    /// The JSON merge patch. It has the version of the object, so that nothing newer is overwritten.
    pub(crate) body: Value,
    /// See [`status_json::Merged`].
    pub(crate) left_out: usize,
    digest: String,
}

impl Wants {
    pub(crate) fn new(controller_name: Arc<str>) -> Wants {
        Wants {
            controller_name,
            statuses: Arc::default(),
            written: HashMap::new(),
            refused: HashMap::new(),
        }
    }

    /// Sets what is wanted, and returns the objects for which it has changed.
    pub(crate) fn set(&mut self, statuses: Arc<Statuses>) -> Vec<Id> {
        if Arc::ptr_eq(&self.statuses, &statuses) {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.statuses, statuses);
        let now = &self.statuses;
        let mut changed = Vec::new();
        let of = |kind: Kind| move |key: &Key| Some((kind, key.clone()));
        differing(&before.classes, &now.classes, of(Kind::GatewayClass), &mut changed);
        differing(&before.gateways, &now.gateways, of(Kind::Gateway), &mut changed);
        differing(&before.listener_sets, &now.listener_sets, of(Kind::ListenerSet), &mut changed);
        let route = |(kind, key): &(_, Key)| Some((Kind::of_route(*kind)?, key.clone()));
        changed.extend(status::differing(&before.routes, &now.routes).filter_map(route));
        for kind in POLICIES {
            let (before, now) = (policies(&before, kind), policies(now, kind));
            differing(before, now, of(kind), &mut changed);
        }
        differing(&before.ingresses, &now.ingresses, of(Kind::Ingress), &mut changed);
        changed
    }

    /// Returns all objects that have or should have a status of Weir.
    pub(crate) fn all(&self, store: &Store) -> Vec<Id> {
        // Policies follow below.
        let Statuses { classes, gateways, listener_sets, routes, ingresses, .. } = &*self.statuses;
        let of = |kind: Kind| move |key: &Key| (kind, key.clone());
        let mut all: Vec<Id> = classes.keys().map(of(Kind::GatewayClass)).collect();
        all.extend(gateways.keys().map(of(Kind::Gateway)));
        all.extend(listener_sets.keys().map(of(Kind::ListenerSet)));
        let route = |(kind, key): &(_, Key)| Some((Kind::of_route(*kind)?, key.clone()));
        all.extend(routes.keys().filter_map(route));
        all.extend(ingresses.keys().map(of(Kind::Ingress)));
        // One that no Gateway uses any more may still have a status.
        let objects = &store.objects;
        all.extend(objects.policies.keys().map(of(Kind::BackendTlsPolicy)));
        all.extend(objects.service_policies.keys().map(of(Kind::ServicePolicy)));
        all.extend(objects.route_policies.keys().map(of(Kind::RoutePolicy)));
        all
    }

    /// Decides what to write for an object. `time` is `now` as `metav1.Time`.
    pub(crate) fn decide(&mut self, id: &Id, store: &Store, now: Moment, time: &str) -> Decision {
        let Some(facts) = store.facts(id) else {
            self.written.remove(id);
            self.refused.remove(id);
            return Decision::Keep;
        };
        let unused = PolicyStatus { generation: facts.generation, ancestors: Vec::new() };
        let statuses = &self.statuses;
        let wanted = match id.0 {
            Kind::GatewayClass => statuses.classes.get(&id.1).map(Wanted::Class),
            Kind::Gateway => statuses.gateways.get(&id.1).map(Wanted::Gateway),
            Kind::ListenerSet => statuses.listener_sets.get(&id.1).map(Wanted::ListenerSet),
            Kind::Ingress => statuses.ingresses.get(&id.1).map(Wanted::Ingress),
            kind if POLICIES.contains(&kind) => {
                Some(Wanted::Policy(policies(statuses, kind).get(&id.1).unwrap_or(&unused)))
            }
            kind => kind
                .route()
                .and_then(|kind| statuses.routes.get(&(kind, id.1.clone())))
                .map(|status| Wanted::Route(status)),
        };
        let Some(wanted) = wanted else { return Decision::Keep };
        // A status for the newer object follows.
        if wanted.generation() < facts.generation {
            return Decision::Keep;
        }
        let present = serde_json::from_str(&facts.status).unwrap_or(Value::Null);
        let Some(merged) = status_json::merge(&present, wanted, &self.controller_name, time) else {
            return Decision::Keep;
        };
        let digest = self.digest(wanted);
        if self.refused.get(id) == Some(&digest) {
            return Decision::Keep;
        }
        if let Some((written, at)) = self.written.get(id)
            && *written == digest
        {
            let wait = REPEAT_AFTER.saturating_sub(now.since(*at));
            if !wait.is_zero() {
                return Decision::Wait(wait);
            }
        }
        let body = json!({
            "metadata": {"resourceVersion": &*facts.version}, "status": merged.status
        });
        Decision::Write(Box::new(Patch { body, left_out: merged.left_out, digest }))
    }

    /// Returns a digest of a status without what does not depend on Weir, such as times.
    fn digest(&self, wanted: Wanted<'_>) -> String {
        let alone = status_json::merge(&Value::Null, wanted, &self.controller_name, "");
        alone.map_or_else(String::new, |alone| short_digest(&alone.status.to_string()))
    }

    /// Forgets what was written and refused: this instance begins to lead, and another one may have written since.
    pub(crate) fn forget(&mut self) {
        self.written.clear();
        self.refused.clear();
    }

    /// Notes that a status was written.
    pub(crate) fn written(&mut self, id: &Id, patch: &Patch, now: Moment) {
        self.refused.remove(id);
        self.written.insert(id.clone(), (patch.digest.clone(), now));
    }

    /// Notes that the API server refused a status for good.
    pub(crate) fn refused(&mut self, id: &Id, patch: &Patch) {
        self.refused.insert(id.clone(), patch.digest.clone());
    }
}

/// The kinds of policies. One that no Gateway uses has a status without ancestors.
const POLICIES: [Kind; 3] = [Kind::BackendTlsPolicy, Kind::ServicePolicy, Kind::RoutePolicy];

/// Returns the statuses of the policies of one kind.
fn policies(statuses: &Statuses, kind: Kind) -> &BTreeMap<Key, PolicyStatus> {
    match kind {
        Kind::ServicePolicy => &statuses.service_policies,
        Kind::RoutePolicy => &statuses.route_policies,
        _ => &statuses.policies,
    }
}

/// Adds the objects that are only in one of the maps, or differ.
fn differing<K: Ord, V: PartialEq>(
    before: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
    id: impl Fn(&K) -> Option<Id>,
    into: &mut Vec<Id>,
) {
    into.extend(
        now.iter().filter(|(key, one)| before.get(key) != Some(one)).filter_map(|(key, _)| id(key)),
    );
    into.extend(before.keys().filter(|key| !now.contains_key(key)).filter_map(id));
}

#[cfg(test)]
mod tests {
    use gateway::ir::RouteKind;
    use gateway::objects::reference::ParentRef;
    use gateway::resolve::status::{Condition, ParentStatus, RouteStatus};

    use super::*;
    use crate::item::Facts;

    const NOW: Moment = Moment::ZERO;

    fn statuses(message: &str) -> Arc<Statuses> {
        let parent = ParentStatus {
            parent_ref: ParentRef { name: "g".into(), ..ParentRef::default() },
            controller_name: "a/b".into(),
            conditions: vec![Condition::yes("Accepted", "Accepted", message)],
        };
        let status = RouteStatus { generation: 2, parents: vec![parent] };
        let mut statuses = Statuses::default();
        statuses.routes.insert((RouteKind::Http, Key::new("n", "r")), Arc::new(status));
        Arc::new(statuses)
    }

    fn id() -> Id {
        (Kind::HttpRoute, Key::new("n", "r"))
    }

    fn set(store: &mut Store, version: &str, generation: i64, status: &Value) {
        let facts =
            Facts { version: version.into(), generation, status: status.to_string().into() };
        store.update_facts(id(), facts);
    }

    fn patch(decision: Decision) -> Patch {
        match decision {
            Decision::Write(patch) => *patch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_differs_is_written() {
        let mut wants = Wants::new("a/b".into());
        let mut store = Store::default();
        assert_eq!(wants.set(statuses("x")), [id()]);
        assert_eq!(wants.set(statuses("x")), []);
        assert_eq!(wants.decide(&id(), &store, NOW, "now"), Decision::Keep, "it does not exist");
        set(&mut store, "7", 2, &Value::Null);
        let first = patch(wants.decide(&id(), &store, NOW, "now"));
        assert_eq!(first.body["metadata"], json!({"resourceVersion": "7"}));
        // The version has changed in the meantime: it is written to the newer one.
        set(&mut store, "8", 2, &Value::Null);
        let second = patch(wants.decide(&id(), &store, NOW, "now"));
        assert_eq!(second.body["metadata"]["resourceVersion"], "8");
        wants.written(&id(), &second, NOW);
        set(&mut store, "9", 2, &second.body["status"]);
        assert_eq!(wants.decide(&id(), &store, NOW, "later"), Decision::Keep);
        assert_eq!(wants.set(statuses("y")), [id()]);
        let third = patch(wants.decide(&id(), &store, NOW, "later"));
        let condition = &third.body["status"]["parents"][0]["conditions"][0];
        assert_eq!(
            (&condition["lastTransitionTime"], &condition["message"]),
            (&json!("now"), &json!("y"))
        );
        // A newer generation has not been resolved yet.
        set(&mut store, "10", 3, &Value::Null);
        assert_eq!(wants.decide(&id(), &store, NOW, "later"), Decision::Keep);
        assert_eq!(wants.set(Arc::default()), [id()]);
        assert_eq!(wants.decide(&id(), &store, NOW, "later"), Decision::Keep);
    }

    #[test]
    fn what_does_not_stay_is_written_again_after_a_while_only() {
        let mut wants = Wants::new("a/b".into());
        let mut store = Store::default();
        wants.set(statuses("x"));
        set(&mut store, "7", 2, &Value::Null);
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        for start in [0, 30, 60] {
            let patch = patch(wants.decide(&id(), &store, at(start), "now"));
            wants.written(&id(), &patch, at(start));
            for (seconds, left) in [(0, 30), (10, 20), (10, 20), (29, 1)] {
                let decision = wants.decide(&id(), &store, at(start + seconds), "now");
                assert_eq!(decision, Decision::Wait(Duration::from_secs(left)));
            }
        }
        let patch = patch(wants.decide(&id(), &store, at(90), "now"));
        wants.refused(&id(), &patch);
        assert_eq!(wants.decide(&id(), &store, at(90), "now"), Decision::Keep);
        wants.set(statuses("y"));
        assert!(matches!(wants.decide(&id(), &store, at(90), "now"), Decision::Write(_)));
        // A new leader does not know whether its last writes are still there.
        wants.set(statuses("x"));
        wants.forget();
        let patch = self::patch(wants.decide(&id(), &store, at(91), "now"));
        wants.written(&id(), &patch, at(91));
        wants.forget();
        assert!(matches!(wants.decide(&id(), &store, at(92), "now"), Decision::Write(_)));
    }

    #[test]
    fn a_policy_that_is_no_longer_used_loses_its_status() {
        let mut wants = Wants::new("a/b".into());
        let id = (Kind::BackendTlsPolicy, Key::new("n", "p"));
        let mut store = Store::default();
        let status = json!({"ancestors": [
            {"controllerName": "a/b", "ancestorRef": {"name": "g"}}, {"controllerName": "c/d"}
        ]});
        let facts = Facts { version: "1".into(), generation: 5, status: status.to_string().into() };
        store.update_facts(id.clone(), facts);
        let policy = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "p"}}));
        store.objects.policies.insert(id.1.clone(), Arc::new(policy.unwrap()));
        assert_eq!(wants.all(&store), vec![id.clone()]);
        let patch = patch(wants.decide(&id, &store, NOW, "now"));
        assert_eq!(patch.body["status"], json!({"ancestors": [{"controllerName": "c/d"}]}));
    }
}
