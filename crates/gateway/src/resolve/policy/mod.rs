//! Policies: objects that change how other objects are served.
//!
//! [`targets`] decides which policy of a kind applies to each of its targets. [`tls`] checks BackendTLSPolicies, [`service`]
//! ServicePolicies; [`super::route_policy`] has RoutePolicies, which refer to ports of Services.

pub mod service;
pub mod targets;
pub mod tls;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hash;
use std::sync::Arc;

use config::policy::Mistake;

use super::status::{Condition, Problem};
use crate::objects::{Key, Meta};
use targets::Targets;

/// At most this many mistakes of a policy are named in its status.
const MISTAKES_SHOWN_MAX: usize = 3;

/// The policies of one kind. `T` identifies their targets, and `P` is what one of them states.
#[derive(Clone, Debug)]
pub struct Policies<T, P> {
    plans: BTreeMap<Key, Plan<P>>,
    /// Which of them applies to what.
    pub targets: Targets<T>,
}

#[derive(Clone, Debug)]
struct Plan<P> {
    report: Report,
    states: P,
}

/// What the status of a policy says, the same at each Gateway.
#[derive(Clone, Debug)]
pub struct Report {
    /// The generation that was read.
    pub generation: i64,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl<T, P> Default for Policies<T, P> {
    fn default() -> Policies<T, P> {
        Policies { plans: BTreeMap::new(), targets: Targets::default() }
    }
}

impl<T: Clone + Eq + Hash, P> Policies<T, P> {
    /// Adds a policy, with what it states.
    pub fn add(&mut self, metadata: &Meta, conditions: Vec<Condition>, states: P) {
        let report = Report { generation: metadata.generation, conditions };
        self.plans.insert(metadata.key(), Plan { report, states });
    }

    /// Adds a sentence to the message of a policy's first condition.
    fn note(&mut self, policy: &Key, sentence: &str) {
        let plan = self.plans.get_mut(policy);
        if let Some(condition) = plan.and_then(|plan| plan.report.conditions.first_mut()) {
            condition.message = format!("{} {sentence}", condition.message);
        }
    }

    /// Returns the policy that applies to a part of an object, and what it states. One for the part precedes one for the
    /// object.
    pub fn winner(&self, object: &T, part: Option<&Arc<str>>) -> Option<(&Key, &P)> {
        let (key, plan) = self.plans.get_key_value(self.targets.winner(object, part)?)?;
        Some((key, &plan.states))
    }

    /// Returns what the policy states whose authentication applies to a part of an object. The policy that applies otherwise
    /// may be another one, which states no authentication.
    pub fn guard(&self, object: &T, part: Option<&Arc<str>>) -> Option<&P> {
        Some(&self.plans.get(self.targets.guard(object, part)?)?.states)
    }

    /// Returns the objects that policies are for.
    pub fn objects(&self) -> impl Iterator<Item = &T> {
        self.targets.objects()
    }

    /// Returns the policies for an object, those that do not apply included.
    pub fn of_object(&self, object: &T) -> impl Iterator<Item = (&Key, &Report)> {
        let plans = self.targets.of_object(object).filter_map(|key| self.plans.get_key_value(key));
        plans.map(|(key, plan)| (key, &plan.report))
    }
}

/// Returns why a policy with mistakes is not accepted.
pub fn invalid(mistakes: &[Mistake]) -> Problem {
    let shown = mistakes.iter().take(MISTAKES_SHOWN_MAX);
    let shown = shown.map(|Mistake { path, problem }| format!("{path}: {problem}"));
    let mut message = shown.collect::<Vec<_>>().join("; ");
    if let Some(more) = mistakes.len().checked_sub(MISTAKES_SHOWN_MAX).filter(|more| *more > 0) {
        // Writing to a text cannot fail.
        let _ = write!(message, "; and {more} more");
    }
    message.push('.');
    Problem::new("Invalid", message)
}
