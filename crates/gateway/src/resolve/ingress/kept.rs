//! The results of all Ingresses, kept between changes, so that a change costs what it touches.
//!
//! A result depends on its Ingress, on the Services that it refers to with the ServicePolicies for them, and on objects whose
//! changes concern everything: IngressClasses, Secrets, ReferenceGrants and BackendTLSPolicies.

use std::collections::{BTreeMap, BTreeSet};

use super::merge::Merged;
use super::rules::{Resolved, resolve};
use crate::objects::Key;
use crate::resolve::assemble::{Outcome, Surroundings, ancestors};
use crate::resolve::incremental::Changes;
use crate::resolve::world::World;

/// The results of the Ingresses of Weir's classes, and what they serve together.
#[derive(Debug, Default)]
pub struct Ingresses {
    all: BTreeMap<Key, Resolved>,
    merged: Merged,
}

impl Ingresses {
    /// Returns the keys of the Gateways that classes with an Ingress imply.
    pub fn implied(&self) -> impl Iterator<Item = &Key> {
        self.merged.gateways()
    }

    /// Adds what Ingresses serve to that of Gateways: a Gateway for each class with an Ingress, statuses and notices.
    pub fn add(&self, world: &World<'_>, outcome: &mut Outcome, surroundings: Surroundings<'_>) {
        self.merged.add(outcome, surroundings);
        let used = self.all.values().map(|one| (&one.class, &one.services));
        ancestors::add_classes(world, used, &mut outcome.statuses.service_policies);
    }

    /// Returns whether a change can change a result.
    pub fn are_concerned(&self, changes: &Changes) -> bool {
        let is_used =
            || self.all.values().any(|ingress| !ingress.services.is_disjoint(&changes.services));
        changes.is_all
            || !changes.ingresses.is_empty()
            || (!changes.services.is_empty() && is_used())
    }

    /// Resolves the Ingresses that a change concerns, and returns how many there are. `world` has the objects after the
    /// change.
    pub fn update(&mut self, world: &World<'_>, changes: &Changes) -> usize {
        let objects = &world.cluster.objects.ingresses;
        let mut concerned: BTreeSet<Key> = changes.ingresses.clone();
        if changes.is_all {
            concerned.extend(objects.keys().cloned());
            concerned.extend(self.all.keys().cloned());
        } else if !changes.services.is_empty() {
            let users =
                self.all.iter().filter(|(_, one)| !one.services.is_disjoint(&changes.services));
            concerned.extend(users.map(|(key, _)| key.clone()));
        }
        let mut is_changed = changes.is_all;
        let mut count = 0;
        for key in concerned {
            let resolved = objects.get(&key).and_then(|one| resolve(world, one));
            count += usize::from(resolved.is_some() || !changes.is_all);
            match resolved {
                Some(resolved) if self.all.get(&key) == Some(&resolved) => {}
                Some(resolved) => {
                    self.all.insert(key, resolved);
                    is_changed = true;
                }
                None => is_changed |= self.all.remove(&key).is_some(),
            }
        }
        if is_changed {
            self.merged = Merged::new(world, self.all.values(), &self.merged);
        }
        count
    }
}
