//! Which of two routes is tried first, and by what.

use std::cmp::{Ordering, Reverse};

use crate::{FieldMatch, HostPattern, PathMatch, RouteMatch};

/// How specific conditions are, part by part; what is tried first is `Less`.
type Specific = (
    Reverse<u32>,
    (u8, Reverse<usize>),
    (u8, Reverse<usize>),
    bool,
    Reverse<usize>,
    Reverse<usize>,
    Reverse<usize>,
    bool,
);

crate::words! {
    /// The first part of their conditions in which two routes differ in precedence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rank {
        /// The priority.
        Priority = "priority",
        /// The host: exact, longer wildcard, any.
        Host = "host",
        /// The path: exact, longer prefix.
        Path = "path",
        /// A method is named.
        Method = "method",
        /// More header conditions.
        Fields = "header",
        /// More conditions on query parameters.
        Query = "query",
        /// More other conditions.
        Conditions = "conditions",
        /// Listeners are named.
        Listener = "listener",
        /// The age of their objects in Kubernetes, or the order of rules in one object.
        Age = "age",
        /// Nothing but the text of the conditions.
        Order = "order",
    }
}

impl Rank {
    /// Returns what the route that is tried first has, in words that follow "because".
    pub fn text(self) -> &'static str {
        match self {
            Rank::Priority => "its priority is higher",
            Rank::Host => "its host is more specific",
            Rank::Path => "its path is longer, or exact",
            Rank::Method => "it names a method",
            Rank::Fields => "it has more header conditions",
            Rank::Query => "it has more conditions on query parameters",
            Rank::Conditions => "it has more conditions",
            Rank::Listener => "it names listeners",
            Rank::Age => "it is equally specific, and older, or comes first in the same object",
            Rank::Order => "it is equally specific, and its conditions come first in the alphabet",
        }
    }
}

impl RouteMatch {
    /// Compares which of two is tried first (`Less`): by priority, then by the precedence of the Kubernetes Gateway
    /// API (`HTTPRouteRule.matches`, `HTTPRouteSpec.hostnames`): exact host, longer wildcard host,
    /// any host; exact path, longer prefix; a method; more fields; more query parameters. After
    /// that, more other conditions, and listeners named before all listeners; then `age`. Total: what is
    /// still equal is ordered by its canonical form, so that the order in a file never matters. `Equal` only
    /// for equal conditions.
    ///
    /// Names are compared before values: rules of one host and path with conditions on the same
    /// fields and parameters, of which at most one can match, are adjacent (the router relies on
    /// it).
    pub fn precedence(&self, other: &RouteMatch) -> Ordering {
        self.specific()
            .cmp(&other.specific())
            .then_with(|| (self.age.is_none(), &self.age).cmp(&(other.age.is_none(), &other.age)))
            .then_with(|| self.host_text().cmp(&other.host_text()))
            .then_with(|| self.path_text().cmp(other.path_text()))
            .then_with(|| names(&self.fields).cmp(names(&other.fields)))
            .then_with(|| names(&self.query).cmp(names(&other.query)))
            .then_with(|| self.listeners.cmp(&other.listeners))
            .then_with(|| self.method.cmp(&other.method))
            .then_with(|| self.fields.cmp(&other.fields))
            .then_with(|| self.query.cmp(&other.query))
            .then_with(|| self.conditions.cmp(&other.conditions))
    }

    /// Returns by what [`RouteMatch::precedence`] decides between the two.
    pub fn rank(&self, other: &RouteMatch) -> Rank {
        let ages_differ = self.age != other.age;
        let (one, other) = (self.specific(), other.specific());
        let differ = [
            one.0 != other.0,
            one.1 != other.1,
            one.2 != other.2,
            one.3 != other.3,
            one.4 != other.4,
            one.5 != other.5,
            one.6 != other.6,
            one.7 != other.7,
            ages_differ,
        ];
        // In the order of the parts; `Order` remains.
        let first = differ.into_iter().zip(Rank::ALL).find(|(differs, _)| *differs);
        first.map_or(Rank::Order, |(_, rank)| *rank)
    }

    fn specific(&self) -> Specific {
        let host = match &self.host {
            Some(HostPattern::Exact(_)) => (0, Reverse(0)),
            Some(HostPattern::Wildcard(suffix)) => (1, Reverse(suffix.len())),
            None => (2, Reverse(0)),
        };
        let path = match &self.path {
            PathMatch::Exact(_) => (0, Reverse(0)),
            PathMatch::Prefix(prefix) => (1, Reverse(prefix.len())),
        };
        (
            Reverse(self.priority),
            host,
            path,
            self.method.is_none(),
            Reverse(self.fields.len()),
            Reverse(self.query.len()),
            Reverse(self.conditions.len()),
            self.listeners.is_empty(),
        )
    }

    fn host_text(&self) -> Option<&str> {
        match &self.host {
            Some(HostPattern::Exact(host) | HostPattern::Wildcard(host)) => Some(host),
            None => None,
        }
    }

    fn path_text(&self) -> &str {
        match &self.path {
            PathMatch::Exact(path) | PathMatch::Prefix(path) => path,
        }
    }
}

fn names(conditions: &[FieldMatch]) -> impl Iterator<Item = &str> {
    conditions.iter().map(|condition| condition.name.as_str())
}
