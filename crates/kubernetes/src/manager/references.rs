//! Secrets and ConfigMaps that are referred to, and what the start waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::Moment;
use os::clock::now;

use super::{Manager, Running};
use crate::event::Event;
use crate::failing::Subject;
use crate::failure::Cause;
use crate::fetch;
use crate::hidden;
use crate::kinds::{Kind, Source};
use crate::store::Id;

/// Changes wait at most this long for what they refer to.
const HOLD_MAX: Duration = Duration::from_secs(2);
/// The start waits at most this long for a namespace or an optional kind that Weir may not read. Permissions may be granted
/// after Weir starts, and an API server that starts forbids everything until it has read its roles.
const FORBIDDEN_MAX: Duration = Duration::from_secs(30);

impl Manager {
    /// Decides which Secrets and ConfigMaps are read.
    pub(super) fn set_references(&mut self) {
        if std::mem::take(&mut self.store.dirty.has_references) {
            self.has_unread = true;
            self.store.find_references(self.resolver.settings());
            for id in self.fetches.set(&self.store.referred, &self.store.versions, self.is_complete)
            {
                self.store.remove_contents(&id);
            }
            self.report_refused();
        }
        if std::mem::take(&mut self.has_unread) {
            let referred = self.store.referred.iter();
            let unread = referred.filter_map(|id| Some((id.clone(), self.why_unread(id)?)));
            let unread: BTreeMap<Id, Arc<str>> = unread.collect();
            self.store.set_unread(unread);
        }
    }

    /// Reports that more objects of a kind are referred to than Weir reads, once until it is over.
    fn report_refused(&mut self) {
        let mut refused: BTreeMap<Kind, usize> = BTreeMap::new();
        for (kind, _) in &self.fetches.refused {
            *refused.entry(*kind).or_default() += 1;
        }
        for (kind, refused) in &refused {
            if !self.refused.contains_key(kind) {
                (self.events)(Event::TooManyReferences {
                    kind: kind.name(),
                    count_max: fetch::count_max(*kind),
                    namespace_count_max: fetch::namespace_count_max(*kind),
                    refused: *refused,
                });
            }
        }
        self.refused = refused;
    }

    /// Returns why nothing is known about the contents of an object that is referred to. `None`: they are known, or it
    /// does not exist.
    fn why_unread(&self, id: &Id) -> Option<Arc<str>> {
        if self.store.versions.contains_key(id) {
            return self.fetches.why_unread(id);
        }
        let (kind, key) = id;
        let source = |namespace| Source { kind: *kind, namespace };
        let all = self.watches.get(&source(None));
        let running =
            all.or_else(|| self.watches.get(&source(Some(Arc::clone(&key.namespace)))))?;
        let is_forbidden =
            running.failure.as_ref().is_some_and(|failure| failure.cause == Cause::Forbidden);
        let plural = kind.plural();
        match (is_forbidden, running.is_listed) {
            (true, _) => Some(
                format!("may exist: Weir may not list {plural}. Grant list and watch on them")
                    .into(),
            ),
            (false, false) => Some("has not been read yet".into()),
            (false, true) => None,
        }
    }

    /// Returns whether changes wait for objects that are referred to for the first time: a listener with a new
    /// certificate would have none until then.
    pub(super) fn holds_back(&mut self, now: Moment) -> bool {
        if self.fetches.awaited(now).next().is_none() {
            self.held_since = None;
            return false;
        }
        let end = *self.held_since.get_or_insert(now) + HOLD_MAX;
        let is_held = now < end;
        if is_held {
            self.resolve_at = Some(end);
        } else {
            // Others that are referred to later have their own time.
            self.fetches.waited(now);
            self.held_since = None;
        }
        is_held
    }

    /// Returns whether changes are held back at present.
    pub(super) fn is_holding(&self) -> bool {
        self.held_since.is_some_and(|since| now() < since + HOLD_MAX)
    }

