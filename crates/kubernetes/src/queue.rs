//! Which write is due: bounded concurrency, the oldest first, failed ones again after a while. Pure: time is an argument.
//!
//! A write that failed waits for the end of its backoff, whatever happens. One that was only postponed begins as soon as
//! it is asked for: its object has changed.
//!
//! The queue has names, not contents: what is written is decided when a write begins, so only the newest counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use model::Moment;

use crate::backoff::Backoff;

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It succeeded, or is not to be repeated.
    Done,
    /// It is repeated, not before the server's wish.
    Failed(Option<Duration>),
    /// It is repeated: at once if it has not failed before, otherwise as after a failure.
    Outdated,
}

/// Why a write waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Failed,
    Postponed,
}

/// Writes that wait or are under way.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    concurrency_max: usize,
    waiting: VecDeque<T>,
    is_waiting: BTreeSet<T>,
    /// Those under way, and whether they were asked for again.
    running: BTreeMap<T, bool>,
    later: BTreeSet<(Moment, T)>,
    due: HashMap<T, (Moment, Why)>,
    failures: HashMap<T, Backoff>,
}

impl<T: Clone + Ord + Hash> Queue<T> {
    /// Creates an empty queue.
    pub(crate) fn new(concurrency_max: usize) -> Queue<T> {
        Queue {
            concurrency_max,
            waiting: VecDeque::new(),
            is_waiting: BTreeSet::new(),
            running: BTreeMap::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        }
    }

    /// Asks for a write. One that failed keeps waiting.
    pub(crate) fn push(&mut self, one: T) {
        if let Some(again) = self.running.get_mut(&one) {
            *again = true;
            return;
        }
        match self.due.get(&one) {
            Some((_, Why::Failed)) => return,
            Some((at, Why::Postponed)) => {
                self.later.remove(&(*at, one.clone()));
                self.due.remove(&one);
            }
            None => {}
        }
        if self.is_waiting.insert(one.clone()) {
            self.waiting.push_back(one);
        }
    }

    /// Returns a write that is to begin now.
    pub(crate) fn begin(&mut self, now: Moment) -> Option<T> {
        while let Some((at, _)) = self.later.first()
            && *at <= now
            && let Some((_, one)) = self.later.pop_first()
        {
            self.due.remove(&one);
            self.push(one);
        }
        if self.running.len() >= self.concurrency_max {
            return None;
        }
        let one = self.waiting.pop_front()?;
        self.is_waiting.remove(&one);
        self.running.insert(one.clone(), false);
        Some(one)
    }

    /// Notes the end of a write. `draw` from 0 to 1 varies the wait after a failure.
    pub(crate) fn end(&mut self, one: &T, ended: Ended, now: Moment, draw: f64) {
        let Some(again) = self.running.remove(one) else { return };
        match ended {
            Ended::Done => {
                self.failures.remove(one);
                if again {
                    self.push(one.clone());
                }
            }
            Ended::Failed(asked) => {
                let wait = self.failures.entry(one.clone()).or_default().failed(asked, draw);
                self.wait(one.clone(), now, wait, Why::Failed);
            }
            Ended::Outdated => {
                let failures = self.failures.entry(one.clone()).or_default();
                let is_first = failures.failures() == 0;
                let wait = failures.failed(None, draw);
                if is_first {
                    self.push(one.clone());
                } else {
                    self.wait(one.clone(), now, wait, Why::Failed);
                }
            }
        }
    }

    /// Asks for a write after a while, or earlier if it is asked for.
    pub(crate) fn postpone(&mut self, one: T, now: Moment, wait: Duration) {
        self.wait(one, now, wait, Why::Postponed);
    }

    fn wait(&mut self, one: T, now: Moment, wait: Duration, why: Why) {
        let at = now + wait;
        if let Some((before, _)) = self.due.insert(one.clone(), (at, why)) {
            self.later.remove(&(before, one.clone()));
        }
        self.later.insert((at, one));
    }

