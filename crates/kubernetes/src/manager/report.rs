//! How the connection is → the caller's health, and events for what has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Moment;
use os::clock::now;

use super::Manager;
use crate::event::Event;
use crate::failing::{REPORT_AFTER, Standing, Subject};
use crate::failure::{Cause, Failure};
use crate::kinds::Kind;
use crate::{fetch, health, recorder};

/// A watch that has failed this often in a row without a list in between may be one of an outage.
const FAILURES_MIN: u32 = 2;
/// At most this many Secrets and ConfigMaps are looked at that fail.
const UNREAD_OBSERVED_MAX: usize = 1000;
/// At most this many Secrets and ConfigMaps are named as failing.
const UNREAD_SHOWN_MAX: usize = 20;
/// At most this much of what is awaited is named in an event.
const AWAITED_SHOWN_MAX: usize = 5;

impl Manager {
    fn report_unreadable(&mut self) {
        for ((kind, key), error) in std::mem::take(&mut self.store.dirty.unreadable) {
            let (object, is_ignored) =
                (format!("{} {key}", kind.name()), kind != Kind::RoutePolicy);
            (self.events)(Event::Unreadable { object, is_ignored, error });
        }
    }

    /// Publishes how the connection is, if it has changed.
    pub(super) fn report(&mut self) {
        self.report_unreadable();
        let now = now();
        self.report_outage(now);
        self.report_failing(now);
        self.report_forbidden();
        self.health.is_leading = self.is_leading;
        self.health.writes_waiting = self.writer.waiting();
        if std::mem::take(&mut self.store.dirty.has_unreadable) {
            let unreadable = self.store.unreadable.iter();
            let named = unreadable
                .map(|((kind, key), why)| (format!("{} {key}", kind.name()), why.clone()));
            self.health.unreadable = named.collect();
        }
        self.outputs.health.send_if_modified(|before| {
            let is_changed = **before != self.health;
            if is_changed {
                *before = Arc::new(self.health.clone());
            }
            is_changed
        });
    }

    fn report_outage(&mut self, now: Moment) {
        // Watches can share a connection: that it breaks off is no outage if they can be begun again.
        let watches = self.watches.values();
        let watches =
            watches.map(|one| one.failure.as_ref().filter(|_| one.failures >= FAILURES_MIN));
        let lease = self.election.failure.as_ref().filter(|_| self.election.is_absent);
        let outage = health::outage(watches, lease);
        let has_any = self.watches.values().any(|running| running.is_listed);
        let is_connected = outage.is_none() && (has_any || self.health.is_connected);
        match outage {
            Some(failure) if !self.has_reported_outage => {
                (self.events)(Event::Disconnected { error: Arc::clone(&failure.line) });
                self.has_reported_outage = true;
            }
            None if is_connected && !self.health.is_connected => {
                (self.events)(Event::Connected);
                self.has_reported_outage = false;
            }
            Some(_) | None => {}
        }
        if is_connected != self.health.is_connected {
            self.health.is_connected = is_connected;
            self.health.since = now;
        }
    }

    /// Notes what cannot be read or followed, and reports what has not been for a while.
    fn report_failing(&mut self, now: Moment) {
        let failing = self.find_failing();
        let connected_since = Some(self.health.since).filter(|_| self.health.is_connected);
        let mut known = std::mem::take(&mut self.failing);
        let events = known.observe(failing.clone(), |one| self.standing(one), connected_since, now);
        self.failing = known;
        for event in events {
            (self.events)(event);
        }
        self.set_failing(failing);
        let awaited_since = Some(self.began).filter(|_| !self.health.awaited.is_empty());
        self.health.not_followed_since =
            self.failing.since().into_iter().chain(awaited_since).min();
        if awaited_since.is_some_and(|since| now.since(since) >= REPORT_AFTER)
            && !self.has_reported_awaited
        {
            self.has_reported_awaited = true;
            let awaited = &self.health.awaited;
            let what: Vec<String> = awaited.iter().take(AWAITED_SHOWN_MAX).cloned().collect();
            let others = awaited.len() - what.len();
            (self.events)(Event::Awaited { what, others });
        }
    }

