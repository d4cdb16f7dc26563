//! Converts a checked document into a [`Snapshot`]: names become IDs, routes are sorted in the
//! order in which they match.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::sync::Arc;

use model::{
    Acme, AcmeCertificate, Action, Affinity, AffinityKeyFile, AuthenticationId, BranchChanges,
    Compression, Consul, Content, Cors, Denial, Discover, ErrorPage, Etcd, FieldMatch, Fleet,
    Forward, HostPattern, HttpPeer, Listener, ListenerId, ListenerTls, Material, MessageChanges,
    Metrics, MetricsListener, Mirror, Nomad, Otlp, PathMatch, Protocol, RateLimit, Registries,
    RequestFilter, Respond, ResponseFilter, Route, RouteAffinity, RouteMatch, Scaling, ScalingCall,
    ServerNames, Service, ServiceTls, Snapshot, Split, SplitTarget, TcpSplit, Text, TlsMode,
    WrittenAt,
};

use crate::diagnostic::{At, Span};
use crate::files::{Contents, FleetFiles, PageFiles, RegistryPeers, RouteFiles};
use crate::names::Names;
use crate::raw::{
    Document, RawAction, RawAdmin, RawBody, RawBranch, RawContent, RawErrorPage, RawFleet,
    RawListener, RawMetrics, RawMetricsListener, RawMirror, RawProtocol, RawRegistries, RawRespond,
    RawRoute, RawService, RawTarget,
};
use crate::sources::{Lines, Sources};

/// Returns `None` if a name refers to nothing, which `check` has reported.
pub(crate) fn snapshot(
    document: Document,
    names: &Names,
    files: Contents,
    sources: &Sources,
) -> Option<Snapshot> {
    let connections_max = document.connections_max.value;
    let listeners: Option<Vec<_>> =
        document.listeners.iter().map(|raw| listener(raw, connections_max, names)).collect();
    let mut listeners = listeners?;
    for (listener, tls) in listeners.iter_mut().zip(files.listeners) {
        listener.tls = tls;
    }
    let acme = acme(files.acme, &mut listeners);
    let pages = document.listeners.into_iter().map(|raw| raw.error_pages);
    for ((listener, raw), files) in listeners.iter_mut().zip(pages).zip(files.listener_pages) {
        listener.error_pages = error_pages(raw, files)?;
    }
    let metrics = metrics(document.metrics, files.metrics);
    let otlp = document.otlp.zip(files.collector);
    let otlp = otlp.map(|(raw, collector)| Otlp { collector, ..raw.otlp });
    let registries = registries(document.registries, files.registries);
    let fleet = document.fleet.and_then(|raw| fleet(raw, files.fleet));
    let mut routes = Vec::with_capacity(document.routes.iter().map(|raw| raw.hosts.len()).sum());
    let mut places = Places { sources, lines: Lines::of(sources), file: "".into() };
    for (mut raw, files) in document.routes.into_iter().zip(files.routes) {
        let RouteFiles { content, affinity_key, pages } = files;
        let pages = error_pages(std::mem::take(&mut raw.error_pages), pages)?;
        let written_at = places.of(&raw.span);
        let files = (content, affinity_key, pages);
        routes.extend(by_host((raw, written_at), files, &listeners, names)?);
    }
    tell_apart(&mut routes);
    routes.sort_by(|one, other| one.matches.precedence(&other.matches));
    let (discover, files_of_webhooks) = (files.discover, files.scaling_webhooks);
    let authentications: Option<Vec<_>> = files.authentications.into_iter().collect();
    let affinity_key_file = files.affinity_key;
    let of_services = files.services.into_iter().zip(files.affinity_keys).zip(files.service_pages);
    let of_services = of_services.zip(discover).zip(files_of_webhooks);
    let services = document.services.into_iter().zip(of_services);
    let services: Option<Vec<_>> = services
        .map(|(raw, ((((tls, key), pages), discover), webhook))| {
            service(raw, (tls, key), (pages, discover), webhook)
        })
        .collect();
    Some(Snapshot {
        zone: document.zone.map(|zone| zone.value),
        workers: document.workers,
        connections_max,
        request_buffers_max_bytes: document.request_buffers_max_bytes,
        compression_memory_max_bytes: document.compression_memory_max_bytes,
        mirror_memory_max_bytes: document.mirror_memory_max_bytes,
        history_memory_max_bytes: document.history_memory_max_bytes,
        drain_delay: document.drain_delay,
        drain_max: document.drain_max,
        state_directory: document.state_directory,
        affinity_key_file,
        run_as: document.run_as,
        admin: document.admin.map(RawAdmin::built),
        metrics,
        otlp,
        acme,
        resolver: document.resolver,
        registries,
        keda: files.keda,
        external_metrics: files.external_metrics,
        kubernetes: document.kubernetes.map(Arc::new),
        fleet,
        log: document.log.log,
        reload: document.reload,
        doctor: document.doctor,
        listeners,
        routes: routes.into_iter().map(Arc::new).collect(),
        authentications: authentications?,
        services: services?,
    })
}