    /// Returns when the next write is due that failed or was postponed.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Returns whether a write could begin now if another one ended.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns how many writes wait or are under way.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.running.len() + self.due.len()
    }

    /// Forgets all that have not begun.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.is_waiting.clear();
        self.later.clear();
        self.due.clear();
        self.failures.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_millis(millis)
    }

    #[test]
    fn each_waits_once_and_few_run_at_a_time() {
        let mut queue = Queue::new(2);
        for one in [1, 2, 1, 3, 2] {
            queue.push(one);
        }
        assert_eq!(
            (queue.begin(at(0)), queue.begin(at(0)), queue.begin(at(0))),
            (Some(1), Some(2), None)
        );
        // Asked for while it is under way: it is written again.
        queue.push(1);
        queue.push(1);
        queue.end(&1, Ended::Done, at(0), 0.5);
        assert_eq!(queue.begin(at(0)), Some(3));
        queue.end(&2, Ended::Done, at(0), 0.5);
        assert_eq!(queue.begin(at(0)), Some(1));
        queue.end(&1, Ended::Done, at(0), 0.5);
        queue.end(&3, Ended::Done, at(0), 0.5);
        assert_eq!((queue.begin(at(0)), queue.len()), (None, 0));
    }

    #[test]
    fn failed_ones_wait_longer_each_time() {
        let mut queue = Queue::new(1);
        queue.push("a");
        let mut now = 0;
        for wait in [500, 1000, 2000] {
            assert_eq!(queue.begin(at(now)), Some("a"));
            queue.end(&"a", Ended::Failed(None), at(now), 1.0);
            // It is not begun earlier because it is asked for again.
            queue.push("a");
            assert_eq!(
                (queue.begin(at(now + wait - 1)), queue.due()),
                (None, Some(at(now + wait)))
            );
            now += wait;
        }
        queue.push("b");
        assert_eq!(queue.begin(at(now)), Some("b"));
        queue.end(&"b", Ended::Done, at(now), 1.0);
        assert_eq!(queue.begin(at(now)), Some("a"));
        queue.end(&"a", Ended::Done, at(now), 1.0);
        assert_eq!((queue.failures.len(), queue.len(), queue.due()), (0, 0, None));
    }

    #[test]
    fn postponed_ones_begin_when_they_are_asked_for() {
        let mut queue = Queue::new(1);
        queue.postpone("a", at(0), Duration::from_secs(30));
        assert_eq!((queue.begin(at(29_999)), queue.due()), (None, Some(at(30_000))));
        queue.push("a");
        assert_eq!((queue.begin(at(1)), queue.due(), queue.len()), (Some("a"), None, 1));
        queue.end(&"a", Ended::Done, at(1), 1.0);
        queue.postpone("a", at(1), Duration::from_secs(1));
        assert_eq!(queue.begin(at(1001)), Some("a"));
    }

    #[test]
    fn the_first_that_was_outdated_is_repeated_at_once() {
        let mut queue = Queue::new(1);
        queue.push("a");
        assert_eq!(queue.begin(at(0)), Some("a"));
        queue.end(&"a", Ended::Outdated, at(0), 1.0);
        assert_eq!(queue.begin(at(0)), Some("a"));
        queue.end(&"a", Ended::Outdated, at(0), 1.0);
        assert_eq!((queue.begin(at(999)), queue.begin(at(1000))), (None, Some("a")));
        queue.end(&"a", Ended::Done, at(1000), 1.0);
        assert_eq!((queue.failures.len(), queue.len()), (0, 0));
    }

    #[test]
    fn what_is_forgotten_does_not_begin() {
        let mut queue = Queue::new(1);
        queue.push(1);
        queue.push(2);
        assert_eq!(queue.begin(at(0)), Some(1));
        queue.postpone(3, at(0), Duration::from_secs(1));
        queue.clear();
        queue.end(&1, Ended::Done, at(0), 1.0);
        assert_eq!((queue.begin(at(5000)), queue.len()), (None, 0));
        queue.push(3);
        assert_eq!(queue.begin(at(0)), Some(3));
    }
}