    /// Returns what cannot be read or followed at the moment.
    fn find_failing(&self) -> Vec<(Subject, Arc<str>)> {
        // What is left out is reported as forbidden.
        let watches = self.watches.iter().filter(|(_, running)| !running.is_left_out);
        let watches = watches.filter_map(|(source, running)| {
            Some((Subject::Watch(source.clone()), Arc::clone(&running.failure.as_ref()?.line)))
        });
        let single = self.single_requests().map(|(one, failure)| (one, Arc::clone(&failure.line)));
        let unread = self.fetches.failures().take(UNREAD_OBSERVED_MAX);
        let unread =
            unread.map(|(id, failure)| (Subject::Object(id.clone()), Arc::clone(&failure.line)));
        watches.chain(single).chain(unread).collect()
    }

    /// Returns what is known about what has failed.
    fn standing(&self, subject: &Subject) -> Standing {
        let of = |failure: &Option<Failure>| match failure {
            Some(_) => Standing::Failing,
            None => Standing::Succeeded,
        };
        match subject {
            Subject::Kinds => of(&self.discovery),
            Subject::Lease if self.has_left => Standing::Gone,
            Subject::Lease => of(&self.election.failure),
            Subject::Watch(source) => match self.watches.get(source) {
                None => Standing::Gone,
                Some(running) if running.is_left_out => Standing::Gone,
                Some(running) if running.failure.is_none() && !running.is_listed => {
                    Standing::Pending
                }
                Some(running) => of(&running.failure),
            },
            Subject::Object(id) => self.fetches.standing(id),
        }
    }

    /// Publishes what fails, for people.
    fn set_failing(&mut self, failing: Vec<(Subject, Arc<str>)>) {
        // Objects are the last of them.
        let is_object = |(one, _): &(Subject, _)| matches!(one, Subject::Object(_));
        let others = failing.iter().filter(|one| !is_object(one)).count();
        let shown = failing.into_iter().take(others + UNREAD_SHOWN_MAX);
        let mut shown: BTreeMap<String, Arc<str>> =
            shown.map(|(subject, why)| (subject.to_string(), why)).collect();
        // That there are too many was reported, and that a namespace is skipped.
        shown.extend(self.refused.iter().map(|(kind, refused)| {
            let why = format!("{refused} are not read: at most {}", fetch::count_max(*kind));
            (format!("{} beyond the limit", kind.plural()), why.into())
        }));
        shown.extend(self.hidden.namespaces().map(|namespace| {
            let why = "nothing in it is served until all kinds of objects in it can be read";
            (format!("namespace {namespace}"), why.into())
        }));
        self.health.failing = shown;
    }

    /// Returns what fails of the requests that are neither watches nor for single objects.
    fn single_requests(&self) -> impl Iterator<Item = (Subject, &Failure)> {
        let all = [
            (Subject::Kinds, self.discovery.as_ref()),
            (Subject::Lease, self.election.failure.as_ref()),
        ];
        all.into_iter().filter_map(|(what, failure)| Some((what, failure?)))
    }

    fn report_forbidden(&mut self) {
        let mut forbidden = self.writer.forbidden.clone();
        let events = self.recorder.forbidden().filter(|_| self.is_leading);
        forbidden.extend(events.map(|line| (recorder::SUBJECT.to_owned(), Arc::clone(line))));
        for (source, running) in &self.watches {
            if let Some(failure) =
                running.failure.as_ref().filter(|one| one.cause == Cause::Forbidden)
            {
                let what = if running.is_listed { "list or watch" } else { "list" };
                forbidden.insert(format!("{what} {source}"), Arc::clone(&failure.line));
            }
        }
        for (what, failure) in self.single_requests() {
            if failure.cause == Cause::Forbidden {
                forbidden.insert(format!("read or write {what}"), Arc::clone(&failure.line));
            }
        }
        let unread = self.fetches.failures().filter(|(_, one)| one.cause == Cause::Forbidden);
        for ((kind, key), failure) in unread.take(UNREAD_SHOWN_MAX) {
            let what = format!("get {} of namespace {}", kind.plural(), key.namespace);
            forbidden.entry(what).or_insert_with(|| Arc::clone(&failure.line));
        }
        for (what, error) in &forbidden {
            if !self.health.forbidden.contains(what) {
                let (what, error) = (what.clone(), Arc::clone(error));
                (self.events)(Event::Forbidden { what, error });
            }
        }
        for what in &self.health.forbidden {
            if !forbidden.contains_key(what) {
                (self.events)(Event::Permitted { what: what.clone() });
            }
        }
        self.health.forbidden = forbidden.into_keys().collect();
    }
}
