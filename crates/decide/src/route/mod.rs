//! Finds the route of a request.
//!
//! A [`Router`] finds the same route as trying the sorted list from the top, in a number of steps
//! that depends on the request and not on the number of routes. Precedence is
//! [`model::RouteMatch::precedence`]; the order of the routes handed in does not matter. What
//! happens to the request afterwards is not decided here, except for [`split`], which draws the
//! branch of a weighted forward, and [`split_tcp`], which does so for a connection.
//!
//! How it searches: hosts are a trie of labels from the right, paths a trie of segments from the
//! left (one below each host pattern), each edge one probe of a hash index. The walk descends as
//! far as the request matches; then the rules found on the way are tried from the deepest up, which
//! is most specific first. When no rule of the best host pattern matches, the next less specific
//! pattern is tried. Rules of equal host and path are grouped by their kinds of conditions
//! (`rules`). Conditions other than exact values (`model::Condition`) are evaluated one
//! after the other (`condition`).
//!
//! Hosts are compared without regard to case and to one trailing dot. Paths are compared in
//! canonical form ([`model::path`]), so that needless percent-encoding makes no difference; a path
//! with dot segments matches no rule at all, since servers may resolve it differently. The
//! asterisk-form target of OPTIONS matches rules without a path condition.

mod condition;
mod explain;
mod index;
mod rules;
mod trie;

#[cfg(test)]
mod tests;

use std::borrow::{Borrow, Cow};
use std::cell::OnceCell;
use std::net::IpAddr;

use model::{
    CertificateNames, ConditionOn, Forward, HostPattern, ListenerId, PathMatch, Route, RouteMatch,
    ServiceId, Split, TcpSplit,
};

pub use explain::Unmet;

use rules::RuleList;
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
    /// Labels of host patterns, the last label first, under one root.
    hosts: Trie<HostRules>,
    hosts_root: NodeId,
    /// The root of the paths of rules without a host.
    any_host: Option<NodeId>,
    /// Segments of paths, with a separate root per host pattern.
    paths: Trie<PathRules>,
    /// A rule has a condition on names in client certificates.
    reads_certificates: bool,
}

/// The path roots that belong to a node of the host trie.
#[derive(Debug, Default)]
struct HostRules {
    exact: Option<NodeId>,
    wildcard: Option<NodeId>,
}

/// The rules at a node of the path trie.
#[derive(Debug, Default)]
struct PathRules {
    exact: RuleList,
    prefix: RuleList,
}

impl Router {
    /// Indexes `routes`. [`Router::find`] returns positions in this slice. Rules whose path begins
    /// with something other than `/` (and is not an empty prefix) match nothing.
    pub fn new(routes: &[impl Borrow<Route>]) -> Router {
        let matches: Vec<&RouteMatch> =
            routes.iter().map(|route| &route.borrow().matches).collect();
        Router::of(&matches)
    }

