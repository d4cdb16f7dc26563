//! Notices on objects without conditions → events of the API (`v1/Event`), one write at a time. Pure but for [`write`]: time
//! is an argument.
//!
//! Users of a cluster cause events, and change them as often as they change their objects. So events have a separate rate
//! limit, each namespace has a part of it, and the names of events do not depend on texts: an object has a few events, whatever
//! happens to it. That an event cannot be written concerns events only.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway::objects::Key;
use gateway::objects::ingress::NETWORKING_GROUP;
use gateway::resolve::status::Notice;
use model::Moment;
use serde_json::{Value, json};

use crate::api::{self, Api};
use crate::event::Event;
use crate::failure::{Cause, Failure};
use crate::pace::Pace;
use crate::text::short_digest;
use crate::turns::in_turns;

/// An event is written again after this time, since the API server forgets events (after an hour by default). Also one that
/// was refused.
const REPEAT_AFTER: Duration = Duration::from_secs(30 * 60);
/// At most this many events are kept up: users of a cluster can cause many notices.
const EVENTS_MAX: usize = 1_000;
/// Events on objects without a namespace are in this one, as everywhere in Kubernetes.
const NAMESPACE_OF_OTHERS: &str = "default";
/// How many events may be written at once after a quiet time.
const BURST: u32 = 25;
/// The time from one event to the next after a burst.
const EVERY: Duration = Duration::from_millis(100);
/// The same for the events of one namespace: others get their turn.
const NAMESPACE_BURST: u32 = 50;
/// Enough for as many events as there can be, each written again in time.
const NAMESPACE_EVERY: Duration = Duration::from_secs(1);

/// What writes of events do, for people.
pub(crate) const SUBJECT: &str = "patch and create events";

/// Writes events.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The namespaces in which Weir may write. `None`: in all.
    namespaces: Option<BTreeSet<Arc<str>>>,
    notices: Arc<[Notice]>,
    /// By namespace and name.
    events: BTreeMap<Key, Kept>,
    /// When each is written next. Of several, the one that was asked for first.
    due: BTreeSet<(Moment, u64, Key)>,
    /// How many have been asked for so far.
    asked: u64,
    /// The one that is being written, as it was sent.
    running: Option<(Key, Notice)>,
    pace: Pace,
    paces: BTreeMap<Arc<str>, Pace>,
    /// The namespaces in which events are forbidden, with the API server's message.
    forbidden: BTreeMap<Arc<str>, Arc<str>>,
}

/// An event that is kept up.
#[derive(Debug)]
struct Kept {
    notice: Notice,
    /// Its place in `due`. `None`: it is being written.
    due: Option<(Moment, u64)>,
    written: Option<Written>,
}

#[derive(Debug)]
struct Written {
    /// When it was written first, as `metav1.Time`.
    first: String,
    count: u32,
}

impl Recorder {
    /// Creates a recorder for these namespaces; `None`: for all.
    pub(crate) fn new(namespaces: Option<&[Arc<str>]>) -> Recorder {
        Recorder {
            namespaces: namespaces.map(|all| all.iter().cloned().collect()),
            notices: Arc::default(),
            events: BTreeMap::new(),
            due: BTreeSet::new(),
            asked: 0,
            running: None,
            pace: Pace::new(BURST, EVERY),
            paces: BTreeMap::new(),
            forbidden: BTreeMap::new(),
        }
    }