/// Returns the settings with the server of their webhook; without it after a mistake, which is reported.
fn complete(mut scaling: Scaling, peer: Option<HttpPeer>) -> Scaling {
    if let (Some(action), Some(peer)) = (scaling.action.as_mut().map(Arc::make_mut), peer)
        && let ScalingCall::Webhook(webhook) = &mut action.call
    {
        webhook.peer = peer;
    }
    scaling
}

/// Returns `None` after a mistake, which is reported.
fn fleet(raw: RawFleet, files: FleetFiles) -> Option<Arc<Fleet>> {
    let FleetFiles { discover, tls } = files;
    Some(Arc::new(Fleet { discover, tls, ..raw.fleet? }))
}

fn registries(raw: RawRegistries, peers: RegistryPeers) -> Registries {
    let consul = raw.consul.zip(peers.consul);
    let nomad = raw.nomad.zip(peers.nomad);
    let etcd = raw.etcd.zip(peers.etcd);
    Registries {
        consul: consul.map(|(raw, peer)| Arc::new(Consul { peer, ..raw.settings })),
        nomad: nomad.map(|(raw, peer)| Arc::new(Nomad { peer, ..raw.settings })),
        etcd: etcd.map(|(raw, endpoints)| Arc::new(Etcd { endpoints, ..raw.settings })),
    }
}

/// Adds each certificate that listeners ask for once to the settings. `None`: there is none.
fn acme(settings: Option<Acme>, listeners: &mut [Listener]) -> Option<Arc<Acme>> {
    let mut settings = settings?;
    let mut known: HashMap<Vec<String>, Arc<AcmeCertificate>> = HashMap::new();
    let tls = listeners.iter_mut().filter_map(|listener| listener.tls.as_mut());
    let certificates = tls.flat_map(|tls| &mut tls.certificates);
    for acme in certificates.filter_map(|certificate| certificate.acme.as_mut()) {
        // The order of its names makes no other certificate.
        let mut names = acme.names.clone();
        names.sort_unstable();
        match known.entry(names) {
            Entry::Occupied(first) => *acme = Arc::clone(first.get()),
            Entry::Vacant(new) => {
                settings.certificates.push(AcmeCertificate::clone(acme));
                new.insert(Arc::clone(acme));
            }
        }
    }
    (!settings.certificates.is_empty()).then(|| Arc::new(settings))
}

fn metrics(raw: RawMetrics, tls: Option<ListenerTls>) -> Metrics {
    let listener = raw.listener.map(|raw| {
        let RawMetricsListener { address, token_file, tls: _ } = raw;
        MetricsListener { address: address.value, token_file, tls }
    });
    Metrics { listener, ..raw.metrics }
}

