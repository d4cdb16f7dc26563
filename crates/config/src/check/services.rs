//! Checks services against each other and their zones.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use model::{
    Address, Balance, Check, CheckKind, HashOn, HttpVersion, LimitScope, ServerSourceWord,
    ServerTarget,
};

use crate::diagnostic::{Diagnostic, Problems, Span, nearest, quote};
use crate::names::Names;
use crate::raw::{Document, RawAction, RawScheme, RawService};

pub(super) fn check(document: &Document, names: &Names, problems: &Problems) {
    for service in &document.services {
        servers(service, problems);
        if service.service.send_proxy.is_some() && service.service.http == HttpVersion::Http2 {
            problems.report(
                Diagnostic::error(
                    format!("service \"{}\" has send_proxy and http = \"2\"", service.service.name),
                    service.name.clone(),
                    "not both",
                )
                .help("a PROXY header names one client for a whole connection, and one of HTTP/2 carries the requests of many: write http = \"1.1\", or leave send_proxy out and use X-Forwarded-For"),
            );
        }
        scope(service, document, problems);
        if let Some(webhook) = service.scaling_webhook.as_ref().filter(|raw| raw.has_secret) {
            super::secret_in_clear_text(&webhook.url, "a secret of `header`", problems);
        }
        if let Some(queue) = &service.queue
            && !service.limit_meant
            && service.service.scaling.as_ref().is_none_or(|scaling| scaling.servers_min > 0)
        {
            problems.report(
                Diagnostic::warning("a queue in which nothing ever waits", queue.clone(), "not used")
                    .help("requests wait when every server is at its limit; write in_flight_max = … beside it"),
            );
        }
    }
    limits(document, problems);
    zones(document, problems);
    use_of_services(document, names, problems);
}

/// Reports limits over a fleet that does not exist, and a scope of no limit.
fn scope(raw: &RawService, document: &Document, problems: &Problems) {
    if let Some(scope) = &raw.in_flight_scope
        && scope.value == LimitScope::Fleet
        && !document.fleet_meant
    {
        problems.report_absence(
            Diagnostic::error(
                "in_flight_scope = \"fleet\" without [fleet]",
                scope.span.clone(),
                "which balancers?",
            )
            .help("write [fleet], or leave in_flight_scope out: each balancer then keeps the limit by itself"),
        );
    }
    if let Some(span) = &raw.own_in_flight_scope
        && !raw.limit_meant
    {
        problems.report_absence(
            Diagnostic::error(
                format!("service \"{}\" has in_flight_scope and no limit", raw.service.name),
                span.clone(),
                "the scope of what?",
            )
            .help("write in_flight_max = … beside it, or leave in_flight_scope out"),
        );
    }
}

fn servers(raw: &RawService, problems: &Problems) {
    let servers = &raw.service.servers;
    if servers.len() > 1 {
        repeated(raw, problems);
    }
    if raw.service.check.as_ref().is_some_and(|check| check.port.is_some()) {
        without_port(raw, problems);
    }
    let warning = |title: String, label| Diagnostic::warning(title, raw.name.clone(), label);
    let name = &raw.service.name;
    if servers.is_empty() {
        // Unreadable values have been reported as such.
        return;
    }
    if servers.iter().all(|server| server.weight == 0) {
        problems.report(
            warning(format!("no server of service \"{name}\" takes new work"), "every weight is 0")
                .help("every request is answered 503"),
        );
    } else if servers.iter().all(|server| server.backup) {
        problems.report(
            warning(
                format!("every server of service \"{name}\" is a backup"),
                "backups of nothing",
            )
            .help("they are used at once; leave `backup` out"),
        );
    }
}

/// Reports servers that have no port, in whose place the check could use its own.
fn without_port(raw: &RawService, problems: &Problems) {
    for (server, spans) in raw.service.servers.iter().zip(&raw.servers) {
        if let ServerTarget::Address(address @ Address::Unix(_)) = server.target {
            problems.report(
                Diagnostic::error(
                    format!(
                        "the check of service \"{}\" has a port, and {address} has none",
                        raw.service.name
                    ),
                    spans.address.clone(),
                    "a Unix socket",
                )
                .help(
                    "leave `port` of the check out, or write a service of its own for this server",
                ),
            );
        }
    }
}

/// Reports servers that a service names twice.
fn repeated(raw: &RawService, problems: &Problems) {
    let mut seen: HashMap<&ServerTarget, usize> = HashMap::new();
    for (index, server) in raw.service.servers.iter().enumerate() {
        match seen.get(&server.target) {
            Some(first) => problems.report(
                Diagnostic::error(
                    format!("{} stands twice in service \"{}\"", server.target, raw.service.name),
                    raw.servers[index].address.clone(),
                    "again here",
                )
                .other(raw.servers[*first].address.clone(), "first here")
                .help("to give a server more work, raise its weight"),
            ),
            None => _ = seen.insert(&server.target, index),
        }
    }
}

