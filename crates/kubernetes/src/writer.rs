//! Writes statuses and Services: a few at a time, each object's newest only, and only while this instance leads.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway::objects::Key;
use gateway::resolve::status::Statuses;
use http::Method;
use model::Moment;
use serde_json::{Value, json};

use crate::api::{self, Api, FIELD_MANAGER, WRITE_MAX};
use crate::applied::{self, Applied};
use crate::event::Event;
use crate::expose::service;
use crate::failure::{Cause, Failure};
use crate::item::{self, Facts};
use crate::kinds::{Kind, Versions};
use crate::pace::Pace;
use crate::queue::{Ended, Queue};
use crate::statuses::{Decision, Patch, Wants};
use crate::store::{Id, Store};

/// At most this many writes at a time.
const CONCURRENCY_MAX: usize = 8;
/// How many writes may begin at once after a quiet time.
const BURST: u32 = 200;
/// The time from one write to the next after a burst: 200 in a second. An API server that cannot keep up says so (429).
const EVERY: Duration = Duration::from_millis(5);
/// A write that the API server refused is tried again after this time: the quota or webhook that refused it may be gone.
/// A status is not, if it is invalid.
const REFUSED_REPEAT_AFTER: Duration = Duration::from_secs(300);

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Write {
    /// The Service of a Gateway or an IngressClass.
    Service(Key),
    /// A Service whose Gateway or IngressClass has gone: it is deleted.
    Unwanted(Key),
    /// A status.
    Status(Id),
}

/// What is sent for a write.
#[derive(Debug)]
pub(crate) enum Job {
    /// Patches a status.
    Patch {
        /// The object's path.
        path: String,
        kind: Kind,
        patch: Box<Patch>,
    },
    /// Creates or updates a Service.
    Apply { path: String, body: Box<Value> },
    /// Deletes a Service, if it is the one that is known.
    Delete { path: String, options: Value },
}

/// How a write ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) write: Write,
    patch: Option<Box<Patch>>,
    /// The object afterwards, if it is known.
    facts: Option<Facts>,
    /// The Service as it was applied.
    applied: Option<Applied>,
    result: Result<(), Failure>,
}

/// What is done for a write that is due.
enum Due {
    Nothing,
    /// It is looked at again after a while.
    Wait(Duration),
    Job(Job),
}

/// All writes.
pub(crate) struct Writer {
    wants: Wants,
    queue: Queue<Write>,
    pace: Pace,
    /// The wanted Services, by Gateway.
    services: BTreeMap<Key, Value>,
    /// Services that are to be deleted.
    unwanted: BTreeSet<Key>,
    /// The Services that the API server refused as invalid, and when, by Gateway.
    refused: BTreeMap<Key, (Value, Moment)>,
    applied: applied::Memory,
    /// What is forbidden.
    pub(crate) forbidden: BTreeMap<String, Arc<str>>,
}

impl Writer {
    pub(crate) fn new(controller_name: Arc<str>) -> Writer {
        Writer {
            wants: Wants::new(controller_name),
            queue: Queue::new(CONCURRENCY_MAX),
            pace: Pace::new(BURST, EVERY),
            services: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            refused: BTreeMap::new(),
            applied: applied::Memory::default(),
            forbidden: BTreeMap::new(),
        }
    }

    /// Sets the wanted statuses.
    pub(crate) fn set_statuses(&mut self, statuses: Arc<Statuses>) {
        for id in self.wants.set(statuses) {
            self.queue.push(Write::Status(id));
        }
    }

    /// Sets the wanted Services.
    pub(crate) fn set_services(&mut self, services: BTreeMap<Key, Value>) {
        let changed = services.iter().filter(|(key, one)| self.services.get(*key) != Some(one));
        for (gateway, _) in changed {
            self.queue.push(Write::Service(gateway.clone()));
        }
        self.refused.retain(|gateway, _| services.contains_key(gateway));
        self.applied.retain(|gateway| services.contains_key(gateway));
        self.services = services;
    }

    /// Sets the Services that are to be deleted.
    pub(crate) fn set_unwanted(&mut self, unwanted: BTreeSet<Key>) {
        for service in unwanted.difference(&self.unwanted) {
            self.queue.push(Write::Unwanted(service.clone()));
        }
        self.unwanted = unwanted;
    }

