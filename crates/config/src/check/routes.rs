//! Checks routes against each other: duplicates, and routes that never match.

use std::borrow::Cow;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet};
use model::{
    Condition, ConditionOn, FieldMatch, HostPattern, LimitScope, ListenerId, PathMatch, ServerSpec,
    Test, Text,
};

use crate::build::listeners_of;
use crate::diagnostic::{At, Diagnostic, Problems, Span, quote};
use crate::names::Names;
use crate::raw::{Document, RawAction, RawListener, RawProtocol, RawRoute};

pub(super) fn check(document: &Document, names: &Names, problems: &Problems) {
    super::twice("route", document.routes.iter().filter_map(|r| r.name.as_ref()), problems);
    for route in &document.routes {
        only_http(route, document, names, problems);
        certificates(route, document, names, problems);
        mirrors(route, document, names, problems);
    }
    rates_of_fleet(document, problems);
    shadowed(document, names, problems);
    // By conditions without listeners: only such routes of one priority can shadow each other, since of two others
    // the more specific one is tried first and leaves some requests to the second.
    let mut groups: HashMap<Conditions<'_>, usize> = HashMap::with_capacity(document.routes.len());
    let mut members: Vec<Member<'_>> = Vec::with_capacity(document.routes.len());
    let routes = document.routes.iter().enumerate().filter(|(_, route)| route.certain);
    for (index, route) in routes {
        let listeners = listeners_of(route, names);
        for host in &route.hosts {
            let next = groups.len();
            let group = *groups.entry(conditions(route, host)).or_insert(next);
            members.push(Member { group, index, route, host, listeners: listeners.clone() });
        }
    }
    // Within a group, they stay in order of the file.
    members.sort_by_key(|member| member.group);
    let groups = members.chunk_by(|one, other| one.group == other.group);
    for group in groups.filter(|group| group.len() > 1) {
        equal(group, problems);
        unreachable(group, document, problems);
    }
}

/// Reports routes all of whose requests go to one with a higher priority.
fn shadowed(document: &Document, names: &Names, problems: &Problems) {
    let is_plain = |route: &&RawRoute| {
        route.certain
            && route.method.is_none()
            && route.fields.is_empty()
            && route.query.is_empty()
            && route.conditions.is_empty()
            && route.client_files.is_empty()
    };
    for first in document.routes.iter().filter(|route| route.priority > 0).filter(is_plain) {
        let listeners = listeners_of(first, names);
        let has_all = |later: &RawRoute| {
            let of_later = listeners_of(later, names);
            listeners.is_empty()
                || !of_later.is_empty() && of_later.iter().all(|id| listeners.contains(id))
        };
        // Of equal conditions, the other checks say more.
        let is_equal = |later: &RawRoute| {
            let mut hosts = later.hosts.iter().map(|host| &host.value);
            is_plain(&later)
                && later.path == first.path
                && hosts.any(|host| first.hosts.iter().any(|one| one.value == *host))
        };
        let is_never_tried = |later: &&RawRoute| {
            let covers = |host: &At<Option<HostPattern>>| {
                first.hosts.iter().any(|one| covers_host(one.value.as_ref(), host.value.as_ref()))
            };
            later.certain
                && later.priority < first.priority
                && covers_path(&first.path, &later.path)
                && has_all(later)
                && later.hosts.iter().all(covers)
                && !is_equal(later)
        };
        let Some(later) = document.routes.iter().find(is_never_tried) else { continue };
        let title = "a route that no request reaches";
        let warning = Diagnostic::warning(title, later.span.clone(), "never matches");
        let other = "has a higher priority, and matches all of its requests";
        let help = "give it a higher priority, or add a condition to the other route";
        problems.report(warning.other(first.span.clone(), other).help(help));
    }
}

fn covers_host(wide: Option<&HostPattern>, narrow: Option<&HostPattern>) -> bool {
    wide.is_none_or(|wide| narrow.is_some_and(|narrow| wide.covers_all_of(narrow)))
}

