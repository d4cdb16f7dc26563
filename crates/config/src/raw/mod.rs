//! The file as read: every value with its checked type and its position, names not yet resolved.
//!
//! One reader per table. `check` verifies what several tables must agree on.

mod acme;
mod admin;
mod affinity;
mod authentication;
mod autoscaler;
mod content;
mod defaults;
mod discover;
mod error_page;
mod fleet;
pub(crate) mod http;
mod kubernetes;
mod listener;
mod log;
mod maintenance;
pub(crate) mod net;
mod numbers;
mod otlp;
mod paths;
mod probe;
mod register;
mod registries;
mod retries;
mod route;
mod scaling;
pub(crate) mod service;
mod statuses;
mod table;
mod tables;
mod tls;
mod top;

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{
    Address, ClientAddress, ClientHttp2, ClientTimeouts, Compression, Condition, Cors, Doctor,
    ErrorSet, FieldMatch, ForwardFields, HostPattern, Hosts, Kubernetes, Maintenance,
    MessageChanges, Metrics, Networks, PathMatch, RateLimit, Redirect, Reload, Rewrite,
    RouteRetries, RouteTimeouts, ServerSourceWord, SocketAccess, Test, Text,
};

pub(crate) use acme::{RawAcme, RawExternalAccount};
pub(crate) use affinity::RawRouteAffinity;
pub(crate) use authentication::{
    RawAuthentication, RawForwardAuth, RawKeySource, RawScheme, RawToken,
};
pub(crate) use autoscaler::RawAutoscaler;
pub(crate) use discover::{RawDiscover, RawSource};
pub(crate) use fleet::{RawFleet, RawFleetTls};
pub(crate) use kubernetes::RawServicePort;
pub(crate) use log::RawLog;
pub(crate) use otlp::RawOtlp;
pub(crate) use register::RawRegister;
pub(crate) use registries::{RawRegistries, RawRegistry};
pub(crate) use scaling::RawScalingWebhook;
pub(crate) use tls::{RawCertificate, RawListenerTls, RawServiceTls, RawUnknownNames};
pub(crate) use top::{document, includes};

use crate::diagnostic::{At, Span, Wrong};

/// The whole file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) zone: Option<At<Arc<str>>>,
    pub(crate) workers: Option<NonZeroU16>,
    pub(crate) connections_max: At<u32>,
    pub(crate) request_buffers_max_bytes: u64,
    pub(crate) compression_memory_max_bytes: u64,
    pub(crate) mirror_memory_max_bytes: u64,
    pub(crate) history_memory_max_bytes: u64,
    pub(crate) drain_delay: Duration,
    pub(crate) drain_max: Duration,
    pub(crate) state_directory: Option<PathBuf>,
    pub(crate) affinity_key_file: Option<At<PathBuf>>,
    pub(crate) run_as: Option<(String, Option<String>)>,
    pub(crate) admin: Option<RawAdmin>,
    pub(crate) metrics: RawMetrics,
    pub(crate) otlp: Option<RawOtlp>,
    /// An unknown key was probably meant to be `otlp`, or it has a mistake.
    pub(crate) otlp_meant: bool,
    pub(crate) acme: Option<RawAcme>,
    /// An unknown key was probably meant to be `acme`.
    pub(crate) acme_meant: bool,
    pub(crate) resolver: Vec<SocketAddr>,
    pub(crate) registries: RawRegistries,
    pub(crate) keda: Option<RawAutoscaler>,
    pub(crate) kubernetes: Option<Kubernetes>,
    /// `external_metrics` of `[kubernetes]`.
    pub(crate) external_metrics: Option<RawAutoscaler>,
    /// There is a `kubernetes`, or an unknown key was probably meant to be it.
    pub(crate) kubernetes_meant: bool,
    pub(crate) fleet: Option<RawFleet>,
    /// There is a `fleet`, or an unknown key was probably meant to be it.
    pub(crate) fleet_meant: bool,
    pub(crate) log: RawLog,
    pub(crate) reload: Reload,
    pub(crate) doctor: Doctor,
    pub(crate) listeners: Vec<RawListener>,
    /// An unknown key was probably meant to contain listeners.
    pub(crate) listeners_meant: bool,
    pub(crate) routes: Vec<RawRoute>,
    /// The names of all services could be read.
    pub(crate) services_known: bool,
    /// In order of name.
    pub(crate) services: Vec<RawService>,
    /// The names of all authentications could be read.
    pub(crate) authentications_known: bool,
    /// In order of name.
    pub(crate) authentications: Vec<RawAuthentication>,
}

