//! Converts a checked document into a [`Snapshot`]: names become IDs, routes are sorted in the
//! order in which they match.

use std::cmp::Reverse;
use std::sync::Arc;

use model::{
    Action, Affinity, Forward, HostPattern, Listener, PathMatch, Protocol, RequestFilter,
    ResponseFilter, Route, RouteMatch, Service, Snapshot, Split,
};

use crate::diagnostic::At;
use crate::files::Tls;
use crate::names::Names;
use crate::raw::{Document, RawAction, RawAdmin, RawForward, RawListener, RawProtocol, RawRoute};

/// Returns `None` if a name refers to nothing, which `check` has reported.
pub(crate) fn snapshot(document: Document, names: &Names, tls: Tls) -> Option<Snapshot> {
    let connections_max = document.connections_max.value;
    let listeners: Option<Vec<_>> =
        document.listeners.iter().map(|raw| listener(raw, connections_max, names)).collect();
    let mut listeners = listeners?;
    for (listener, tls) in listeners.iter_mut().zip(tls.listeners) {
        listener.tls = tls;
    }
    let mut routes = Vec::with_capacity(document.routes.iter().map(|raw| raw.hosts.len()).sum());
    for raw in &document.routes {
        let action = action(&raw.action, names)?;
        for matches in route_matches(raw, names) {
            let name = match &raw.name {
                Some(name) => name.value.clone(),
                None => name_of(&matches, &listeners),
            };
            let filters = request_filters(raw);
            routes.push(Route { name, matches, action: action.clone(), filters });
        }
    }
    routes.sort_by(|one, other| one.matches.precedence(&other.matches));
    Some(Snapshot {
        zone: document.zone.map(|zone| zone.value),
        workers: document.workers,
        connections_max,
        request_buffers_max_bytes: document.request_buffers_max_bytes,
        compression_memory_max_bytes: document.compression_memory_max_bytes,
        drain_max: document.drain_max,
        state_directory: document.state_directory,
        run_as: document.run_as,
        admin: document.admin.map(RawAdmin::built),
        metrics: document.metrics,
        resolver: document.resolver,
        log: document.log,
        reload: document.reload,
        doctor: document.doctor,
        listeners,
        routes,
        services: document
            .services
            .into_iter()
            .zip(tls.services)
            .zip(tls.affinity_keys)
            .map(|((raw, tls), key_file)| {
                let affinity = raw.service.affinity;
                let affinity = affinity.map(|affinity| Affinity { key_file, ..affinity });
                Arc::new(Service { tls, affinity, ..raw.service })
            })
            .collect(),
    })
}

fn listener(raw: &RawListener, connections_max: u32, names: &Names) -> Option<Listener> {
    Some(Listener {
        name: raw.name.value.clone(),
        address: raw.address.as_ref()?.value,
        protocol: match &raw.protocol {
            RawProtocol::Http => Protocol::Http,
            RawProtocol::Tcp(service) => Protocol::Tcp(names.service(&service.value)?),
            RawProtocol::TlsPassthrough { names: by_name, otherwise } => {
                passthrough(by_name, otherwise.as_ref(), names)?
            }
        },
        backlog: raw.backlog,
        connections_max: raw.connections_max.as_ref().map_or(connections_max, |at| at.value),
        trusted: raw.trusted.clone(),
        forward_fields: raw.forward_fields,
        timeouts: raw.timeouts,
        head_max_bytes: raw.head_max_bytes,
        body_max_bytes: raw.body_max_bytes,
        proxy_status: raw.proxy_status,
        // Filled in by `snapshot`.
        tls: None,
        http2: raw.http2,
        upgrade_protocols: raw.upgrade_protocols.clone(),
        proxy_protocol: raw.proxy_protocol.clone(),
    })
}

