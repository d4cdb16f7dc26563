//! Finds the route of a request.
//!
//! A [`Router`] finds the same route as trying the sorted list from the top, in a number of steps
//! that depends on the request and the number of different priorities, and not on the number of routes. Precedence is
//! [`model::RouteMatch::precedence`]; the order of the routes handed in does not matter. What
//! happens to the request afterwards is not decided here, except for [`split`], which draws the
//! branch of a weighted forward, and [`split_tcp`], which does so for a connection.
//!
//! How it searches: hosts are a trie of labels from the right, paths a trie of segments from the
//! left (`paths`, one for each host pattern), each edge one probe of a hash index. The walk descends as
//! far as the request matches; then the rules found on the way are tried from the deepest up, which
//! is most specific first. When no rule of the best host pattern matches, the next less specific
//! pattern is tried. Rules of equal host and path are grouped by their kinds of conditions
//! (`rules`). All this is done for the highest priority first, and for the next one if no rule matches. Conditions other than exact values (`model::Condition`) are evaluated one
//! after the other (`condition`).
//!
//! The rules of a host pattern are found by their order among each other, not by their positions in the
//! configuration. So the next router shares those of all patterns whose routes stay: a change to one of
//! thousands of routes costs little more than a look at each.
//!
//! Hosts are compared without regard to case and to one trailing dot. Paths are compared in
//! canonical form ([`model::path`]), so that needless percent-encoding makes no difference; a path
//! with dot segments matches no rule at all, since servers may resolve it differently. The
//! asterisk-form target of OPTIONS matches rules without a path condition.

mod condition;
mod explain;
mod index;
mod paths;
mod rules;
mod trie;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::Arc;

use model::{
    CertificateNames, ConditionOn, Forward, HostPattern, ListenerId, Route, RouteMatch, ServiceId,
    Split, TcpSplit,
};

pub use explain::Unmet;

use paths::Paths;
use trie::{NodeId, Trie};

/// The parts of a request head that rules can match.
pub trait RequestView {
    /// Returns the method as sent.
    fn method(&self) -> &str;
    /// Returns the requested host, without a port; empty if there is none.
    fn host(&self) -> &str;
    /// Returns the path as sent, without the query.
    fn path(&self) -> &str;
    /// Returns the query as sent, without its `?`.
    fn query(&self) -> Option<&str>;
    /// Returns the value of the first field of this name (in lower case).
    fn field(&self, name: &str) -> Option<&[u8]>;
    /// Returns the values of all fields of this name (in lower case).
    fn field_values(&self, name: &str) -> impl Iterator<Item = &[u8]>;
    /// Returns the names of all fields, in any case; one that occurs twice may be returned twice.
    fn field_names(&self) -> impl Iterator<Item = &[u8]>;
    /// Returns the values of all cookies of this name, as sent.
    fn cookie_values(&self, name: &str) -> impl Iterator<Item = &[u8]>;
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The listener that accepted its connection.
    pub listener: ListenerId,
    /// The client's address; `None`: unknown, and no condition on it holds.
    pub client: Option<IpAddr>,
    /// The names in the client's verified certificate, if it has presented one.
    pub certificate: Option<&'a CertificateNames>,
}

/// A request as the rules see it.
struct Subject<'a, R> {
    head: &'a R,
    arrival: &'a Arrival<'a>,
    /// The path in canonical form, if that differs and has been needed.
    canonical: OnceCell<String>,
}

impl<R: RequestView> Subject<'_, R> {
    /// Returns the path in canonical form.
    fn canonical_path(&self) -> &str {
        let path = self.head.path();
        if model::path::is_canonical(path) {
            return path;
        }
        self.canonical.get_or_init(|| model::path::canonical(path))
    }
}

impl RequestView for wire::http1::RequestHead {
    fn method(&self) -> &str {
        self.method()
    }
    fn host(&self) -> &str {
        self.host()
    }
    fn path(&self) -> &str {
        self.path()
    }
    fn query(&self) -> Option<&str> {
        self.query()
    }
    fn field(&self, name: &str) -> Option<&[u8]> {
        self.field(name)
    }
    fn field_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let is_named = move |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        self.fields().filter(move |field| is_named(field.name)).map(|field| field.value)
    }
    fn field_names(&self) -> impl Iterator<Item = &[u8]> {
        self.fields().map(|field| field.name)
    }
    fn cookie_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.cookies(name)
    }
}

/// An index over a configuration's routes. Immutable; built once per configuration.
#[derive(Debug)]
pub struct Router {
    /// The host patterns of each priority, the highest first. Most configurations have one.
    priorities: Vec<Hosts>,
    /// The rules of each host pattern of each priority.
    of_hosts: Vec<OfHost>,
    /// The positions of the routes of each of these, in order of precedence.
    positions: Vec<u32>,
    /// A rule has a condition on names in client certificates.
    reads_certificates: bool,
}