/// A listener that is not for clients of services.
pub(crate) struct SideListener<'a> {
    /// What it is for, as a subject in the plural.
    pub(crate) what: &'static str,
    /// The table that has it.
    pub(crate) table: &'static str,
    pub(crate) address: &'a At<SocketAddr>,
    pub(crate) tls: Option<&'a RawListenerTls>,
}

impl Document {
    /// Returns the listeners for metrics and for autoscalers.
    pub(crate) fn side_listeners(&self) -> impl Iterator<Item = SideListener<'_>> {
        let metrics = self.metrics.listener.as_ref().map(|raw| SideListener {
            what: "metrics",
            table: "[metrics]",
            address: &raw.address,
            tls: raw.tls.as_ref(),
        });
        let autoscalers = [
            ("numbers for KEDA", "[keda]", &self.keda),
            ("external metrics", "[kubernetes]", &self.external_metrics),
        ];
        let autoscalers = autoscalers.into_iter().filter_map(|(what, table, raw)| {
            let raw = raw.as_ref()?;
            Some(SideListener { what, table, address: &raw.address, tls: raw.tls.as_ref() })
        });
        metrics.into_iter().chain(autoscalers)
    }

    /// Returns whether services in Consul may publish routes.
    pub(crate) fn has_published_routes(&self) -> bool {
        self.registries.consul.as_ref().is_some_and(|raw| raw.settings.routes.is_some())
    }

    /// Returns whether a service takes its servers from such a source, the fleet its members, a listener registers
    /// there, or routes come from there.
    pub(crate) fn uses(&self, kind: ServerSourceWord) -> bool {
        if kind == ServerSourceWord::Consul
            && (self.has_published_routes()
                || self.listeners.iter().any(|raw| raw.register.is_some()))
        {
            return true;
        }
        let of_services = self.services.iter().filter_map(|raw| raw.discover.as_ref());
        let of_fleet = self.fleet.as_ref().and_then(|raw| raw.discover.as_ref());
        let mut sources = of_services.chain(of_fleet).filter_map(|raw| raw.source.as_ref());
        sources.any(|source| source.kind() == kind)
    }
}

/// One limit of `rate_limit` of a route.
#[derive(Debug)]
pub(crate) struct RawRateLimit {
    pub(crate) limit: RateLimit,
    pub(crate) span: Span,
    pub(crate) scope_span: Span,
}

/// `[metrics]`.
#[derive(Debug)]
pub(crate) struct RawMetrics {
    /// Without its listener.
    pub(crate) metrics: Metrics,
    pub(crate) listener: Option<RawMetricsListener>,
}

#[derive(Debug)]
pub(crate) struct RawMetricsListener {
    pub(crate) address: At<SocketAddr>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) tls: Option<RawListenerTls>,
}

/// `[admin]`.
#[derive(Debug)]
pub(crate) struct RawAdmin {
    pub(crate) address: At<Address>,
    pub(crate) token_file: Option<PathBuf>,
}

/// `[[listener]]`.
#[derive(Debug)]
pub(crate) struct RawListener {
    pub(crate) name: At<Arc<str>>,
    /// `None`: it could not be read; a mistake is reported.
    pub(crate) address: Option<At<Address>>,
    pub(crate) socket: SocketAccess,
    /// Its heading.
    pub(crate) span: Span,
    pub(crate) protocol: RawProtocol,
    pub(crate) backlog: Option<u32>,
    pub(crate) connections_max: Option<At<u32>>,
    pub(crate) trusted: Networks,
    pub(crate) client_address: ClientAddress,
    pub(crate) forward_fields: ForwardFields,
    pub(crate) hosts: Option<Hosts>,
    pub(crate) upgrade_protocols: Vec<Box<str>>,
    pub(crate) timeouts: ClientTimeouts,
    pub(crate) head_max_bytes: u32,
    pub(crate) body_max_bytes: Option<u64>,
    pub(crate) proxy_status: bool,
    pub(crate) error_pages: Vec<RawErrorPage>,
    pub(crate) tls: Option<RawListenerTls>,
    pub(crate) http2: Option<ClientHttp2>,
    pub(crate) proxy_protocol: Networks,
    pub(crate) register: Option<RawRegister>,
}

