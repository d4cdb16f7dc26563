//! Routes at the listeners of Gateways → routes of Weir.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashSet};
use model::{
    Action, Condition, Denial, FieldMatch, HostPattern, ListenerId, PathMatch, Route, RouteAge,
    RouteMatch, ServiceId, WrittenAt, differing,
};

use super::authentication::Authentications;
use super::service::Services;
use super::{isolation, rule};
use crate::ir::{self, AttachedRoute, Gateway, Rules};

/// Fewer new routes than this are put in their places one by one, and fewer gone ones are removed one by one.
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
    /// What the routes of each listener were made from, in the order of the context.
    attached: Vec<Arc<Vec<Arc<AttachedRoute>>>>,
    made: HashMap<Source, Vec<Arc<Route>>>,
    /// In order of precedence, with those that are never tried.
    sorted: Vec<Sorted>,
    /// With a random seed, since users of a cluster control the texts that are hashed.
    hash: RandomState,
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

/// What routes were made from: the address of the attached route, which `Kept::attached` keeps from being used for another
/// one, and the listener's position in the context.
type Source = (*const AttachedRoute, usize);

/// A route among all of them.
#[derive(Clone, Debug)]
struct Sorted {
    /// The hash of its conditions.
    hash: u64,
    route: Arc<Route>,
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
        let listeners =
            || ports.iter().flat_map(|port| port.listeners.iter().map(move |one| (port, one)));
        let mut new: Vec<Arc<Route>> = Vec::new();
        if self.context != context {
            *self = Kept { context, ..Kept::default() };
            self.attached.resize_with(listeners().count(), Arc::default);
            let ends = listeners().filter_map(|(port, listener)| end(port, listener));
            new.extend(ends.map(Arc::new));
        }
        let mut gone: Vec<Arc<Route>> = Vec::new();
        for (position, (port, listener)) in listeners().enumerate() {
            let before = std::mem::replace(&mut self.attached[position], listener.routes.clone());
            let differing = differing(&before, &listener.routes);
            for attached in differing.gone {
                gone.extend(
                    self.made.remove(&(Arc::as_ptr(attached), position)).into_iter().flatten(),
                );
            }
            for attached in differing.new {
                let known = (services, authentications);
                let routes = of_attached(attached, port, listener, known);
                let routes: Vec<Arc<Route>> = routes.into_iter().map(Arc::new).collect();
                new.extend_from_slice(&routes);
                self.made.insert((Arc::as_ptr(attached), position), routes);
            }
        }
        self.remove(&gone);
        self.add(new);
        let mut known: HashSet<Known<'_>> = HashSet::default();
        known.reserve(self.sorted.len());
        let first = self.sorted.iter().filter(|one| known.insert(Known(one)));
        first.map(|one| Arc::clone(&one.route)).collect()
    }

    /// Puts routes in their places.
    fn add(&mut self, new: Vec<Arc<Route>>) {
        let hash = self.hash.clone();
        let new = new.into_iter().map(|route| {
            let hash = hash.hash_one(conditions(&route.matches));
            Sorted { hash, route }
        });
        if new.len() < SORTED_IN_MIN {
            for one in new {
                self.sorted.insert(self.place(&one.route), one);
            }
        } else {
            self.sorted.extend(new);
            self.sorted.sort_by(|a, b| a.route.matches.precedence(&b.route.matches));
        }
    }

    fn remove(&mut self, gone: &[Arc<Route>]) {
        if gone.len() >= SORTED_IN_MIN {
            let gone: HashSet<*const Route> = gone.iter().map(Arc::as_ptr).collect();
            return self.sorted.retain(|one| !gone.contains(&Arc::as_ptr(&one.route)));
        }
        for route in gone {
            let start = self.place(route);
            let place = self.sorted[start..].iter().position(|one| Arc::ptr_eq(&one.route, route));
            if let Some(place) = place {
                self.sorted.remove(start + place);
            }
        }
    }

    /// Returns the first place where a route may be.
    fn place(&self, route: &Route) -> usize {
        let is_before = |one: &Sorted| one.route.matches.precedence(&route.matches).is_lt();
        self.sorted.partition_point(is_before)
    }
}

/// A route as its conditions.
struct Known<'a>(&'a Sorted);

impl Hash for Known<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialEq for Known<'_> {
    fn eq(&self, other: &Known<'_>) -> bool {
        self.0.hash == other.0.hash
            && conditions(&self.0.route.matches) == conditions(&other.0.route.matches)
    }
}

impl Eq for Known<'_> {}

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
    // No route here has a priority.
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
    } = of;
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
