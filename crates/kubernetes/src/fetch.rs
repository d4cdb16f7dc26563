//! Which ConfigMaps and Secrets must be read: those that are referred to, when their version changes. Pure.
//!
//! An object that could not be read is not one that does not exist: [`Fetches::why_unread`] says why its contents are
//! unknown. Contents that were read before stay in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::failing::Standing;
use crate::failure::{Cause, Failure};
use crate::kinds::Kind;
use crate::queue::{Ended, Queue};
use crate::store::Id;
use crate::turns::in_turns;

/// At most this many requests at a time.
const CONCURRENCY_MAX: usize = 8;
/// For this long the start waits for an object whose reads fail for a reason of its own. For one that the API server does
/// not answer, it waits as for a list.
const FAILING_MAX: Duration = Duration::from_secs(30);

/// Returns how many objects of a kind are read at most.
pub(crate) fn count_max(kind: Kind) -> usize {
    if kind == Kind::Secret { 16_384 } else { 1024 }
}

/// Returns how many of them are of one namespace at most: its users must not take all places.
pub(crate) fn namespace_count_max(kind: Kind) -> usize {
    count_max(kind) / 4
}

/// For this long, changes do not wait for objects of a namespace after they have waited in full for one of it. Otherwise its
/// users could hold back the changes of all namespaces again and again, with references to objects that are slow to read.
const REST: Duration = Duration::from_secs(60);

/// Objects that are referred to and exist.
#[derive(Debug)]
pub(crate) struct Fetches {
    /// The versions that exist.
    wanted: BTreeMap<Id, Box<str>>,
    /// The versions that were read.
    read: BTreeMap<Id, Box<str>>,
    queue: Queue<Id>,
    /// Those of which the last read failed.
    failed: BTreeMap<Id, Failed>,
    /// What is wrong with those that were read and cannot be used.
    unusable: BTreeMap<Id, Arc<str>>,
    /// Since when all reads have failed for reasons of the objects.
    failing_since: Option<Moment>,
    /// Those without contents that changes no longer wait for.
    given_up: BTreeSet<Id>,
    /// The namespaces for whose objects changes have waited in full, and until when they do not wait again.
    resting: BTreeMap<Arc<str>, Moment>,
    /// Those beyond the limits of their kind: they are not read.
    pub(crate) refused: BTreeSet<Id>,
}

/// Failed reads of an object.
#[derive(Debug)]
struct Failed {
    /// Since when they have failed for reasons of the object. `None`: the last one did not.
    since: Option<Moment>,
    /// The last one.
    failure: Failure,
    /// The line of the first one with the same cause. It becomes part of a status, and lines can have parts that are
    /// different each time.
    why: Arc<str>,
}

impl Failed {
    /// Returns when the start no longer waits for the object.
    fn end(&self) -> Option<Moment> {
        self.since.map(|since| since + FAILING_MAX)
    }
}