/// The protocol of a listener, its services by name.
#[derive(Debug)]
pub(crate) enum RawProtocol {
    Http,
    Tcp(At<Arc<str>>),
    /// TLS by server name: decrypted if the listener has `tls`, otherwise passed through.
    Tls {
        /// By server name, in lower case, with or without `*.` before it.
        names: Vec<(At<String>, At<Arc<str>>)>,
        otherwise: Option<At<Arc<str>>>,
    },
}

impl RawProtocol {
    /// Returns the services that it names; for an http listener, the routes name them.
    pub(crate) fn services(&self) -> impl Iterator<Item = &At<Arc<str>>> {
        let (by_name, other) = match self {
            RawProtocol::Http => (&[][..], None),
            RawProtocol::Tcp(service) => (&[][..], Some(service)),
            RawProtocol::Tls { names, otherwise } => (&names[..], otherwise.as_ref()),
        };
        by_name.iter().map(|(_, service)| service).chain(other)
    }
}

/// `[[route]]`.
#[derive(Debug)]
pub(crate) struct RawRoute {
    /// Its heading.
    pub(crate) span: Span,
    /// All of its conditions could be read, so it may be compared with others.
    pub(crate) certain: bool,
    pub(crate) name: Option<At<Arc<str>>>,
    pub(crate) priority: u32,
    pub(crate) listeners: Vec<At<Arc<str>>>,
    /// One route each; never empty.
    pub(crate) hosts: Vec<At<Option<HostPattern>>>,
    pub(crate) path: PathMatch,
    pub(crate) method: Option<String>,
    pub(crate) fields: Vec<FieldMatch>,
    pub(crate) query: Vec<FieldMatch>,
    /// All other conditions, sorted. [`crate::files::add_client_lists`] adds those of `client_files`.
    pub(crate) conditions: Vec<Condition>,
    /// Files with networks that the client must be in, or must not be in (`true`).
    pub(crate) client_files: Vec<(bool, At<PathBuf>)>,
    pub(crate) action: RawAction,
    pub(crate) rate_limits: Vec<RawRateLimit>,
    pub(crate) cors: Option<Cors>,
    pub(crate) authenticate: Option<At<Arc<str>>>,
    /// It has the key, even if its value could not be read.
    pub(crate) authenticates: bool,
    pub(crate) maintenance: Option<Maintenance>,
    pub(crate) error_pages: Vec<RawErrorPage>,
}

impl RawRoute {
    /// Returns the exact texts among its conditions.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text> {
        let fields = self.fields.iter().chain(&self.query).map(|field| &field.value);
        let others = self.conditions.iter().filter_map(|condition| match &condition.test {
            Test::Exact(text) => Some(text),
            Test::Pattern(_) | Test::Present | Test::Among(_) => None,
        });
        fields.chain(others)
    }
}

/// A route's action, services by name.
#[derive(Debug)]
pub(crate) enum RawAction {
    Forward(Box<RawForward>),
    Redirect(Redirect),
    Deny(u16),
    Respond(RawRespond),
    /// It could not be read; a mistake is reported.
    Unreadable,
}

