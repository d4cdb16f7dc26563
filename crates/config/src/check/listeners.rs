//! Listeners among each other, with the admin API and with what is behind them.

use std::collections::HashMap;
use std::net::SocketAddr;

use model::{AdminAddress, ServerTarget};

use crate::diagnostic::{Diagnostic, Problems};
use crate::raw::{Document, RawProtocol};

pub(super) fn check(document: &Document, problems: &Problems) {
    if document.listeners.is_empty() && !document.listeners_meant {
        problems.report_absence(nothing_listens());
    }
    super::twice("listener", document.listeners.iter().map(|l| &l.name), problems);
    clashes(document, problems);
    admin(document, problems);
    limits(document, problems);
    idle_http(document, problems);
    tls(document, problems);
    own_servers(document, problems);
}

fn nothing_listens() -> Diagnostic {
    Diagnostic::error("nothing listens", 0..0, "no [[listener]] in this file")
        .help("write [[listener]] and below it address = \"0.0.0.0:8080\"")
}

/// Whether a socket bound to `one` is in the way of one bound to `other`.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let any = |a: SocketAddr| a.ip().is_unspecified();
    one.port() != 0
        && one.port() == other.port()
        && one.is_ipv4() == other.is_ipv4()
        && (one.ip() == other.ip() || any(one) || any(other))
}

fn clashes(document: &Document, problems: &Problems) {
    let addresses: Vec<_> =
        document.listeners.iter().filter_map(|listener| listener.address.as_ref()).collect();
    for (index, address) in addresses.iter().enumerate() {
        let earlier = &addresses[..index];
        let Some(first) = earlier.iter().find(|first| overlap(first.value, address.value)) else {
            continue;
        };
        let (title, label) = if first.value == address.value {
            ("two listeners on one address", "taken by this one")
        } else if first.value.ip().is_unspecified() {
            ("two listeners overlap", "this one takes the port on every address")
        } else {
            ("two listeners overlap", "part of it is taken by this one")
        };
        problems.report(
            Diagnostic::error(title, address.span.clone(), "taken already")
                .other(first.span.clone(), label),
        );
    }
}

fn admin(document: &Document, problems: &Problems) {
    let Some(admin) = &document.admin else { return };
    let AdminAddress::Tcp(own) = admin.address.value else { return };
    let span = &admin.address.span;
    let in_file = *span != (0..0);
    for address in document.listeners.iter().filter_map(|listener| listener.address.as_ref()) {
        if !overlap(own, address.value) {
            continue;
        }
        let title = "a listener stands where the admin API is";
        let clash = Diagnostic::error(title, address.span.clone(), "taken already");
        problems.report(if in_file {
            clash.other(span.clone(), "by the admin API")
        } else {
            clash.help(format!(
                "the admin API is on {own} unless told otherwise: write [admin] with another address, or \"off\""
            ))
        });
    }
    if !own.ip().to_canonical().is_loopback() {
        let why = if admin.token_file.is_some() {
            "its token would cross the network in plain text, since the admin API does not speak TLS yet"
        } else {
            "whoever reaches it can drain servers; that needs a token and TLS, which the admin API does not speak yet"
        };
        problems.report(
            Diagnostic::error(
                "the admin API could be reached from other machines",
                span.clone(),
                "not loopback",
            )
            .help(format!(
                "{why}: write \"127.0.0.1:{}\" or \"unix:/run/weir/admin.sock\", and reach it through an SSH tunnel",
                own.port()
            )),
        );
    }
}

fn limits(document: &Document, problems: &Problems) {
    let all = &document.connections_max;
    for listener in &document.listeners {
        if let Some(own) = &listener.connections_max
            && own.value > all.value
        {
            let warning = Diagnostic::warning(
                "a listener may hold more connections than all listeners together",
                own.span.clone(),
                "never reached",
            );
            problems.report(if all.span == (0..0) {
                warning.help(format!(
                    "the top level's connections_max is {} unless told otherwise",
                    all.value
                ))
            } else {
                warning.other(all.span.clone(), "all together")
            });
        }
    }
}

