//! Which policy of a kind applies to each target: of several for one target the oldest. A policy for a part of an object,
//! such as a port, precedes one for the whole object.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::objects::reference::ObjectRef;
use crate::objects::{Key, Meta};
use crate::resolve::status::{Condition, Problem};

/// An object that policies are for, and the name of a part of it if a policy is for that part alone.
pub type Target<T> = (T, Option<Arc<str>>);

/// What the policies of one kind are for. `T` identifies an object.
#[derive(Clone, Debug)]
pub struct Targets<T> {
    /// The policy that applies to each target.
    winners: HashMap<Target<T>, Key>,
    /// All policies for an object, those that do not apply included.
    of_object: HashMap<T, Vec<Key>>,
}

impl<T> Default for Targets<T> {
    fn default() -> Targets<T> {
        Targets { winners: HashMap::new(), of_object: HashMap::new() }
    }
}

/// Which of its targets a policy applies to.
#[derive(Debug, Default)]
pub struct Claim {
    has_won: bool,
    /// The policy that applies to one of its targets in its place.
    lost_to: Option<Key>,
    /// A target that does not exist.
    missing: Option<Problem>,
}

/// Returns policies in the order in which they claim their targets: the oldest first.
pub fn oldest_first<'a, P: 'a>(
    policies: impl IntoIterator<Item = &'a Arc<P>>,
    metadata: impl Fn(&P) -> &Meta,
) -> Vec<&'a P> {
    let mut all: Vec<&P> = policies.into_iter().map(AsRef::as_ref).collect();
    all.sort_by(|a, b| metadata(a).age_order().cmp(&metadata(b).age_order()));
    all
}

/// Returns the part of an object that a reference is for. As in the API's own rules, an empty name is an absent one.
pub fn section(reference: &ObjectRef) -> Option<Arc<str>> {
    reference.section_name.clone().filter(|name| !name.is_empty())
}

impl<T: Clone + Eq + Hash> Targets<T> {
    /// Notes that a policy is for an object, whether it applies or not. Policies are added one after the other.
    pub fn mention(&mut self, policy: &Key, object: &T) {
        let of_object = self.of_object.entry(object.clone()).or_default();
        if of_object.last() != Some(policy) {
            of_object.push(policy.clone());
        }
    }

    /// Lets a policy apply to those of its targets that exist and that no older policy has. `missing` returns what is wrong
    /// with a target that does not exist.
    pub fn claim(
        &mut self,
        policy: &Key,
        targets: impl IntoIterator<Item = Target<T>>,
        missing: impl Fn(&Target<T>) -> Option<Problem>,
    ) -> Claim {
        let mut claim = Claim::default();
        for target in targets {
            self.mention(policy, &target.0);
            if let Some(problem) = missing(&target) {
                claim.missing.get_or_insert(problem);
                continue;
            }
            let winner = self.winners.entry(target).or_insert_with(|| policy.clone());
            if winner == policy {
                claim.has_won = true;
            } else {
                claim.lost_to = Some(winner.clone());
            }
        }
        claim
    }

    /// Returns the policy for a part of an object: one for the part precedes one for the object.
    pub fn winner(&self, object: &T, part: Option<&Arc<str>>) -> Option<&Key> {
        let named = part.and_then(|part| self.winners.get(&(object.clone(), Some(part.clone()))));
        named.or_else(|| self.winners.get(&(object.clone(), None)))
    }

    /// Returns the objects that policies are for.
    pub fn objects(&self) -> impl Iterator<Item = &T> {
        self.of_object.keys()
    }

    /// Returns the policies for an object, those that do not apply included.
    pub fn of_object(&self, object: &T) -> impl Iterator<Item = &Key> {
        self.of_object.get(object).into_iter().flatten()
    }
}

impl Claim {
    /// Returns the condition `Accepted` of a policy. `kind` is its kind, `invalid` what is wrong with it by itself.
    pub fn accepted(self, kind: &str, invalid: Option<&Problem>) -> Condition {
        let Claim { has_won, lost_to, missing } = self;
        let conflict = lost_to.as_ref().filter(|_| !has_won).map(|winner| {
            let message =
                format!("{kind} {winner} is older and has the same target. Delete one of them.");
            Problem::new("Conflicted", message)
        });
        let missing = missing.filter(|_| !has_won);
        if let Some(problem) = conflict.as_ref().or(missing.as_ref()).or(invalid) {
            return Condition::no("Accepted", problem);
        }
        let applies = match lost_to {
            None => "The policy applies to its targets.".to_owned(),
            Some(winner) => format!(
                "The policy applies to its targets, except those that the older {kind} {winner} \
                 has."
            ),
        };
        Condition::yes("Accepted", "Accepted", applies)
    }
}