fn covers_path(wide: &PathMatch, narrow: &PathMatch) -> bool {
    let PathMatch::Prefix(prefix) = wide else { return wide == narrow };
    let (PathMatch::Exact(path) | PathMatch::Prefix(path)) = narrow;
    path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reports rate limits over a fleet that does not exist.
fn rates_of_fleet(document: &Document, problems: &Problems) {
    if document.fleet_meant {
        return;
    }
    let limits = document.routes.iter().flat_map(|route| &route.rate_limits);
    for raw in limits.filter(|raw| raw.limit.scope == LimitScope::Fleet) {
        problems.report_absence(
            Diagnostic::error(
                "a rate limit with scope = \"fleet\" without [fleet]",
                raw.scope_span.clone(),
                "no fleet is configured",
            )
            .help("write [fleet], or leave scope out: each balancer then counts its own requests"),
        );
    }
}

/// Host, path, method, header fields, query parameters, and all others.
type Conditions<'a> = (
    Option<&'a HostPattern>,
    &'a PathMatch,
    Option<&'a str>,
    Cow<'a, [FieldMatch]>,
    Cow<'a, [FieldMatch]>,
    Cow<'a, [Condition]>,
);

fn conditions<'a>(route: &'a RawRoute, host: &'a At<Option<HostPattern>>) -> Conditions<'a> {
    let RawRoute { path, method, fields, query, conditions, .. } = route;
    let (fields, query) = (comparable(fields), comparable(query));
    let mut conditions = Cow::Borrowed(&conditions[..]);
    if route.texts().any(Text::is_secret) {
        for condition in conditions.to_mut() {
            if let Test::Exact(text) = &mut condition.test {
                *text = text.revealed();
            }
        }
    }
    (host.value.as_ref(), path, method.as_deref(), fields, query, conditions)
}

/// Returns texts such that a secret equals the same text in another route that is none.
fn comparable(fields: &[FieldMatch]) -> Cow<'_, [FieldMatch]> {
    let mut fields = Cow::Borrowed(fields);
    if fields.iter().any(|field| field.value.is_secret()) {
        fields.to_mut().iter_mut().for_each(|field| field.value = field.value.revealed());
    }
    fields
}

/// One host's share of a route in the file.
struct Member<'a> {
    group: usize,
    index: usize,
    route: &'a RawRoute,
    host: &'a At<Option<HostPattern>>,
    listeners: Vec<ListenerId>,
}

impl Member<'_> {
    /// Returns where to point: the host if several are listed, else the heading.
    fn span(&self) -> Span {
        if self.route.hosts.len() > 1 { self.host.span.clone() } else { self.route.span.clone() }
    }
}

fn only_http(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    for name in &route.listeners {
        let Some(id) = names.listener(&name.value) else {
            continue;
        };
        let listener = &document.listeners[id.0 as usize];
        let to = match &listener.protocol {
            RawProtocol::Http => continue,
            RawProtocol::Tcp(service) => format!("all of it goes to service \"{}\"", service.value),
            RawProtocol::Tls { .. } => {
                "its `server_names` decide where its connections go".to_owned()
            }
        };
        problems.report(
            Diagnostic::error(
                "a tcp listener has no routes",
                name.span.clone(),
                "passes bytes on without reading requests",
            )
            .other(listener.name.span.clone(), to),
        );
    }
}

/// Warns of a condition on client certificates where no listener requests any.
fn certificates(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    let is_it = |condition: &&Condition| matches!(condition.on, ConditionOn::Certificate(_));
    let Some(condition) = route.conditions.iter().find(is_it) else { return };
    let requests =
        |listener: &RawListener| listener.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    if super::listeners_of(route, document, names).any(requests) {
        return;
    }
    problems.report(
        Diagnostic::warning(
            "no listener of this route requests client certificates",
            route.span.clone(),
            if condition.negated {
                "its condition that a name is absent always holds"
            } else {
                "its condition on one never holds"
            },
        )
        .help("write client_certificates = { ca = \"…\" } in the `tls` of the listener"),
    );
}