    /// Returns whether everything has been read that the start waits for.
    pub(super) fn starts(&mut self) -> bool {
        let now = now();
        let left_out_at = self.leave_out(now);
        let forbidden = self.forbidden_namespaces();
        let is_over = |since: &Moment| now.since(*since) >= FORBIDDEN_MAX;
        let mut skipped: BTreeSet<Arc<str>> = BTreeSet::new();
        // At least one is served.
        if self.has_complete_namespace() {
            let over = forbidden.iter().filter(|(_, since)| is_over(since));
            skipped.extend(over.map(|(namespace, _)| Arc::clone(namespace)));
        }
        self.health.awaited = self.awaited(&skipped, now);
        if self.health.awaited.is_empty() {
            for namespace in skipped {
                self.hide(namespace);
            }
            return true;
        }
        let ends = forbidden.values().map(|since| *since + FORBIDDEN_MAX);
        let ends = ends.filter(|end| *end > now).chain(self.fetches.awaited_until(now));
        let ends = ends.chain(left_out_at);
        self.resolve_at = ends.min();
        false
    }

    /// Stops waiting for optional kinds that have been forbidden for long. Returns when that is next the case.
    pub(super) fn leave_out(&mut self, now: Moment) -> Option<Moment> {
        let mut next = None;
        for (source, running) in &mut self.watches {
            let since = running.forbidden_since.filter(|_| !running.is_read());
            let Some(since) = since.filter(|_| source.kind.is_optional()) else { continue };
            let end = since + FORBIDDEN_MAX;
            running.is_left_out = end <= now;
            if !running.is_left_out {
                next = Some(next.map_or(end, |next: Moment| next.min(end)));
            }
        }
        next
    }

    /// Returns the namespaces that Weir may not read, and since when. Its own is not among them: without the Services in
    /// it, nothing is served.
    fn forbidden_namespaces(&self) -> BTreeMap<Arc<str>, Moment> {
        let mut forbidden: BTreeMap<Arc<str>, Moment> = BTreeMap::new();
        for (source, running) in self.unlisted().filter(|(one, _)| one.kind != Kind::OwnService) {
            let is_forbidden = |running: &Running| {
                running.failure.as_ref().is_some_and(|one| one.cause == Cause::Forbidden)
            };
            if let (Some(namespace), Some(since)) = (&source.namespace, running.forbidden_since)
                && is_forbidden(running)
            {
                let earliest = forbidden.entry(Arc::clone(namespace)).or_insert(since);
                *earliest = since.min(*earliest);
            }
        }
        forbidden
    }

    /// Returns whether everything in at least one of the namespaces that are watched one by one has been listed.
    fn has_complete_namespace(&self) -> bool {
        let unlisted: BTreeSet<&str> =
            self.unlisted().filter_map(|(source, _)| source.namespace.as_deref()).collect();
        let namespaces = self.settings.namespaces.iter().flatten();
        namespaces.into_iter().any(|namespace| !unlisted.contains(&**namespace))
    }

    /// Returns what the start waits for of what has not been listed.
    fn unlisted(&self) -> impl Iterator<Item = (&Source, &Running)> {
        let awaited = self.watches.iter().filter(|(source, _)| source.kind.is_awaited());
        awaited.filter(|(_, running)| !running.is_read())
    }

    /// Returns what the start waits for.
    fn awaited(&self, skipped: &BTreeSet<Arc<str>>, now: Moment) -> BTreeSet<String> {
        let mut awaited = BTreeSet::new();
        if !self.discovered.is_settled {
            awaited.insert(Subject::Kinds.to_string());
        }
        let is_skipped =
            |source: &Source| skipped.iter().any(|namespace| hidden::is_of(source, namespace));
        let unlisted = self.unlisted().filter(|(source, _)| !is_skipped(source));
        awaited.extend(unlisted.map(|(source, _)| source.to_string()));
        let unread = self.fetches.awaited_at_start(now);
        awaited.extend(unread.map(|(kind, key)| format!("{} {key}", kind.name())));
        awaited
    }
}
