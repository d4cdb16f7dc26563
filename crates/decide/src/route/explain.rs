//! Explains why a route does not match a request: the first of its conditions that the request does not
//! meet. There is no second implementation of matching: the conditions are added one by one to a route
//! that matches everything, and each time a [`Router`] of that route alone is asked.
//!
//! Only for people who ask; requests never run this code.

use model::path::canonical;
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
        let is_met = |matches: &RouteMatch| {
            Router::of(&[matches], |_, _| None).find(head, arrival).is_some()
        };
        if is_met(route) {
            return None;
        }
        let mut growing = RouteMatch::any();
        if !is_met(&growing) {
            return Some((0, Unmet::DotSegments));
        }
        for (met, unmet) in steps(route).enumerate() {
            unmet.add_to(&mut growing, route);
            if !is_met(&growing) {
                return Some((met, unmet));
            }
        }
        // Not reached: each condition of the route is among the steps.
        None
    }

    /// Returns its place in the order in which kinds of conditions are examined: a request that fails at
    /// a later kind comes closer.
    pub fn kind(&self) -> u8 {
        match self {
            Unmet::DotSegments => 0,
            Unmet::Listener => 1,
            Unmet::Host(_) => 2,
            Unmet::Path(_) => 3,
            Unmet::Method(_) => 4,
            Unmet::Field(_) => 5,
            Unmet::Query(_) => 6,
            Unmet::Condition(_) => 7,
        }
    }

    /// Adds this condition of `route` to `matches`.
    fn add_to(&self, matches: &mut RouteMatch, route: &RouteMatch) {
        match *self {
            Unmet::Listener => matches.listeners.clone_from(&route.listeners),
            Unmet::Host(host) => matches.host = Some(host.clone()),
            Unmet::Path(path) => matches.path = path.clone(),
            Unmet::Method(method) => matches.method = Some(method.to_owned()),
            Unmet::Field(field) => matches.fields.push(field.clone()),
            Unmet::Query(query) => matches.query.push(query.clone()),
            Unmet::Condition(condition) => matches.conditions.push(condition.clone()),
            Unmet::DotSegments => {}
        }
    }

    /// Returns it in words, about this request: `path /listings is not /api or below it`.
    pub fn words<R: RequestView>(&self, head: &R) -> String {
        let shown = |text: &str| visible(text, SHOWN_MAX_BYTES);
        match self {
            Unmet::Listener => "it holds on other listeners only".to_owned(),
            Unmet::Host(pattern) if head.host().is_empty() => {
                format!("the request has no host, and the route is for {pattern}")
            }
            Unmet::Host(pattern) => format!("host {} is not {pattern}", shown(head.host())),
            Unmet::Path(PathMatch::Prefix(prefix)) => {
                format!("path {} is not {prefix} or below it", shown(&canonical(head.path())))
            }
            Unmet::Path(PathMatch::Exact(path)) => {
                format!("path {} is not exactly {path}", shown(&canonical(head.path())))
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

/// Returns the conditions of a route one by one.
fn steps(route: &RouteMatch) -> impl Iterator<Item = Unmet<'_>> {
    let RouteMatch {
        priority: _,
        listeners,
        host,
        path,
        method,
        fields,
        query,
        conditions,
        age: _,
    } = route;
    let is_any = matches!(path, PathMatch::Prefix(prefix) if prefix.is_empty());
    let on = (!listeners.is_empty()).then_some(Unmet::Listener);
    let host = host.iter().map(Unmet::Host);
    let path = (!is_any).then_some(Unmet::Path(path));
    let method = method.iter().map(|method| Unmet::Method(method));
    let fields = fields.iter().map(Unmet::Field);
    let query = query.iter().map(Unmet::Query);
    let others = conditions.iter().map(Unmet::Condition);
    on.into_iter().chain(host).chain(path).chain(method).chain(fields).chain(query).chain(others)
}
