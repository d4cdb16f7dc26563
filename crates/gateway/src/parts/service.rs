//! Ports of Services → services of Weir.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use model::{
    AlternativeName, Certificate, Differing, Discover, Hold, HttpVersion, ListedLimits, Material,
    ServerSource, ServerSpec, ServerTarget, Service, ServiceId, ServiceTls, differing,
};

use super::{Templates, ingress};
use crate::ir::app_protocol::AppProtocol;
use crate::ir::backend::{
    CertificateName, ServerTls, ServerVerification, ServicePort, Target, Trust,
};
use crate::ir::settings::UpstreamTls;
use crate::ir::{self, AttachedRoute, Gateway, ListenerId, Protocol, RouteKind};
use crate::objects::Key;

/// How a route uses the Pods of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It forwards requests.
    Requests,
    /// It forwards requests of gRPC.
    Grpc,
    /// It forwards bytes that were decrypted here. If the Pods speak TLS, they are encrypted again.
    Decrypted,
    /// It forwards bytes as they are.
    Bytes,
}

impl Use {
    /// Returns how a route of this kind, at a listener of this protocol, uses its backends.
    pub(super) fn of(kind: RouteKind, protocol: Protocol) -> Use {
        match (kind, protocol) {
            (RouteKind::Http, _) | (RouteKind::Ingress, Protocol::Http | Protocol::Https) => {
                Use::Requests
            }
            (RouteKind::Grpc, _) => Use::Grpc,
            (RouteKind::Tls, Protocol::TlsTerminate) => Use::Decrypted,
            (RouteKind::Tls | RouteKind::Tcp | RouteKind::Ingress, _) => Use::Bytes,
        }
    }

    /// Returns whether connections to the Pods use TLS as a policy states.
    fn encrypts(self) -> bool {
        self != Use::Bytes
    }
}

/// What makes a service of Weir: a port of a Service, and how its Pods are reached. Ports with equal keys are equal: they are
/// resolved from the same objects at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ServiceKey {
    service: Key,
    port: u16,
    /// For gRPC, without a protocol that the Service states.
    is_grpc: bool,
    /// Without the TLS that a policy states for the Service.
    is_bytes: bool,
    /// The Gateway whose certificate is presented to the Pods, if that can make a difference.
    gateway: Option<Key>,
    /// The Ingress that states settings for it.
    ingress: Option<Key>,
    /// Whether they are those of a canary.
    is_canary: bool,
}

impl ServiceKey {
    fn of(port: &ServicePort, using: Use, gateway: &Gateway) -> ServiceKey {
        let is_verified = using.encrypts() && matches!(port.tls, ServerTls::Verified(_));
        let presents = is_verified && gateway.client_certificate.is_some();
        ServiceKey {
            service: port.service.clone(),
            port: port.port,
            is_grpc: using == Use::Grpc && port.protocol.is_none(),
            is_bytes: !using.encrypts() && port.tls != ServerTls::None,
            gateway: presents.then(|| gateway.key.clone()),
            ingress: port.settings.as_ref().map(|settings| settings.ingress.clone()),
            is_canary: port.settings.as_ref().is_some_and(|settings| settings.is_canary),
        }
    }

    /// Returns the service's name: `namespace/service:port`, and what tells it from others of that port.
    fn name(&self) -> Arc<str> {
        let ServiceKey { service, port, is_grpc, is_bytes, gateway, ingress, is_canary } = self;
        let suffix = match (is_grpc, is_bytes) {
            (true, _) => "/grpc",
            (false, true) => "/tcp",
            (false, false) => "",
        };
        match (gateway, ingress) {
            (Some(gateway), _) => format!("{service}:{port}{suffix}/by/{gateway}").into(),
            (None, Some(ingress)) => {
                let canary = if *is_canary { "/canary" } else { "" };
                format!("{service}:{port}{suffix}/as/{ingress}{canary}").into()
            }
            (None, None) => format!("{service}:{port}{suffix}").into(),
        }
    }
}

/// A service, and what it was made from.
#[derive(Debug)]
struct Made {
    key: ServiceKey,
    port: Arc<ServicePort>,
    /// What is presented to the Pods.
    certificate: Option<ir::Certificate>,
    service: Arc<Service>,
}