    /// Notes that objects have changed.
    pub(crate) fn touch(&mut self, statuses: impl IntoIterator<Item = Id>) {
        for id in statuses {
            self.queue.push(Write::Status(id));
        }
    }

    /// Notes that Services have changed.
    pub(crate) fn touch_services(&mut self) {
        for gateway in self.services.keys() {
            self.queue.push(Write::Service(gateway.clone()));
        }
        for service in &self.unwanted {
            self.queue.push(Write::Unwanted(service.clone()));
        }
    }

    /// This instance has begun to lead: all statuses that differ are written.
    pub(crate) fn push_all(&mut self, store: &Store) {
        self.wants.forget();
        for id in self.wants.all(store) {
            self.queue.push(Write::Status(id));
        }
        self.touch_services();
    }

    /// This instance does not lead.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.forbidden.clear();
        // They are decided again when it leads again.
        self.services.clear();
        self.unwanted.clear();
        self.refused.clear();
        self.applied = applied::Memory::default();
    }

    /// Returns how many writes wait or are under way.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns when the next write is due, unless it waits for the end of another.
    pub(crate) fn due(&self, now: Moment) -> Option<Moment> {
        match self.pace.wait_until(now) {
            Some(paced) if self.queue.has_waiting() => Some(paced),
            Some(paced) => self.queue.due().map(|due| due.max(paced)),
            None => self.queue.due(),
        }
    }

    /// Returns a write that is to begin now. `time` is that of new conditions.
    pub(crate) fn begin(
        &mut self,
        store: &Store,
        versions: &Versions,
        now: Moment,
        time: &str,
    ) -> Option<(Write, Job)> {
        if self.pace.wait_until(now).is_some() {
            return None;
        }
        loop {
            let write = self.queue.begin(now)?;
            let due = match &write {
                Write::Status(id) => self.status(id, store, versions, now, time),
                Write::Service(gateway) => self.service(gateway, store, now),
                Write::Unwanted(service) => self.delete(service, store),
            };
            match due {
                Due::Job(job) => {
                    self.pace.begin(now);
                    return Some((write, job));
                }
                Due::Nothing => self.queue.end(&write, Ended::Done, now, 0.0),
                Due::Wait(wait) => {
                    self.queue.end(&write, Ended::Done, now, 0.0);
                    self.queue.postpone(write, now, wait);
                }
            }
        }
    }

    fn status(
        &mut self,
        id: &Id,
        store: &Store,
        versions: &Versions,
        now: Moment,
        time: &str,
    ) -> Due {
        match self.wants.decide(id, store, now, time) {
            Decision::Keep => Due::Nothing,
            Decision::Wait(wait) => Due::Wait(wait),
            Decision::Write(patch) => match version(id.0, versions) {
                Some(version) => {
                    let path = path(id.0, version, &id.1);
                    Due::Job(Job::Patch { path, kind: id.0, patch })
                }
                None => Due::Nothing,
            },
        }
    }

    fn delete(&self, service: &Key, store: &Store) -> Due {
        let existing = store.own_services.get(service);
        let Some(existing) = existing.filter(|_| self.unwanted.contains(service)) else {
            return Due::Nothing;
        };
        let preconditions = json!({"uid": &*existing.uid, "resourceVersion": &*existing.version});
        Due::Job(Job::Delete {
            path: path(Kind::OwnService, "v1", service),
            options: json!({"preconditions": preconditions}),
        })
    }

    fn service(&mut self, gateway: &Key, store: &Store, now: Moment) -> Due {
        let Some(wanted) = self.services.get(gateway) else { return Due::Nothing };
        if let Some((refused, at)) = self.refused.get(gateway)
            && refused == wanted
        {
            let wait = REFUSED_REPEAT_AFTER.saturating_sub(now.since(*at));
            if !wait.is_zero() {
                return Due::Wait(wait);
            }
        }
        let text = |name: &str| wanted["metadata"][name].as_str().unwrap_or_default();
        let key = Key::new(text("namespace"), text("name"));
        let existing = store.own_services.get(&key);
        if let Some(existing) = existing {
            self.applied.see(gateway, &existing.version);
            if !service::differs(existing, wanted) {
                return Due::Nothing;
            }
        }
        let wait = self.applied.wait(gateway, service::digest(wanted), now);
        if !wait.is_zero() {
            return Due::Wait(wait);
        }
        let mut body = wanted.clone();
        if let Some(existing) = existing {
            // Nothing newer is overwritten.
            body["metadata"]["resourceVersion"] = (*existing.version).into();
        }
        Due::Job(Job::Apply { path: path(Kind::OwnService, "v1", &key), body: Box::new(body) })
    }

    /// Takes the end of a write. Returns what is to be reported.
    pub(crate) fn end(&mut self, answer: Answer, store: &mut Store, now: Moment) -> Option<Event> {
        let Answer { write, patch, facts, applied, result } = answer;
        if let (Write::Status(id), Some(facts)) = (&write, facts)
            && store.facts(id).is_some()
        {
            store.update_facts(id.clone(), facts);
        }
        let what = what(&write);
        let Err(failure) = result else {
            self.forbidden.remove(&subject(&write));
            self.queue.end(&write, Ended::Done, now, 0.0);
            self.pace.accepted();
            if let (Write::Service(gateway), Some(applied)) = (&write, applied)
                && self.services.contains_key(gateway)
            {
                self.applied.note(gateway, applied, now);
            }
            let (Write::Status(id), Some(patch)) = (&write, patch) else { return None };
            self.wants.written(id, &patch, now);
            let object = format!("{} {}", id.0.name(), id.1);
            return (patch.left_out > 0)
                .then_some(Event::LeftOut { object, count: patch.left_out });
        };
        if failure.cause == Cause::Busy || failure.retry_after.is_some() {
            self.pace.pause(failure.retry_after, now, fastrand::f64());
        }
        match failure.cause {
            Cause::NotFound if is_gone(&write, store) => {
                self.queue.end(&write, Ended::Done, now, 0.0);
                None
            }
            Cause::Invalid | Cause::Denied => {
                self.queue.end(&write, Ended::Done, now, 0.0);
                match (&write, &patch) {
                    (Write::Status(id), Some(patch)) if failure.cause == Cause::Invalid => {
                        self.wants.refused(id, patch);
                    }
                    (Write::Service(gateway), _) => {
                        if let Some(wanted) = self.services.get(gateway) {
                            self.refused.insert(gateway.clone(), (wanted.clone(), now));
                            // It waits in the queue for its next attempt.
                            self.queue.push(write.clone());
                        }
                    }
                    _ => self.queue.postpone(write, now, REFUSED_REPEAT_AFTER),
                }
                Some(Event::Refused { what, error: failure.line })
            }
            Cause::Forbidden => {
                self.queue.end(&write, Ended::Failed(failure.retry_after), now, fastrand::f64());
                self.forbidden.insert(subject(&write), failure.line);
                None
            }
            // The newer object is known.
            Cause::Conflict => {
                self.queue.end(&write, Ended::Outdated, now, fastrand::f64());
                None
            }
            // Not found: an API server that starts offers its kinds one after the other.
            Cause::NotFound
            | Cause::Connection
            | Cause::Timeout
            | Cause::Unusable
            | Cause::Unauthorized
            | Cause::Gone
            | Cause::Busy
            | Cause::Other => {
                self.queue.end(&write, Ended::Failed(failure.retry_after), now, fastrand::f64());
                None
            }
        }
    }
}