impl Fetches {
    pub(crate) fn new() -> Fetches {
        Fetches {
            wanted: BTreeMap::new(),
            read: BTreeMap::new(),
            queue: Queue::new(CONCURRENCY_MAX),
            failed: BTreeMap::new(),
            unusable: BTreeMap::new(),
            failing_since: None,
            given_up: BTreeSet::new(),
            resting: BTreeMap::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Sets what is referred to and the versions of all that exist. `is_complete`: whether they are all that there are, so
    /// that those in use keep their place. Returns those that were read and are no longer wanted.
    pub(crate) fn set(
        &mut self,
        referred: &BTreeSet<Id>,
        versions: &BTreeMap<Id, Box<str>>,
        is_complete: bool,
    ) -> Vec<Id> {
        let before = std::mem::take(&mut self.wanted);
        self.refused.clear();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_fetched()) {
            let of_kind = referred.iter().filter(|(one, _)| *one == kind);
            let existing = of_kind.filter_map(|id| Some((id, versions.get(id)?)));
            // Those in use stay: only further ones are beyond the limit.
            let (used, further): (Vec<_>, Vec<_>) =
                existing.partition(|(id, _)| is_complete && before.contains_key(*id));
            let mut counts: BTreeMap<Arc<str>, usize> = BTreeMap::new();
            for (id, _) in &used {
                *counts.entry(Arc::clone(&id.1.namespace)).or_default() += 1;
            }
            let further = in_turns(further, |(id, _)| &id.1.namespace, counts);
            let (mut count, mut counts) = (0, BTreeMap::<&str, usize>::new());
            for (id, version) in used.into_iter().chain(further) {
                let of_namespace = counts.entry(&id.1.namespace).or_default();
                if count < count_max(kind) && *of_namespace < namespace_count_max(kind) {
                    (count, *of_namespace) = (count + 1, *of_namespace + 1);
                    self.wanted.insert(id.clone(), version.clone());
                } else {
                    self.refused.insert(id.clone());
                }
            }
        }
        for (key, version) in &self.wanted {
            if self.read.get(key) != Some(version) {
                self.queue.push(key.clone());
            }
        }
        let Fetches { wanted, failed, unusable, given_up, .. } = self;
        failed.retain(|key, _| wanted.contains_key(key));
        unusable.retain(|key, _| wanted.contains_key(key));
        given_up.retain(|key| wanted.contains_key(key));
        if failed.is_empty() {
            self.failing_since = None;
        }
        let gone: Vec<Id> =
            self.read.keys().filter(|key| !self.wanted.contains_key(*key)).cloned().collect();
        for key in &gone {
            self.read.remove(key);
        }
        gone
    }

    /// Returns an object that is to be read now.
    pub(crate) fn begin(&mut self, now: Moment) -> Option<Id> {
        loop {
            let key = self.queue.begin(now)?;
            if self.wanted.contains_key(&key) {
                return Some(key);
            }
            self.queue.end(&key, Ended::Done, now, 0.0);
        }
    }

    /// Notes that a version was read, or that the object does not exist. Returns whether it is wanted.
    pub(crate) fn read(&mut self, key: &Id, version: Option<Box<str>>, now: Moment) -> bool {
        self.queue.end(key, Ended::Done, now, 0.0);
        self.failed.remove(key);
        self.unusable.remove(key);
        self.given_up.remove(key);
        self.failing_since = None;
        let Some(wanted) = self.wanted.get(key) else { return false };
        let version = version.unwrap_or_else(|| wanted.clone());
        self.read.insert(key.clone(), version);
        true
    }

    /// Notes what is wrong with an object that was read.
    pub(crate) fn unusable(&mut self, key: &Id, why: Arc<str>) {
        self.unusable.insert(key.clone(), why);
    }

    /// Notes a failure, and returns whether its cause is another one than before. `draw` from 0 to 1 varies the wait
    /// after it.
    pub(crate) fn failed(&mut self, key: &Id, failure: Failure, now: Moment, draw: f64) -> bool {
        self.queue.end(key, Ended::Failed(failure.retry_after), now, draw);
        if !self.wanted.contains_key(key) {
            return false;
        }
        let before = self.failed.remove(key);
        let since = if failure.is_of_server() {
            self.failing_since = None;
            None
        } else {
            self.failing_since.get_or_insert(now);
            Some(before.as_ref().and_then(|before| before.since).unwrap_or(now))
        };
        let same = before.filter(|before| before.failure.cause == failure.cause);
        let is_news = same.is_none();
        let why = same.map_or_else(|| Arc::clone(&failure.line), |before| before.why);
        self.failed.insert(key.clone(), Failed { since, failure, why });
        is_news
    }

    /// Returns when the next one is due that failed.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.queue.due()
    }

    /// Returns the objects that the start waits for: those without contents, unless their reads have failed for long for
    /// reasons of their own.
    pub(crate) fn awaited_at_start(&self, now: Moment) -> impl Iterator<Item = &Id> {
        let is_given_up = self.failing_since.is_some_and(|since| since + FAILING_MAX <= now);
        self.unread().filter(move |id| {
            let failed = self.failed.get(*id);
            let has_failed = failed.and_then(Failed::end).is_some_and(|end| end <= now);
            // One that the API server does not answer may be fine.
            let is_open = failed.is_some_and(|failed| failed.failure.is_of_server());
            !has_failed && (!is_given_up || is_open)
        })
    }

    /// Returns when the start next no longer waits for something because its reads fail.
    pub(crate) fn awaited_until(&self, now: Moment) -> Option<Moment> {
        let unread = self.failed.iter().filter(|(id, _)| !self.read.contains_key(*id));
        let ends = unread.filter_map(|(_, failed)| failed.end());
        let all = self.failing_since.map(|since| since + FAILING_MAX);
        ends.chain(all).filter(|end| *end > now).min()
    }