impl Made {
    fn new(
        key: ServiceKey,
        port: &Arc<ServicePort>,
        certificate: Option<&ir::Certificate>,
        templates: Templates<'_>,
    ) -> Made {
        let service = Arc::new(service(&key, port, certificate, templates));
        Made { key, port: Arc::clone(port), certificate: certificate.cloned(), service }
    }

    fn is_of(&self, port: &Arc<ServicePort>, certificate: Option<&ir::Certificate>) -> bool {
        (Arc::ptr_eq(&self.port, port) || self.port == *port)
            && self.certificate.as_ref() == certificate
    }
}

/// The services of all Gateways. Those that have not changed stay where they are in memory.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What they were made with.
    templates: Option<(Service, Material)>,
    used: Used,
    /// In order of name.
    all: Vec<Made>,
    positions: HashMap<ServiceKey, usize>,
}

impl Kept {
    /// Changes them to those that the routes of these Gateways forward to. Returns whether any has changed.
    pub(super) fn update(&mut self, gateways: &[&Gateway], templates: Templates<'_>) -> bool {
        let is_current = |(service, authorities): &(Service, Material)| {
            service == templates.service && authorities == templates.authorities
        };
        let has_templates = self.templates.as_ref().is_some_and(is_current);
        if !has_templates {
            self.templates = Some((templates.service.clone(), templates.authorities.clone()));
            self.all.clear();
        }
        if !self.used.update(gateways) && has_templates {
            return false;
        }
        let mut wanted: HashMap<&ServiceKey, &Arc<ServicePort>> =
            self.used.ports.iter().map(|(key, (port, _))| (key, port)).collect();
        let by_key: HashMap<&Key, &Gateway> = gateways.iter().map(|one| (&one.key, *one)).collect();
        let presented = |key: &ServiceKey| {
            let gateway = key.gateway.as_ref().and_then(|key| by_key.get(key));
            gateway.and_then(|gateway| gateway.client_certificate.as_ref())
        };
        let mut all = Vec::with_capacity(wanted.len());
        for made in std::mem::take(&mut self.all) {
            let Some(port) = wanted.remove(&made.key) else { continue };
            let certificate = presented(&made.key);
            if made.is_of(port, certificate) {
                all.push(made);
            } else {
                all.push(Made::new(made.key, port, certificate, templates));
            }
        }
        let new = wanted.into_iter();
        all.extend(new.map(|(key, port)| Made::new(key.clone(), port, presented(key), templates)));
        all.sort_by(|one, other| one.service.name.cmp(&other.service.name));
        self.positions = all.iter().enumerate().map(|(at, made)| (made.key.clone(), at)).collect();
        self.all = all;
        true
    }

    /// Returns them in order of name.
    pub(super) fn services(&self) -> impl ExactSizeIterator<Item = &Arc<Service>> {
        self.all.iter().map(|made| &made.service)
    }
}

/// The ports of Services that routes forward to.
#[derive(Debug, Default)]
struct Used {
    listeners: Vec<Followed>,
    /// Each with how often it is referred to.
    ports: HashMap<ServiceKey, (Arc<ServicePort>, usize)>,
}

/// A listener whose routes are followed.
#[derive(Debug)]
struct Followed {
    id: ListenerId,
    protocol: Protocol,
    /// The certificate of its Gateway for servers.
    certificate: Option<ir::Certificate>,
    routes: Arc<Vec<Arc<AttachedRoute>>>,
}