    /// Sets what is wanted.
    pub(crate) fn set(&mut self, notices: &Arc<[Notice]>, now: Moment) {
        if Arc::ptr_eq(&self.notices, notices) {
            return;
        }
        self.notices = Arc::clone(notices);
        let placed = notices.iter().map(|one| (namespace(one), one));
        let has_role = |(namespace, _): &(Arc<str>, &Notice)| {
            self.namespaces.as_ref().is_none_or(|all| all.contains(namespace))
        };
        let wanted = in_turns(placed.filter(has_role), |(one, _)| one, BTreeMap::new());
        let mut counts: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        let wanted = wanted.take(EVENTS_MAX).map(|(namespace, one)| {
            let count = counts.entry((one.kind, &one.uid, one.reason)).or_default();
            *count += 1;
            (Key { namespace, name: name(one, *count) }, one)
        });
        let wanted: Vec<(Key, &Notice)> = wanted.collect();
        let mut before = std::mem::take(&mut self.events);
        for (key, notice) in wanted {
            match before.remove(&key) {
                Some(same) if same.notice == *notice => drop(self.events.insert(key, same)),
                other => {
                    let due = other.and_then(|other| other.due);
                    let kept = Kept { notice: notice.clone(), due, written: None };
                    self.events.insert(key.clone(), kept);
                    // One that waits for its turn keeps its place, however often it changes.
                    if due.is_none_or(|(at, _)| at > now) {
                        self.ask(&key, now);
                    }
                }
            }
        }
        for (key, kept) in before {
            if let Some((at, number)) = kept.due {
                self.due.remove(&(at, number, key));
            }
        }
        let namespaces: BTreeSet<&Arc<str>> =
            self.events.keys().map(|key| &key.namespace).collect();
        self.forbidden.retain(|namespace, _| namespaces.contains(namespace));
        let has_events = |namespace: &Arc<str>| namespaces.contains(namespace);
        self.paces.retain(|one, pace| !pace.is_rested(now) || has_events(one) && pace.has_failed());
    }

    /// Asks for an event at a moment, in place of the one at which it was due.
    fn ask(&mut self, key: &Key, at: Moment) {
        let is_running = self.running.as_ref().is_some_and(|(running, _)| running == key);
        let Some(kept) = self.events.get_mut(key).filter(|_| !is_running) else { return };
        if let Some((at, number)) = kept.due.take() {
            self.due.remove(&(at, number, key.clone()));
        }
        self.asked += 1;
        kept.due = Some((at, self.asked));
        self.due.insert((at, self.asked, key.clone()));
    }

    /// This instance has begun to lead: all events are written. Another instance may have written since.
    pub(crate) fn restart(&mut self, now: Moment) {
        self.forbidden.clear();
        let keys: Vec<Key> = self.events.keys().cloned().collect();
        for key in keys {
            if let Some(kept) = self.events.get_mut(&key) {
                kept.written = None;
            }
            self.ask(&key, now);
        }
    }

    /// Returns when the next event may be due.
    pub(crate) fn due(&self, now: Moment) -> Option<Moment> {
        let (at, ..) = self.due.first().filter(|_| self.running.is_none())?;
        Some(self.pace.wait_until(now).map_or(*at, |paced| paced.max(*at)))
    }

    /// Returns an event that is to be written now. `time` is `now` as `metav1.Time`.
    pub(crate) fn begin(&mut self, now: Moment, time: &str) -> Option<(Key, Value)> {
        if self.running.is_some() || self.pace.wait_until(now).is_some() {
            return None;
        }
        loop {
            let (_, _, key) = self.due.first().filter(|(at, ..)| *at <= now)?;
            let key = key.clone();
            let namespace = Arc::clone(&key.namespace);
            let pace = self.paces.entry(namespace);
            let pace = pace.or_insert_with(|| Pace::new(NAMESPACE_BURST, NAMESPACE_EVERY));
            if let Some(at) = pace.wait_until(now) {
                self.ask(&key, at);
                continue;
            }
            pace.begin(now);
            self.pace.begin(now);
            self.due.pop_first();
            let Some(kept) = self.events.get_mut(&key) else { continue };
            kept.due = None;
            self.running = Some((key.clone(), kept.notice.clone()));
            return Some((key.clone(), body(&key, kept, time)));
        }
    }