    /// Returns the objects that are likely to be known soon for the first time: changes wait for them.
    pub(crate) fn awaited(&self, now: Moment) -> impl Iterator<Item = &Id> {
        let rests = move |id: &Id| self.resting.get(&id.1.namespace).is_some_and(|end| *end > now);
        self.unread().filter(move |id| !self.given_up.contains(*id) && !rests(id))
    }

    /// Notes that changes have waited long enough for the objects that have no contents now.
    pub(crate) fn give_up(&mut self) {
        self.given_up = self.unread().cloned().collect();
    }

    /// Notes that changes have waited in full for what [`Fetches::awaited`] returns.
    pub(crate) fn waited(&mut self, now: Moment) {
        let awaited = self.awaited(now).map(|(_, key)| Arc::clone(&key.namespace));
        let awaited: BTreeSet<Arc<str>> = awaited.collect();
        self.resting.retain(|_, end| *end > now);
        self.resting.extend(awaited.into_iter().map(|namespace| (namespace, now + REST)));
        self.give_up();
    }

    fn unread(&self) -> impl Iterator<Item = &Id> {
        self.wanted.keys().filter(|id| !self.read.contains_key(*id))
    }

    /// Returns the failures of the objects whose last read failed.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Id, &Failure)> {
        self.failed.iter().map(|(id, failed)| (id, &failed.failure))
    }

    /// Returns what is known about an object whose reads have failed.
    pub(crate) fn standing(&self, id: &Id) -> Standing {
        match self.wanted.get(id) {
            None => Standing::Gone,
            Some(_) if self.failed.contains_key(id) => Standing::Failing,
            Some(version) if self.read.get(id) == Some(version) => Standing::Succeeded,
            Some(_) => Standing::Pending,
        }
    }

    /// Returns why the contents of an object are unknown although it exists, as the rest of a sentence that begins with
    /// the object. It is the same for similar failures, since it becomes part of a status.
    pub(crate) fn why_unread(&self, id: &Id) -> Option<Arc<str>> {
        let plural = id.0.plural();
        if self.refused.contains(id) {
            let (count_max, of_namespace) = (count_max(id.0), namespace_count_max(id.0));
            return Some(
                format!(
                    "is not read: more than {count_max} {plural} are referred to, or more than \
                     {of_namespace} of its namespace. Remove references that are not needed"
                )
                .into(),
            );
        }
        if let Some(why) = self.unusable.get(id) {
            return Some(format!("cannot be read: {why}").into());
        }
        if !self.wanted.contains_key(id) || self.read.contains_key(id) {
            return None;
        }
        let Some(Failed { failure, why, .. }) = self.failed.get(id) else {
            return Some("has not been read yet".into());
        };
        Some(if failure.is_of_server() {
            "has not been read: the API server cannot be used at present".into()
        } else if failure.cause == Cause::Forbidden {
            format!("cannot be read: Weir may not read it. Grant get on {plural}").into()
        } else {
            format!("cannot be read: {why}").into()
        })
    }
}

#[cfg(test)]
mod tests {
    use gateway::objects::Key;

    use super::*;

    const NOW: Moment = Moment::ZERO;

    fn key(name: &str) -> Id {
        (Kind::ConfigMap, Key::new("n", name))
    }

    fn versions(all: &[(&str, &str)]) -> BTreeMap<Id, Box<str>> {
        all.iter().map(|(name, version)| (key(name), Box::from(*version))).collect()
    }

    fn awaited(fetches: &Fetches) -> String {
        awaited_at(fetches, NOW)
    }

