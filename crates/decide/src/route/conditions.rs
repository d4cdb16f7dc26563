//! Rules of one host and one path: which of them a request meets by method, fields, parameters
//! and listener.
//!
//! Rules that look at the same things (same names, a method or none, same listeners) are a
//! *shape*. Of one shape's rules a request meets at most one, the one with the request's values,
//! so that a large shape is one look-up; what a request costs is the number of shapes.

use model::{FieldMatch, ListenerId, RouteMatch};

use super::RequestView;
use super::index::{Hasher, Index, count_probe};
use super::query::first_value;

/// Rules of equal host and path, in order of precedence.
#[derive(Debug, Default)]
pub(super) struct RuleList {
    shapes: Vec<Shape>,
}

/// Neighbours in order of precedence that look at the same things.
#[derive(Debug)]
struct Shape {
    /// Empty: all.
    listeners: Box<[ListenerId]>,
    rules: Vec<Rule>,
    /// Rules by their values, once there are more than [`TRIED_IN_TURN_MAX`].
    by_values: Index,
}

#[derive(Debug)]
struct Rule {
    method: Option<Box<str>>,
    fields: Box<[FieldMatch]>,
    query: Box<[FieldMatch]>,
    position: usize,
}

/// Up to this many rules are compared one by one, which is cheaper than to hash the request.
const TRIED_IN_TURN_MAX: usize = 4;

impl RuleList {
    /// Adds the next rule in order of precedence.
    pub(super) fn push(&mut self, matches: &RouteMatch, position: usize) {
        let rule = Rule {
            method: matches.method.as_deref().map(Box::from),
            fields: matches.fields.clone().into_boxed_slice(),
            query: matches.query.clone().into_boxed_slice(),
            position,
        };
        match self.shapes.last_mut() {
            Some(shape) if shape.fits(&matches.listeners, &rule) => shape.push(rule),
            _ => {
                let mut shape = Shape {
                    listeners: matches.listeners.clone().into_boxed_slice(),
                    rules: Vec::new(),
                    by_values: Index::default(),
                };
                shape.push(rule);
                self.shapes.push(shape);
            }
        }
    }

    /// The position of the first rule that the request meets.
    pub(super) fn find<R: RequestView>(&self, head: &R, listener: ListenerId) -> Option<usize> {
        self.shapes.iter().find_map(|shape| shape.find(head, listener))
    }
}

impl Shape {
    fn fits(&self, listeners: &[ListenerId], rule: &Rule) -> bool {
        // A shape is made with its first rule.
        let first = &self.rules[0];
        let same_names = |one: &[FieldMatch], other: &[FieldMatch]| {
            one.iter().map(|c| &c.name).eq(other.iter().map(|c| &c.name))
        };
        *self.listeners == *listeners
            && first.method.is_some() == rule.method.is_some()
            && same_names(&first.fields, &rule.fields)
            && same_names(&first.query, &rule.query)
    }

    fn push(&mut self, rule: Rule) {
        let hash = rule.hash();
        // As many rules as a configuration has routes: far below 2^32.
        self.by_values.insert(hash, self.rules.len() as u32);
        self.rules.push(rule);
    }

    fn find<R: RequestView>(&self, head: &R, listener: ListenerId) -> Option<usize> {
        if !self.listeners.is_empty() && !self.listeners.contains(&listener) {
            return None;
        }
        let meets = |rule: &&Rule| {
            count_probe();
            rule.is_met_by(head)
        };
        if self.rules.len() <= TRIED_IN_TURN_MAX {
            return self.rules.iter().find(meets).map(|rule| rule.position);
        }
        let hash = self.rules[0].hash_of_values_in(head)?;
        let found = self.by_values.find(hash, |index| meets(&&self.rules[index as usize]))?;
        Some(self.rules[found as usize].position)
    }
}

impl Rule {
    fn is_met_by<R: RequestView>(&self, head: &R) -> bool {
        self.method.as_deref().is_none_or(|method| method == head.method())
            && self.fields.iter().all(|c| head.field(&c.name) == Some(c.value.as_bytes()))
            && (self.query.is_empty()
                || head.query().is_some_and(|query| {
                    self.query
                        .iter()
                        .all(|c| first_value(query, &c.name).is_some_and(|v| v.eq(c.value.bytes())))
                }))
    }

    /// The hash of what the rule asks for…
    fn hash(&self) -> u64 {
        let mut hasher = Hasher::new(0);
        if let Some(method) = &self.method {
            hasher = hasher.bytes(method.bytes()).part();
        }
        for condition in self.fields.iter().chain(&self.query) {
            hasher = hasher.bytes(condition.value.bytes()).part();
        }
        hasher.finish()
    }

    /// …and of what a request has in the same places; `None` if one of them is missing.
    fn hash_of_values_in<R: RequestView>(&self, head: &R) -> Option<u64> {
        let mut hasher = Hasher::new(0);
        if self.method.is_some() {
            hasher = hasher.bytes(head.method().bytes()).part();
        }
        for condition in &self.fields {
            hasher = hasher.bytes(head.field(&condition.name)?.iter().copied()).part();
        }
        for condition in &self.query {
            hasher = hasher.bytes(first_value(head.query()?, &condition.name)?).part();
        }
        Some(hasher.finish())
    }
}
