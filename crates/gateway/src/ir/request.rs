//! The rules of HTTPRoutes and GRPCRoutes.

use std::sync::Arc;
use std::time::Duration;

use model::path::canonical;
use model::{Condition, ConditionOn, PathMatch, Pattern, Test};

use super::backend::Backend;
use super::extras::Extras;
use super::filter::Filters;

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRule {
    /// Its position in the object: of two rules with equal matches, the first wins.
    pub index: usize,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// The requests that it serves: those that meet one of these. Never empty.
    pub matches: Vec<RequestMatch>,
    /// What happens to them.
    pub filters: Filters,
    /// How long they may take.
    pub timeouts: Timeouts,
    /// When they are retried. `None`: the rule states nothing.
    pub retry: Option<Retry>,
    /// Session persistence.
    pub session: Option<Session>,
    /// Where they go. Empty and without a redirect: they receive the status 500.
    pub backends: Vec<Backend>,
    /// What an Ingress or a RoutePolicy states.
    pub extras: Option<Arc<Extras>>,
}

/// Conditions on a request, which must all be met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMatch {
    /// On the path.
    pub path: PathCondition,
    /// On the method. `None`: any.
    pub method: Option<String>,
    /// On fields. Names are in lower case and unique.
    pub headers: Vec<ValueCondition>,
    /// On query parameters. Names are unique.
    pub query: Vec<ValueCondition>,
    /// Others, which only an Ingress has.
    pub conditions: Vec<Condition>,
}

/// A condition on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathCondition {
    /// The path is this one.
    Exact(String),
    /// The path begins with these elements: `/a` matches `/a` and `/a/b`, not `/ab`.
    Prefix(String),
    /// The path matches this expression, which begins with `^`, and ends with `$` unless it is that of an Ingress.
    Regex(Pattern),
}

impl PathCondition {
    /// Returns it as Weir's routes have it: what is matched exactly, and a further condition.
    pub fn parts(&self) -> (PathMatch, Option<Condition>) {
        match self {
            PathCondition::Exact(path) => (PathMatch::Exact(canonical(path)), None),
            PathCondition::Prefix(path) => {
                (PathMatch::Prefix(canonical(path.trim_end_matches('/'))), None)
            }
            PathCondition::Regex(pattern) => {
                let test = Test::Pattern(pattern.clone());
                let condition = Condition { on: ConditionOn::Path, test, negated: false };
                (PathMatch::Prefix(String::new()), Some(condition))
            }
        }
    }
}

/// A condition on a field or a query parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueCondition {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ValueTest,
}

/// A condition on a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueTest {
    /// The value is this one.
    Exact(String),
    /// The value matches this expression, which begins with `^` and ends with `$`.
    Regex(Pattern),
}

/// How long requests may take. `None`: not stated; zero: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// A request, with all attempts.
    pub request: Option<Duration>,
    /// One attempt at a server.
    pub attempt: Option<Duration>,
}

/// When requests are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// After these statuses, and after connection errors.
    pub codes: Vec<u16>,
    /// How often. `None`: not stated.
    pub attempts: Option<u32>,
    /// The shortest pause before a retry. `None`: not stated.
    pub backoff: Option<Duration>,
}

/// Session persistence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The name of the cookie or field. `None`: any name.
    pub name: Option<String>,
    /// What has the session.
    pub carrier: SessionCarrier,
    /// How long a session lasts. `None`: not limited.
    pub lifetime: Option<Duration>,
}

/// What has the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCarrier {
    /// A cookie that a browser forgets when it closes.
    SessionCookie,
    /// A cookie that a browser keeps for the session's lifetime.
    PermanentCookie,
    /// A header field.
    Header,
}
