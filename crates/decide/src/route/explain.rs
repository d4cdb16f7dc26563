//! Explains why a route does not match a request: the first of its conditions that the request does not
//! meet. There is no second implementation of matching: the conditions are added one by one to a route
//! that matches everything, and each time a [`Router`] of that route alone is asked.
//!
//! Only for people who ask; requests never run this code.

use model::{
    Condition, ConditionOn, FieldMatch, HostPattern, PathMatch, RouteMatch, Test, visible,
};

use super::{Arrival, RequestView, Router};

/// The longest part of a request that is repeated, in bytes.
const SHOWN_MAX_BYTES: usize = 200;

/// The first condition of a route that a request does not meet, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet<'a> {
    /// It holds on other listeners.
    Listener,
    /// The host.
    Host(&'a HostPattern),
    /// The path.
    Path(&'a PathMatch),
    /// The method.
    Method(&'a str),
    /// A request field.
    Field(&'a FieldMatch),
    /// A query parameter.
    Query(&'a FieldMatch),
    /// Another condition.
    Condition(&'a Condition),
    /// The path has dot segments, and matches no route.
    DotSegments,
}

impl<'a> Unmet<'a> {
    /// Returns the first condition of `route` that the request does not meet, and how many it meets
    /// before that one; `None` if the route matches.
    pub fn first<R: RequestView>(
        route: &'a RouteMatch,
        head: &R,
        arrival: &Arrival<'_>,
    ) -> Option<(usize, Unmet<'a>)> {
        let is_met = |matches: &RouteMatch| Router::of(&[matches]).find(head, arrival).is_some();
        if is_met(route) {
            return None;
        }
        let mut growing = RouteMatch {
            listeners: Vec::new(),
            host: None,
            path: PathMatch::Prefix(String::new()),
            method: None,
            fields: Vec::new(),
            query: Vec::new(),
            conditions: Vec::new(),
        };
        if !is_met(&growing) {
            return Some((0, Unmet::DotSegments));
        }
        for (met, (unmet, add)) in steps(route).enumerate() {
            add.to(&mut growing);
            if !is_met(&growing) {
                return Some((met, unmet));
            }
        }
        // Not reached: each condition of the route is among the steps.
        None
    }

    /// Returns it in words, about this request: `path /api is no prefix of /listings`.
    pub fn words<R: RequestView>(&self, head: &R) -> String {
        let shown = |text: &str| visible(text, SHOWN_MAX_BYTES);
        match self {
            Unmet::Listener => "it holds on other listeners only".to_owned(),
            Unmet::Host(pattern) if head.host().is_empty() => {
                format!("the request has no host, and the route is for {pattern}")
            }
            Unmet::Host(pattern) => format!("host {} is not {pattern}", shown(head.host())),
            Unmet::Path(PathMatch::Prefix(prefix)) => {
                format!("path {prefix} is no prefix of {}", shown(head.path()))
            }
            Unmet::Path(PathMatch::Exact(path)) => {
                format!("path {} is not exactly {path}", shown(head.path()))
            }
            Unmet::Method(method) => format!("method {} is not {method}", shown(head.method())),
            Unmet::Field(FieldMatch { name, .. }) if head.field(name).is_none() => {
                format!("header {name} is absent")
            }
            Unmet::Field(FieldMatch { name, value }) => {
                format!("header {name} is not \"{}\"", shown(value.shown()))
            }
            Unmet::Query(FieldMatch { name, value }) => {
                format!("query parameter {name} is absent or not \"{}\"", shown(value.shown()))
            }
            Unmet::Condition(condition) => of_condition(condition, head),
            Unmet::DotSegments => "a path with dot segments matches no route".to_owned(),
        }
    }
}

/// Says which condition does not hold, and why if that is more than a comparison.
fn of_condition<R: RequestView>(condition: &Condition, head: &R) -> String {
    let text = visible(&condition.to_string(), SHOWN_MAX_BYTES);
    let absent = match (&condition.on, &condition.test) {
        _ if condition.negated => None,
        (ConditionOn::Field(name), Test::Present | Test::Exact(_) | Test::Pattern(_)) => {
            head.field(name).is_none().then(|| format!("header {name} is absent"))
        }
        (ConditionOn::Cookie(name), _) => {
            let is_absent = head.cookie_values(name).next().is_none();
            is_absent.then(|| format!("cookie {name} is absent"))
        }
        _ => None,
    };
    absent.unwrap_or_else(|| format!("this does not hold: {text}"))
}

/// A condition to add.
enum Add<'a> {
    Listeners(&'a RouteMatch),
    Host(&'a HostPattern),
    Path(&'a PathMatch),
    Method(&'a str),
    Field(&'a FieldMatch),
    Query(&'a FieldMatch),
    Condition(&'a Condition),
}

impl Add<'_> {
    fn to(&self, matches: &mut RouteMatch) {
        match *self {
            Add::Listeners(of) => matches.listeners.clone_from(&of.listeners),
            Add::Host(host) => matches.host = Some(host.clone()),
            Add::Path(path) => matches.path = path.clone(),
            Add::Method(method) => matches.method = Some(method.to_owned()),
            Add::Field(field) => matches.fields.push(field.clone()),
            Add::Query(query) => matches.query.push(query.clone()),
            Add::Condition(condition) => matches.conditions.push(condition.clone()),
        }
    }
}

/// Returns the conditions of a route one by one.
fn steps(route: &RouteMatch) -> impl Iterator<Item = (Unmet<'_>, Add<'_>)> {
    let RouteMatch { listeners, host, path, method, fields, query, conditions } = route;
    let is_any = matches!(path, PathMatch::Prefix(prefix) if prefix.is_empty());
    let on = (!listeners.is_empty()).then_some((Unmet::Listener, Add::Listeners(route)));
    let host = host.iter().map(|it| (Unmet::Host(it), Add::Host(it)));
    let path = (!is_any).then_some((Unmet::Path(path), Add::Path(path)));
    let method = method.iter().map(|it| (Unmet::Method(it), Add::Method(it)));
    let fields = fields.iter().map(|it| (Unmet::Field(it), Add::Field(it)));
    let query = query.iter().map(|it| (Unmet::Query(it), Add::Query(it)));
    let others = conditions.iter().map(|it| (Unmet::Condition(it), Add::Condition(it)));
    on.into_iter().chain(host).chain(path).chain(method).chain(fields).chain(query).chain(others)
}