/// The concurrency limit of a server as one service configures it, and where.
#[derive(Clone, Copy)]
struct Limit<'a> {
    max: u32,
    span: &'a Span,
    /// `None`: not readable.
    scope: Option<LimitScope>,
    service: &'a str,
    /// Of the service's name.
    name: &'a Span,
}

impl Limit<'_> {
    /// Returns whether it is the same limit of `target` as `other`.
    fn agrees_with(self, other: Self, target: &ServerTarget) -> bool {
        let mut scopes = self.scope.iter().zip(&other.scope);
        self.max == other.max && (scopes.all(|(one, other)| one == other) || is_local(target))
    }
}

/// Returns the servers of a service, each with its limit: its own, or the service's.
fn limits_of(raw: &RawService) -> impl Iterator<Item = (&ServerTarget, Option<Limit<'_>>)> {
    let of_service = raw.in_flight_max.as_ref();
    raw.service.servers.iter().zip(&raw.servers).map(move |(server, spans)| {
        let span = spans.in_flight_max.as_ref().or(of_service);
        let limit = raw.service.in_flight_max_of(server).zip(span);
        let RawService { service, name, in_flight_scope, .. } = raw;
        let (scope, service) = (in_flight_scope.as_ref().map(|at| at.value), &*service.name);
        (&server.target, limit.map(|(max, span)| Limit { max, span, scope, service, name }))
    })
}

/// One address has one limit, whatever services name it.
fn limits(document: &Document, problems: &Problems) {
    let mut limited: HashMap<&ServerTarget, Limit<'_>> = HashMap::new();
    for raw in &document.services {
        // Once for two limits, however many addresses share them.
        let mut reported: HashSet<(usize, usize)> = HashSet::new();
        for (target, limit) in limits_of(raw) {
            let Some(here) = limit else { continue };
            let first = *limited.entry(target).or_insert(here);
            // A server that one service names twice is reported as such.
            if first.service == here.service
                || first.agrees_with(here, target)
                || !reported.insert((first.span.start, here.span.start))
            {
                continue;
            }
            problems.report(if first.max == here.max {
                scopes_differ(target, first, here)
            } else {
                maxima_differ(target, first, here)
            });
        }
    }
    for raw in &document.services {
        let mut unlimited = limits_of(raw).filter(|(_, limit)| limit.is_none());
        if let Some((target, limit)) =
            unlimited.find_map(|(target, _)| Some((target, limited.get(target)?)))
        {
            problems.report(limited_elsewhere(raw, target, *limit));
        }
    }
}

fn maxima_differ(target: &ServerTarget, first: Limit<'_>, here: Limit<'_>) -> Diagnostic {
    Diagnostic::error(
        format!("two limits for one address, {target}"),
        here.span.clone(),
        format!("{} here", here.max),
    )
    .other(first.span.clone(), format!("{} in service \"{}\"", first.max, first.service))
    .help("the limit belongs to the address, and services that share it share one count: give both the same number")
}

fn scopes_differ(target: &ServerTarget, first: Limit<'_>, here: Limit<'_>) -> Diagnostic {
    let of = |limit: Limit<'_>| {
        let scope = limit.scope.as_ref().map_or("", LimitScope::as_str);
        format!("in_flight_scope is \"{scope}\"")
    };
    Diagnostic::error(
        format!("two scopes of the limit of one address, {target}"),
        here.name.clone(),
        of(here),
    )
    .other(first.name.clone(), of(first))
    .help("the limit belongs to the address, and services that share it share one count: give both the same in_flight_scope")
}

/// Returns whether every balancer reaches another server under it, so that no fleet shares its limit.
fn is_local(target: &ServerTarget) -> bool {
    match target {
        ServerTarget::Address(address) => address.is_of_one_machine(),
        ServerTarget::Name { .. } => false,
    }
}

/// Returns the warning about a service without a limit at an address that another service limits.
fn limited_elsewhere(raw: &RawService, target: &ServerTarget, limit: Limit<'_>) -> Diagnostic {
    let max = limit.max;
    Diagnostic::warning(
        format!("service \"{}\" has no limit of its own, but shares {target}", raw.service.name),
        raw.name.clone(),
        format!("at most {max} requests at once there, counted together"),
    )
    .other(limit.span.clone(), format!("the limit, in service \"{}\"", limit.service))
    .help(format!("the limit belongs to the address; write in_flight_max = {max} to say so"))
}