    /// As [`Router::new`], from the conditions of routes.
    fn of(routes: &[&RouteMatch]) -> Router {
        let mut hosts = Trie::default();
        let hosts_root = hosts.add_root();
        let is_on_certificate = |route: &&RouteMatch| {
            let mut conditions = route.conditions.iter();
            conditions.any(|condition| matches!(condition.on, ConditionOn::Certificate(_)))
        };
        let mut router = Router {
            hosts,
            hosts_root,
            any_host: None,
            paths: Trie::default(),
            reads_certificates: routes.iter().any(is_on_certificate),
        };
        let mut sorted: Vec<(Cow<'_, RouteMatch>, usize)> = routes
            .iter()
            .enumerate()
            .map(|(position, route)| (with_canonical_path(route), position))
            .collect();
        // Rules of one host and path need not be adjacent in this order, but their relative order
        // is right, which is all that a rule list relies on.
        sorted.sort_by(|(one, _), (other, _)| one.precedence(other));
        for (matches, position) in &sorted {
            let root = router.root_of(matches.host.as_ref());
            router.add(root, matches, *position);
        }
        router.hosts.shrink();
        router.paths.shrink();
        router
    }

    /// Returns the position of the route for a request; `None` if no route matches, or if the path
    /// contains dot segments ([`model::path::has_dot_segments`]).
    pub fn find<R: RequestView>(&self, head: &R, arrival: &Arrival<'_>) -> Option<usize> {
        let path = head.path();
        if model::path::has_dot_segments(path) {
            return None;
        }
        let subject = Subject { head, arrival, canonical: OnceCell::new() };
        let (deepest, whole) = self.hosts.walk(self.hosts_root, labels(head.host()));
        let exact = if whole { self.hosts.value(deepest).exact } else { None };
        // A wildcard stands for at least one label: the whole host's own node does not count.
        let mut above = if whole { self.hosts.parent(deepest) } else { Some(deepest) };
        let wildcards = std::iter::from_fn(|| {
            let node = above?;
            above = self.hosts.parent(node);
            Some(self.hosts.value(node).wildcard)
        });
        exact
            .into_iter()
            .chain(wildcards.flatten())
            .chain(self.any_host)
            .find_map(|root| self.find_by_path(root, path, &subject))
    }

    /// Returns whether a rule has a condition on names in client certificates.
    pub fn reads_certificates(&self) -> bool {
        self.reads_certificates
    }

    /// Returns the matching rule among those of one host pattern.
    fn find_by_path<R: RequestView>(
        &self,
        root: NodeId,
        path: &str,
        subject: &Subject<'_, R>,
    ) -> Option<usize> {
        let relative = match path.strip_prefix('/') {
            Some(relative) if !self.paths.is_leaf(root) => relative,
            _ => return self.paths.value(root).prefix.find(subject),
        };
        // Most paths are already canonical, and then cheaper to walk.
        let (deepest, whole) = if model::path::is_canonical(relative) {
            self.paths.walk(root, relative.split('/').map(str::bytes))
        } else {
            self.paths.walk(root, segments(relative))
        };
        if whole && let Some(found) = self.paths.value(deepest).exact.find(subject) {
            return Some(found);
        }
        let mut next = Some(deepest);
        while let Some(node) = next {
            if let Some(found) = self.paths.value(node).prefix.find(subject) {
                return Some(found);
            }
            next = self.paths.parent(node);
        }
        None
    }

    /// Returns the root of a host pattern's paths, creating it if needed.
    fn root_of(&mut self, host: Option<&HostPattern>) -> NodeId {
        let root = match host {
            None => &mut self.any_host,
            Some(HostPattern::Exact(name)) => {
                let node = self.hosts.insert(self.hosts_root, labels(name));
                &mut self.hosts.value_mut(node).exact
            }
            Some(HostPattern::Wildcard(suffix)) => {
                let node = self.hosts.insert(self.hosts_root, labels(suffix));
                &mut self.hosts.value_mut(node).wildcard
            }
        };
        *root.get_or_insert_with(|| self.paths.add_root())
    }

    /// Adds a rule under `root`; rules must be added in order of precedence.
    fn add(&mut self, root: NodeId, matches: &RouteMatch, position: usize) {
        let (path, is_prefix) = match &matches.path {
            PathMatch::Prefix(path) => (path, true),
            PathMatch::Exact(path) => (path, false),
        };
        let node = match path.strip_prefix('/') {
            Some(relative) => self.paths.insert(root, segments(relative)),
            None if is_prefix && path.is_empty() => root,
            None => return,
        };
        let rules = self.paths.value_mut(node);
        let list = if is_prefix { &mut rules.prefix } else { &mut rules.exact };
        list.push(matches, position);
    }
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

fn with_canonical_path(matches: &RouteMatch) -> Cow<'_, RouteMatch> {
    let (PathMatch::Prefix(path) | PathMatch::Exact(path)) = &matches.path;
    if model::path::is_canonical(path) {
        return Cow::Borrowed(matches);
    }
    let canonical = model::path::canonical(path);
    let path = match &matches.path {
        PathMatch::Prefix(_) => PathMatch::Prefix(canonical),
        PathMatch::Exact(_) => PathMatch::Exact(canonical),
    };
    Cow::Owned(RouteMatch { path, ..matches.clone() })
}

/// Returns a host's labels in lower case, the last first; without the empty one of a fully
/// qualified name.
fn labels(host: &str) -> impl Iterator<Item: Iterator<Item = u8> + Clone> {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.rsplit('.').map(|label| label.bytes().map(|byte| byte.to_ascii_lowercase()))
}

/// Returns the segments of a path without its leading `/`, in canonical form.
fn segments(relative: &str) -> impl Iterator<Item: Iterator<Item = u8> + Clone> {
    relative.split('/').map(model::path::canonical_bytes)
}