fn listener(raw: &RawListener, connections_max: u32, names: &Names) -> Option<Listener> {
    Some(Listener {
        name: raw.name.value.clone(),
        address: raw.address.as_ref()?.value,
        socket: raw.socket.clone(),
        protocol: match &raw.protocol {
            RawProtocol::Http => Protocol::Http,
            RawProtocol::Tcp(service) => {
                Protocol::Tcp(TcpSplit::only(names.service(&service.value)?))
            }
            RawProtocol::Tls { names: by_name, otherwise } => {
                let mode =
                    if raw.tls.is_some() { TlsMode::Terminate } else { TlsMode::Passthrough };
                Protocol::Tls(server_names(by_name, otherwise.as_ref(), mode, names)?)
            }
        },
        backlog: raw.backlog,
        connections_max: raw.connections_max.as_ref().map_or(connections_max, |at| at.value),
        trusted: raw.trusted.clone(),
        client_address: raw.client_address.clone(),
        forward_fields: raw.forward_fields,
        timeouts: raw.timeouts,
        head_max_bytes: raw.head_max_bytes,
        body_max_bytes: raw.body_max_bytes,
        proxy_status: raw.proxy_status,
        // These two are filled in by `snapshot`.
        error_pages: Vec::new(),
        tls: None,
        http2: raw.http2,
        hosts: raw.hosts.clone(),
        upgrade_protocols: raw.upgrade_protocols.clone(),
        proxy_protocol: raw.proxy_protocol.clone(),
        register: raw.register.as_ref().and_then(|raw| raw.registration.clone()),
    })
}

/// Exact names first, then wildcards, longer ones before shorter, then all others.
fn server_names(
    by_name: &[(At<String>, At<Arc<str>>)],
    otherwise: Option<&At<Arc<str>>>,
    mode: impl Fn(TcpSplit) -> TlsMode,
    names: &Names,
) -> Option<ServerNames> {
    let to = |service: &At<Arc<str>>| Some(mode(TcpSplit::only(names.service(&service.value)?)));
    let known = by_name.iter().map(|(name, service)| {
        let pattern = match name.value.strip_prefix("*.") {
            Some(suffix) => HostPattern::Wildcard(suffix.to_owned()),
            None => HostPattern::Exact(name.value.clone()),
        };
        Some((Some(pattern), to(service)?))
    });
    let others = otherwise.map(|service| Some((None, to(service)?)));
    let mut all = known.chain(others).collect::<Option<Vec<_>>>()?;
    all.sort_by_key(|(pattern, _)| match pattern {
        Some(HostPattern::Exact(_)) => (0, Reverse(0)),
        Some(HostPattern::Wildcard(suffix)) => (1, Reverse(suffix.len())),
        None => (2, Reverse(0)),
    });
    Some(ServerNames::new(all))
}

/// Returns the routes of one route in the file: one for each of its hosts, in order.
fn by_host(
    (raw, written_at): (RawRoute, WrittenAt),
    (content, affinity_key, pages): (Option<Material>, Option<AffinityKeyFile>, Vec<ErrorPage>),
    listeners: &[Listener],
    names: &Names,
) -> Option<impl Iterator<Item = Route>> {
    let matches = RouteMatch {
        priority: raw.priority,
        listeners: listeners_of(&raw, names),
        host: None,
        path: raw.path,
        method: raw.method,
        fields: raw.fields,
        query: raw.query,
        conditions: raw.conditions,
        age: None,
    };
    let authenticate = match &raw.authenticate {
        Some(required) => Some(names.authentication(&required.value)?),
        None => None,
    };
    let limits = raw.rate_limits.into_iter().map(|raw| raw.limit);
    let filters = request_filters(limits, raw.cors.map(Arc::new), authenticate);
    let maintenance = raw.maintenance;
    // The last of them is moved: most routes have one host.
    let action = action(raw.action, (content, affinity_key), names)?;
    let shared = std::iter::repeat_n((matches, action, filters, pages), raw.hosts.len());
    let name = raw.name.map(|name| name.value);
    Some(raw.hosts.into_iter().zip(shared).map(move |(host, shared)| {
        let (matches, action, filters, error_pages) = shared;
        let matches = RouteMatch { host: host.value, ..matches };
        let name = name.clone().unwrap_or_else(|| name_of(&matches, listeners));
        let written_at = written_at.clone();
        Route { name, matches, action, filters, maintenance, error_pages, written_at }
    }))
}