/// Numbers the host patterns of all priorities, in order of their first routes.
#[derive(Clone, Copy, Debug)]
struct HostId(u32);

/// The host patterns of one priority.
#[derive(Debug)]
struct Hosts {
    priority: u32,
    /// Labels of host patterns, the last label first, under one root.
    named: Trie<HostRules>,
    root: NodeId,
    /// The rules without a host.
    any: Option<HostId>,
}

/// The host patterns at a node of the trie.
#[derive(Debug, Default)]
struct HostRules {
    exact: Option<HostId>,
    wildcard: Option<HostId>,
}

/// The rules of a host pattern.
#[derive(Debug)]
struct OfHost {
    paths: Arc<Paths>,
    /// Where the positions of its routes begin.
    first: u32,
}

impl Router {
    /// Indexes `routes`. [`Router::find`] returns positions in this slice. Rules whose path begins
    /// with something other than `/` (and is not an empty prefix) match nothing.
    pub fn new(routes: &[impl Borrow<Route>]) -> Router {
        let matches: Vec<&RouteMatch> =
            routes.iter().map(|route| &route.borrow().matches).collect();
        Router::of(&matches, |_, _| None)
    }

    /// As [`Router::new`], and shares with the router of `routes_before` what is for the same routes.
    pub fn after(before: &Router, routes_before: &[Arc<Route>], routes: &[Arc<Route>]) -> Router {
        let matches: Vec<&RouteMatch> = routes.iter().map(|route| &route.matches).collect();
        let is_same = |old: &u32, new: &u32| {
            Arc::ptr_eq(&routes_before[*old as usize], &routes[*new as usize])
        };
        // Most patterns stay, in the same order.
        let mut next = 0;
        Router::of(&matches, |first, positions| {
            let is_at = |at: usize| {
                let old = before.positions_of(at)?;
                let mut pairs = old.iter().zip(positions);
                let is_same =
                    old.len() == positions.len() && pairs.all(|(old, new)| is_same(old, new));
                is_same.then_some(at)
            };
            let found = is_at(next).or_else(|| is_at(before.host(first)?.0 as usize))?;
            next = found + 1;
            Some(Arc::clone(&before.of_hosts[found].paths))
        })
    }

    /// Indexes routes by their conditions. `known` returns what is known of the routes of a priority and host pattern, of
    /// which it gets the first route and the positions.
    fn of(
        routes: &[&RouteMatch],
        mut known: impl FnMut(&RouteMatch, &[u32]) -> Option<Arc<Paths>>,
    ) -> Router {
        let is_on_certificate = |route: &&RouteMatch| {
            let mut conditions = route.conditions.iter();
            conditions.any(|condition| matches!(condition.on, ConditionOn::Certificate(_)))
        };
        let mut router = Router {
            priorities: priorities(routes).into_iter().map(Hosts::new).collect(),
            of_hosts: Vec::new(),
            positions: vec![0; routes.len()],
            reads_certificates: routes.iter().any(is_on_certificate),
        };
        // A configuration's size keeps all of these numbers far below 2^32.
        let mut counts: Vec<u32> = Vec::new();
        let of_routes: Vec<HostId> = routes
            .iter()
            .map(|route| {
                let id = router.host_of(route, HostId(counts.len() as u32));
                if id.0 as usize == counts.len() {
                    counts.push(0);
                }
                counts[id.0 as usize] += 1;
                id
            })
            .collect();
        router.priorities.iter_mut().for_each(|hosts| hosts.named.shrink());
        // Where the next route of each pattern belongs.
        let mut first = 0;
        let mut places: Vec<u32> = Vec::with_capacity(counts.len());
        for count in &counts {
            places.push(first);
            first += count;
        }
        for (position, id) in (0..).zip(of_routes) {
            let place = &mut places[id.0 as usize];
            router.positions[*place as usize] = position;
            *place += 1;
        }
        // Each place is now where its pattern's positions end.
        for (end, count) in places.into_iter().zip(counts) {
            let first = end - count;
            let positions = &mut router.positions[first as usize..end as usize];
            let paths = known(routes[positions[0] as usize], positions)
                .unwrap_or_else(|| Arc::new(Paths::new(routes, positions)));
            router.of_hosts.push(OfHost { paths, first });
        }
        router
    }

    /// Returns the positions of the routes of a host pattern.
    fn positions_of(&self, at: usize) -> Option<&[u32]> {
        let first = self.of_hosts.get(at)?.first as usize;
        let end = self.of_hosts.get(at + 1).map(|next| next.first as usize);
        self.positions.get(first..end.unwrap_or(self.positions.len()))
    }

