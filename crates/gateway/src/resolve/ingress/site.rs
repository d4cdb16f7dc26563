//! The hosts of a class: which Ingress has which path of a host. Of several, the oldest has it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::{Denial, HostPattern};

use super::expand::{self, CanaryBackend, Within};
use super::rules::{Act, HostRules, PathRule, Resolved, path_key};
use crate::ir::request::PathCondition;
use crate::ir::{Route, RouteKind, Rules};
use crate::objects::Key;
use crate::resolve::status::{Notice, Problem};

/// A path that an Ingress has.
#[derive(Debug)]
struct Claim<'r> {
    owner: &'r Resolved,
    host: &'r HostRules,
    path: &'r PathRule,
    /// Another Ingress whose backend gets a part of the requests.
    canary: Option<(Key, CanaryBackend<'r>)>,
}

/// A host.
#[derive(Debug)]
pub struct Site<'r> {
    /// The host. `None`: any.
    pub host: Option<HostPattern>,
    /// The oldest Ingress with the host.
    first: (&'r Resolved, &'r HostRules),
    claims: Vec<Claim<'r>>,
    known: HashMap<String, usize>,
    /// Where requests go that no path matches.
    default: Option<(&'r Resolved, &'r HostRules, &'r PathRule)>,
}

/// The hosts of a class.
#[derive(Debug, Default)]
pub struct Sites<'r> {
    /// In order of the age of their Ingresses.
    pub all: Vec<Site<'r>>,
    at: HashMap<Option<HostPattern>, usize>,
}

/// The paths that an Ingress does not get: the first one as text, the Ingress that has it, and how many there are.
type Lost = BTreeMap<Key, (String, Key, usize)>;