/// Reports zones that have no effect.
fn zones(document: &Document, problems: &Problems) {
    let named: Vec<_> = document
        .services
        .iter()
        .flat_map(|raw| raw.service.servers.iter().zip(&raw.servers))
        .filter_map(|(server, spans)| Some((server.zone.as_deref()?, spans.zone.clone()?)))
        .collect();
    let Some((_, first)) = named.first() else {
        return;
    };
    match &document.zone {
        None => problems.report_absence(
            Diagnostic::warning(
                "servers have zones, but the balancer has none",
                first.clone(),
                "means nothing yet",
            )
            .help("write zone = \"…\" at the top of the file: the zone this balancer runs in"),
        ),
        Some(own) if named.iter().all(|(zone, _)| **zone != *own.value) => {
            let warning = Diagnostic::warning(
                format!("no server stands in the balancer's zone {}", quote(&own.value)),
                own.span.clone(),
                "all servers are elsewhere",
            );
            let near = nearest(&own.value, named.iter().map(|(zone, _)| *zone));
            problems.report(match near {
                Some(near) => warning.help(format!("did you mean {}?", quote(near))),
                None => warning,
            });
        }
        Some(_) => {}
    }
}

/// Reports unused services, and ones that a tcp listener can only use in part.
fn use_of_services(document: &Document, names: &Names, problems: &Problems) {
    let mut by_tcp = vec![false; document.services.len()];
    let mut by_http = by_tcp.clone();
    // An unknown name is reported; it may have been meant for any of these.
    let mut all_resolve = true;
    let mut use_in = |by: &mut [bool], name: &str| match names.service(name) {
        Some(id) => by[id.0 as usize] = true,
        None => all_resolve = false,
    };
    for service in document.listeners.iter().flat_map(|listener| listener.protocol.services()) {
        use_in(&mut by_tcp, &service.value);
    }
    for authentication in &document.authentications {
        match &authentication.scheme {
            Some(RawScheme::Forward(forward)) => use_in(&mut by_http, &forward.service.value),
            Some(RawScheme::Basic { .. } | RawScheme::Token(_)) => {}
            // It may have been meant to use any service.
            None => return,
        }
    }
    for route in &document.routes {
        match &route.action {
            RawAction::Forward(forward) => {
                forward.services().for_each(|service| use_in(&mut by_http, &service.value));
            }
            // It may have been meant to use any service.
            RawAction::Unreadable => return,
            // Asking for a ready server is no use of it.
            RawAction::Redirect(_) | RawAction::Deny(_) | RawAction::Respond(_) => {}
        }
    }
    for (raw, (by_http, by_tcp)) in document.services.iter().zip(by_http.into_iter().zip(by_tcp)) {
        // A tag may publish a route to it.
        let may_be_published = document.has_published_routes()
            && raw
                .discover
                .as_ref()
                .and_then(|raw| raw.source.as_ref())
                .is_some_and(|source| source.kind() == ServerSourceWord::Consul);
        if all_resolve && !by_http && !by_tcp && !may_be_published {
            let title = format!("service {} is not used", quote(&raw.service.name));
            problems.report_absence(
                Diagnostic::warning(title, raw.name.clone(), "no route, tcp listener or authentication names it")
                    .help("its servers are checked all the same; write [[route]] with its name, or leave it out"),
            );
        }
        if by_tcp && !by_http {
            tcp_only(raw, problems);
        }
    }
}

fn tcp_only(raw: &RawService, problems: &Problems) {
    let unused = |what: &str| format!("{what} means nothing behind a tcp listener");
    if let Balance::Hash(hash) = &raw.service.balance
        && hash.on != HashOn::Client
        && let Some(span) = &raw.hash_on
    {
        problems.report(
            Diagnostic::warning(
                unused("this hash"),
                span.clone(),
                "bytes have no path, fields or cookies",
            )
            .help("every connection is placed at random; write on = \"client\""),
        );
    }
    if let Some(span) = &raw.affinity {
        problems.report(Diagnostic::warning(
            unused("`affinity`"),
            span.clone(),
            "bytes have no cookies",
        ));
    }
    let asks = |check: &Check| check.kind != CheckKind::Tcp;
    if let Some(span) = &raw.http
        && raw.service.http == HttpVersion::Http2
        && !raw.service.check.as_ref().is_some_and(asks)
    {
        problems.report(Diagnostic::warning(
            unused("`http`"),
            span.clone(),
            "bytes are passed on as they are",
        ));
    }
}