/// Where tables are written.
struct Places<'s> {
    sources: &'s Sources,
    lines: Lines<'s>,
    /// The name of the last one's file, shared by all tables in it.
    file: Arc<str>,
}

impl Places<'_> {
    fn of(&mut self, span: &Span) -> WrittenAt {
        let (file, line) = self.lines.line(span.start);
        if *self.file != *file {
            self.file = file.into();
        }
        if self.sources.at(span.start).is_file {
            WrittenAt::new(Arc::clone(&self.file), line)
        } else {
            WrittenAt::outside_files(Arc::clone(&self.file))
        }
    }
}

fn service(
    raw: RawService,
    (tls, key_file): (Option<Arc<ServiceTls>>, Option<AffinityKeyFile>),
    (pages, discover): (PageFiles, Option<Arc<Discover>>),
    webhook: Option<HttpPeer>,
) -> Option<Arc<Service>> {
    let RawService { service, error_pages: raw_pages, .. } = raw;
    let error_pages = error_pages(raw_pages, pages)?;
    let affinity = service.affinity.map(|affinity| Affinity { key_file, ..affinity });
    let scaling = service.scaling.map(|scaling| complete(scaling, webhook));
    Some(Arc::new(Service { tls, affinity, error_pages, discover, scaling, ..service }))
}

/// Returns the listeners that a route in the file names, without those that do not exist.
pub(crate) fn listeners_of(raw: &RawRoute, names: &Names) -> Vec<ListenerId> {
    let mut listeners: Vec<_> =
        raw.listeners.iter().filter_map(|name| names.listener(&name.value)).collect();
    listeners.sort_unstable();
    listeners.dedup();
    listeners
}

fn action(
    raw: RawAction,
    (content, key_file): (Option<Material>, Option<AffinityKeyFile>),
    names: &Names,
) -> Option<Action> {
    match raw {
        RawAction::Forward(forward) => {
            let to = forward.to.iter().map(|raw| branch(raw, &forward.fields, names));
            let to: Option<Vec<_>> = to.collect();
            let mirrors: Option<Vec<_>> = forward
                .mirrors
                .iter()
                .map(|&RawMirror { ref service, share, body_max_bytes }| {
                    let service = names.service(&service.value)?;
                    Some(Mirror { service, share, body_max_bytes: body_max_bytes as u32 })
                })
                .collect();
            let affinity = forward.affinity.map(|raw| RouteAffinity { key_file, ..raw.affinity });
            Some(Action::Forward(Box::new(Forward {
                to: to?,
                rewrite: forward.rewrite,
                filters: response_filters(forward.compress),
                mirrors: mirrors?,
                fields: forward.fields,
                timeouts: forward.timeouts,
                retries: forward.retries,
                affinity: affinity.map(Box::new),
            })))
        }
        RawAction::Redirect(redirect) => Some(Action::Redirect(redirect)),
        RawAction::Deny(status) => Some(Action::Deny(Denial::configured(status))),
        RawAction::Respond(respond) => Some(Action::Respond(response(respond, content, names)?)),
        RawAction::Unreadable => None,
    }
}

fn branch(raw: &RawBranch, of_route: &MessageChanges, names: &Names) -> Option<Split> {
    let RawBranch { to, weight, fields: own } = raw;
    let to = match to {
        RawTarget::Service(service) => SplitTarget::Service(names.service(&service.value)?),
        RawTarget::Deny(status) => SplitTarget::Deny(Denial::configured(*status)),
    };
    let fields = (!own.is_empty())
        .then(|| Box::new(BranchChanges { own: own.clone(), all: of_route.then(own) }));
    Some(Split { to, weight: *weight, fields })
}

