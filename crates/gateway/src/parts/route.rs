//! Routes at the listeners of Gateways → routes of Weir.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use model::{
    Action, Condition, Denial, FieldMatch, HostPattern, ListenerId, PathMatch, Route, RouteAge,
    RouteMatch, ServiceId, WrittenAt,
};

use super::authentication::Authentications;
use super::service::Services;
use super::{isolation, rule};
use crate::ir::{self, AttachedRoute, Gateway, Rules};

/// Fewer new routes than this are put in their places one by one.
const SORTED_IN_MIN: usize = 64;

/// A port of a Gateway that Weir listens for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) number: u16,
    /// The listener of Weir.
    pub(super) id: ListenerId,
    /// Those of the Gateway.
    pub(super) listeners: &'a [ir::Listener],
}

/// The routes of all Gateways. Those that have not changed stay where they are in memory.
#[derive(Debug, Default)]
pub(super) struct Kept {
    context: Context,
    /// Counts the updates.
    round: u64,
    made: HashMap<Source, Made>,
    /// In order of precedence, with those that are never tried.
    sorted: Vec<Arc<Route>>,
}

/// What all routes depend on. It seldom changes.
#[derive(Debug, Default, PartialEq)]
struct Context {
    /// The services of Gateways, by their own names.
    services: Vec<(Arc<str>, ServiceId)>,
    authentications: Authentications,
    listeners: Vec<Place>,
}

/// A listener of a Gateway.
#[derive(Debug, PartialEq)]
struct Place {
    /// The listener of Weir.
    id: ListenerId,
    listener: ir::ListenerId,
    port: u16,
    protocol: ir::Protocol,
    host: Option<HostPattern>,
    /// Whether the Gateway has a certificate for servers.
    presents: bool,
}

/// What routes were made from: the address of the attached route, or 0 for the end of the listener; and the listener's
/// position in the context.
type Source = (usize, usize);

#[derive(Debug)]
struct Made {
    /// Keeps the address from being used for another one.
    _attached: Option<Arc<AttachedRoute>>,
    routes: Vec<Arc<Route>>,
    /// The last update that needed them.
    round: u64,
}

impl Kept {
    /// Changes them to those of these ports, and returns them in order of precedence.
    ///
    /// Of equally specific rules, that of the older route is tried first, and within a route the earlier one. Of rules
    /// with equal conditions only that one is returned.
    pub(super) fn update(
        &mut self,
        ports: &[Port<'_>],
        (services, authentications): (Services<'_>, &Authentications),
    ) -> Vec<Arc<Route>> {
        let context = Context {
            services: services.all().collect(),
            authentications: authentications.clone(),
            listeners: ports.iter().flat_map(places).collect(),
        };
        if self.context != context {
            *self = Kept { context, ..Kept::default() };
        }
        self.round += 1;
        let mut new: Vec<Arc<Route>> = Vec::new();
        let mut count = 0;
        let listeners =
            ports.iter().flat_map(|port| port.listeners.iter().map(move |one| (port, one)));
        for (position, (port, listener)) in listeners.enumerate() {
            let mut keep = |attached: Option<&Arc<AttachedRoute>>| {
                let address = attached.map_or(0, |attached| Arc::as_ptr(attached) as usize);
                let source = (address, position);
                count += 1;
                let made = self.made.entry(source).or_insert_with(|| {
                    let routes = match attached {
                        Some(attached) => {
                            of_attached(attached, port, listener, (services, authentications))
                        }
                        None => end(port, listener).into_iter().collect(),
                    };
                    let routes: Vec<_> = routes.into_iter().map(Arc::new).collect();
                    new.extend_from_slice(&routes);
                    Made { _attached: attached.cloned(), routes, round: 0 }
                });
                made.round = self.round;
            };
            listener.routes.iter().map(Some).for_each(&mut keep);
            keep(None);
        }
        if self.made.len() > count {
            self.remove_old();
        }
        if new.len() < SORTED_IN_MIN {
            for route in new {
                let is_before = |one: &Arc<Route>| one.matches.precedence(&route.matches).is_lt();
                self.sorted.insert(self.sorted.partition_point(is_before), route);
            }
        } else {
            self.sorted.append(&mut new);
            self.sorted.sort_by(|one, other| one.matches.precedence(&other.matches));
        }
        let mut known: HashSet<Conditions<'_>> = HashSet::default();
        known.reserve(self.sorted.len());
        let first = self.sorted.iter().filter(|route| known.insert(conditions(&route.matches)));
        first.cloned().collect()
    }

    /// Removes what this round has not made use of.
    fn remove_old(&mut self) {
        let mut gone: HashSet<*const Route> = HashSet::default();
        self.made.retain(|_, made| {
            let stays = made.round == self.round;
            if !stays {
                gone.extend(made.routes.iter().map(Arc::as_ptr));
            }
            stays
        });
        self.sorted.retain(|route| !gone.contains(&Arc::as_ptr(route)));
    }
}

fn places<'a>(port: &'a Port<'_>) -> impl Iterator<Item = Place> + 'a {
    port.listeners.iter().map(|listener| Place {
        id: port.id,
        listener: listener.id.clone(),
        port: port.number,
        protocol: listener.protocol,
        host: listener.host.clone(),
        presents: port.gateway.client_certificate.is_some(),
    })
}

/// All conditions of a route.
type Conditions<'a> = (
    &'a [ListenerId],
    Option<&'a HostPattern>,
    &'a PathMatch,
    Option<&'a str>,
    &'a [FieldMatch],
    &'a [FieldMatch],
    &'a [Condition],
);

fn conditions(of: &RouteMatch) -> Conditions<'_> {
    let RouteMatch { listeners, host, path, method, fields, query, conditions, age: _ } = of;
    (listeners, host.as_ref(), path, method.as_deref(), fields, query, conditions)
}