/// Exact names first, then wildcards, longer ones before shorter.
fn passthrough(
    by_name: &[(At<String>, At<Arc<str>>)],
    otherwise: Option<&At<Arc<str>>>,
    names: &Names,
) -> Option<Protocol> {
    let known = by_name.iter().map(|(name, service)| {
        let pattern = match name.value.strip_prefix("*.") {
            Some(suffix) => HostPattern::Wildcard(suffix.to_owned()),
            None => HostPattern::Exact(name.value.clone()),
        };
        Some((pattern, names.service(&service.value)?))
    });
    let mut known = known.collect::<Option<Vec<_>>>()?;
    known.sort_by_key(|(pattern, _)| match pattern {
        HostPattern::Exact(_) => (0, Reverse(0)),
        HostPattern::Wildcard(suffix) => (1, Reverse(suffix.len())),
    });
    let otherwise = match otherwise {
        Some(service) => Some(names.service(&service.value)?),
        None => None,
    };
    Some(Protocol::TlsPassthrough { names: known, otherwise })
}

fn action(raw: &RawAction, names: &Names) -> Option<Action> {
    match raw {
        RawAction::Forward(forward) => {
            let to: Option<Vec<_>> = forward
                .to
                .iter()
                .map(|(service, weight)| {
                    Some(Split { service: names.service(&service.value)?, weight: *weight })
                })
                .collect();
            Some(Action::Forward(Box::new(Forward {
                to: to?,
                rewrite: forward.rewrite.clone(),
                filters: response_filters(forward),
                request_fields: forward.request_fields.clone(),
                response_fields: forward.response_fields.clone(),
            })))
        }
        RawAction::Redirect(redirect) => Some(Action::Redirect(redirect.clone())),
        RawAction::Deny(status) => Some(Action::Deny(*status)),
        RawAction::Unreadable => None,
    }
}

/// Returns the filters of a request, in the order in which they run before the route's action.
fn request_filters(raw: &RawRoute) -> Vec<RequestFilter> {
    let rate_limit = raw.rate_limit.clone().map(RequestFilter::RateLimit);
    rate_limit.into_iter().collect()
}

/// Returns the filters of a response, in order.
fn response_filters(raw: &RawForward) -> Vec<ResponseFilter> {
    let compress = raw.compress.clone().map(ResponseFilter::Compress);
    compress.into_iter().collect()
}

/// Returns the conditions of a route in the file: one set for each of its hosts, in order.
/// Listeners that do not exist are left out.
pub(crate) fn route_matches(
    raw: &RawRoute,
    names: &Names,
) -> impl Iterator<Item = RouteMatch> + use<> {
    let mut listeners: Vec<_> =
        raw.listeners.iter().filter_map(|name| names.listener(&name.value)).collect();
    listeners.sort_unstable();
    listeners.dedup();
    let general = RouteMatch {
        listeners,
        host: None,
        path: raw.path.clone(),
        method: raw.method.clone(),
        fields: raw.fields.clone(),
        query: raw.query.clone(),
    };
    let hosts: Vec<_> = raw.hosts.iter().map(|host| host.value.clone()).collect();
    hosts.into_iter().map(move |host| RouteMatch { host, ..general.clone() })
}

/// Returns a name for a route that has none: its conditions, as short as they allow.
fn name_of(matches: &RouteMatch, listeners: &[Listener]) -> Arc<str> {
    let mut parts: Vec<String> = matches.method.iter().cloned().collect();
    let host = match &matches.host {
        Some(HostPattern::Exact(host)) => host.clone(),
        Some(HostPattern::Wildcard(suffix)) => format!("*.{suffix}"),
        None => "*".to_owned(),
    };
    parts.push(match &matches.path {
        PathMatch::Exact(path) => format!("{host}{path} exactly"),
        PathMatch::Prefix(prefix) if prefix.is_empty() => format!("{host}/"),
        PathMatch::Prefix(prefix) => format!("{host}{prefix}"),
    });
    parts.extend(matches.fields.iter().map(|field| format!("{}:{}", field.name, field.value)));
    parts.extend(matches.query.iter().map(|query| format!("?{}={}", query.name, query.value)));
    let named = matches.listeners.iter().filter_map(|id| listeners.get(id.0 as usize));
    parts.extend(named.map(|listener| format!("on {}", listener.name)));
    parts.join(" ").into()
}