/// Returns the version of a kind. `None`: the API server does not have it.
fn version(kind: Kind, versions: &Versions) -> Option<&'static str> {
    if kind.is_of_crd() { versions.get(&kind).copied() } else { Some("v1") }
}

fn path(kind: Kind, version: &str, key: &Key) -> String {
    format!("{}/{}", kind.path(version, Some(&key.namespace)), key.name)
}

/// What a write does, for people.
fn what(write: &Write) -> String {
    match write {
        Write::Status((kind, key)) => format!("write the status of {} {key}", kind.name()),
        Write::Service(gateway) => format!("write the Service for {}", service::owner(gateway)),
        Write::Unwanted(service) => format!("delete Service {service}"),
    }
}

/// What all writes of a kind do: permissions are for kinds.
fn subject(write: &Write) -> String {
    match write {
        Write::Status((kind, _)) => format!("patch {}/status", kind.plural()),
        Write::Service(_) => "patch and create services".to_owned(),
        Write::Unwanted(_) => "delete services".to_owned(),
    }
}

/// Returns what was applied. `found` is the object afterwards.
fn applied(wanted: &Value, found: &Value) -> Applied {
    let version = found["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    Applied { digest: service::digest(wanted).to_owned(), version: version.into() }
}

/// Carries a write out.
pub(crate) async fn execute(api: Rc<Api>, write: Write, job: Job) -> Answer {
    let mut answer = Answer { write, patch: None, facts: None, applied: None, result: Ok(()) };
    let result = match job {
        Job::Patch { path, kind, patch } => {
            let patched = patch_status(&api, &path, kind, &patch).await;
            answer.patch = Some(patch);
            patched.map(|(facts, result)| {
                answer.facts = facts;
                result
            })
        }
        Job::Apply { path, body } => {
            api::write(&api, api::apply(&path, &body)).await.map(|found| {
                answer.applied = Some(applied(&body, &found));
                Ok(())
            })
        }
        Job::Delete { path, options } => {
            let request = api::with_json(Method::DELETE, &path, "application/json", &options);
            api::write(&api, request).await.map(|_| Ok(()))
        }
    };
    answer.result = result.and_then(|result| result);
    answer
}

/// Patches a status. After a conflict, returns the newer object for the next attempt.
async fn patch_status(
    api: &Api,
    path: &str,
    kind: Kind,
    patch: &Patch,
) -> Result<(Option<Facts>, Result<(), Failure>), Failure> {
    // Only the metadata and the status of the object: the rest may be too deep.
    let facts = |object: &[u8]| {
        let item = item::read_text(kind, str::from_utf8(object).ok()?);
        item.map(|item| item.facts)
    };
    let status = format!("{path}/status?fieldManager={FIELD_MANAGER}");
    let request =
        api::with_json(Method::PATCH, &status, "application/merge-patch+json", &patch.body);
    match api.bytes(request?, WRITE_MAX).await.map_err(Failure::of_write) {
        Ok((object, _)) => Ok((facts(&object), Ok(()))),
        Err(conflict) if conflict.cause == Cause::Conflict => {
            let (object, _) = api.bytes(api::get(path)?, WRITE_MAX).await?;
            Ok((facts(&object), Err(conflict)))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns whether what a write is for no longer exists.
fn is_gone(write: &Write, store: &Store) -> bool {
    match write {
        Write::Status(id) => store.facts(id).is_none(),
        Write::Service(_) => false,
        // The namespace may be gone.
        Write::Unwanted(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::ZERO;

    fn key(name: &str) -> Key {
        Key::new("weir", name)
    }

    /// A store with one Service that Weir made.
    fn store(version: &str) -> Store {
        let mut store = Store::default();
        let object = json!({"metadata": {
            "namespace": "weir", "name": "s", "uid": "u", "resourceVersion": version,
            "annotations": {"weir.dev/gateway": "n/g"}
        }});
        store.apply(Kind::OwnService, item::read(Kind::OwnService, object).unwrap());
        store
    }

    fn answer(write: Write, cause: Option<Cause>) -> Answer {
        let result = cause.map_or(Ok(()), |cause| Err(Failure::new(cause, "why")));
        Answer { write, patch: None, facts: None, applied: None, result }
    }

    fn begin(writer: &mut Writer, store: &Store, now: Moment) -> Option<(Write, Job)> {
        writer.begin(store, &Versions::new(), now, "now")
    }

    #[test]
    fn only_the_service_that_is_known_is_deleted() {
        let mut writer = Writer::new("a/b".into());
        let mut store = store("7");
        writer.set_unwanted([key("s"), key("unknown")].into());
        let (write, job) = begin(&mut writer, &store, NOW).unwrap();
        let Job::Delete { path, options } = job else { panic!("{job:?}") };
        assert_eq!(path, "/api/v1/namespaces/weir/services/s");
        assert_eq!(options, json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}));
        assert!(begin(&mut writer, &store, NOW).is_none());
        // It has changed in the meantime, and then it is needed again.
        assert_eq!(writer.end(answer(write, Some(Cause::Conflict)), &mut store, NOW), None);
        let (write, _) = begin(&mut writer, &store, NOW).unwrap();
        writer.set_unwanted(BTreeSet::new());
        writer.end(answer(write, Some(Cause::Conflict)), &mut store, NOW);
        let due = writer.due(NOW).unwrap();
        assert!(begin(&mut writer, &store, due).is_none());
        assert_eq!(writer.waiting(), 0);
    }

    #[test]
    fn writes_have_a_steady_rate_after_a_burst() {
        let mut writer = Writer::new("a/b".into());
        let mut store = Store::default();
        let services = (0..BURST + 50).map(|number| {
            let name = format!("s{number}");
            let service = json!({"metadata": {"namespace": "weir", "name": name}});
            (key(&name), service)
        });
        writer.set_services(services.collect());
        let mut count = 0;
        while let Some((write, _)) = begin(&mut writer, &store, NOW) {
            count += 1;
            writer.end(answer(write, None), &mut store, NOW);
        }
        assert_eq!((count, writer.waiting()), (BURST, 50));
        let due = writer.due(NOW).unwrap();
        assert!(begin(&mut writer, &store, due).is_some());
        assert!(begin(&mut writer, &store, due).is_none());
    }

    #[test]
    fn what_is_forbidden_is_noted_until_it_is_permitted() {
        let mut writer = Writer::new("a/b".into());
        let mut store = store("7");
        writer.set_unwanted([key("s")].into());
        let (write, _) = begin(&mut writer, &store, NOW).unwrap();
        writer.end(answer(write, Some(Cause::Forbidden)), &mut store, NOW);
        assert!(writer.forbidden.contains_key("delete services"));
        let due = writer.due(NOW).unwrap();
        let (write, _) = begin(&mut writer, &store, due).unwrap();
        writer.end(answer(write, None), &mut store, due);
        assert!(writer.forbidden.is_empty());
        // What can never succeed is reported.
        writer.touch_services();
        let (write, _) = begin(&mut writer, &store, due).unwrap();
        let event = writer.end(answer(write, Some(Cause::Invalid)), &mut store, due);
        assert!(matches!(event, Some(Event::Refused { .. })), "{event:?}");
    }

    #[test]
    fn a_busy_server_slows_all_writes() {
        let mut writer = Writer::new("a/b".into());
        let mut store = Store::default();
        let services = ["a", "b", "c"]
            .map(|name| (key(name), json!({"metadata": {"namespace": "weir", "name": name}})));
        writer.set_services(services.into());
        let (first, _) = begin(&mut writer, &store, NOW).unwrap();
        let (second, _) = begin(&mut writer, &store, NOW).unwrap();
        let retry_after = Some(Duration::from_secs(7));
        let busy = Failure { retry_after, ..Failure::new(Cause::Busy, "429") };
        writer.end(Answer { result: Err(busy), ..answer(first, None) }, &mut store, NOW);
        writer.end(answer(second, None), &mut store, NOW);
        // The third one waits as well.
        assert!(begin(&mut writer, &store, NOW).is_none());
        let due = NOW + Duration::from_secs(7);
        assert_eq!(writer.due(NOW), Some(due));
        assert!(begin(&mut writer, &store, due).is_some());
        assert!(begin(&mut writer, &store, due).is_none(), "no burst");
    }

    /// The Service of the Gateway `g` as the API server has it.
    fn report(store: &mut Store, version: &str, wanted: &Value) {
        let mut object = wanted.clone();
        object["metadata"]["resourceVersion"] = version.into();
        store.apply(Kind::OwnService, item::read(Kind::OwnService, object).unwrap());
    }

    /// Begins the write of a Service, and ends it with success.
    fn apply(writer: &mut Writer, store: &mut Store, now: Moment, version: &str) -> bool {
        writer.touch_services();
        let Some((write, job)) = begin(writer, store, now) else { return false };
        let Job::Apply { body, .. } = job else { panic!("{job:?}") };
        let found = json!({"metadata": {"resourceVersion": version}});
        let applied = Some(applied(&body, &found));
        writer.end(Answer { applied, ..answer(write, None) }, store, now);
        true
    }

    #[test]
    fn a_service_is_not_written_again_without_a_change() {
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        let mut writer = Writer::new("a/b".into());
        let mut store = Store::default();
        let gateway: gateway::objects::gateway::Gateway =
            serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "g"}})).unwrap();
        let shared = service::Shared {
            controller_name: "a/b".into(),
            namespace: "weir".into(),
            selector: [("app".to_owned(), "weir".to_owned())].into(),
        };
        let wanted = |target: u16| service::wanted(&shared, &gateway, &[(80, target)].into());
        writer.set_services([(Key::new("n", "g"), wanted(1))].into());
        assert!(apply(&mut writer, &mut store, at(0), "5"));
        // The watch has not reported it yet.
        assert!(!apply(&mut writer, &mut store, at(1), "6"));
        report(&mut store, "5", &wanted(1));
        assert!(!apply(&mut writer, &mut store, at(2), "6"));
        // Another target is written at once; an older event is none of it.
        writer.set_services([(Key::new("n", "g"), wanted(2))].into());
        assert!(apply(&mut writer, &mut store, at(2), "7"));
        report(&mut store, "6", &wanted(1));
        assert!(!apply(&mut writer, &mut store, at(3), "8"));
        // It was changed by someone after that: once at once, then after a while.
        report(&mut store, "8", &wanted(1));
        assert!(apply(&mut writer, &mut store, at(4), "9"));
        report(&mut store, "10", &wanted(1));
        assert!(!apply(&mut writer, &mut store, at(5), "11"));
        assert!(!apply(&mut writer, &mut store, at(33), "11"));
        assert!(apply(&mut writer, &mut store, at(34), "11"));
        // A new term of this leader begins without a memory.
        writer.clear();
        writer.set_services([(Key::new("n", "g"), wanted(2))].into());
        assert!(apply(&mut writer, &mut store, at(35), "12"));
    }

    #[test]
    fn a_service_that_was_refused_is_applied_again_later() {
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        let mut writer = Writer::new("a/b".into());
        let mut store = Store::default();
        let service = || json!({"metadata": {"namespace": "weir", "name": "s"}});
        writer.set_services([(key("g"), service())].into());
        let mut cause = Cause::Invalid;
        let mut refuse = |writer: &mut Writer, now: Moment| {
            let Some((write, _)) = begin(writer, &store, now) else { return false };
            let event = writer.end(answer(write, Some(cause)), &mut store, now);
            assert!(matches!(event, Some(Event::Refused { .. })), "{event:?}");
            cause = Cause::Denied;
            true
        };
        assert!(refuse(&mut writer, at(0)));
        writer.touch_services();
        assert!(!refuse(&mut writer, at(299)));
        assert_eq!(writer.due(at(299)), Some(at(300)));
        assert!(refuse(&mut writer, at(300)));
        assert!(!refuse(&mut writer, at(301)));
        // A new term of this leader begins without a memory.
        writer.clear();
        writer.set_services([(key("g"), service())].into());
        assert!(refuse(&mut writer, at(302)));
    }

    #[test]
    fn what_admission_denies_is_tried_again_later() {
        let mut writer = Writer::new("a/b".into());
        let mut store = store("7");
        writer.set_unwanted([key("s")].into());
        let (write, _) = begin(&mut writer, &store, NOW).unwrap();
        let event = writer.end(answer(write, Some(Cause::Denied)), &mut store, NOW);
        assert!(matches!(event, Some(Event::Refused { .. })), "{event:?}");
        assert!(writer.forbidden.is_empty());
        assert_eq!(writer.due(NOW), Some(NOW + REFUSED_REPEAT_AFTER));
        assert!(begin(&mut writer, &store, NOW + REFUSED_REPEAT_AFTER).is_some());
    }

    #[test]
    fn an_event_that_never_comes_ends_the_wait() {
        let at = |seconds: u64| Moment::from_millis(seconds * 1000);
        let mut writer = Writer::new("a/b".into());
        let mut store = Store::default();
        let service = json!({"metadata": {"namespace": "weir", "name": "s"}});
        writer.set_services([(key("g"), service)].into());
        assert!(apply(&mut writer, &mut store, at(0), "5"));
        assert!(!apply(&mut writer, &mut store, at(29), "6"));
        assert_eq!(writer.due(at(29)), Some(at(30)));
        assert!(apply(&mut writer, &mut store, at(30), "6"));
    }
}