/// Returns the routes for a route at a listener.
fn of_attached(
    attached: &AttachedRoute,
    port: &Port<'_>,
    listener: &ir::Listener,
    known: (Services<'_>, &Authentications),
) -> Vec<Route> {
    let own = listener.host.as_ref();
    let is_own = |host: &&Option<HostPattern>| {
        let hosts = port.listeners.iter().map(|listener| listener.host.as_ref());
        !isolation::is_of_another(host.as_ref(), own, hosts)
    };
    let hosts = attached.hosts.iter().filter(is_own);
    let routes = hosts.flat_map(|host| {
        of_route(&attached.route, (host.as_ref(), port.id), |rule, at| {
            rule::action(rule, at, (port.gateway, port.number, listener.protocol), known)
        })
    });
    routes.collect()
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
    let mut positions = 0..;
    rules.iter().flat_map(move |one| {
        let rule::Actions { action, filters } = action(one, route);
        let name = match &one.name {
            Some(name) => format!("{}/{name}", route.key),
            None => format!("{}/{}", route.key, one.index),
        };
        let written_at =
            WrittenAt::outside_files(format!("{} {}", route.kind.name(), route.key).into());
        let name: Arc<str> = name.into();
        let ages = positions.by_ref().map(|position| RouteAge {
            rank: route.rank,
            object: Arc::clone(&route.age),
            position,
        });
        let matches: Vec<_> = one.matches.iter().zip(ages).collect();
        matches.into_iter().map(move |(matches, age)| Route {
            name: Arc::clone(&name),
            matches: RouteMatch {
                listeners: vec![id],
                host: host.cloned(),
                age: Some(age),
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

/// Returns the rule for requests that none of a listener's routes matches, if a less specific listener would get them.
fn end(port: &Port<'_>, listener: &ir::Listener) -> Option<Route> {
    let hosts = port.listeners.iter().map(|listener| listener.host.as_ref());
    isolation::needs_end(listener.host.as_ref(), hosts).then(|| Route {
        name: format!("{}/none", listener.id).into(),
        matches: RouteMatch {
            listeners: vec![port.id],
            host: listener.host.clone(),
            ..RouteMatch::any()
        },
        action: Action::Deny(Denial::no_route()),
        filters: Vec::new(),
        maintenance: None,
        error_pages: Vec::new(),
        written_at: WrittenAt::outside_files(format!("listener {}", listener.id).into()),
    })
}
