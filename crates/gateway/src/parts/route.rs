//! Routes at the listeners of a port → routes of Weir.

use std::collections::HashSet;

use model::{Action, Denial, HostPattern, ListenerId, Route, RouteMatch, WrittenAt};

use super::service::Services;
use super::{isolation, rule};
use crate::ir::{self, Gateway, Rules};

/// Adds the routes for a port of a Gateway.
///
/// Of equally specific rules, that of the older route is tried first, and within a route the earlier one. Of rules with
/// equal conditions only that one is kept.
pub(super) fn add(
    (gateway, port): (&Gateway, u16),
    listeners: &[ir::Listener],
    id: ListenerId,
    services: &Services,
    routes: &mut Vec<Route>,
) {
    let hosts = || listeners.iter().map(|listener| listener.host.as_ref());
    let mut known: HashSet<RouteMatch> = HashSet::new();
    let mut order = 0;
    let mut add = |mut route: Route| {
        if known.insert(route.matches.clone()) {
            route.matches.order = order;
            order += 1;
            routes.push(route);
        }
    };
    for listener in listeners {
        let own = listener.host.as_ref();
        for attached in &listener.routes {
            let is_own = |host: &&Option<HostPattern>| {
                !isolation::is_of_another(host.as_ref(), own, hosts())
            };
            for host in attached.hosts.iter().filter(is_own) {
                of_route(&attached.route, (host.as_ref(), id), |rule, at| {
                    rule::action(rule, at, (gateway, port, listener.protocol), services)
                })
                .for_each(&mut add);
            }
        }
        if isolation::needs_end(own, hosts()) {
            add(end(listener, id));
        }
    }
}

/// Returns the routes for one host of a route.
fn of_route<'a>(
    route: &'a ir::Route,
    (host, id): (Option<&'a HostPattern>, ListenerId),
    action: impl Fn(&ir::request::RequestRule, &ir::Route) -> rule::Actions + 'a,
) -> impl Iterator<Item = Route> + 'a {
    let rules = match &route.rules {
        Rules::Requests(rules) => rules.as_slice(),
        Rules::Connections(_) => &[],
    };
    rules.iter().flat_map(move |one| {
        let rule::Actions { action, filters } = action(one, route);
        let name = match &one.name {
            Some(name) => format!("{}/{name}", route.key),
            None => format!("{}/{}", route.key, one.index),
        };
        let written_at =
            WrittenAt::outside_files(format!("{} {}", route.kind.name(), route.key).into());
        one.matches.iter().map(move |matches| Route {
            name: name.as_str().into(),
            matches: RouteMatch {
                listeners: vec![id],
                host: host.cloned(),
                ..rule::conditions(matches)
            },
            action: action.clone(),
            filters: filters.clone(),
            maintenance: None,
            error_pages: Vec::new(),
            written_at: written_at.clone(),
        })
    })
}

/// Returns the rule for requests that none of a listener's routes matches.
fn end(listener: &ir::Listener, id: ListenerId) -> Route {
    Route {
        name: format!("{}/none", listener.id).into(),
        matches: RouteMatch {
            listeners: vec![id],
            host: listener.host.clone(),
            ..RouteMatch::any()
        },
        action: Action::Deny(Denial::no_route()),
        filters: Vec::new(),
        maintenance: None,
        error_pages: Vec::new(),
        written_at: WrittenAt::outside_files(format!("listener {}", listener.id).into()),
    }
}
