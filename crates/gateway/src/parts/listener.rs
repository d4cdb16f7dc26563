//! A port of a Gateway → a listener of Weir.

use model::{
    Address, ClientCertificateMode, ClientCertificates, Hosts, Listener, ListenerTls, Protocol,
    ServerNames, TcpBranch, TcpSplit, TlsMode, TlsVersion, UnknownNames,
};

use super::service::{Services, Use};
use super::{Templates, isolation, service};
use crate::ir::{self, AttachedRoute, ClientMode, Gateway, Rules};

/// Returns the listener for a port with these listeners of a Gateway.
pub(super) fn listener(
    (gateway, port): (&Gateway, u16),
    listeners: &[ir::Listener],
    address: Address,
    services: Services<'_>,
    templates: Templates<'_>,
) -> Listener {
    let decrypts = listeners.iter().any(|listener| listener.protocol.terminates_tls());
    // Without one, the hosts of routes alone decide, and an unknown host gets 404 all the same.
    let serves_any = listeners.len() == 1 && listeners[0].host.is_none();
    let has_requests = listeners.iter().any(|listener| match listener.protocol {
        ir::Protocol::Http | ir::Protocol::Https => true,
        ir::Protocol::TlsTerminate | ir::Protocol::TlsPassthrough | ir::Protocol::Tcp => false,
    });
    let hosts = || Hosts::new(listeners.iter().map(|listener| listener.host.clone()));
    Listener {
        name: format!("{}:{port}", gateway.key).into(),
        address,
        protocol: protocol(gateway, listeners, services),
        tls: decrypts.then(|| tls(listeners, templates)),
        hosts: (has_requests && !serves_any).then(hosts),
        register: None,
        ..templates.listener.clone()
    }
}

fn protocol(gateway: &Gateway, listeners: &[ir::Listener], services: Services<'_>) -> Protocol {
    let is_all = |protocol| listeners.iter().all(|listener| listener.protocol == protocol);
    if is_all(ir::Protocol::Http) || is_all(ir::Protocol::Https) {
        return Protocol::Http;
    }
    if let Some(tcp) = listeners.iter().find(|listener| listener.protocol == ir::Protocol::Tcp) {
        return Protocol::Tcp(match tcp.routes.first() {
            Some(attached) => split(attached, tcp.protocol, gateway, services),
            None => TcpSplit { branches: Vec::new() },
        });
    }
    let mut names = Vec::new();
    for listener in listeners {
        let mode: fn(TcpSplit) -> TlsMode = match listener.protocol {
            ir::Protocol::Http | ir::Protocol::Https | ir::Protocol::Tcp => {
                names.push((listener.host.clone(), TlsMode::Http));
                continue;
            }
            ir::Protocol::TlsTerminate => TlsMode::Terminate,
            ir::Protocol::TlsPassthrough => TlsMode::Passthrough,
        };
        let others = || listeners.iter().map(|listener| listener.host.as_ref());
        for attached in &*listener.routes {
            let own = attached.hosts.iter().filter(|host| {
                !isolation::is_of_another(host.as_ref(), listener.host.as_ref(), others())
            });
            let to = || mode(split(attached, listener.protocol, gateway, services));
            names.extend(own.map(|host| (host.clone(), to())));
        }
        // Names of the listener without a route are not for a less specific one.
        names.push((listener.host.clone(), TlsMode::Refuse));
    }
    Protocol::Tls(ServerNames::new(names))
}

/// Returns where the connections of a TLSRoute or TCPRoute go.
fn split(
    attached: &AttachedRoute,
    protocol: ir::Protocol,
    gateway: &Gateway,
    services: Services<'_>,
) -> TcpSplit {
    let route = &attached.route;
    let first = match &route.rules {
        Rules::Connections(rules) => rules.first(),
        Rules::Requests(_) => None,
    };
    let backends = first.map_or(&[][..], |rule| rule.backends.as_slice());
    let branches = backends.iter().map(|backend| TcpBranch {
        to: services.id(&backend.target, Use::of(route.kind, protocol), gateway),
        weight: backend.weight,
    });
    let branches: Vec<_> = branches.collect();
    if branches.is_empty() {
        // There is a route, but no backend.
        return TcpSplit { branches: vec![TcpBranch { to: None, weight: 1 }] };
    }
    TcpSplit { branches }
}

/// Returns the TLS settings of a port: all certificates of its listeners, chosen by server name.
fn tls(listeners: &[ir::Listener], templates: Templates<'_>) -> ListenerTls {
    let certificates = listeners.iter().flat_map(|listener| &listener.certificates);
    // The settings for a port are those of all its listeners.
    let validation = listeners.iter().find_map(|listener| listener.client_validation.as_ref());
    let client_certificates = validation.map(|validation| ClientCertificates {
        ca: service::authorities(&validation.authorities),
        mode: match validation.mode {
            ClientMode::AllowValidOnly => ClientCertificateMode::Required,
            ClientMode::AllowInsecureFallback => ClientCertificateMode::Unverified,
        },
    });
    let defaults = templates.listener.tls.as_ref();
    let mut all: Vec<model::Certificate> = Vec::new();
    for certificate in certificates.map(service::certificate) {
        // Listeners often share one.
        if !all.contains(&certificate) {
            all.push(certificate);
        }
    }
    ListenerTls {
        certificates: all,
        unknown_names: UnknownNames::First,
        version_min: defaults.map_or(TlsVersion::Tls12, |tls| tls.version_min),
        ciphers: defaults.map_or_else(Vec::new, |tls| tls.ciphers.clone()),
        client_certificates,
        hsts: defaults.and_then(|tls| tls.hsts),
    }
}
