//! Selects among rules with the same host and path: by method, fields, parameters and listener.
//!
//! Rules with the same conditions (same names, a method or none, same listeners) form a *shape*. A
//! request matches at most one rule of a shape, the one with the request's values, so a large shape
//! is one lookup. If there are many shapes, those with a field condition are found by the names of
//! the request's own fields, so that routes for fields that a request does not have cost nothing.

use model::{Condition, FieldMatch, ListenerId, RouteMatch};

use super::condition::holds;
use super::index::{Hasher, Index, count_probe};
use super::{RequestView, Subject};
use crate::query::first_value;

/// Rules of equal host and path, in order of precedence.
#[derive(Debug, Default)]
pub(super) struct RuleList {
    shapes: Vec<Shape>,
    /// Shapes without a field condition, in order.
    without_fields: Vec<u32>,
    /// All others, by the name of their first field…
    by_field: Vec<ByField>,
    /// …indexed by the hash of that name.
    field_names: Index,
}

/// Shapes whose first field condition is on this name, in order.
#[derive(Debug)]
struct ByField {
    name: Box<str>,
    shapes: Vec<u32>,
}

/// Adjacent rules in order of precedence with the same kinds of conditions.
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
    conditions: Box<[Condition]>,
    position: usize,
}

/// Up to this many rules, or shapes, are compared one by one, which is cheaper than hashing the
/// request.
const TRIED_IN_TURN_MAX: usize = 4;

impl RuleList {
    /// Adds the next rule in order of precedence.
    pub(super) fn push(&mut self, matches: &RouteMatch, position: usize) {
        let rule = Rule {
            method: matches.method.as_deref().map(Box::from),
            fields: matches.fields.clone().into_boxed_slice(),
            query: matches.query.clone().into_boxed_slice(),
            conditions: matches.conditions.clone().into_boxed_slice(),
            position,
        };
        match self.shapes.last_mut() {
            Some(shape) if shape.fits(&matches.listeners, &rule) => shape.push(rule),
            _ => {
                let mut shape = Shape {
                    listeners: matches.listeners.clone().into_boxed_slice(),
                    // Nearly always the only one.
                    rules: Vec::with_capacity(1),
                    by_values: Index::default(),
                };
                shape.push(rule);
                self.add(shape);
            }
        }
    }

    /// Returns the position of the first rule that the request matches.
    pub(super) fn find<R: RequestView>(&self, subject: &Subject<'_, R>) -> Option<usize> {
        if self.shapes.len() <= TRIED_IN_TURN_MAX {
            return self.shapes.iter().find_map(|shape| shape.find(subject));
        }
        let mut best = None;
        self.improve(&mut best, &self.without_fields, subject);
        for name in subject.head.field_names() {
            let is_it = |at: u32| {
                let known = self.by_field[at as usize].name.as_bytes();
                known.eq_ignore_ascii_case(name)
            };
            if let Some(at) = self.field_names.find(hash_of_name(name), is_it) {
                self.improve(&mut best, &self.by_field[at as usize].shapes, subject);
            }
        }
        best.map(|(_, position)| position)
    }

    /// Adds the next shape in order of precedence.
    fn add(&mut self, shape: Shape) {
        // As many shapes as a configuration has routes at most: far below 2^32.
        let number = self.shapes.len() as u32;
        match shape.rules[0].fields.first() {
            None => push_exact(&mut self.without_fields, number),
            Some(field) => {
                let name = field.name.as_bytes();
                let hash = hash_of_name(name);
                let by_field = &mut self.by_field;
                let is_it = |at: u32| by_field[at as usize].name.as_bytes() == name;
                if let Some(at) = self.field_names.find(hash, is_it) {
                    by_field[at as usize].shapes.push(number);
                } else {
                    self.field_names.insert(hash, by_field.len() as u32);
                    let name = field.name.as_str().into();
                    by_field.push(ByField { name, shapes: vec![number] });
                }
            }
        }
        push_exact(&mut self.shapes, shape);
    }

    /// Replaces `best` with the first of `candidates` that the request matches, if it comes before
    /// it: the number of its shape, and its position.
    fn improve<R: RequestView>(
        &self,
        best: &mut Option<(u32, usize)>,
        candidates: &[u32],
        subject: &Subject<'_, R>,
    ) {
        for &number in candidates {
            if best.is_some_and(|(first, _)| first <= number) {
                return;
            }
            count_probe();
            if let Some(position) = self.shapes[number as usize].find(subject) {
                *best = Some((number, position));
                return;
            }
        }
    }
}

/// Pushes without spare room for a first element, which is nearly always the only one.
fn push_exact<T>(list: &mut Vec<T>, element: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(element);
}

/// Hashes a field name, ignoring case.
fn hash_of_name(name: &[u8]) -> u64 {
    Hasher::new(0).bytes(name.iter().map(u8::to_ascii_lowercase)).finish()
}

impl Shape {
    fn fits(&self, listeners: &[ListenerId], rule: &Rule) -> bool {
        // A shape is created with its first rule.
        let first = &self.rules[0];
        let same_names = |one: &[FieldMatch], other: &[FieldMatch]| {
            one.iter().map(|c| &c.name).eq(other.iter().map(|c| &c.name))
        };
        // Of rules with further conditions, a request may match several.
        first.conditions.is_empty()
            && rule.conditions.is_empty()
            && *self.listeners == *listeners
            && first.method.is_some() == rule.method.is_some()
            && same_names(&first.fields, &rule.fields)
            && same_names(&first.query, &rule.query)
    }

    fn push(&mut self, rule: Rule) {
        self.rules.push(rule);
        let first_new = match self.rules.len() {
            0..=TRIED_IN_TURN_MAX => return,
            // With this one there are too many to be tried in turn.
            count if count == TRIED_IN_TURN_MAX + 1 => 0,
            count => count - 1,
        };
        for (number, rule) in self.rules.iter().enumerate().skip(first_new) {
            // As many rules as a configuration has routes: far below 2^32.
            self.by_values.insert(rule.hash(), number as u32);
        }
    }

    fn find<R: RequestView>(&self, subject: &Subject<'_, R>) -> Option<usize> {
        if !self.listeners.is_empty() && !self.listeners.contains(&subject.arrival.listener) {
            return None;
        }
        let meets = |rule: &&Rule| {
            count_probe();
            rule.is_met_by(subject)
        };
        if self.rules.len() <= TRIED_IN_TURN_MAX {
            return self.rules.iter().find(meets).map(|rule| rule.position);
        }
        let hash = self.rules[0].hash_of_values_in(subject.head)?;
        let found = self.by_values.find(hash, |index| meets(&&self.rules[index as usize]))?;
        Some(self.rules[found as usize].position)
    }
}

impl Rule {
    fn is_met_by<R: RequestView>(&self, subject: &Subject<'_, R>) -> bool {
        let head = subject.head;
        self.method.as_deref().is_none_or(|method| method == head.method())
            && self.fields.iter().all(|c| head.field(&c.name) == Some(c.value.as_bytes()))
            && (self.query.is_empty()
                || head.query().is_some_and(|query| {
                    self.query
                        .iter()
                        .all(|c| first_value(query, &c.name).is_some_and(|v| v.eq(c.value.bytes())))
                }))
            && self.conditions.iter().all(|condition| holds(condition, subject))
    }

    /// Returns the hash of the values in the rule…
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

    /// …and of the request's values in the same places; `None` if one of them is missing.
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
