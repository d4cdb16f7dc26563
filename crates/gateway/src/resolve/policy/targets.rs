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
    /// The oldest policy for each target that states authentication: policies that state none do not displace it.
    guards: HashMap<Target<T>, Key>,
    /// All policies for an object, those that do not apply included.
    of_object: HashMap<T, Vec<Key>>,
}

impl<T> Default for Targets<T> {
    fn default() -> Targets<T> {
        Targets { winners: HashMap::new(), guards: HashMap::new(), of_object: HashMap::new() }
    }
}

/// Which of its targets a policy applies to.
#[derive(Debug, Default)]
pub struct Claim {
    has_won: bool,
    /// The policy that applies to one of its targets in its place.
    lost_to: Option<Key>,
    /// The policy that applies to one of its targets but for the authentication, which is that of the claiming policy.
    guarded: Option<Key>,
    /// Targets that do not exist.
    missing: Vec<Problem>,
    /// It states authentication.
    is_guard: bool,
}

/// At most this many targets that do not exist are described in the status of a policy.
const MISSING_SHOWN_MAX: usize = 3;

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
    /// with a target that does not exist. `is_guard`: it states authentication.
    pub fn claim(
        &mut self,
        policy: &Key,
        is_guard: bool,
        targets: impl IntoIterator<Item = Target<T>>,
        missing: impl Fn(&Target<T>) -> Option<Problem>,
    ) -> Claim {
        let mut claim = Claim { is_guard, ..Claim::default() };
        for target in targets {
            self.mention(policy, &target.0);
            if let Some(problem) = missing(&target) {
                if !claim.missing.contains(&problem) {
                    claim.missing.push(problem);
                }
                continue;
            }
            let guards = is_guard
                && self.guards.entry(target.clone()).or_insert_with(|| policy.clone()) == policy;
            let winner = self.winners.entry(target).or_insert_with(|| policy.clone());
            if winner == policy {
                claim.has_won = true;
            } else if guards {
                claim.guarded = Some(winner.clone());
            } else {
                claim.lost_to = Some(winner.clone());
            }
        }
        claim
    }

    /// Returns the policy for a part of an object: one for the part precedes one for the object.
    pub fn winner(&self, object: &T, part: Option<&Arc<str>>) -> Option<&Key> {
        first(&self.winners, object, part)
    }

    /// Returns the policy whose authentication applies to a part of an object, in the same order.
    pub fn guard(&self, object: &T, part: Option<&Arc<str>>) -> Option<&Key> {
        first(&self.guards, object, part)
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

fn first<'a, T: Clone + Eq + Hash>(
    policies: &'a HashMap<Target<T>, Key>,
    object: &T,
    part: Option<&Arc<str>>,
) -> Option<&'a Key> {
    let named = part.and_then(|part| policies.get(&(object.clone(), Some(part.clone()))));
    named.or_else(|| policies.get(&(object.clone(), None)))
}

impl Claim {
    /// Returns the condition `Accepted` of a policy. `kind` is its kind, `invalid` what is wrong with it by itself.
    pub fn accepted(self, kind: &str, invalid: Option<&Problem>) -> Condition {
        let missing = self.missing();
        let Claim { has_won, lost_to, guarded, missing: _, is_guard } = self;
        let applies = has_won || guarded.is_some();
        let conflict = lost_to.as_ref().filter(|_| !applies).map(|winner| {
            let message =
                format!("{kind} {winner} is older and has the same target. Delete one of them.");
            Problem::new("Conflicted", message)
        });
        let nothing = missing.as_ref().filter(|_| !applies);
        if let Some(problem) = conflict.as_ref().or(nothing).or(invalid) {
            let mut problem = problem.clone();
            if let Some(missing) = missing.filter(|missing| *missing != problem) {
                problem.message = format!("{} {}", problem.message, missing.message);
            }
            return Condition::no("Accepted", &problem);
        }
        let targets = if missing.is_some() { "its other targets" } else { "its targets" };
        let mut message = match (has_won, &guarded) {
            (false, Some(winner)) => format!(
                "Only the authentication of the policy applies. The older {kind} {winner} has the \
                 same target, states no authentication, and replaces the rest."
            ),
            (true, Some(winner)) => format!(
                "The policy applies to {targets}. To those of the older {kind} {winner}, which \
                 states no authentication, only that of the policy applies."
            ),
            (_, None) => format!("The policy applies to {targets}."),
        };
        match (lost_to, guarded) {
            (None, _) => {}
            (Some(winner), Some(_)) => {
                message = format!(
                    "{message} Nothing of it applies to those of the older {kind} {winner}."
                );
            }
            (Some(winner), None) => {
                message = format!(
                    "The policy applies to {targets}, except those that the older {kind} {winner} \
                     has."
                );
            }
        }
        let Some(missing) = missing else { return Condition::yes("Accepted", "Accepted", message) };
        message = format!("{} {message}", missing.message);
        if is_guard {
            // What its author believes protected is not there: perhaps under another name, and open.
            return Condition::no("Accepted", &Problem::new(missing.reason, message));
        }
        Condition::yes("Accepted", "Accepted", message)
    }

    /// Returns the targets that do not exist.
    fn missing(&self) -> Option<Problem> {
        let shown = self.missing.iter().take(MISSING_SHOWN_MAX);
        let mut message = shown.map(|one| one.message.as_str()).collect::<Vec<_>>().join(" ");
        if let Some(more) =
            self.missing.len().checked_sub(MISSING_SHOWN_MAX).filter(|more| *more > 0)
        {
            message = format!("{message} Further targets that do not exist: {more}.");
        }
        self.missing.first().map(|first| Problem::new(first.reason, message))
    }
}
