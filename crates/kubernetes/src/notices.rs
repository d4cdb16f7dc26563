//! Notices on objects without conditions → events of the API. Pure: time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::objects::Key;
use gateway::objects::ingress::NETWORKING_GROUP;
use gateway::resolve::status::Notice;
use model::Moment;
use serde_json::{Value, json};

use crate::text::short_digest;
use crate::turns::in_turns;

/// An event is written again after this time, since the API server forgets events (after an hour by default).
const REPEAT_AFTER: Duration = Duration::from_secs(30 * 60);
/// At most this many events are kept up: users of a cluster can cause many notices.
const EVENTS_MAX: usize = 1_000;
/// Events on objects without a namespace are in this one, as everywhere in Kubernetes.
const NAMESPACE_OF_OTHERS: &str = "default";

/// The wanted events, by namespace and name.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    wanted: BTreeMap<Key, Notice>,
    written: BTreeMap<Key, Written>,
}

#[derive(Debug)]
struct Written {
    /// When it was written first, as `metav1.Time`.
    first: String,
    at: Moment,
    count: u32,
}

/// What to do about an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Nothing.
    Keep,
    /// Ask again after a while.
    Wait(Duration),
    /// Write.
    Write(Value),
}

impl Notices {
    /// Sets what is wanted, and returns the events that are new.
    pub(crate) fn set(&mut self, notices: Vec<Notice>) -> Vec<Key> {
        let notices = in_turns(notices, |one| &one.key.namespace, BTreeMap::new());
        let notices = notices.take(EVENTS_MAX);
        let wanted: BTreeMap<Key, Notice> = notices.map(|one| (event(&one), one)).collect();
        let new = wanted.keys().filter(|key| !self.wanted.contains_key(key)).cloned().collect();
        self.wanted = wanted;
        self.written.retain(|key, _| self.wanted.contains_key(key));
        new
    }

    /// Returns all events.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Key> {
        self.wanted.keys()
    }

    /// Decides what to do about an event. `time` is `now` as `metav1.Time`.
    pub(crate) fn decide(&self, key: &Key, now: Moment, time: &str) -> Decision {
        let Some(notice) = self.wanted.get(key) else { return Decision::Keep };
        let written = self.written.get(key);
        let wait = written.map_or(Duration::ZERO, |one| (one.at + REPEAT_AFTER) - now);
        if !wait.is_zero() {
            return Decision::Wait(wait);
        }
        let first = written.map_or(time, |one| &one.first);
        let count = written.map_or(1, |one| one.count.saturating_add(1));
        Decision::Write(json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": &*key.namespace, "name": &*key.name},
            "involvedObject": {
                "apiVersion": format!("{NETWORKING_GROUP}/v1"),
                "kind": notice.kind,
                "namespace": &*notice.key.namespace,
                "name": &*notice.key.name,
                "uid": &*notice.uid
            },
            "type": "Warning",
            "reason": notice.reason,
            "message": notice.message,
            "source": {"component": "weir"},
            "reportingComponent": "weir",
            "firstTimestamp": first,
            "lastTimestamp": time,
            "count": count
        }))
    }

    /// Notes that an event was written, and returns after which time it is written again.
    pub(crate) fn written(&mut self, key: &Key, now: Moment, time: &str) -> Duration {
        let before = self.written.remove(key);
        let (first, count) =
            before.map_or_else(|| (time.to_owned(), 0), |one| (one.first, one.count));
        let written = Written { first, at: now, count: count.saturating_add(1) };
        self.written.insert(key.clone(), written);
        REPEAT_AFTER
    }

    /// Forgets what was written: another instance may have written since.
    pub(crate) fn forget(&mut self) {
        self.written.clear();
    }
}

/// Returns namespace and name of the event of a notice. All instances give it the same name.
fn event(notice: &Notice) -> Key {
    /// With the digest, at most 253 bytes.
    const NAME_BYTES_MAX: usize = 200;
    let namespace = match &*notice.key.namespace {
        "" => NAMESPACE_OF_OTHERS.into(),
        _ => notice.key.namespace.clone(),
    };
    let name = &notice.key.name;
    let start = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    let Notice { kind, uid, reason, message, .. } = notice;
    let digest = short_digest(&format!("{kind} {uid} {reason} {message}"));
    Key::new(namespace, format!("{}.{digest}", start.trim_end_matches(['.', '-'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(name: &str, message: &str) -> Notice {
        Notice {
            kind: "Ingress",
            key: Key::new("n", name),
            uid: "u".into(),
            reason: "Unsupported",
            message: message.to_owned(),
        }
    }

    #[test]
    fn an_event_is_written_once_and_again_before_it_is_forgotten() {
        let mut notices = Notices::default();
        let [key] = &notices.set(vec![notice("a", "x")])[..] else { panic!("one") };
        let key = key.clone();
        assert!(notices.set(vec![notice("a", "x")]).is_empty());
        let at = |minutes: u64| Moment::from_millis(minutes * 60_000);
        let Decision::Write(body) = notices.decide(&key, at(1), "t1") else { panic!("written") };
        assert_eq!((&body["firstTimestamp"], &body["count"]), (&json!("t1"), &json!(1)));
        notices.written(&key, at(1), "t1");
        let wait = Duration::from_secs(29 * 60);
        assert_eq!(notices.decide(&key, at(2), "t2"), Decision::Wait(wait));
        let Decision::Write(body) = notices.decide(&key, at(31), "t3") else { panic!("written") };
        assert_eq!((&body["firstTimestamp"], &body["count"]), (&json!("t1"), &json!(2)));
        assert_eq!(body["lastTimestamp"], "t3");

        let [other] = &notices.set(vec![notice("a", "y")])[..] else { panic!("another text") };
        assert_ne!(*other, key);
        assert_eq!(notices.decide(&key, at(40), ""), Decision::Keep);
    }

    #[test]
    fn names_of_events_are_bounded() {
        let long = notice(&"a.".repeat(126), "x");
        let key = event(&long);
        assert!(key.name.len() <= 253 && key.name.is_ascii(), "{key}");
        let class = Notice { key: Key::new("", "c"), kind: "IngressClass", ..notice("c", "x") };
        assert_eq!(&*event(&class).namespace, "default");
    }

    #[test]
    fn one_namespace_cannot_use_up_the_limit() {
        let mut all: Vec<Notice> =
            (0..2 * EVENTS_MAX).map(|number| notice("a", &number.to_string())).collect();
        all.push(Notice { key: Key::new("o", "b"), ..notice("b", "x") });
        let events = Notices::default().set(all);
        assert_eq!(events.len(), EVENTS_MAX);
        assert!(events.iter().any(|event| &*event.namespace == "o"));
    }
}