    /// Takes the end of a write. Returns what is to be reported. `draw` from 0 to 1 varies the wait after a failure.
    pub(crate) fn end(
        &mut self,
        result: Result<(), Failure>,
        now: Moment,
        time: &str,
        draw: f64,
    ) -> Option<Event> {
        let (key, notice) = self.running.take()?;
        let mut again = now + REPEAT_AFTER;
        let mut report = None;
        match result {
            Ok(()) => {
                self.pace.accepted();
                self.forbidden.remove(&key.namespace);
                if let Some(pace) = self.paces.get_mut(&key.namespace) {
                    pace.accepted();
                }
                if let Some(kept) = self.events.get_mut(&key).filter(|one| one.notice == notice) {
                    let first = || Written { first: time.to_owned(), count: 0 };
                    let written = kept.written.get_or_insert_with(first);
                    written.count = written.count.saturating_add(1);
                }
            }
            Err(failure) => match failure.cause {
                // The namespace is gone.
                Cause::NotFound => {}
                Cause::Invalid | Cause::Denied => {
                    let what = format!("write event {key}");
                    report = Some(Event::Refused { what, error: failure.line });
                }
                Cause::Connection | Cause::Unauthorized | Cause::Busy => {
                    self.pace.pause(failure.retry_after, now, draw);
                    again = now;
                }
                // Roles are for namespaces, and so are many webhooks.
                Cause::Forbidden
                | Cause::Timeout
                | Cause::Unusable
                | Cause::Conflict
                | Cause::Gone
                | Cause::Other => {
                    if let Some(pace) = self.paces.get_mut(&key.namespace) {
                        pace.pause(failure.retry_after, now, draw);
                    }
                    if failure.cause == Cause::Forbidden {
                        self.forbidden.insert(Arc::clone(&key.namespace), failure.line);
                    }
                    again = now;
                }
            },
        }
        let is_current = self.events.get(&key).is_some_and(|kept| kept.notice == notice);
        self.ask(&key, if is_current { again } else { now });
        report
    }

    /// Returns the API server's message if events are forbidden.
    pub(crate) fn forbidden(&self) -> Option<&Arc<str>> {
        self.forbidden.values().next()
    }
}

/// Returns the namespace of an event.
fn namespace(notice: &Notice) -> Arc<str> {
    match &*notice.key.namespace {
        "" => NAMESPACE_OF_OTHERS.into(),
        _ => Arc::clone(&notice.key.namespace),
    }
}

/// Returns the name of an event about an object: the `number`th one with this reason. All instances give it the same name.
fn name(notice: &Notice, number: usize) -> Arc<str> {
    /// With the digest, at most 253 bytes.
    const NAME_BYTES_MAX: usize = 200;
    let name = &notice.key.name;
    let start = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    let Notice { kind, uid, reason, .. } = notice;
    let digest = short_digest(&format!("{kind} {uid} {reason} {number}"));
    format!("{}.{digest}", start.trim_end_matches(['.', '-'])).into()
}

fn body(key: &Key, kept: &Kept, time: &str) -> Value {
    let Kept { notice, written, .. } = kept;
    let (first, count) =
        written.as_ref().map_or((time, 0), |written| (written.first.as_str(), written.count));
    json!({
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
        "count": count.saturating_add(1)
    })
}

