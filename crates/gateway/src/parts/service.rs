//! Ports of Services → services of Weir.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{
    AlternativeName, Certificate, Discover, Hold, HttpVersion, ListedLimits, Material,
    ServerSource, ServerSpec, ServerTarget, Service, ServiceId, ServiceTls,
};

use super::Templates;
use crate::ir::backend::{
    AppProtocol, Backend, CertificateName, ServerTls, ServerVerification, ServicePort, Target,
    Trust,
};
use crate::ir::{Gateway, Protocol, RouteKind, Rules};
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
            (RouteKind::Http, _) => Use::Requests,
            (RouteKind::Grpc, _) => Use::Grpc,
            (RouteKind::Tls, Protocol::TlsTerminate) => Use::Decrypted,
            (RouteKind::Tls | RouteKind::Tcp, _) => Use::Bytes,
        }
    }

    /// Returns whether connections to the Pods use TLS as a policy states.
    fn encrypts(self) -> bool {
        self != Use::Bytes
    }
}

/// What makes a service of Weir: a port of a Service, and how its Pods are reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServiceKey {
    service: Key,
    port: u16,
    /// For gRPC, without a protocol that the Service states.
    is_grpc: bool,
    /// Without the TLS that a policy states for the Service.
    is_bytes: bool,
    /// The Gateway whose certificate is presented to the Pods, if that can make a difference.
    gateway: Option<Key>,
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
        }
    }

    /// Returns the service's name: `namespace/service:port`, and what tells it from others of that port.
    fn name(&self) -> Arc<str> {
        let ServiceKey { service, port, is_grpc, is_bytes, gateway } = self;
        let suffix = match (is_grpc, is_bytes) {
            (true, _) => "/grpc",
            (false, true) => "/tcp",
            (false, false) => "",
        };
        match gateway {
            Some(gateway) => format!("{service}:{port}{suffix}/by/{gateway}").into(),
            None => format!("{service}:{port}{suffix}").into(),
        }
    }
}

/// The services of all Gateways.
#[derive(Debug, Default)]
pub(super) struct Services {
    ids: BTreeMap<ServiceKey, ServiceId>,
    all: Vec<Arc<Service>>,
}

impl Services {
    /// Returns the service that a backend's requests go to. `None`: the backend cannot be used, because it or
    /// its policy is invalid.
    pub(super) fn id(&self, target: &Target, using: Use, gateway: &Gateway) -> Option<ServiceId> {
        let port = target.service().filter(|port| is_usable(port, using))?;
        self.ids.get(&ServiceKey::of(port, using, gateway)).copied()
    }

    pub(super) fn into_services(self) -> Vec<Arc<Service>> {
        self.all
    }
}

fn is_usable(port: &ServicePort, using: Use) -> bool {
    !(using.encrypts() && matches!(port.tls, ServerTls::Invalid { .. }))
}

/// Returns the services that the routes of these Gateways forward to.
pub(super) fn collect(gateways: &[&Gateway], templates: &Templates<'_>) -> Services {
    let mut found: BTreeMap<Arc<str>, (ServiceKey, &ServicePort, &Gateway)> = BTreeMap::new();
    for gateway in gateways {
        for listener in gateway.ports.values().flatten() {
            for route in listener.routes.iter().map(|attached| &attached.route) {
                let using = Use::of(route.kind, listener.protocol);
                let ports = targets(&route.rules).filter_map(Target::service);
                for port in ports.filter(|port| is_usable(port, using)) {
                    let key = ServiceKey::of(port, using, gateway);
                    found.entry(key.name()).or_insert((key, port, gateway));
                }
            }
        }
    }
    let mut services = Services::default();
    for (name, (key, port, gateway)) in found {
        let id = ServiceId(services.all.len() as u32);
        let service = service(name, &key, port, gateway, templates);
        services.all.push(Arc::new(service));
        services.ids.insert(key, id);
    }
    services
}

fn target(backend: &Backend) -> &Target {
    &backend.target
}

/// Returns all targets of rules, those of copies included.
fn targets(rules: &Rules) -> Box<dyn Iterator<Item = &Target> + '_> {
    match rules {
        Rules::Requests(rules) => Box::new(rules.iter().flat_map(|rule| {
            let mirrors = rule.filters.mirrors.iter().map(|mirror| &mirror.target);
            rule.backends.iter().map(target).chain(mirrors)
        })),
        Rules::Connections(rules) => {
            Box::new(rules.iter().flat_map(|rule| rule.backends.iter().map(target)))
        }
    }
}

fn service(
    name: Arc<str>,
    key: &ServiceKey,
    port: &ServicePort,
    gateway: &Gateway,
    templates: &Templates<'_>,
) -> Service {
    let speaks_http2 = match &port.protocol {
        Some(AppProtocol::H2c | AppProtocol::Grpc) => true,
        Some(
            AppProtocol::Http
            | AppProtocol::Https
            | AppProtocol::WebSocket
            | AppProtocol::WebSocketTls
            | AppProtocol::Other(_),
        ) => false,
        None => key.is_grpc,
    };
    let tls = match &port.tls {
        ServerTls::Verified(how) if !key.is_bytes => Some(Arc::new(tls(how, gateway, templates))),
        ServerTls::Verified(_) | ServerTls::None | ServerTls::Invalid { .. } => None,
    };
    let servers = port.external_name.iter().map(|host| ServerSpec {
        target: ServerTarget::Name { host: host.to_ascii_lowercase(), port: port.port },
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
    });
    Service {
        name,
        http: if speaks_http2 { HttpVersion::Http2 } else { HttpVersion::Http11 },
        tls,
        servers: servers.collect(),
        discover: port.external_name.is_none().then(|| Arc::new(pods(port))),
        ..templates.service.clone()
    }
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

fn tls(how: &ServerVerification, gateway: &Gateway, templates: &Templates<'_>) -> ServiceTls {
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
        certificate: gateway.client_certificate.as_ref().map(certificate),
    }
}

/// Returns a certificate as the configuration has it. Its paths say which Secret it comes from.
pub fn certificate(of: &crate::ir::Certificate) -> Certificate {
    let path = |key: &str| PathBuf::from(format!("Secret {}, {key}", of.secret));
    Certificate {
        chain: Material { path: path("tls.crt"), bytes: Arc::clone(&of.chain) },
        key: Material { path: path("tls.key"), bytes: Arc::clone(&of.private_key) },
        ocsp: None,
        acme: None,
    }
}

/// Returns the certificates of several authorities as one file.
pub fn authorities(all: &[crate::ir::Authorities]) -> Material {
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
