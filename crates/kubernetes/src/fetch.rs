//! Which ConfigMaps and Secrets must be read: those that are referred to, when their version changes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::Moment;

use crate::kinds::Kind;
use crate::queue::{Ended, Queue};
use crate::store::Id;

/// At most this many requests at a time.
const CONCURRENCY_MAX: usize = 8;
/// After this many failures nothing waits for an object any more.
const FAILURES_MAX: u32 = 3;

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
    /// The kinds of which some are left out.
    pub(crate) cut: Vec<Kind>,
}

impl Fetches {
    pub(crate) fn new() -> Fetches {
        let queue = Queue::new(CONCURRENCY_MAX);
        Fetches { wanted: BTreeMap::new(), read: BTreeMap::new(), queue, cut: Vec::new() }
    }

    /// Sets what is referred to and the versions of all that exist. Returns those that were read and are no longer wanted.
    pub(crate) fn set(
        &mut self,
        referred: &BTreeSet<Id>,
        versions: &BTreeMap<Id, Box<str>>,
    ) -> Vec<Id> {
        self.wanted.clear();
        self.cut.clear();
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_fetched()) {
            let of_kind = referred.iter().filter(|(one, _)| *one == kind);
            let mut existing =
                of_kind.filter_map(|id| Some((id.clone(), versions.get(id)?.clone())));
            self.wanted.extend(existing.by_ref().take(count_max(kind)));
            if existing.next().is_some() {
                self.cut.push(kind);
            }
        }
        for (key, version) in &self.wanted {
            if self.read.get(key) != Some(version) {
                self.queue.push(key.clone());
            }
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
        let Some(wanted) = self.wanted.get(key) else { return false };
        let version = version.unwrap_or_else(|| wanted.clone());
        self.read.insert(key.clone(), version);
        true
    }

    /// Notes a failure.
    pub(crate) fn failed(&mut self, key: &Id, ended: Ended, now: Moment, draw: f64) {
        self.queue.end(key, ended, now, draw);
    }

    /// Returns when the next one is due that failed.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.queue.due()
    }

    /// Returns the objects that will be known soon for the first time.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = &Id> {
        self.wanted
            .keys()
            .filter(|id| !self.read.contains_key(*id) && self.queue.failures(id) < FAILURES_MAX)
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
        fetches.awaited().map(|(_, key)| key.name.to_string()).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn the_start_does_not_wait_for_one_that_fails_again_and_again() {
        let mut fetches = Fetches::new();
        fetches.set(&[key("a")].into(), &versions(&[("a", "1")]));
        let mut now = NOW;
        for _ in 0..FAILURES_MAX {
            assert_eq!(awaited(&fetches), "a");
            assert_eq!(fetches.begin(now), Some(key("a")));
            fetches.failed(&key("a"), Ended::Failed(None), now, 1.0);
            now = fetches.due().unwrap();
        }
        assert_eq!(awaited(&fetches), "");
        assert_eq!(fetches.begin(now), Some(key("a")));
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
        assert!(fetches.cut.is_empty());
        versions.extend(referred.iter().map(|id| (id.clone(), Box::from("1"))));
        fetches.set(&referred, &versions);
        assert_eq!(
            (fetches.awaited().count(), &fetches.cut[..]),
            (3 * count, &[Kind::ConfigMap][..])
        );
    }
}