/// TLS where the rest of the listener has no use for it.
fn tls(document: &Document, problems: &Problems) {
    for listener in &document.listeners {
        let Some(tls) = &listener.tls else { continue };
        if let RawProtocol::TlsPassthrough { names, .. } = &listener.protocol {
            let mut error = Diagnostic::error(
                "TLS is either decrypted or passed through",
                tls.span.clone(),
                "decrypts",
            );
            if let Some((name, _)) = names.first() {
                error = error.other(name.span.clone(), "passed through by name");
            }
            problems.report(error.help(
                "leave `tls` out, since the servers have the certificates; or leave `server_names` out and write routes, with protocol = \"http\"",
            ));
        }
        if let Some(hsts) = &tls.hsts
            && !matches!(listener.protocol, RawProtocol::Http)
        {
            problems.report(
                Diagnostic::error(
                    "`hsts` is a field of HTTP responses",
                    hsts.span.clone(),
                    "this listener is tcp",
                )
                .help("leave it out, or write protocol = \"http\""),
            );
        }
    }
    for listener in &document.listeners {
        if !matches!(listener.protocol, RawProtocol::TlsPassthrough { .. }) {
            continue;
        }
        for name in listener.protocol.services() {
            let named = document.services.iter().find(|raw| raw.service.name == name.value);
            if let Some(tls) = named.and_then(|raw| raw.tls.as_ref()) {
                problems.report(
                    Diagnostic::warning("TLS within TLS", name.span.clone(), "passed through")
                        .other(tls.span.clone(), "and encrypted once more")
                        .help("what clients send is TLS already: leave the service's `tls` out"),
                );
            }
        }
    }
}

/// Servers that are this balancer itself: their requests come back, and may do so for ever.
fn own_servers(document: &Document, problems: &Problems) {
    let listeners = document.listeners.iter().filter_map(|listener| listener.address.as_ref());
    let mut by_port: HashMap<u16, Vec<_>> = HashMap::new();
    for address in listeners {
        by_port.entry(address.value.port()).or_default().push(address);
    }
    for raw in &document.services {
        for (server, spans) in raw.service.servers.iter().zip(&raw.servers) {
            let ServerTarget::Address(target) = server.target else { continue };
            let candidates = by_port.get(&target.port()).map_or(&[][..], Vec::as_slice);
            let Some(own) = candidates.iter().find(|own| reaches(target, own.value)) else {
                continue;
            };
            problems.report(
                Diagnostic::warning(
                    format!("a server of service \"{}\" is one of Weir's own listeners", raw.service.name),
                    spans.address.clone(),
                    "its requests come back",
                )
                .other(own.span.clone(), "to this listener")
                .help("a request that passes this balancer for the sixth time is answered 508; bytes of a tcp listener are not counted. Write the address of the server behind it"),
            );
        }
    }
}

/// Whether a connection to `target` surely arrives at a socket bound to `listener`, as far as the
/// two addresses tell: which addresses this machine has is not known here.
fn reaches(target: SocketAddr, listener: SocketAddr) -> bool {
    let ip = target.ip().to_canonical();
    target.port() != 0
        && target.port() == listener.port()
        && (ip == listener.ip().to_canonical()
            || (listener.ip().is_unspecified() && ip.is_loopback()
                // A socket on [::] takes IPv4 too.
                && (ip.is_ipv4() || listener.is_ipv6())))
}

/// An http listener for which no route can match.
fn idle_http(document: &Document, problems: &Problems) {
    for listener in &document.listeners {
        let http = matches!(listener.protocol, RawProtocol::Http);
        let routed = document.routes.iter().any(|route| {
            let names = &route.listeners;
            names.is_empty() || names.iter().any(|name| name.value == listener.name.value)
        });
        if http && !routed && !problems.broken {
            problems.report(
                Diagnostic::warning(
                    "an http listener without a route",
                    listener.address.as_ref().map_or(listener.span.clone(), |at| at.span.clone()),
                    "every request here is answered 404",
                )
                .help("write [[route]] with service = \"…\""),
            );
        }
    }
}
