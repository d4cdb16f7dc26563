//! Whether changes wait until everything that an outage has interrupted is read again. Pure: time is an argument.
//!
//! After an outage, each kind is read at its own time. Meanwhile, what is known may be a mix of two states that never
//! existed: a route may refer to a Service that is only in the other state. Requests go on as before the outage until
//! the new state is complete.
//!
//! ```text
//! nothing waits ── a new generation, or one of several interrupted sources is listed ──> changes wait
//!       └───── all are listed or checked, or HOLD_MAX is over: those left are given up ──┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::Moment;

use crate::failure::{Cause, Failure};
use crate::kinds::Source;

/// Changes wait at most this long for a generation: a kind that cannot be listed must not keep the others from being
/// seen.
const HOLD_MAX: Duration = Duration::from_secs(10);
/// After a wait in vain, changes wait again this much later at the earliest, unless there is a new generation: several
/// sources that fail again and again must not hold back everything.
const HOLD_PAUSE: Duration = Duration::from_secs(30);

/// A source that has been listed.
#[derive(Debug, Default)]
struct Known {
    /// The generation (see `news`) in which it was listed or checked last.
    at: u64,
    /// Whether it could not be followed, and has not been listed since.
    is_interrupted: bool,
    /// Whether it was waited for in vain, and has not been read since.
    is_given_up: bool,
    /// Whether the API server does not have the kind.
    is_missing: bool,
}

impl Known {
    fn is_awaited(&self, newest: u64) -> bool {
        let is_old = self.is_interrupted || self.at < newest;
        is_old && !self.is_given_up && !self.is_missing
    }
}

/// What an outage has interrupted.
#[derive(Debug, Default)]
pub(crate) struct Relists {
    /// The sources whose objects are in use. Also while they are listed for another reason.
    known: BTreeMap<Source, Known>,
    newest: u64,
    /// Since when changes wait.
    since: Option<Moment>,
    /// The start of the whole wait. A new generation restarts the wait, and this bounds its total length.
    first: Option<Moment>,
    /// What has been listed while changes waited.
    listed: BTreeSet<Source>,
    /// When a wait in vain ended.
    in_vain: Option<Moment>,
}

impl Relists {
    /// Takes the time and the newest generation. To be called before everything else.
    pub(crate) fn observe(&mut self, newest: u64, now: Moment) {
        if let Some(end) = self.end().filter(|end| *end <= now) {
            for known in self.known.values_mut().filter(|known| known.is_awaited(self.newest)) {
                known.is_given_up = true;
            }
            self.in_vain = Some(end);
            self.complete();
        }
        if newest > self.newest {
            self.newest = newest;
            self.since = Some(now);
            self.first.get_or_insert(now);
            self.complete();
        }
    }

    /// Notes that a source cannot be followed, and why.
    pub(crate) fn failed(&mut self, source: &Source, failure: &Failure) {
        let Some(known) = self.known.get_mut(source) else { return };
        known.is_missing = failure.cause == Cause::NotFound;
        match failure.cause {
            Cause::Connection
            | Cause::Timeout
            | Cause::Unauthorized
            | Cause::Forbidden
            | Cause::Busy
            | Cause::Other => known.is_interrupted = true,
            // Affects only this source.
            Cause::Unusable
            | Cause::Denied
            | Cause::NotFound
            | Cause::Conflict
            | Cause::Gone
            | Cause::Invalid => {}
        }
        self.complete();
    }

    /// Notes that a source is listed again.
    pub(crate) fn interrupted(&mut self, source: &Source) {
        if let Some(known) = self.known.get_mut(source) {
            known.is_interrupted = true;
        }
    }

    /// Notes that a source has been listed.
    pub(crate) fn listed(&mut self, source: &Source, generation: u64, now: Moment) {
        let known = Known { at: generation, ..Known::default() };
        let before = self.known.insert(source.clone(), known);
        let was_interrupted = before.is_some_and(|known| known.is_interrupted);
        let is_paused = self.in_vain.is_some_and(|end| now < end + HOLD_PAUSE);
        if was_interrupted && !is_paused {
            self.since.get_or_insert(now);
            self.first.get_or_insert(now);
        }
        self.listed.insert(source.clone());
        self.complete();
    }