impl<'r> Sites<'r> {
    /// Puts the hosts of a class's Ingresses together, which are in order of age. Adds notices about what is lost.
    pub fn new(members: &[&'r Resolved], notices: &mut Vec<Notice>) -> Sites<'r> {
        let mut sites = Sites::default();
        let mut lost = Lost::new();
        let mains = || members.iter().copied().filter(|one| one.terms.canary.is_none());
        for owner in mains() {
            for host in owner.hosts.iter().filter(|host| !host.is_other_name) {
                sites.add(owner, host, &mut lost);
            }
        }
        for owner in mains() {
            for host in owner.hosts.iter().filter(|host| host.is_other_name) {
                // The host of an Ingress precedes the other name of another host.
                if !sites.at.contains_key(&host.host) {
                    sites.add(owner, host, &mut lost);
                }
            }
        }
        for owner in members.iter().copied() {
            if let Some((text, winner, count)) = lost.get(&owner.metadata.key()) {
                let more = match count {
                    1 => String::new(),
                    count => format!(" (and {} more)", count - 1),
                };
                let message = format!(
                    "Ingress {winner} is older and has the same host and path: {text}{more}. Its \
                     rules are served instead of this Ingress's. Change the host or path of either."
                );
                let problem = Problem::new("Conflict", message);
                notices.push(Notice::new("Ingress", &owner.metadata, problem));
            }
        }
        for owner in members.iter().copied() {
            sites.add_canary(owner, notices);
        }
        sites
    }

    /// Returns the position of exactly this host.
    pub fn of(&self, host: Option<&HostPattern>) -> Option<usize> {
        self.at.get(&host.cloned()).copied()
    }

    fn add(&mut self, owner: &'r Resolved, host: &'r HostRules, lost: &mut Lost) {
        let at = *self.at.entry(host.host.clone()).or_insert(self.all.len());
        if at == self.all.len() {
            self.all.push(Site {
                host: host.host.clone(),
                first: (owner, host),
                claims: Vec::new(),
                known: HashMap::new(),
                default: None,
            });
        }
        let site = &mut self.all[at];
        for path in &host.paths {
            let key = path_key(&path.path);
            if let Some(winner) = site.known.get(&key) {
                let winner = site.claims[*winner].owner.metadata.key();
                let text =
                    || format!("{} {}", shown_host(host.host.as_ref()), shown_path(&path.path));
                let entry = lost.entry(owner.metadata.key());
                entry.or_insert_with(|| (text(), winner, 0)).2 += 1;
                continue;
            }
            site.known.insert(key, site.claims.len());
            site.claims.push(Claim { owner, host, path, canary: None });
        }
        if let (None, Some(default)) = (site.default, &owner.default) {
            site.default = Some((owner, host, default));
        }
    }

    fn add_canary(&mut self, owner: &'r Resolved, notices: &mut Vec<Notice>) {
        let Some(canary) = &owner.terms.canary else { return };
        if owner.terms.is_refused {
            return;
        }
        let mut without = None;
        for host in &owner.hosts {
            for path in &host.paths {
                let site = self.at.get(&host.host).map(|at| &mut self.all[*at]);
                let claim = site.and_then(|site| {
                    let at = *site.known.get(&path_key(&path.path))?;
                    Some(&mut site.claims[at])
                });
                let Act::Forward(port, _) = &path.act else { continue };
                let why = match claim {
                    None => "no other Ingress has it".to_owned(),
                    Some(Claim { canary: Some((other, _)), .. }) => {
                        format!("Ingress {other} is an older canary for it")
                    }
                    Some(claim) if claim.owner.metadata.namespace != owner.metadata.namespace => {
                        format!(
                            "Ingress {} has it, in another namespace",
                            claim.owner.metadata.key()
                        )
                    }
                    Some(claim) => {
                        let upstream = &claim.owner.terms.upstream;
                        let port = upstream.canary_port(port);
                        claim.canary = Some((owner.metadata.key(), (canary, Arc::new(port))));
                        continue;
                    }
                };
                let text = format!("{} {}", shown_host(host.host.as_ref()), shown_path(&path.path));
                without.get_or_insert((text, why));
            }
        }
        if let Some((text, why)) = without {
            let message = format!(
                "The canary has no effect for {text}: {why}. A canary needs an Ingress without \
                 canary in its namespace with the same host and path, and is the only one for it."
            );
            let problem = Problem::new("CanaryWithoutEffect", message);
            notices.push(Notice::new("Ingress", &owner.metadata, problem));
        }
    }
}

impl Site<'_> {
    /// Returns whether requests without TLS have other rules than those with TLS.
    pub fn redirects(&self) -> bool {
        self.claims.iter().any(|claim| claim.host.to_tls)
            || self.default.is_some_and(|(_, host, _)| host.to_tls)
    }

    /// Returns the routes of the host. `has_tls`: for requests with TLS.
    ///
    /// Rules are tried in the order of the routes, unless one has a more specific path.
    pub fn routes(&self, has_tls: bool) -> Vec<Arc<Route>> {
        let is_expression = |claim: &&Claim<'_>| matches!(claim.path.path, PathCondition::Regex(_));
        let mut ordered: Vec<&Claim<'_>> = self.claims.iter().filter(is_expression).collect();
        // As in nginx. Of equally long ones, those of the older Ingress are first.
        ordered.sort_by_key(|claim| Reverse(claim.path.length));
        ordered.extend(self.claims.iter().filter(|claim| !is_expression(claim)));
        let mut routes = Vec::new();
        for group in ordered.chunk_by(|a, b| std::ptr::eq(a.owner, b.owner)) {
            let rules = group.iter().flat_map(|claim| {
                let within = Within {
                    host: claim.host.condition.as_ref(),
                    terms: &claim.owner.terms,
                    to_tls: claim.host.to_tls && !has_tls,
                    name: None,
                };
                expand::rules(claim.path, within, claim.canary.as_ref().map(|(_, canary)| canary))
            });
            routes.push(route(group[0].owner, routes.len(), rules.collect()));
        }
        routes.extend(self.end(has_tls, routes.len()));
        routes
    }

    /// Returns the route for requests that no path matches: they are not for wider hosts.
    fn end(&self, has_tls: bool, rank: usize) -> Option<Arc<Route>> {
        if self.known.contains_key("^/") {
            return None;
        }
        if let Some((owner, host, path)) = self.default {
            let within = Within {
                host: host.condition.as_ref(),
                terms: &owner.terms,
                to_tls: host.to_tls && !has_tls,
                name: Some("default"),
            };
            return Some(route(owner, rank, expand::rules(path, within, None)));
        }
        // Without a route, Weir answers 404 anyway.
        self.host.as_ref()?;
        let terms = super::terms::Terms::default();
        let (owner, host) = self.first;
        let condition = host.condition.as_ref();
        let within = Within { host: condition, terms: &terms, to_tls: false, name: Some("none") };
        let path = PathRule {
            index: 0,
            path: PathCondition::Prefix("/".to_owned()),
            length: 0,
            act: Act::Refuse(Denial::no_route()),
        };
        Some(route(owner, rank, expand::rules(&path, within, None)))
    }
}

fn route(owner: &Resolved, rank: usize, rules: Vec<crate::ir::request::RequestRule>) -> Arc<Route> {
    Arc::new(Route {
        kind: RouteKind::Ingress,
        key: owner.metadata.key(),
        rank: rank as u32,
        age: Arc::new(owner.metadata.age()),
        rules: Rules::Requests(rules),
    })
}

/// Returns a host for a message.
pub fn shown_host(host: Option<&HostPattern>) -> String {
    host.map_or_else(|| "any host".to_owned(), ToString::to_string)
}

fn shown_path(path: &PathCondition) -> String {
    let text = match path {
        PathCondition::Exact(path) | PathCondition::Prefix(path) => path.as_str(),
        PathCondition::Regex(pattern) => pattern.as_str(),
    };
    super::annotations::shown(text)
}
