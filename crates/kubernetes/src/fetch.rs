//! Which ConfigMaps and Secrets must be read: those that are referred to, when their version changes. Pure.
//!
//! An object that could not be read is not one that does not exist: [`Fetches::why_unread`] says why its contents are
//! unknown. Contents that were read before stay in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::failure::{Cause, Failure};
use crate::kinds::Kind;
use crate::queue::{Ended, Queue};
use crate::store::Id;

/// At most this many requests at a time.
const CONCURRENCY_MAX: usize = 8;
/// For this long after the first failed read of an object, the start waits for its contents.
const FAILING_MAX: Duration = Duration::from_secs(30);

/// Returns how many objects of a kind are read at most.
pub(crate) fn count_max(kind: Kind) -> usize {
    if kind == Kind::Secret { 16_384 } else { 1024 }
}

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
    /// Since when all reads have failed.
    failing_since: Option<Moment>,
    /// Those beyond the limit of their kind: they are not read.
    pub(crate) refused: BTreeSet<Id>,
}

/// Failed reads of an object.
#[derive(Debug)]
struct Failed {
    /// When the first of them failed.
    since: Moment,
    failure: Failure,
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
            refused: BTreeSet::new(),
        }
    }

    /// Sets what is referred to and the versions of all that exist. Returns those that were read and are no longer wanted.
    pub(crate) fn set(
        &mut self,
        referred: &BTreeSet<Id>,
        versions: &BTreeMap<Id, Box<str>>,
    ) -> Vec<Id> {
        let before = std::mem::take(&mut self.wanted);
        self.refused.clear();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_fetched()) {
            let of_kind = referred.iter().filter(|(one, _)| *one == kind);
            let existing = of_kind.filter_map(|id| Some((id, versions.get(id)?)));
            // Those in use stay: only further ones are beyond the limit.
            let (used, further): (Vec<_>, Vec<_>) =
                existing.partition(|(id, _)| before.contains_key(*id));
            for (place, (id, version)) in used.into_iter().chain(further).enumerate() {
                if place < count_max(kind) {
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
        let Fetches { wanted, failed, unusable, .. } = self;
        failed.retain(|key, _| wanted.contains_key(key));
        unusable.retain(|key, _| wanted.contains_key(key));
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
        self.failing_since.get_or_insert(now);
        let cause = failure.cause;
        let since = self.failed.get(key).map_or(now, |before| before.since);
        let before = self.failed.insert(key.clone(), Failed { since, failure });
        before.is_none_or(|before| before.failure.cause != cause)
    }

    /// Returns when the next one is due that failed.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.queue.due()
    }

    /// Returns the objects that will be known soon for the first time. Those that have failed for long are not among them.
    pub(crate) fn awaited(&self, now: Moment) -> impl Iterator<Item = &Id> {
        let is_over = move |since: Moment| now.since(since) >= FAILING_MAX;
        let is_given_up = self.failing_since.is_some_and(is_over);
        self.wanted.keys().filter(move |id| {
            let has_failed = self.failed.get(*id).is_some_and(|failed| is_over(failed.since));
            !is_given_up && !has_failed && !self.read.contains_key(*id)
        })
    }

    /// Returns when something is next no longer awaited because its reads fail.
    pub(crate) fn awaited_until(&self, now: Moment) -> Option<Moment> {
        let unread = self.failed.iter().filter(|(id, _)| !self.read.contains_key(*id));
        let since = unread.map(|(_, failed)| failed.since).chain(self.failing_since);
        since.map(|since| since + FAILING_MAX).filter(|end| *end > now).min()
    }

    /// Returns the failures of the objects whose last read failed.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Id, &Failure)> {
        self.failed.iter().map(|(id, failed)| (id, &failed.failure))
    }

    /// Returns why the contents of an object are unknown although it exists, as the rest of a sentence that begins with
    /// the object. It is the same for similar failures, since it becomes part of a status.
    pub(crate) fn why_unread(&self, id: &Id) -> Option<Arc<str>> {
        let plural = id.0.plural();
        if self.refused.contains(id) {
            let count_max = count_max(id.0);
            return Some(
                format!("is not read: more than {count_max} {plural} are referred to").into(),
            );
        }
        if let Some(why) = self.unusable.get(id) {
            return Some(format!("cannot be read: {why}").into());
        }
        if !self.wanted.contains_key(id) || self.read.contains_key(id) {
            return None;
        }
        let Some(Failed { failure, .. }) = self.failed.get(id) else {
            return Some("has not been read yet".into());
        };
        Some(match failure.cause {
            Cause::Forbidden => {
                format!("cannot be read: Weir may not read it. Grant get on {plural}").into()
            }
            Cause::Connection | Cause::Timeout | Cause::Unauthorized | Cause::Busy => {
                "has not been read: the API server cannot be used at present".into()
            }
            Cause::Unusable
            | Cause::NotFound
            | Cause::Conflict
            | Cause::Gone
            | Cause::Invalid
            | Cause::Other => format!("cannot be read: {failure}").into(),
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
        fetches.awaited(now).map(|(_, key)| key.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_changed_versions_of_what_is_referred_to_are_read() {
        let mut fetches = Fetches::new();
        let referred: BTreeSet<Id> = [key("a"), key("b"), key("absent")].into();
        fetches.set(&referred, &versions(&[("a", "1"), ("b", "1"), ("other", "1")]));
        assert_eq!(awaited(&fetches), "a b");
        assert_eq!(
            (fetches.begin(NOW), fetches.begin(NOW), fetches.begin(NOW)),
            (Some(key("a")), Some(key("b")), None)
        );
        assert!(fetches.read(&key("a"), Some("1".into()), NOW));
        assert!(fetches.read(&key("b"), None, NOW));
        assert_eq!(awaited(&fetches), "");
        fetches.set(&referred, &versions(&[("a", "2"), ("b", "1"), ("other", "2")]));
        assert_eq!((fetches.begin(NOW), fetches.begin(NOW)), (Some(key("a")), None));
        // It is deleted while it is read.
        assert_eq!(fetches.set(&referred, &versions(&[])), [key("a"), key("b")]);
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
        fetches.set(&[key("a"), key("b")].into(), &versions(&[("a", "1"), ("b", "1")]));
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
        fetches.set(&all, &versions);
        for _ in 0..CONCURRENCY_MAX {
            let id = fetches.begin(NOW).unwrap();
            fetches.failed(&id, failure(Cause::Timeout), NOW, 1.0);
        }
        assert_eq!((fetches.awaited(at(29)).count(), fetches.awaited(at(30)).count()), (100, 0));
        // One succeeds: the others that have not failed are awaited again.
        let id = fetches.begin(at(30)).unwrap();
        fetches.read(&id, None, at(30));
        assert_eq!(fetches.awaited(at(30)).count(), 100 - 1 - CONCURRENCY_MAX);
    }

    #[test]
    fn what_cannot_be_read_is_told_apart_from_what_does_not_exist() {
        let mut fetches = Fetches::new();
        let why = |fetches: &Fetches, name: &str| {
            fetches.why_unread(&key(name)).map(|why| why.to_string()).unwrap_or_default()
        };
        fetches.set(&[key("a"), key("absent")].into(), &versions(&[("a", "1")]));
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
        fetches.set(&[key("a")].into(), &versions(&[("a", "2")]));
        fetches.failed(&key("a"), failure(Cause::Forbidden), NOW, 1.0);
        assert_eq!((why(&fetches, "a").as_str(), fetches.failures().count()), ("", 1));
    }

    #[test]
    fn their_number_is_bounded() {
        let mut fetches = Fetches::new();
        let count = count_max(Kind::ConfigMap);
        let names: Vec<String> = (0..2 * count).map(|number| number.to_string()).collect();
        let maps = names.iter().map(|name| key(name));
        let secrets = names.iter().map(|name| (Kind::Secret, Key::new("n", name.as_str())));
        let referred: BTreeSet<Id> = maps.chain(secrets).collect();
        // What does not exist is not counted.
        let mut versions: BTreeMap<Id, Box<str>> = BTreeMap::new();
        fetches.set(&referred, &versions);
        assert!(fetches.refused.is_empty());
        versions.extend(referred.iter().map(|id| (id.clone(), Box::from("1"))));
        fetches.set(&referred, &versions);
        assert_eq!((fetches.awaited(NOW).count(), fetches.refused.len()), (3 * count, count));
        assert!(fetches.refused.iter().all(|(kind, _)| *kind == Kind::ConfigMap));
    }

    #[test]
    fn those_in_use_stay_when_there_are_too_many() {
        let mut fetches = Fetches::new();
        let count = count_max(Kind::ConfigMap);
        let named = |prefix: &str| -> BTreeSet<Id> {
            (0..count).map(|number| key(&format!("{prefix}{number}"))).collect()
        };
        let versions_of = |all: &BTreeSet<Id>| -> BTreeMap<Id, Box<str>> {
            all.iter().map(|id| (id.clone(), Box::from("1"))).collect()
        };
        let used = named("used");
        fetches.set(&used, &versions_of(&used));
        while let Some(id) = fetches.begin(NOW) {
            fetches.read(&id, None, NOW);
        }
        // Others come that are first in the order of names.
        let others = named("a");
        let mut all: BTreeSet<Id> = used.union(&others).cloned().collect();
        assert_eq!(fetches.set(&all, &versions_of(&all)), []);
        assert_eq!((fetches.begin(NOW), &fetches.refused), (None, &others));
        let why = fetches.why_unread(&key("a0")).unwrap();
        assert_eq!(&*why, "is not read: more than 1024 configmaps are referred to");
        // One that is no longer used makes room.
        all.remove(&key("used7"));
        assert_eq!(fetches.set(&all, &versions_of(&all)), [key("used7")]);
        assert_eq!((fetches.begin(NOW), fetches.refused.len()), (Some(key("a0")), count - 1));
    }
}