    /// Notes that the server's version is not older than that of a source.
    pub(crate) fn checked(&mut self, source: &Source, generation: u64) {
        if let Some(known) = self.known.get_mut(source) {
            known.at = generation;
            known.is_given_up = false;
        }
        self.complete();
    }

    /// Notes that a source is no longer followed.
    pub(crate) fn ended(&mut self, source: &Source) {
        self.known.remove(source);
        self.complete();
    }

    /// Returns until when changes wait.
    pub(crate) fn end(&self) -> Option<Moment> {
        let (since, first) = (self.since?, self.first?);
        Some((since + HOLD_MAX).min(first + 3 * HOLD_MAX))
    }

    /// Returns whether the objects of a source were listed while changes wait: they may be of another state than those that
    /// are served.
    pub(crate) fn is_of_next_state(&self, source: &Source) -> bool {
        self.listed.contains(source)
    }

    /// Ends the wait if there is nothing left to wait for.
    fn complete(&mut self) {
        if !self.known.values().any(|known| known.is_awaited(self.newest)) {
            self.since = None;
        }
        if self.since.is_none() {
            self.first = None;
            self.listed.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kind;

    const ALL: [Kind; 3] = [Kind::Service, Kind::HttpRoute, Kind::Gateway];

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    fn source(kind: Kind) -> Source {
        Source { kind, namespace: None }
    }

    /// What is known at the start.
    fn started() -> Relists {
        let mut relists = Relists::default();
        for kind in ALL {
            relists.listed(&source(kind), 0, at(0));
        }
        assert_eq!(relists.end(), None);
        relists
    }

    fn fail(relists: &mut Relists, kind: Kind, cause: Cause, now: Moment) {
        relists.observe(relists.newest, now);
        relists.failed(&source(kind), &Failure::new(cause, "failed"));
    }

    fn list(relists: &mut Relists, kind: Kind, now: Moment) {
        relists.observe(relists.newest, now);
        relists.listed(&source(kind), relists.newest, now);
    }

    #[test]
    fn changes_wait_for_the_last_list_after_an_outage() {
        let mut relists = started();
        for kind in ALL {
            fail(&mut relists, kind, Cause::Connection, at(90));
        }
        assert_eq!(relists.end(), None, "nothing has changed yet");
        list(&mut relists, Kind::Service, at(100));
        assert_eq!(relists.end(), Some(at(110)));
        assert!(relists.is_of_next_state(&source(Kind::Service)));
        assert!(!relists.is_of_next_state(&source(Kind::HttpRoute)));
        list(&mut relists, Kind::HttpRoute, at(103));
        assert_eq!(relists.end(), Some(at(110)));
        // Its CRD is gone, so that it is not watched any more.
        relists.ended(&source(Kind::Gateway));
        assert_eq!(relists.end(), None);
        assert!(!relists.is_of_next_state(&source(Kind::Service)));
    }

    #[test]
    fn changes_wait_for_all_in_a_new_generation_whoever_noticed_the_outage() {
        let mut relists = started();
        fail(&mut relists, Kind::HttpRoute, Cause::Connection, at(99));
        relists.observe(1, at(100));
        relists.listed(&source(Kind::HttpRoute), 1, at(100));
        assert_eq!(relists.end(), Some(at(110)));
        relists.checked(&source(Kind::Service), 1);
        // An answer to what was asked before says nothing.
        relists.checked(&source(Kind::Gateway), 0);
        assert_eq!(relists.end(), Some(at(110)));
        // Older data: those that were checked have to be listed as well.
        relists.observe(2, at(101));
        for kind in ALL {
            assert_eq!(relists.end(), Some(at(111)));
            list(&mut relists, kind, at(102));
        }
        assert_eq!(relists.end(), None);
    }

    #[test]
    fn what_was_waited_for_in_vain_holds_back_nothing_until_it_is_read() {
        let mut relists = started();
        fail(&mut relists, Kind::Gateway, Cause::Forbidden, at(50));
        fail(&mut relists, Kind::Service, Cause::Connection, at(99));
        list(&mut relists, Kind::Service, at(100));
        // The outage goes on in part, and the wait does not begin again.
        fail(&mut relists, Kind::Service, Cause::Connection, at(105));
        list(&mut relists, Kind::Service, at(108));
        relists.observe(0, at(109));
        assert_eq!(relists.end(), Some(at(110)));
        relists.observe(0, at(110));
        assert_eq!(relists.end(), None);
        // A watch that comes and goes, and the next outages.
        for second in [111, 200, 300] {
            fail(&mut relists, Kind::Gateway, Cause::Forbidden, at(second));
            fail(&mut relists, Kind::Service, Cause::Connection, at(second));
            list(&mut relists, Kind::Service, at(second));
            assert_eq!(relists.end(), None);
        }
        relists.observe(1, at(400));
        relists.checked(&source(Kind::Service), 1);
        relists.checked(&source(Kind::HttpRoute), 1);
        assert_eq!(relists.end(), None);
        list(&mut relists, Kind::Gateway, at(500));
        relists.observe(2, at(600));
        relists.checked(&source(Kind::Service), 2);
        relists.checked(&source(Kind::HttpRoute), 2);
        assert_eq!(relists.end(), Some(at(610)), "it could be read, so it is waited for");
    }

    #[test]
    fn a_wait_that_ended_unseen_does_not_shorten_the_next_one() {
        let mut relists = started();
        fail(&mut relists, Kind::Gateway, Cause::Forbidden, at(50));
        fail(&mut relists, Kind::Service, Cause::Connection, at(99));
        // The same objects as before: nothing is resolved.
        list(&mut relists, Kind::Service, at(100));
        for kind in ALL {
            fail(&mut relists, kind, Cause::Connection, at(5000));
        }
        list(&mut relists, Kind::Service, at(5000));
        assert_eq!(relists.end(), Some(at(5010)));
        list(&mut relists, Kind::HttpRoute, at(5001));
        assert_eq!(relists.end(), None, "the forbidden one has been given up");
    }

    #[test]
    fn sources_that_come_and_go_hold_back_little() {
        let mut relists = started();
        let mut held = 0;
        for second in 1..=400 {
            // One fails when the other one is listed.
            let (one, other) = match second % 2 {
                0 => (Kind::Service, Kind::HttpRoute),
                _ => (Kind::HttpRoute, Kind::Service),
            };
            fail(&mut relists, one, Cause::Connection, at(second));
            list(&mut relists, other, at(second));
            held += u32::from(relists.end().is_some());
        }
        assert!(held <= 110, "{held}");
    }

    #[test]
    fn what_affects_one_source_holds_back_nothing() {
        let mut relists = started();
        fail(&mut relists, Kind::Service, Cause::Connection, at(99));
        list(&mut relists, Kind::Service, at(100));
        assert_eq!(relists.end(), None);
        // Its CRD was removed, or is not in the state that was restored.
        fail(&mut relists, Kind::Service, Cause::Connection, at(199));
        fail(&mut relists, Kind::HttpRoute, Cause::Connection, at(199));
        fail(&mut relists, Kind::HttpRoute, Cause::NotFound, at(200));
        list(&mut relists, Kind::Service, at(200));
        assert_eq!(relists.end(), None);
        // What has never been listed is not in use.
        let mut relists = started();
        fail(&mut relists, Kind::Ingress, Cause::Forbidden, at(99));
        fail(&mut relists, Kind::Service, Cause::Connection, at(99));
        list(&mut relists, Kind::Service, at(100));
        assert_eq!(relists.end(), None);
    }

    #[test]
    fn a_source_that_begins_again_in_order_is_waited_for() {
        let mut relists = started();
        relists.interrupted(&source(Kind::Service));
        fail(&mut relists, Kind::HttpRoute, Cause::Connection, at(99));
        list(&mut relists, Kind::HttpRoute, at(100));
        assert_eq!(relists.end(), Some(at(110)));
        list(&mut relists, Kind::Service, at(101));
        assert_eq!(relists.end(), None);
    }

    #[test]
    fn generations_that_follow_each_other_do_not_hold_changes_for_ever() {
        // Generation 1 begins at 5 s; each later one begins while changes wait.
        let mut relists = started();
        for second in (5..=30).step_by(5) {
            relists.observe(second / 5, at(second));
            assert!(relists.end().is_some_and(|end| end <= at(35)), "{second}");
        }
        relists.observe(6, at(35));
        assert_eq!(relists.end(), None);
    }
}