impl RawAction {
    /// Returns the services that it names.
    pub(crate) fn services(&self) -> Vec<&At<Arc<str>>> {
        match self {
            RawAction::Forward(forward) => forward.services().collect(),
            RawAction::Respond(RawRespond::Ready(services)) => services.iter().collect(),
            RawAction::Respond(RawRespond::Fixed { .. })
            | RawAction::Redirect(_)
            | RawAction::Deny(_)
            | RawAction::Unreadable => Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum RawRespond {
    /// The services that must have a ready server.
    Ready(Vec<At<Arc<str>>>),
    Fixed {
        status: u16,
        content: RawContent,
    },
}

/// An entry of `error_page`.
#[derive(Debug)]
pub(crate) struct RawErrorPage {
    pub(crate) errors: ErrorSet,
    pub(crate) content: RawContent,
}

/// The content of a configured response, and further fields.
#[derive(Debug)]
pub(crate) struct RawContent {
    pub(crate) media_type: Option<String>,
    pub(crate) fields: Vec<(String, Text)>,
    pub(crate) body: RawBody,
}

impl RawContent {
    /// Returns the file that contains the body.
    pub(crate) fn file(&self) -> Option<&At<PathBuf>> {
        match &self.body {
            RawBody::File(at) => Some(at),
            RawBody::None | RawBody::Text(_) => None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum RawBody {
    None,
    Text(String),
    File(At<PathBuf>),
}

#[derive(Debug)]
pub(crate) struct RawForward {
    pub(crate) to: Vec<RawBranch>,
    pub(crate) rewrite: Rewrite,
    pub(crate) mirrors: Vec<RawMirror>,
    pub(crate) compress: Option<Compression>,
    pub(crate) fields: MessageChanges,
    pub(crate) timeouts: RouteTimeouts,
    pub(crate) retries: RouteRetries,
    pub(crate) affinity: Option<RawRouteAffinity>,
}

/// An entry of `split`, or the one branch that `service` means.
#[derive(Debug)]
pub(crate) struct RawBranch {
    pub(crate) to: RawTarget,
    pub(crate) weight: u32,
    /// Its own changes, without the route's.
    pub(crate) fields: MessageChanges,
}

/// Where the requests of a branch go.
#[derive(Debug)]
pub(crate) enum RawTarget {
    Service(At<Arc<str>>),
    Deny(u16),
}

impl RawForward {
    /// Returns the services that it names: first those of [`RawForward::targets`].
    pub(crate) fn services(&self) -> impl Iterator<Item = &At<Arc<str>>> {
        self.targets().chain(self.mirrors.iter().map(|mirror| &mirror.service))
    }

    /// Returns the services of its branches.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &At<Arc<str>>> {
        self.to.iter().filter_map(|branch| match &branch.to {
            RawTarget::Service(service) => Some(service),
            RawTarget::Deny(_) => None,
        })
    }
}

/// An entry of `mirror`.
#[derive(Debug)]
pub(crate) struct RawMirror {
    pub(crate) service: At<Arc<str>>,
    pub(crate) share: f64,
    pub(crate) body_max_bytes: u64,
}

/// `[service.NAME]`. It references nothing by name, so it already has the snapshot's form; in
/// addition, the positions that checks report.
#[derive(Debug)]
pub(crate) struct RawService {
    pub(crate) service: model::Service,
    /// Its name in the heading.
    pub(crate) name: Span,
    /// Of `in_flight_max`.
    pub(crate) in_flight_max: Option<Span>,
    /// `None` after a mistake, which is reported.
    pub(crate) in_flight_scope: Option<At<model::LimitScope>>,
    /// Of its own `in_flight_scope`.
    pub(crate) own_in_flight_scope: Option<Span>,
    /// One of its servers has a limit, was probably meant to have one, or may get one from `discover`.
    pub(crate) limit_meant: bool,
    /// Of its own `queue`.
    pub(crate) queue: Option<Span>,
    /// Of its own `hash.on`.
    pub(crate) hash_on: Option<Span>,
    /// The service's `tls`, completed from its files.
    pub(crate) tls: Option<RawServiceTls>,
    /// Of its own `http`.
    pub(crate) http: Option<Span>,
    /// The service's error pages, completed from their files.
    pub(crate) error_pages: Vec<RawErrorPage>,
    /// Of its own `affinity`.
    pub(crate) affinity: Option<Span>,
    /// `affinity.key_file`; the contents become the key.
    pub(crate) affinity_key: Option<At<PathBuf>>,
    /// The service's `discover`, completed from its files.
    pub(crate) discover: Option<RawDiscover>,
    /// Of its `scaling`, completed from its files.
    pub(crate) scaling_webhook: Option<RawScalingWebhook>,
    /// Positions of its servers' addresses.
    pub(crate) servers: Vec<RawServerSpans>,
}

#[derive(Debug)]
pub(crate) struct RawServerSpans {
    pub(crate) address: Span,
    pub(crate) zone: Option<Span>,
    /// Of its own `in_flight_max`.
    pub(crate) in_flight_max: Option<Span>,
}

/// Parses the name of a user or a group of the system.
fn account(text: &str) -> Result<String, Wrong> {
    match text {
        "" => Err(Wrong::new("a name is missing")),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a name of something in the file.
pub(crate) fn name(text: &str) -> Result<Arc<str>, Wrong> {
    const CHARS_MAX: usize = 128;
    if text.is_empty() {
        return Err(Wrong::new("a name has at least one character"));
    }
    if text.chars().count() > CHARS_MAX {
        return Err(Wrong::new(format!("longer than {CHARS_MAX} characters")));
    }
    match text.chars().find(|&c| !c.is_ascii_alphanumeric() && !"_.:*/-".contains(c)) {
        None => Ok(text.into()),
        Some(c) => Err(Wrong::new(format!(
            "{} may not stand in a name",
            crate::diagnostic::quote(&c.to_string())
        ))
        .help("a name has letters, digits, and - _ . : / *, since it is a label in metrics")),
    }
}
