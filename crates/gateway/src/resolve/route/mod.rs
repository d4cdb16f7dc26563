//! One route: its rules, the listeners that it attaches to, and its status.
//!
//! A result depends on the route and on the objects that it refers to, not on other routes: after a change, only the
//! routes that refer to the changed object must be resolved again.

pub mod backends;
pub mod connection;
pub mod cors;
pub mod duration;
pub mod filters;
pub mod grpc;
pub mod http;
pub mod matches;
pub mod session;
pub mod syntax;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::HostPattern;

use super::attach::{self, Attachment, Candidate};
use super::status::{Condition, ParentStatus, Problem, RouteStatus};
use super::world::World;
use crate::hosts;
use crate::ir::request::RequestRule;
use crate::ir::{AttachedRoute, ListenerId, Route, RouteId, RouteKind, Rules};
use crate::objects::reference::ParentRef;
use crate::objects::route::{ConnectionRoute, GrpcRoute, GrpcRule, HttpRoute, HttpRule, RouteSpec};
use crate::objects::{Key, Meta};
use backends::Backends;

/// At most this many regular expressions of a route are compiled: each can take milliseconds and 256 KiB, and the API
/// allows thousands.
const EXPRESSIONS_MAX: usize = 256;

/// What a route resolves to.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The route, without the rules that are invalid.
    pub route: Arc<Route>,
    /// Its status.
    pub status: Arc<RouteStatus>,
    /// The listeners that accept it, each once, in order.
    pub attachments: Vec<(ListenerId, Arc<AttachedRoute>)>,
    /// The listeners that accept it through each of the parents in `status`.
    pub listeners: Vec<Vec<ListenerId>>,
    /// The Services that it may refer to, those that do not exist included.
    pub services: BTreeSet<Key>,
}

/// What is wrong with the rules of a route.
#[derive(Debug, Default)]
struct Dropped {
    rules: Vec<(usize, Problem)>,
    is_all: bool,
}

/// Resolves an HTTPRoute.
pub fn http_route(world: &World<'_>, route: &HttpRoute) -> Resolved {
    let HttpRoute { metadata, spec, .. } = route;
    let mut backends = Backends::new(world, RouteKind::Http, &metadata.namespace);
    let count = |one: &HttpRule| one.matches.iter().map(matches::http_expressions).sum();
    let (mut rules, dropped) =
        request_rules(&spec.rules, count, |index, one| http::rule(index, one, &mut backends));
    add_policies(world, &(RouteKind::Http, metadata.key()), &mut rules, &mut backends);
    finish(world, metadata, spec, RouteKind::Http, (Rules::Requests(rules), dropped, backends))
}

/// Resolves a GRPCRoute.
pub fn grpc_route(world: &World<'_>, route: &GrpcRoute) -> Resolved {
    let GrpcRoute { metadata, spec, .. } = route;
    let mut backends = Backends::new(world, RouteKind::Grpc, &metadata.namespace);
    let count = |one: &GrpcRule| one.matches.iter().map(matches::grpc_expressions).sum();
    let (mut rules, dropped) =
        request_rules(&spec.rules, count, |index, one| grpc::rule(index, one, &mut backends));
    add_policies(world, &(RouteKind::Grpc, metadata.key()), &mut rules, &mut backends);
    finish(world, metadata, spec, RouteKind::Grpc, (Rules::Requests(rules), dropped, backends))
}

/// Resolves a TLSRoute.
pub fn tls_route(world: &World<'_>, route: &ConnectionRoute) -> Resolved {
    connection_route(world, route, RouteKind::Tls)
}

/// Resolves a TCPRoute.
pub fn tcp_route(world: &World<'_>, route: &ConnectionRoute) -> Resolved {
    connection_route(world, route, RouteKind::Tcp)
}

fn connection_route(world: &World<'_>, route: &ConnectionRoute, kind: RouteKind) -> Resolved {
    let ConnectionRoute { metadata, spec, .. } = route;
    let mut backends = Backends::new(world, kind, &metadata.namespace);
    let rules = spec.rules.iter().enumerate();
    let rules = rules.map(|(index, one)| connection::rule(index, one, &mut backends)).collect();
    let read = (Rules::Connections(rules), Dropped::default(), backends);
    finish(world, metadata, spec, kind, read)
}

/// Reads rules, and collects those that are invalid.
fn request_rules<Stated, Rule>(
    stated: &[Stated],
    expressions: impl Fn(&Stated) -> usize,
    mut read: impl FnMut(usize, &Stated) -> Result<Rule, Problem>,
) -> (Vec<Rule>, Dropped) {
    let mut rules = Vec::with_capacity(stated.len());
    let mut dropped = Dropped::default();
    let mut left = EXPRESSIONS_MAX;
    for (index, one) in stated.iter().enumerate() {
        let rule = match left.checked_sub(expressions(one)) {
            Some(rest) => {
                left = rest;
                read(index, one)
            }
            None => Err(Problem::unsupported(format!(
                "A route may have at most {EXPRESSIONS_MAX} regular expressions. Move rules to \
                 other routes."
            ))),
        };
        match rule {
            Ok(rule) => rules.push(rule),
            Err(problem) => dropped.rules.push((index, problem)),
        }
    }
    dropped.is_all = rules.is_empty() && !dropped.rules.is_empty();
    (rules, dropped)
}