    fn awaited_at(fetches: &Fetches, now: Moment) -> String {
        let awaited = fetches.awaited_at_start(now).map(|(_, key)| key.name.to_string());
        awaited.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_changed_versions_of_what_is_referred_to_are_read() {
        let mut fetches = Fetches::new();
        let referred: BTreeSet<Id> = [key("a"), key("b"), key("absent")].into();
        fetches.set(&referred, &versions(&[("a", "1"), ("b", "1"), ("other", "1")]), true);
        assert_eq!(awaited(&fetches), "a b");
        assert_eq!(
            (fetches.begin(NOW), fetches.begin(NOW), fetches.begin(NOW)),
            (Some(key("a")), Some(key("b")), None)
        );
        assert!(fetches.read(&key("a"), Some("1".into()), NOW));
        assert!(fetches.read(&key("b"), None, NOW));
        assert_eq!(awaited(&fetches), "");
        fetches.set(&referred, &versions(&[("a", "2"), ("b", "1"), ("other", "2")]), true);
        assert_eq!((fetches.begin(NOW), fetches.begin(NOW)), (Some(key("a")), None));
        // It is deleted while it is read.
        assert_eq!(fetches.set(&referred, &versions(&[]), true), [key("a"), key("b")]);
        assert!(!fetches.read(&key("a"), Some("2".into()), NOW));
    }

    fn failure(cause: Cause) -> Failure {
        Failure::new(cause, "why")
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn the_start_waits_a_bounded_time_for_one_that_fails() {
        let mut fetches = Fetches::new();
        fetches.set(&[key("a"), key("b")].into(), &versions(&[("a", "1"), ("b", "1")]), true);
        let mut now = NOW;
        for read in 0..6 {
            assert_eq!(awaited_at(&fetches, now), if read == 0 { "a b" } else { "a" });
            while let Some(id) = fetches.begin(now) {
                if id == key("b") {
                    fetches.read(&id, None, now);
                } else {
                    fetches.failed(&id, failure(Cause::Other), now, 1.0);
                }
            }
            assert_eq!(fetches.awaited_until(now), Some(at(30)), "since the first failure");
            now = fetches.due().unwrap();
        }
        assert_eq!((now, awaited_at(&fetches, now)), (at(31) + WAIT_FIRST, String::new()));
        assert_eq!((fetches.begin(now), fetches.awaited_until(now)), (Some(key("a")), None));
        // It succeeds later.
        assert!(fetches.read(&key("a"), None, now));
        assert_eq!(fetches.failures().count(), 0);
    }

    const WAIT_FIRST: Duration = Duration::from_millis(500);

    #[test]
    fn the_start_does_not_wait_for_thousands_if_all_reads_fail() {
        let mut fetches = Fetches::new();
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let all: BTreeSet<Id> = names.iter().map(|name| key(name)).collect();
        let versions = all.iter().map(|id| (id.clone(), Box::from("1"))).collect();
        fetches.set(&all, &versions, true);
        for _ in 0..CONCURRENCY_MAX {
            let id = fetches.begin(NOW).unwrap();
            fetches.failed(&id, failure(Cause::Other), NOW, 1.0);
        }
        let awaited = |fetches: &Fetches, now| fetches.awaited_at_start(now).count();
        assert_eq!((awaited(&fetches, at(29)), awaited(&fetches, at(30))), (100, 0));
        // One succeeds: the others that have not failed are awaited again.
        let id = fetches.begin(at(30)).unwrap();
        fetches.read(&id, None, at(30));
        assert_eq!(awaited(&fetches, at(30)), 100 - 1 - CONCURRENCY_MAX);
    }

    #[test]
    fn the_start_waits_for_an_api_server_that_does_not_answer() {
        for cause in [Cause::Connection, Cause::Timeout, Cause::Busy, Cause::Unauthorized] {
            let mut fetches = Fetches::new();
            fetches.set(&[key("a"), key("b")].into(), &versions(&[("a", "1"), ("b", "1")]), true);
            // `a` is forbidden all the time.
            for second in [0, 40, 80] {
                while let Some(id) = fetches.begin(at(second)) {
                    let cause = if id == key("a") { Cause::Forbidden } else { cause };
                    fetches.failed(&id, failure(cause), at(second), 1.0);
                }
            }
            assert_eq!(
                (awaited_at(&fetches, at(10)), awaited_at(&fetches, at(600))),
                ("a b".to_owned(), "b".to_owned()),
                "{cause:?}"
            );
            // It answers, and the object itself cannot be read: its time begins.
            let due = fetches.due().unwrap().max(at(600));
            while let Some(id) = fetches.begin(due) {
                fetches.failed(&id, failure(Cause::Other), due, 1.0);
            }
            assert_eq!(awaited_at(&fetches, due), "b");
            assert_eq!(fetches.awaited_until(due), Some(due + FAILING_MAX));
            assert_eq!(awaited_at(&fetches, due + FAILING_MAX), "");
        }
    }

    #[test]
    fn one_that_stays_unread_does_not_end_the_wait_for_others() {
        let mut fetches = Fetches::new();
        let shown = |fetches: &Fetches| {
            let awaited = fetches.awaited(NOW).map(|(_, key)| key.name.to_string());
            awaited.collect::<Vec<_>>().join(" ")
        };
        fetches.set(&[key("a")].into(), &versions(&[("a", "1")]), true);
        assert_eq!(fetches.begin(NOW), Some(key("a")));
        fetches.failed(&key("a"), failure(Cause::Forbidden), NOW, 1.0);
        assert_eq!(shown(&fetches), "a");
        fetches.give_up();
        assert_eq!(shown(&fetches), "");
        fetches.set(&[key("a"), key("b")].into(), &versions(&[("a", "1"), ("b", "1")]), true);
        assert_eq!(shown(&fetches), "b");
        fetches.read(&key("b"), None, at(60));
        assert_eq!(shown(&fetches), "");
        // It is referred to for the first time again.
        fetches.set(&[key("b")].into(), &versions(&[("a", "1"), ("b", "1")]), true);
        fetches.set(&[key("a"), key("b")].into(), &versions(&[("a", "1"), ("b", "1")]), true);
        assert_eq!(shown(&fetches), "a");
    }

    #[test]
    fn a_reason_is_the_same_for_similar_failures() {
        let mut fetches = Fetches::new();
        fetches.set(&[key("a")].into(), &versions(&[("a", "1")]), true);
        let mut fail = |cause, line: &str| {
            let is_news = fetches.failed(&key("a"), Failure::new(cause, line), NOW, 1.0);
            let why = fetches.why_unread(&key("a")).unwrap().to_string();
            (is_news, why, fetches.failures().next().unwrap().1.line.to_string())
        };
        let first = || "cannot be read: 500: request 1".to_owned();
        assert_eq!(
            fail(Cause::Other, "500: request 1"),
            (true, first(), "500: request 1".to_owned())
        );
        assert_eq!(
            fail(Cause::Other, "500: request 2"),
            (false, first(), "500: request 2".to_owned())
        );
        assert!(fail(Cause::Unusable, "too long").1.ends_with(": too long"));
    }

    #[test]
    fn what_cannot_be_read_is_told_apart_from_what_does_not_exist() {
        let mut fetches = Fetches::new();
        let why = |fetches: &Fetches, name: &str| {
            fetches.why_unread(&key(name)).map(|why| why.to_string()).unwrap_or_default()
        };
        fetches.set(&[key("a"), key("absent")].into(), &versions(&[("a", "1")]), true);
        assert_eq!(why(&fetches, "absent"), "");
        assert_eq!(why(&fetches, "a"), "has not been read yet");
        for (cause, expected) in [
            (Cause::Forbidden, "cannot be read: Weir may not read it. Grant get on configmaps"),
            (Cause::Connection, "has not been read: the API server cannot be used at present"),
            (Cause::Other, "cannot be read: why"),
        ] {
            fetches.failed(&key("a"), failure(cause), NOW, 1.0);
            assert_eq!(why(&fetches, "a"), expected);
        }
        // What was read before stays in use.
        fetches.read(&key("a"), Some("1".into()), NOW);
        fetches.set(&[key("a")].into(), &versions(&[("a", "2")]), true);
        fetches.failed(&key("a"), failure(Cause::Forbidden), NOW, 1.0);
        assert_eq!((why(&fetches, "a").as_str(), fetches.failures().count()), ("", 1));
    }

    #[test]
    fn their_number_is_bounded() {
        let mut fetches = Fetches::new();
        let count = count_max(Kind::ConfigMap);
        let keys =
            (0..2 * count).map(|number| Key::new((number % 16).to_string(), number.to_string()));
        let keys: Vec<Key> = keys.collect();
        let maps = keys.iter().map(|key| (Kind::ConfigMap, key.clone()));
        let secrets = keys.iter().map(|key| (Kind::Secret, key.clone()));
        let referred: BTreeSet<Id> = maps.chain(secrets).collect();
        // What does not exist is not counted.
        let mut versions: BTreeMap<Id, Box<str>> = BTreeMap::new();
        fetches.set(&referred, &versions, true);
        assert!(fetches.refused.is_empty());
        versions.extend(referred.iter().map(|id| (id.clone(), Box::from("1"))));
        fetches.set(&referred, &versions, true);
        assert_eq!((fetches.awaited(NOW).count(), fetches.refused.len()), (3 * count, count));
        assert!(fetches.refused.iter().all(|(kind, _)| *kind == Kind::ConfigMap));
    }

    #[test]
    fn one_namespace_cannot_use_up_the_limit() {
        let mut fetches = Fetches::new();
        let count = count_max(Kind::ConfigMap);
        let of = |namespace: &str, name: usize| {
            (Kind::ConfigMap, Key::new(namespace, name.to_string().as_str()))
        };
        let mut all: BTreeSet<Id> = (0..2 * count).map(|name| of("a", name)).collect();
        all.extend((0..3).map(|name| of("b", name)));
        let versions = all.iter().map(|id| (id.clone(), Box::from("1"))).collect();
        fetches.set(&all, &versions, true);
        assert!(fetches.refused.iter().all(|(_, key)| &*key.namespace == "a"));
        let read = count / 4 + 3;
        assert_eq!(
            (fetches.awaited(NOW).count(), fetches.refused.len()),
            (read, 2 * count + 3 - read)
        );
    }

    #[test]
    fn a_namespace_holds_changes_back_once_in_a_while() {
        let mut fetches = Fetches::new();
        let of = |namespace: &str, name: &str| (Kind::Secret, Key::new(namespace, name));
        let set = |fetches: &mut Fetches, all: &[Id]| {
            let versions = all.iter().map(|id| (id.clone(), Box::from("1"))).collect();
            fetches.set(&all.iter().cloned().collect(), &versions, true);
        };
        let shown = |fetches: &Fetches, now| {
            fetches.awaited(now).map(|(_, key)| key.to_string()).collect::<Vec<_>>().join(" ")
        };
        set(&mut fetches, &[of("a", "1")]);
        assert_eq!(shown(&fetches, at(0)), "a/1");
        fetches.waited(at(2));
        // Another reference of the same namespace, and one of another.
        set(&mut fetches, &[of("a", "2"), of("b", "1")]);
        assert_eq!(shown(&fetches, at(3)), "b/1");
        assert_eq!(shown(&fetches, at(62)), "a/2 b/1");
        fetches.waited(at(4));
        set(&mut fetches, &[of("a", "3"), of("b", "2")]);
        assert_eq!(shown(&fetches, at(62)), "a/3", "its rest has not begun again");
    }

    #[test]
    fn what_is_known_first_at_the_start_does_not_use_everything_up() {
        let mut fetches = Fetches::new();
        let of = |namespace: &str, count: usize| -> BTreeMap<Id, Box<str>> {
            let id = |number: usize| (Kind::ConfigMap, Key::new(namespace, number.to_string()));
            (0..count).map(|number| (id(number), Box::from("1"))).collect()
        };
        let mut versions: BTreeMap<Id, Box<str>> = BTreeMap::new();
        for namespace in ["a1", "a2", "a3", "a4"] {
            versions.extend(of(namespace, namespace_count_max(Kind::ConfigMap)));
        }
        let mut set = |versions: &BTreeMap<Id, Box<str>>, is_complete: bool| {
            fetches.set(&versions.keys().cloned().collect(), versions, is_complete);
            fetches.refused.iter().filter(|(_, key)| &*key.namespace == "b").count()
        };
        set(&versions, false);
        versions.extend(of("b", 10));
        assert_eq!(set(&versions, false), 0);
        versions.extend(of("b", 20));
        assert_eq!(set(&versions, true), 10);
    }

    #[test]
    fn those_in_use_stay_when_there_are_too_many() {
        let mut fetches = Fetches::new();
        let count = namespace_count_max(Kind::ConfigMap);
        let named = |prefix: &str| -> BTreeSet<Id> {
            (0..count).map(|number| key(&format!("{prefix}{number}"))).collect()
        };
        let versions_of = |all: &BTreeSet<Id>| -> BTreeMap<Id, Box<str>> {
            all.iter().map(|id| (id.clone(), Box::from("1"))).collect()
        };
        let used = named("used");
        fetches.set(&used, &versions_of(&used), true);
        while let Some(id) = fetches.begin(NOW) {
            fetches.read(&id, None, NOW);
        }
        // Others come that are first in the order of names.
        let others = named("a");
        let mut all: BTreeSet<Id> = used.union(&others).cloned().collect();
        assert_eq!(fetches.set(&all, &versions_of(&all), true), []);
        assert_eq!((fetches.begin(NOW), &fetches.refused), (None, &others));
        let why = fetches.why_unread(&key("a0")).unwrap();
        assert_eq!(
            &*why,
            "is not read: more than 1024 configmaps are referred to, or more than 256 of its \
             namespace. Remove references that are not needed"
        );
        // One that is no longer used makes room.
        all.remove(&key("used7"));
        assert_eq!(fetches.set(&all, &versions_of(&all), true), [key("used7")]);
        assert_eq!((fetches.begin(NOW), fetches.refused.len()), (Some(key("a0")), count - 1));
    }
}