impl Used {
    /// Changes them to those of these Gateways. Returns whether any has changed.
    fn update(&mut self, gateways: &[&Gateway]) -> bool {
        let listeners = || listeners(gateways);
        let is_same = |(known, (gateway, listener)): (&Followed, (&Gateway, &ir::Listener))| {
            (&known.id, known.protocol) == (&listener.id, listener.protocol)
                && known.certificate == gateway.client_certificate
        };
        let mut is_changed = false;
        if self.listeners.len() != listeners().count()
            || !self.listeners.iter().zip(listeners()).all(is_same)
        {
            let followed = listeners().map(|(gateway, listener)| Followed {
                id: listener.id.clone(),
                protocol: listener.protocol,
                certificate: gateway.client_certificate.clone(),
                routes: Arc::default(),
            });
            *self = Used { listeners: followed.collect(), ports: HashMap::default() };
            is_changed = true;
        }
        for (known, (gateway, listener)) in self.listeners.iter_mut().zip(listeners()) {
            let Differing { gone, new } = differing(&known.routes, &listener.routes);
            for (key, port) in new.into_iter().flat_map(|one| keys(one, listener, gateway)) {
                let Some((known, count)) = self.ports.get_mut(&key) else {
                    self.ports.insert(key, (Arc::clone(port), 1));
                    is_changed = true;
                    continue;
                };
                *count += 1;
                if !Arc::ptr_eq(known, port) && *known != *port {
                    *known = Arc::clone(port);
                    is_changed = true;
                }
            }
            for (key, _) in gone.into_iter().flat_map(|one| keys(one, listener, gateway)) {
                let Some((_, count)) = self.ports.get_mut(&key) else { continue };
                *count -= 1;
                if *count == 0 {
                    self.ports.remove(&key);
                    is_changed = true;
                }
            }
            known.routes = Arc::clone(&listener.routes);
        }
        is_changed
    }
}

fn listeners<'a>(
    gateways: &[&'a Gateway],
) -> impl Iterator<Item = (&'a Gateway, &'a ir::Listener)> {
    gateways.iter().flat_map(|gateway| {
        let of_gateway = gateway.ports.values().flatten();
        of_gateway.map(move |listener| (*gateway, listener))
    })
}

/// Returns what a route at a listener forwards to, and what is asked about its requests.
fn keys<'a>(
    attached: &'a AttachedRoute,
    listener: &ir::Listener,
    gateway: &'a Gateway,
) -> impl Iterator<Item = (ServiceKey, &'a Arc<ServicePort>)> {
    let using = Use::of(attached.route.kind, listener.protocol);
    let forwarded = attached.route.forwarded().map(move |port| (port, using));
    // Whatever the route is for, a server is asked with a request of HTTP.
    let asked = attached.route.asked().map(|port| (port, Use::Requests));
    let usable = forwarded.chain(asked).filter(|(port, using)| is_usable(port, *using));
    usable.map(|(port, using)| (ServiceKey::of(port, using, gateway), port))
}

/// The services of all Gateways with their IDs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Services<'a> {
    kept: &'a Kept,
    /// In order of name.
    ids: &'a [ServiceId],
}

impl Services<'_> {
    pub(super) fn new<'a>(kept: &'a Kept, ids: &'a [ServiceId]) -> Services<'a> {
        Services { kept, ids }
    }

    /// Returns all of them, by the names that they have unless one of the files has the same.
    pub(super) fn all(&self) -> impl Iterator<Item = (Arc<str>, ServiceId)> {
        let names = self.kept.services().map(|service| Arc::clone(&service.name));
        names.zip(self.ids.iter().copied())
    }

    /// Returns the service that a backend's requests go to. `None`: the backend cannot be used, because it or
    /// its policy is invalid.
    pub(super) fn id(&self, target: &Target, using: Use, gateway: &Gateway) -> Option<ServiceId> {
        let port = target.service().filter(|port| is_usable(port, using))?;
        let position = self.kept.positions.get(&ServiceKey::of(port, using, gateway))?;
        self.ids.get(*position).copied()
    }
}

fn is_usable(port: &ServicePort, using: Use) -> bool {
    !(using.encrypts() && matches!(port.tls, ServerTls::Invalid { .. }))
}

