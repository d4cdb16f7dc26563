//! Which sources are watched: the kinds that the API server has, in the namespaces that Weir reads.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use gateway::objects::GATEWAY_GROUP;
use gateway::resolve::policy;
use os::clock::now;
use tokio::task::spawn_local;

use super::{GATHER, Manager, Running};
use crate::discover::Found;
use crate::event::Event;
use crate::expose::service;
use crate::failure::{Cause, Failure};
use crate::kinds::{Kind, Source, Versions};
use crate::settings::{Exposure, NAMESPACES_MAX};
use crate::watch::Watch;

impl Manager {
    /// Begins and ends watches for the kinds that there are.
    pub(super) fn discovered(&mut self, answer: Result<Found, Failure>) {
        match answer {
            Ok(Found { versions, is_experimental }) => {
                self.discovery = None;
                if is_experimental.is_some_and(|is_it| self.resolver.set_experimental(is_it)) {
                    self.store.dirty.has_surroundings = true;
                    self.gather();
                }
                let is_missing = |running: &Running| {
                    running.failure.as_ref().is_some_and(|one| one.cause == Cause::NotFound)
                };
                let watches = &self.watches;
                self.discovered.answer(versions, now(), |kind| {
                    let mut of_kind = watches.iter().filter(|(source, _)| source.kind == kind);
                    of_kind.all(|(_, running)| is_missing(running))
                });
                let versions = self.discovered.versions.clone();
                self.watch(&versions);
                if self.discovered.is_settled {
                    self.set_absent();
                }
            }
            Err(failure) => {
                self.health.last_error = Some(Arc::clone(&failure.line));
                self.discovered.failed();
                self.discovery = Some(failure);
            }
        }
        if !self.is_complete {
            // The start may have waited for this answer only.
            self.resolve_within(GATHER);
        }
    }

    fn set_absent(&mut self) {
        // Weir's own kinds are optional: without their CRDs, nothing is missing.
        let absent = self.discovered.absent().filter(|kind| kind.group() == GATEWAY_GROUP);
        let absent: BTreeSet<&'static str> = absent.map(Kind::name).collect();
        let is_news = match &self.absent {
            Some(before) => *before != absent,
            None => !absent.is_empty(),
        };
        if is_news {
            (self.events)(Event::Absent { kinds: absent.iter().copied().collect() });
        }
        self.health.absent.clone_from(&absent);
        self.absent = Some(absent);
    }

    /// Decides in which namespaces Pods are watched.
    pub(super) fn set_pod_namespaces(&mut self) {
        if !std::mem::take(&mut self.store.dirty.has_pod_policies) {
            return;
        }
        let policies = self.store.objects.service_policies.values();
        let wanted = policy::service::pod_namespaces(policies);
        let (namespaces, refused) = within_limit(wanted, &self.pod_namespaces);
        if refused > 0 && !self.has_refused_pods {
            let count_max = NAMESPACES_MAX;
            (self.events)(Event::TooManyPodNamespaces { count_max, refused });
        }
        self.has_refused_pods = refused > 0;
        if self.pod_namespaces != namespaces {
            self.pod_namespaces = namespaces;
            let versions = self.discovered.versions.clone();
            self.watch(&versions);
        }
    }

    /// Watches these kinds of CRDs, and Kubernetes' own.
    pub(super) fn watch(&mut self, versions: &Versions) {
        let has_services = matches!(self.settings.exposure, Exposure::Services { .. });
        let mut wanted: BTreeMap<Source, &'static str> = BTreeMap::new();
        for kind in Kind::ALL {
            let is_known = !kind.is_of_crd();
            let version = versions.get(&kind).copied().or(is_known.then_some("v1"));
            let Some(version) = version else { continue };
            let namespaces = match &self.settings.namespaces {
                _ if kind == Kind::OwnService && !has_services => continue,
                _ if kind == Kind::OwnService => vec![Some(Arc::clone(&self.settings.namespace))],
                _ if kind == Kind::Pod => self.pod_namespaces.iter().cloned().map(Some).collect(),
                Some(namespaces) if kind.is_namespaced() => {
                    namespaces.iter().cloned().map(Some).collect()
                }
                Some(_) | None => vec![None],
            };
            wanted.extend(
                namespaces.into_iter().map(|namespace| (Source { kind, namespace }, version)),
            );
        }
        let is_wanted =
            |source: &Source, running: &Running| wanted.get(source) == Some(&running.version);
        let ended: Vec<Source> = self
            .watches
            .iter()
            .filter(|(source, running)| !is_wanted(source, running))
            .map(|(source, _)| source.clone())
            .collect();
        for source in ended {
            if let Some(running) = self.watches.remove(&source) {
                running.task.abort();
            }
            // With another version, the objects stay until they are listed.
            if !wanted.contains_key(&source) {
                self.relists.ended(&source);
                self.list(&source, Vec::new());
            }
        }
        for (source, version) in wanted {
            if self.watches.contains_key(&source) {
                continue;
            }
            let label_selector = match source.kind {
                Kind::OwnService => service::label_selector(&self.settings.controller_name),
                _ => String::new(),
            };
            let watch = Watch {
                api: Rc::clone(&self.api),
                source: source.clone(),
                version,
                label_selector,
                messages: self.messages.clone(),
            };
            let task = spawn_local(watch.run()).abort_handle();
            self.watches.insert(source, Running::new(version, task));
        }
        self.reveal_complete();
        self.gather();
    }

    /// Lists the Services that Weir made again: the former leader may have written some that the watch has not reported.
    pub(super) fn list_own_services(&mut self) {
        let own: Vec<Source> =
            self.watches.keys().filter(|one| one.kind == Kind::OwnService).cloned().collect();
        for source in own {
            if let Some(running) = self.watches.remove(&source) {
                running.task.abort();
            }
        }
        let versions = self.discovered.versions.clone();
        self.watch(&versions);
    }
}

/// Returns the namespaces in which Pods are watched, and how many others have no room. Those in use stay: a new one must not
/// take the place of another.
fn within_limit(
    wanted: BTreeSet<Arc<str>>,
    used: &BTreeSet<Arc<str>>,
) -> (BTreeSet<Arc<str>>, usize) {
    let count = wanted.len();
    let (stay, further): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|one| used.contains(one));
    let namespaces: BTreeSet<Arc<str>> =
        stay.into_iter().chain(further).take(NAMESPACES_MAX).collect();
    let refused = count - namespaces.len();
    (namespaces, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(prefix: &str, count: usize) -> BTreeSet<Arc<str>> {
        (0..count).map(|number| format!("{prefix}{number:02}").into()).collect()
    }

    #[test]
    fn namespaces_in_use_keep_their_place() {
        let used = named("m", NAMESPACES_MAX - 1);
        let mut wanted = &used | &named("a", 2);
        wanted.extend(named("z", 2));
        let (namespaces, refused) = within_limit(wanted.clone(), &used);
        assert_eq!((namespaces.len(), refused), (NAMESPACES_MAX, 3));
        assert!(namespaces.is_superset(&used) && namespaces.contains("a00"));
        // One that leaves makes room.
        wanted.remove("m07");
        let (after, refused) = within_limit(wanted, &namespaces);
        assert_eq!((after.len(), refused), (NAMESPACES_MAX, 2));
        assert!(after.contains("a01"));
        assert_eq!(within_limit(named("a", 2), &after), (named("a", 2), 0));
    }
}
