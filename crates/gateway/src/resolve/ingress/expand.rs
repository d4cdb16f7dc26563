//! A path of an Ingress → rules: one for each case that its annotations tell apart.

use std::sync::Arc;

use model::{Condition, ConditionOn, Denial, Test};

use super::canary::Canary;
use super::redirects;
use super::rules::{Act, PathRule};
use super::terms::Terms;
use crate::ir::backend::{Backend, ServicePort, Target};
use crate::ir::extras::{Extras, UNUSABLE};
use crate::ir::filter::{Filters, PathChange, Redirect, Rewrite};
use crate::ir::request::{PathCondition, RequestMatch, RequestRule, Timeouts};

/// The most conditions of a rule besides those on path and host: two on the client, one of a canary.
const CONDITIONS_MAX: usize = 3;

/// What a path is part of.
#[derive(Clone, Copy, Debug)]
pub struct Within<'a> {
    /// What [`one_label`](super::wildcard::one_label) returns for its host.
    pub host: Option<&'a Condition>,
    /// What the annotations of its Ingress state.
    pub terms: &'a Terms,
    /// Whether its requests are redirected to TLS.
    pub to_tls: bool,
    /// The name of its rules. `None`: their position.
    pub name: Option<&'a str>,
}

/// A canary, and its backend for a path.
pub type CanaryBackend<'a> = (&'a Canary, Arc<ServicePort>);

/// Returns the rules for a path, the one with the most conditions first.
pub fn rules(
    path: &PathRule,
    within: Within<'_>,
    canary: Option<&CanaryBackend<'_>>,
) -> Vec<RequestRule> {
    let terms = within.terms;
    if within.to_tls {
        return vec![redirect(path, within, redirects::to_tls())];
    }
    if terms.is_refused {
        return vec![refuse(path, within, UNUSABLE)];
    }
    let (port, change) = match &path.act {
        Act::Redirect(to) => return vec![redirect(path, within, to.clone())],
        Act::Refuse(denial) => return vec![refuse(path, within, *denial)],
        Act::Forward(port, change) => (port, change.as_ref()),
    };
    let forward = |further: Option<&Condition>, backends: Vec<Backend>| {
        let conditions = terms.clients.iter().chain(further).cloned().collect();
        RequestRule {
            filters: filters(terms, change),
            extras: terms.extras.clone(),
            backends,
            ..rule(path, within, conditions)
        }
    };
    let only = |port: &Arc<ServicePort>| vec![Backend::new(1, Target::Service(Arc::clone(port)))];
    let mut rules = Vec::new();
    let mut backends = only(port);
    if let Some((canary, other)) = canary {
        let decided = canary.conditions.iter();
        rules.extend(decided.map(|(condition, is_canary)| {
            forward(Some(condition), only(if *is_canary { other } else { port }))
        }));
        let Canary { weight, total, .. } = **canary;
        if weight > 0 {
            let target = |port: &Arc<ServicePort>| Target::Service(Arc::clone(port));
            backends = vec![
                Backend::new(total.saturating_sub(weight), target(port)),
                Backend::new(weight, target(other)),
            ];
        }
    }
    rules.push(forward(None, backends));
    if !terms.clients.is_empty() {
        // Clients that do not meet all conditions on clients.
        rules.push(refuse(path, within, Denial::configured(403)));
    }
    rules
}

fn redirect(path: &PathRule, within: Within<'_>, to: Redirect) -> RequestRule {
    let filters = Filters { redirect: Some(to), ..Filters::default() };
    RequestRule { filters, ..rule(path, within, Vec::new()) }
}

fn refuse(path: &PathRule, within: Within<'_>, denial: Denial) -> RequestRule {
    RequestRule {
        extras: Some(Arc::new(Extras::refusing(denial))),
        ..rule(path, within, Vec::new())
    }
}

fn filters(terms: &Terms, change: Option<&PathChange>) -> Filters {
    let rewrite = Rewrite { hostname: terms.host.clone(), path: change.cloned() };
    let has_rewrite = rewrite.hostname.is_some() || rewrite.path.is_some();
    Filters { rewrite: has_rewrite.then_some(rewrite), ..terms.filters.clone() }
}

/// Returns a rule that does nothing yet.
fn rule(path: &PathRule, within: Within<'_>, mut conditions: Vec<Condition>) -> RequestRule {
    if matches!(path.path, PathCondition::Regex(_)) {
        // Weir tries the rule with more conditions first. Rules with expressions are in order of length, so all of them
        // need equally many.
        let always = Condition { on: ConditionOn::Path, test: Test::Present, negated: false };
        let missing = CONDITIONS_MAX.saturating_sub(conditions.len());
        conditions.extend(std::iter::repeat_n(always, missing));
    }
    conditions.extend(within.host.cloned());
    let matches = RequestMatch {
        path: path.path.clone(),
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
        conditions,
    };
    RequestRule {
        index: path.index,
        name: Some(match within.name {
            // Other than the name of a rule of an HTTPRoute of the same name.
            None => format!("ingress/{}", path.index).into(),
            Some(name) => format!("ingress/{name}").into(),
        }),
        matches: vec![matches],
        filters: Filters::default(),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
        backends: Vec::new(),
        extras: None,
    }
}