fn equal(group: &[Member<'_>], problems: &Problems) {
    // The route for every listener, and by listener the routes that name some.
    let mut general: Option<usize> = None;
    let mut by_listener: HashMap<ListenerId, usize> = HashMap::new();
    for (at, second) in group.iter().enumerate() {
        let listeners = &second.listeners;
        let clash = if listeners.is_empty() {
            let before = general;
            general.get_or_insert(at);
            before
        } else {
            let before = listeners.iter().filter_map(|id| by_listener.get(id).copied()).min();
            for id in listeners {
                by_listener.entry(*id).or_insert(at);
            }
            before
        };
        let Some(first) = clash.and_then(|first| group.get(first)) else { continue };
        let has_secret = first.route.texts().any(Text::is_secret);
        let what = describe(if has_secret { first } else { second });
        if first.index == second.index {
            problems.report(
                Diagnostic::error("a route lists a host twice", second.span(), "again here")
                    .other(first.span(), "first here"),
            );
        } else {
            problems.report(
                Diagnostic::error(
                    format!("two routes match the same requests: {what}"),
                    second.span(),
                    if first.route.priority == second.route.priority {
                        "which of them should answer?"
                    } else {
                        "the one with the lower priority would never answer"
                    },
                )
                .other(first.span(), "the same conditions")
                .help("order in the file does not matter, so neither comes first: join them, or add a condition to one"),
            );
        }
    }
}

/// Reports copies for a service that gets the requests themselves, or other copies of them; and copies that take
/// slots of the requests' servers, which belong to an address, not to a service.
fn mirrors(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    let RawAction::Forward(forward) = &route.action else { return };
    let services: Vec<_> = forward.services().collect();
    let targets: Vec<_> = forward.targets().collect();
    for (at, service) in services.iter().enumerate().skip(targets.len()) {
        if let Some(same) = services[..at].iter().find(|other| other.value == service.value) {
            let title = format!("{} receives requests of this route twice", quote(&service.value));
            problems.report(
                Diagnostic::warning(title, service.span.clone(), "copies of them")
                    .other(same.span.clone(), "named here, too"),
            );
            continue;
        }
        let of = |name: &At<Arc<str>>| {
            names.service(&name.value).map(|id| &document.services[id.0 as usize].service)
        };
        let Some(mirror) = of(service) else { continue };
        for to in &targets {
            let Some(to) = of(to).filter(|to| to.is_limited() || mirror.is_limited()) else {
                continue;
            };
            let is_of_mirror =
                |server: &&ServerSpec| mirror.servers.iter().any(|m| m.target == server.target);
            if let Some(server) = to.servers.iter().find(is_of_mirror) {
                let title = format!(
                    "copies take slots of {} from the requests of service {}",
                    server.target,
                    quote(&to.name)
                );
                let label = "it has the same server";
                let diagnostic = Diagnostic::warning(title, service.span.clone(), label);
                problems.report(diagnostic.help("give the mirror servers of its own"));
            }
        }
    }
}

const LOWER: &str = "give the route that names its listener the same priority, or leave it out";

/// Reports a route for all listeners if each listener has an equal route that is tried first, and routes that name their
/// listeners if it is tried before them.
fn unreachable(group: &[Member<'_>], document: &Document, problems: &Problems) {
    let Some(general) = group.iter().find(|m| m.listeners.is_empty()) else {
        return;
    };
    let is_first = |member: &&Member<'_>| member.route.priority >= general.route.priority;
    let named = group.iter().filter(|member| !member.listeners.is_empty());
    for later in named.clone().filter(|member| !is_first(member)) {
        let title = "a route that no request reaches";
        let warning = Diagnostic::warning(title, later.span(), "never matches");
        let same = "the same conditions, for all listeners, with a higher priority";
        problems.report(warning.other(general.span(), same).help(LOWER));
    }
    let mut http = document
        .listeners
        .iter()
        .enumerate()
        .filter(|(_, listener)| matches!(listener.protocol, RawProtocol::Http))
        .map(|(index, _)| ListenerId(index as u32))
        .peekable();
    let taken: HashSet<ListenerId> = named
        .clone()
        .filter(is_first)
        .flat_map(|member| member.listeners.iter().copied())
        .collect();
    if taken.is_empty() || http.peek().is_none() || !http.all(|id| taken.contains(&id)) {
        return;
    }
    let mut warning =
        Diagnostic::warning("a route that no request reaches", general.span(), "never matches");
    for other in named.filter(is_first) {
        warning = warning.other(other.span(), "the same conditions, for a listener by name");
    }
    problems.report(
        warning.help(
            "routes that name their listener come first, and these cover every http listener",
        ),
    );
}

/// Describes a route's conditions in one line, for a message.
fn describe(Member { route, host, .. }: &Member<'_>) -> String {
    let host = match &host.value {
        Some(HostPattern::Exact(host)) => host.clone(),
        Some(HostPattern::Wildcard(suffix)) => format!("*.{suffix}"),
        None => "any host".to_owned(),
    };
    let path = match &route.path {
        PathMatch::Exact(path) => format!("exactly {path}"),
        PathMatch::Prefix(prefix) if prefix.is_empty() => "any path".to_owned(),
        PathMatch::Prefix(prefix) => format!("{prefix} and below"),
    };
    let mut parts = vec![host, path];
    parts.extend(route.method.clone());
    parts.extend(route.fields.iter().map(|f| format!("{}: {}", f.name, f.value.shown())));
    parts.extend(route.query.iter().map(|q| format!("?{}={}", q.name, q.value.shown())));
    parts.extend(route.conditions.iter().map(ToString::to_string));
    parts.join(", ")
}