fn service(
    key: &ServiceKey,
    port: &ServicePort,
    presented: Option<&ir::Certificate>,
    templates: Templates<'_>,
) -> Service {
    let settings = port.settings.as_deref();
    let stated = settings.and_then(|settings| settings.protocol.as_ref());
    let stated = stated.or(port.protocol.as_ref());
    let speaks_http2 = stated.map_or(key.is_grpc, AppProtocol::is_http2);
    let tls = match &port.tls {
        ServerTls::Verified(how) if !key.is_bytes => Some(Arc::new(tls(how, presented, templates))),
        ServerTls::Verified(_) | ServerTls::None | ServerTls::Invalid { .. } => None,
    };
    let of_ingress = settings.and_then(|settings| settings.tls.as_ref());
    let of_ingress = of_ingress.filter(|_| !key.is_bytes);
    let tls = tls.or_else(|| of_ingress.map(|tls| Arc::new(tls_of_ingress(tls, templates))));
    let servers = port.external_name.iter().map(|host| ServerSpec {
        target: ServerTarget::Name { host: host.to_ascii_lowercase(), port: port.port },
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
    });
    let mut service = Service {
        name: key.name(),
        http: if speaks_http2 { HttpVersion::Http2 } else { HttpVersion::Http11 },
        tls,
        servers: servers.collect(),
        discover: port.external_name.is_none().then(|| Arc::new(pods(port))),
        ..templates.service.clone()
    };
    if let Some(terms) = &port.terms {
        terms.set(&mut service);
    }
    ingress::set(&mut service, settings);
    service
}

/// Returns that the servers are the Pods of a port.
fn pods(port: &ServicePort) -> Discover {
    Discover {
        source: ServerSource::Kubernetes {
            namespace: Arc::clone(&port.service.namespace),
            service: Arc::clone(&port.service.name),
            port: port.name.clone(),
        },
        port: None,
        limits: ListedLimits::Each,
        // The API server knows which Pods exist, and their addresses are soon those of other Pods.
        hold: Hold { share: 0.0, max: Duration::ZERO },
        saved: false,
        kept_max: None,
    }
}

fn tls(
    how: &ServerVerification,
    presented: Option<&ir::Certificate>,
    templates: Templates<'_>,
) -> ServiceTls {
    let ca = match &how.trust {
        Trust::System => templates.authorities.clone(),
        Trust::Authorities(all) => authorities(all),
    };
    let names = how.names.iter().map(|name| match name {
        CertificateName::Host(host) => AlternativeName::Dns(host.clone()),
        CertificateName::Uri(uri) => AlternativeName::Uri(uri.clone()),
    });
    ServiceTls {
        name: Some(how.hostname.as_str().into()),
        names: names.collect(),
        verify: true,
        ca,
        certificate: presented.map(certificate),
    }
}

/// Returns how connections to Pods use TLS as an Ingress states.
fn tls_of_ingress(tls: &UpstreamTls, templates: Templates<'_>) -> ServiceTls {
    let of_secret = |(secret, pem): &(Key, Arc<[u8]>)| Material {
        path: PathBuf::from(format!("Secret {secret}, ca.crt")),
        bytes: Arc::clone(pem),
    };
    ServiceTls {
        name: tls.name.clone(),
        names: Vec::new(),
        verify: tls.authorities.is_some(),
        ca: tls.authorities.as_ref().map_or_else(|| templates.authorities.clone(), of_secret),
        certificate: tls.certificate.as_ref().map(certificate),
    }
}

/// Returns a certificate as the configuration has it. Its paths say which Secret it comes from.
pub fn certificate(of: &ir::Certificate) -> Certificate {
    let path = |key: &str| PathBuf::from(format!("Secret {}, {key}", of.secret));
    Certificate {
        chain: Material { path: path("tls.crt"), bytes: Arc::clone(&of.chain) },
        key: Material { path: path("tls.key"), bytes: Arc::clone(&of.private_key) },
        ocsp: None,
        acme: None,
    }
}

/// Returns the certificates of several authorities as one file.
pub fn authorities(all: &[ir::Authorities]) -> Material {
    let sources: Vec<_> = all.iter().map(|one| format!("ConfigMap {}", one.source)).collect();
    let path = PathBuf::from(sources.join(", "));
    let bytes = match all {
        [only] => Arc::clone(&only.pem),
        several => {
            let mut pem = Vec::new();
            for one in several {
                pem.extend_from_slice(&one.pem);
                // A block must begin on a line of its own.
                pem.push(b'\n');
            }
            pem.into()
        }
    };
    Material { path, bytes }
}