    /// Returns the number of a route's host pattern.
    fn host(&self, route: &RouteMatch) -> Option<HostId> {
        let hosts = self.priorities.get(self.rank_of(route).ok()?)?;
        let node = |name: &str| {
            let (node, is_whole) = hosts.named.walk(hosts.root, labels(name));
            is_whole.then(|| hosts.named.value(node))
        };
        match &route.host {
            None => hosts.any,
            Some(HostPattern::Exact(name)) => node(name)?.exact,
            Some(HostPattern::Wildcard(suffix)) => node(suffix)?.wildcard,
        }
    }

    /// Returns the number of a route's host pattern, `next` if it is new.
    fn host_of(&mut self, route: &RouteMatch, next: HostId) -> HostId {
        let (Ok(rank) | Err(rank)) = self.rank_of(route);
        let Hosts { named, root, any, .. } = &mut self.priorities[rank];
        let id = match &route.host {
            None => any,
            Some(HostPattern::Exact(name)) => {
                let node = named.insert(*root, labels(name));
                &mut named.value_mut(node).exact
            }
            Some(HostPattern::Wildcard(suffix)) => {
                let node = named.insert(*root, labels(suffix));
                &mut named.value_mut(node).wildcard
            }
        };
        *id.get_or_insert(next)
    }

    /// Returns where the priority of a route is among all of them, or would be.
    fn rank_of(&self, route: &RouteMatch) -> Result<usize, usize> {
        self.priorities.binary_search_by(|hosts| route.priority.cmp(&hosts.priority))
    }

    /// Returns the position of the route for a request; `None` if no route matches, or if the path
    /// contains dot segments ([`model::path::has_dot_segments`]).
    pub fn find<R: RequestView>(&self, head: &R, arrival: &Arrival<'_>) -> Option<usize> {
        let path = head.path();
        if model::path::has_dot_segments(path) {
            return None;
        }
        let subject = Subject { head, arrival, canonical: OnceCell::new() };
        let of_priorities = self.priorities.iter();
        of_priorities.flat_map(|hosts| hosts.covering(head.host())).find_map(|host| {
            let OfHost { paths, first } = &self.of_hosts[host.0 as usize];
            let found = paths.find(path, &subject)?;
            Some(self.positions[*first as usize + found] as usize)
        })
    }

    /// Returns whether a rule has a condition on names in client certificates.
    pub fn reads_certificates(&self) -> bool {
        self.reads_certificates
    }
}

impl Hosts {
    fn new(priority: u32) -> Hosts {
        let mut named = Trie::default();
        let root = named.add_root();
        Hosts { priority, named, root, any: None }
    }

    /// Returns the host patterns that cover a host, the most specific first.
    fn covering(&self, host: &str) -> impl Iterator<Item = HostId> {
        let (deepest, whole) = self.named.walk(self.root, labels(host));
        let exact = if whole { self.named.value(deepest).exact } else { None };
        // A wildcard stands for at least one label: the whole host's own node does not count.
        let mut above = if whole { self.named.parent(deepest) } else { Some(deepest) };
        let wildcards = std::iter::from_fn(move || {
            let node = above?;
            above = self.named.parent(node);
            Some(self.named.value(node).wildcard)
        });
        exact.into_iter().chain(wildcards.flatten()).chain(self.any)
    }
}

/// Returns the priorities of routes, each once, the highest first.
fn priorities(routes: &[&RouteMatch]) -> Vec<u32> {
    let mut all: Vec<u32> = routes.iter().map(|route| route.priority).collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all.dedup();
    all
}

/// Returns the branch for a request: drawn by weight if there are several.
pub fn split<'a>(forward: &'a Forward, rng: &mut fastrand::Rng) -> &'a Split {
    // `to` is never empty, and its weights are not all 0: `config` checks this.
    match forward.to.as_slice() {
        [only] => only,
        several => &several[draw(several.iter().map(|branch| branch.weight), rng).unwrap_or(0)],
    }
}

/// Returns the service for a connection: drawn by weight if there are several. `None`: the connection is to be closed.
pub fn split_tcp(split: &TcpSplit, rng: &mut fastrand::Rng) -> Option<ServiceId> {
    let branches = split.branches.as_slice();
    branches[draw(branches.iter().map(|branch| branch.weight), rng)?].to
}

/// Draws an index by weight; `None`: all weights are 0.
fn draw(weights: impl Iterator<Item = u32> + Clone, rng: &mut fastrand::Rng) -> Option<usize> {
    let total: u64 = weights.clone().map(u64::from).sum();
    if total == 0 {
        return None;
    }
    let mut drawn = rng.u64(0..total);
    for (index, weight) in weights.map(u64::from).enumerate() {
        if drawn < weight {
            return Some(index);
        }
        drawn -= weight;
    }
    None
}

/// Returns a host's labels in lower case, the last first; without the empty one of a fully
/// qualified name.
fn labels(host: &str) -> impl Iterator<Item: Iterator<Item = u8> + Clone> {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.rsplit('.').map(|label| label.bytes().map(|byte| byte.to_ascii_lowercase()))
}