/// Writes an event.
pub(crate) async fn write(api: Rc<Api>, key: Key, body: Value) -> Result<(), Failure> {
    let Key { namespace, name } = &key;
    let path = format!("/api/v1/namespaces/{namespace}/events/{name}");
    api::write(&api, api::apply(&path, &body)).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn notice(namespace: &str, name: &str, message: &str) -> Notice {
        Notice {
            kind: "Ingress",
            key: Key::new(namespace, name),
            uid: name.into(),
            reason: "Unsupported",
            message: message.to_owned(),
        }
    }

    /// Sets notices in the namespace `n`, each `name=message`.
    fn set(recorder: &mut Recorder, notices: &[&str], now: Moment) {
        let split = |one: &&str| {
            let (name, message) = one.split_once('=').unwrap();
            notice("n", name, message)
        };
        recorder.set(&notices.iter().map(split).collect(), now);
    }

    /// Writes what is due, with success. Returns the events as `object:message`, with the count.
    fn write_due(recorder: &mut Recorder, now: Moment) -> Vec<String> {
        std::iter::from_fn(|| {
            let (_, body) = recorder.begin(now, "now")?;
            assert_eq!(recorder.end(Ok(()), now, "now", 1.0), None);
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let object = text(&body["involvedObject"]["name"]);
            Some(format!("{object}={} {}", text(&body["message"]), body["count"]))
        })
        .collect()
    }

    #[test]
    fn an_event_is_written_once_and_again_before_it_is_forgotten() {
        let mut recorder = Recorder::new(None);
        set(&mut recorder, &["a=x", "a=y", "b=z"], at(0));
        assert_eq!(write_due(&mut recorder, at(1)), ["a=x 1", "a=y 1", "b=z 1"]);
        set(&mut recorder, &["a=x", "a=y", "b=z"], at(2));
        assert_eq!(
            (write_due(&mut recorder, at(1800)), recorder.due(at(2))),
            (vec![], Some(at(1801)))
        );
        assert_eq!(write_due(&mut recorder, at(1801)).len(), 3);
        // The text of one changes: it has the same name, and begins again.
        set(&mut recorder, &["a=x2", "a=y", "b=z"], at(1802));
        assert_eq!(recorder.events.len(), 3);
        assert_eq!(write_due(&mut recorder, at(1802)), ["a=x2 1"]);
        assert_eq!(write_due(&mut recorder, at(3601)), ["a=y 3", "b=z 3"]);
        set(&mut recorder, &[], at(3601));
        assert_eq!(recorder.due(at(3601)), None);
        // A new leader does not know what was written.
        set(&mut recorder, &["a=x"], at(4000));
        assert_eq!(write_due(&mut recorder, at(4000)), ["a=x 1"]);
        recorder.restart(at(4001));
        assert_eq!(write_due(&mut recorder, at(4001)), ["a=x 1"]);
    }

    #[test]
    fn what_changes_while_it_is_written_is_written_again() {
        let mut recorder = Recorder::new(None);
        set(&mut recorder, &["a=x"], at(0));
        let end = |recorder: &mut Recorder| recorder.end(Ok(()), at(1), "now", 1.0);
        recorder.begin(at(1), "now").unwrap();
        set(&mut recorder, &["a=y"], at(1));
        assert!(recorder.begin(at(1), "now").is_none(), "one at a time");
        end(&mut recorder);
        recorder.begin(at(1), "now").unwrap();
        set(&mut recorder, &[], at(1));
        set(&mut recorder, &["a=y"], at(1));
        end(&mut recorder);
        assert_eq!(write_due(&mut recorder, at(1)), Vec::<String>::new());
        recorder.restart(at(2));
        recorder.begin(at(2), "now").unwrap();
        set(&mut recorder, &[], at(2));
        end(&mut recorder);
        assert_eq!((recorder.due(at(2)), recorder.due.len()), (None, 0));
    }

    #[test]
    fn one_who_changes_an_object_all_the_time_causes_few_events() {
        let mut recorder = Recorder::new(None);
        let mut written = [0, 0];
        // 20 changes in a second.
        for now in (0..100_000).step_by(50).map(Moment::from_millis) {
            let message = now.as_micros().to_string();
            let of_other = notice("m", "b", "same");
            recorder.set(&[notice("n", "a", &message), of_other].into(), now);
            for one in write_due(&mut recorder, now) {
                written[usize::from(one.starts_with("b="))] += 1;
            }
            assert!(recorder.due.len() <= 2);
        }
        assert!((NAMESPACE_BURST..NAMESPACE_BURST + 102).contains(&written[0]), "{written:?}");
        assert_eq!(written[1], 1);
    }

    #[test]
    fn namespaces_take_turns() {
        let mut recorder = Recorder::new(None);
        let many = (0..2000).map(|number| notice("a", &format!("{number:04}"), ""));
        let few = (0..3).map(|number| notice("b", &number.to_string(), ""));
        recorder.set(&many.chain(few).collect(), at(0));
        assert_eq!(recorder.events.len(), EVENTS_MAX);
        let first = write_due(&mut recorder, at(0));
        assert_eq!(first.len(), BURST as usize);
        assert!(
            first[..6].iter().filter(|one| one.len() < "0000= 1".len()).count() == 3,
            "{first:?}"
        );
    }

    #[test]
    fn roles_decide_where_events_are_written() {
        let class = |name: &str| Notice { kind: "IngressClass", ..notice("", name, "x") };
        let all: Arc<[Notice]> = [class("c"), notice("n", "a", "x"), notice("m", "a", "x")].into();
        let names = ["n", "default"].map(Arc::<str>::from);
        for (namespaces, expected) in [(None, 3), (Some(&names[..1]), 1), (Some(&names[..]), 2)] {
            let mut recorder = Recorder::new(namespaces);
            recorder.set(&all, at(0));
            assert_eq!(recorder.events.len(), expected);
        }
    }

    #[test]
    fn a_failure_concerns_what_it_is_about() {
        let mut recorder = Recorder::new(None);
        let all: Arc<[Notice]> = [notice("m", "a", "x"), notice("n", "a", "x")].into();
        recorder.set(&all, at(0));
        let fail = |recorder: &mut Recorder, now: u64, cause: Cause| {
            let (key, _) = recorder.begin(at(now), "now")?;
            let failure = Failure::new(cause, "why");
            let report = recorder.end(Err(failure), at(now), "now", 1.0);
            Some((key.namespace.to_string(), report.is_some(), recorder.forbidden().is_some()))
        };
        let of = |namespace: &str, is_reported, is_forbidden| {
            Some((namespace.to_owned(), is_reported, is_forbidden))
        };
        assert_eq!(fail(&mut recorder, 0, Cause::Forbidden), of("m", false, true));
        assert_eq!(fail(&mut recorder, 0, Cause::Busy), of("n", false, true));
        assert_eq!(fail(&mut recorder, 0, Cause::Busy), None, "all wait");
        assert_eq!(fail(&mut recorder, 1, Cause::Denied), of("m", true, true));
        assert_eq!(fail(&mut recorder, 1, Cause::NotFound), of("n", false, true));
        assert_eq!(fail(&mut recorder, 1800, Cause::NotFound), None);
        assert_eq!(recorder.due(at(1800)), Some(at(1801)));
        assert_eq!(write_due(&mut recorder, at(1801)).len(), 2);
        assert_eq!(recorder.forbidden(), None);
        // A webhook that fails in one namespace.
        recorder.restart(at(1900));
        assert_eq!(fail(&mut recorder, 1900, Cause::Timeout), of("m", false, false));
        assert_eq!(fail(&mut recorder, 1900, Cause::Forbidden), of("n", false, true));
        assert_eq!(fail(&mut recorder, 1900, Cause::Other), None);
        // It is not known whether events are forbidden where there are none.
        recorder.set(&Arc::default(), at(1900));
        assert_eq!((recorder.forbidden(), recorder.paces.len()), (None, 2));
        recorder.set(&[notice("m", "a", "x")].into(), at(2000));
        assert_eq!(recorder.paces.len(), 1);
    }

    #[test]
    fn names_of_events_are_bounded() {
        let long = notice("n", &"a.".repeat(126), "x");
        let first = name(&long, 1);
        assert!(first.len() <= 253 && first.is_ascii(), "{first}");
        assert_ne!(name(&long, 2), first);
    }
}