fn response(raw: RawRespond, content: Option<Material>, names: &Names) -> Option<Respond> {
    match raw {
        RawRespond::Ready(services) => {
            let services = services.iter().map(|service| names.service(&service.value));
            Some(Respond::Ready(services.collect::<Option<_>>()?))
        }
        RawRespond::Fixed { status, content: raw } => {
            Some(Respond::Fixed { status, content: completed(raw, content)? })
        }
    }
}

fn error_pages(raw: Vec<RawErrorPage>, files: PageFiles) -> Option<Vec<ErrorPage>> {
    let pages = raw.into_iter().zip(files).map(|(raw, file)| {
        let RawErrorPage { errors, content } = raw;
        Some(ErrorPage { errors, content: completed(content, file)? })
    });
    pages.collect()
}

/// Returns a content with the body from its file, if it has one.
fn completed(raw: RawContent, file: Option<Material>) -> Option<Arc<Content>> {
    let RawContent { media_type, fields, body } = raw;
    let body = match body {
        RawBody::None => Arc::default(),
        RawBody::Text(text) => Arc::from(text.into_bytes()),
        RawBody::File(_) => file?.bytes,
    };
    Some(Arc::new(Content { media_type, fields, body }))
}

/// Returns the filters of a request, in the order in which they run before the route's action.
pub(crate) fn request_filters(
    limits: impl IntoIterator<Item = RateLimit>,
    cors: Option<Arc<Cors>>,
    authenticate: Option<AuthenticationId>,
) -> Vec<RequestFilter> {
    let (late, early): (Vec<_>, Vec<_>) =
        limits.into_iter().partition(|limit| limit.by.needs_identity());
    let filter = |limits: Vec<_>| (!limits.is_empty()).then_some(RequestFilter::RateLimits(limits));
    // Before the authentication: browsers send no credentials with a preflight.
    let cors = cors.map(RequestFilter::Cors);
    // After the limit, which keeps a client from occupying the threads that verify passwords.
    let authenticate = authenticate.map(RequestFilter::Authenticate);
    let all = [filter(early), cors, authenticate, filter(late)];
    all.into_iter().flatten().collect()
}

/// Returns the filters of a response, in order.
fn response_filters(compress: Option<Compression>) -> Vec<ResponseFilter> {
    compress.map(ResponseFilter::Compress).into_iter().collect()
}

/// Numbers routes whose derived names differ only in secrets, in order of the files: metrics and what an
/// operator has switched go by name, and must not move to another route when a secret changes.
fn tell_apart(routes: &mut [Route]) {
    let mut counts: HashMap<Arc<str>, u32> = HashMap::new();
    for route in routes {
        // A name that was given has no brackets.
        if !route.name.contains(Text::SECRET) {
            continue;
        }
        let count = counts.entry(route.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            route.name = format!("{} #{count}", route.name).into();
        }
    }
}

/// Returns a name for a route that has none: its conditions, as short as they allow.
fn name_of(matches: &RouteMatch, listeners: &[Listener]) -> Arc<str> {
    let RouteMatch {
        priority: _,
        listeners: of,
        host,
        path,
        method,
        fields,
        query,
        conditions,
        age: _,
    } = matches;
    let mut name = String::new();
    if let Some(method) = method {
        name.extend([method, " "]);
    }
    match host {
        // Writing to a String cannot fail.
        Some(host) => _ = write!(name, "{host}"),
        None => name.push('*'),
    }
    match path {
        PathMatch::Exact(path) => name.extend([path, " exactly"]),
        PathMatch::Prefix(prefix) if prefix.is_empty() => name.push('/'),
        PathMatch::Prefix(prefix) => name.push_str(prefix),
    }
    for FieldMatch { name: field, value } in fields {
        name.extend([" ", field, ":", value.shown()]);
    }
    for FieldMatch { name: parameter, value } in query {
        name.extend([" ?", parameter, "=", value.shown()]);
    }
    for condition in conditions {
        // Writing to a String cannot fail.
        let _ = write!(name, " {condition}");
    }
    for listener in of.iter().filter_map(|id| listeners.get(id.0 as usize)) {
        name.extend([" on ", &*listener.name]);
    }
    name.into()
}