/// Adds what RoutePolicies state for the rules of a route.
fn add_policies(
    world: &World<'_>,
    id: &RouteId,
    rules: &mut [RequestRule],
    backends: &mut Backends<'_>,
) {
    for rule in rules {
        let Some(stated) = world.route_policies.of_rule(id, rule.name.as_ref()) else { continue };
        backends.services.extend(stated.asked);
        rule.extras = Some(stated.extras);
    }
}

/// Attaches a route whose rules were read.
fn finish<Rule>(
    world: &World<'_>,
    metadata: &Meta,
    spec: &RouteSpec<Rule>,
    kind: RouteKind,
    (rules, dropped, backends): (Rules, Dropped, Backends<'_>),
) -> Resolved {
    let hosts = read_hosts(&spec.hostnames);
    let rejected = hosts.as_ref().err().cloned().or_else(|| all_dropped(&dropped));
    let hosts = hosts.unwrap_or_default();
    let candidate = Candidate { kind, home: &metadata.namespace, hosts: &hosts };
    let resolved = match Problem::first(&backends.problems) {
        Some(problem) => Condition::no("ResolvedRefs", &problem),
        None => Condition::yes("ResolvedRefs", "ResolvedRefs", "All references are valid."),
    };
    let mut parents = Vec::new();
    let mut listeners = Vec::new();
    let mut attachments: Vec<Attachment> = Vec::new();
    for parent in &spec.parent_refs {
        // The API allows no duplicates: two entries of the status would be identical.
        if parents.iter().any(|known: &ParentStatus| known.parent_ref == *parent) {
            continue;
        }
        let Some(attached) = attach::attach(world, candidate, parent) else { continue };
        let attached = attached.and_then(|found| rejected.clone().map_or(Ok(found), Err));
        let mut conditions = accepted(parent, candidate, attached.as_ref(), &dropped);
        conditions.insert(1, resolved.clone());
        parents.push(ParentStatus {
            parent_ref: parent.clone(),
            controller_name: Arc::clone(&world.cluster.settings.controller_name),
            conditions,
        });
        let attached = attached.unwrap_or_default();
        listeners.push(attached.iter().map(|(listener, _)| listener.clone()).collect());
        attachments.extend(attached);
    }
    attachments.sort_by(|(a, _), (b, _)| a.cmp(b));
    attachments.dedup_by(|(a, _), (b, _)| a == b);
    let age = Arc::new(metadata.age());
    let route = Arc::new(Route { kind, key: metadata.key(), rank: 0, age, rules });
    let attached = |(listener, hosts)| {
        (listener, Arc::new(AttachedRoute { route: Arc::clone(&route), hosts }))
    };
    Resolved {
        attachments: attachments.into_iter().map(attached).collect(),
        route: Arc::clone(&route),
        status: Arc::new(RouteStatus { generation: metadata.generation, parents }),
        listeners,
        services: backends.services,
    }
}

fn read_hosts(stated: &[String]) -> Result<Vec<HostPattern>, Problem> {
    let read = stated.iter().map(|text| {
        hosts::host(text).map_err(|why| Problem::unsupported(format!("The hostname {text} {why}.")))
    });
    read.collect()
}

/// Returns why a route without valid rules is not accepted.
fn all_dropped(dropped: &Dropped) -> Option<Problem> {
    let problems: Vec<Problem> = dropped
        .rules
        .iter()
        .map(|(index, problem)| Problem {
            reason: problem.reason,
            message: format!("Rule {index} is invalid. {}", problem.message),
        })
        .collect();
    Problem::first(&problems).filter(|_| dropped.is_all)
}

/// Returns the conditions on attachment and on rules.
fn accepted(
    parent: &ParentRef,
    route: Candidate<'_>,
    attached: Result<&Vec<Attachment>, &Problem>,
    dropped: &Dropped,
) -> Vec<Condition> {
    let attached = match attached {
        Ok(attached) => attached,
        Err(problem) => return vec![Condition::no("Accepted", problem)],
    };
    let kind = parent.gateway_kind().unwrap_or_default();
    let key = parent.key(route.home);
    let listeners = match attached.len() {
        1 => "1 listener".to_owned(),
        count => format!("{count} listeners"),
    };
    let message = format!("The route is attached to {listeners} of {kind} {key}.");
    let mut conditions = vec![Condition::yes("Accepted", "Accepted", message)];
    if let Some((index, problem)) = dropped.rules.first() {
        let rules: Vec<String> = dropped.rules.iter().map(|(index, _)| index.to_string()).collect();
        let message = format!(
            "Dropped Rule {}. Rule {index} is invalid: {} The other rules are served.",
            rules.join(", "),
            problem.message
        );
        // The API names one reason; the others are those of the condition Accepted.
        conditions.push(Condition::yes("PartiallyInvalid", problem.reason, message));
    }
    conditions
}
