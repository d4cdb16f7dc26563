//! What is served, as text.

use std::fmt::Write;

use gateway::ir::backend::{Backend, ServerTls, ServicePort, Target, Trust};
use gateway::ir::extras::{Authentication, Extras};
use gateway::ir::filter::Filters;
use gateway::ir::headers::HeaderChanges;
use gateway::ir::request::{PathCondition, RequestMatch, RequestRule, Timeouts, ValueTest};
use gateway::ir::settings::{ServiceSettings, UpstreamTls};
use gateway::ir::{AttachedRoute, Authorities, Gateway, Listener, Rules};

use model::AuthenticationScheme;

use super::line;

/// Renders an accepted Gateway.
pub(crate) fn gateway(text: &mut String, gateway: &Gateway) {
    line(text, 0, &format!("serves {} of class {}", gateway.key, gateway.class));
    for address in &gateway.addresses {
        let value = address.value.as_deref().unwrap_or("any");
        line(text, 1, &format!("wants {} {value}", address.kind));
    }
    if let Some(certificate) = &gateway.client_certificate {
        line(text, 1, &format!("presents Secret {} to servers", certificate.secret));
    }
    for (port, listeners) in &gateway.ports {
        line(text, 1, &format!("port {port}"));
        for one in listeners {
            listener(text, one);
        }
    }
    for port in gateway.services.values() {
        line(text, 1, &format!("uses {}", service(port)));
    }
}

fn listener(text: &mut String, listener: &Listener) {
    let host = listener.host.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string);
    line(text, 2, &format!("listener {}: {:?} {host}", listener.id, listener.protocol));
    for certificate in &listener.certificates {
        let (chain, key) = (certificate.chain.len(), certificate.private_key.len());
        line(text, 3, &format!("certificate {} ({chain} and {key} bytes)", certificate.secret));
    }
    if let Some(validation) = &listener.client_validation {
        let authorities = authorities(&validation.authorities);
        line(text, 3, &format!("clients {:?} by {authorities}", validation.mode));
    }
    for one in &*listener.routes {
        route(text, one);
    }
}

fn authorities(all: &[Authorities]) -> String {
    let one = |one: &Authorities| format!("{} ({} bytes)", one.source, one.pem.len());
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn route(text: &mut String, attached: &AttachedRoute) {
    let host =
        |host: &Option<_>| host.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string);
    let hosts: Vec<String> = attached.hosts.iter().map(host).collect();
    let route = &attached.route;
    line(text, 3, &format!("{} {} for {}", route.kind.name(), route.key, hosts.join(" ")));
    match &route.rules {
        Rules::Requests(rules) => rules.iter().for_each(|one| rule(text, one)),
        Rules::Connections(rules) => {
            for one in rules {
                line(text, 4, &format!("rule {}{}", one.index, name(one.name.as_deref())));
                one.backends.iter().for_each(|one| backend(text, one));
            }
        }
    }
}

fn name(name: Option<&str>) -> String {
    name.map(|name| format!(" {name}")).unwrap_or_default()
}

fn rule(text: &mut String, rule: &RequestRule) {
    line(text, 4, &format!("rule {}{}", rule.index, name(rule.name.as_deref())));
    for one in &rule.matches {
        line(text, 5, &format!("match {}", condition(one)));
    }
    filters(text, &rule.filters);
    if rule.timeouts != Timeouts::default() {
        line(text, 5, &format!("timeouts {:?} {:?}", rule.timeouts.request, rule.timeouts.attempt));
    }
    if let Some(retry) = &rule.retry {
        line(text, 5, &format!("retry {:?} {:?} {:?}", retry.codes, retry.attempts, retry.backoff));
    }
    if let Some(session) = &rule.session {
        let name = session.name.as_deref().unwrap_or("any name");
        line(text, 5, &format!("session {:?} {name} {:?}", session.carrier, session.lifetime));
    }
    if let Some(one) = &rule.extras {
        extras(text, one);
    }
    rule.backends.iter().for_each(|one| backend(text, one));
}

fn extras(text: &mut String, extras: &Extras) {
    if let Some(denial) = extras.refusal {
        line(text, 5, &format!("refused {} {:?}", denial.status, denial.cause));
    }
    for one in &extras.limits {
        let (requests, per, burst) = (one.requests, one.per, one.burst);
        line(
            text,
            5,
            &format!("limit {}: {requests} in {per:?} by {}, burst {burst}", one.name, one.by),
        );
    }
    if let Some(one) = &extras.compression {
        line(text, 5, &format!("compress {:?}, from {} bytes", one.codings, one.length_min_bytes));
    }
    if let Some(one) = &extras.authentication {
        line(text, 5, &authentication(one));
    }
}

fn authentication(one: &Authentication) -> String {
    let Authentication { owner: _, rules, asked } = one;
    let scheme = match &rules.scheme {
        AuthenticationScheme::Basic { users } => format!("users of {}", users.path.display()),
        AuthenticationScheme::Token(rules) => format!("{rules:?}"),
        AuthenticationScheme::Forward(forward) => {
            let asked = asked.as_ref().and_then(Target::service);
            let asked = asked.map(|port| (&port.service, port.port));
            let host = forward.host.as_deref().unwrap_or("the request's host");
            let fields: Vec<&str> =
                rules.identity_fields.iter().map(|field| &*field.name).collect();
            format!("{asked:?} asked for {host}{}, passes on {fields:?}", forward.path)
        }
    };
    format!("authentication {:?}: {scheme}", rules.realm)
}

fn condition(one: &RequestMatch) -> String {
    let mut parts = vec![match &one.path {
        PathCondition::Exact(path) => format!("= {path}"),
        PathCondition::Prefix(path) => format!("^ {path}"),
        PathCondition::Regex(path) => format!("~ {}", path.as_str()),
    }];
    parts.extend(one.method.clone());
    for (what, values) in [("header", &one.headers), ("query", &one.query)] {
        for one in values {
            parts.push(match &one.value {
                ValueTest::Exact(value) => format!("{what} {} = {value}", one.name),
                ValueTest::Regex(value) => format!("{what} {} ~ {}", one.name, value.as_str()),
            });
        }
    }
    parts.extend(one.conditions.iter().map(|one| format!("if {one}")));
    parts.join(", ")
}

fn filters(text: &mut String, filters: &Filters) {
    changes(text, 5, "request", &filters.request_headers);
    changes(text, 5, "response", &filters.response_headers);
    if let Some(redirect) = &filters.redirect {
        line(text, 5, &format!("{redirect:?}"));
    }
    if let Some(rewrite) = &filters.rewrite {
        line(text, 5, &format!("{rewrite:?}"));
    }
    for one in &filters.mirrors {
        let share = format!("{}/{}", one.numerator, one.denominator);
        line(text, 5, &format!("mirror {share} to {}", target(&one.target)));
    }
    if let Some(cors) = &filters.cors {
        line(text, 5, &format!("{cors:?}"));
    }
}

fn changes(text: &mut String, depth: usize, what: &str, changes: &HeaderChanges) {
    for (verb, list) in [("set", &changes.set), ("add", &changes.add)] {
        for (name, value) in list {
            line(text, depth, &format!("{what}: {verb} {name} = {value}"));
        }
    }
    for name in &changes.remove {
        line(text, depth, &format!("{what}: remove {name}"));
    }
}

fn backend(text: &mut String, backend: &Backend) {
    line(text, 5, &format!("backend {} to {}", backend.weight, target(&backend.target)));
    changes(text, 6, "request", &backend.request_headers);
    changes(text, 6, "response", &backend.response_headers);
}

fn target(target: &Target) -> String {
    match target {
        Target::Service(port) => {
            let of_ingress = port.settings.as_deref();
            let stated = of_ingress.and_then(|one| one.protocol.as_ref());
            let protocol = stated.or(port.protocol.as_ref()).filter(|_| of_ingress.is_some());
            let protocol = protocol.map(|one| format!(", {one:?}")).unwrap_or_default();
            let settings = of_ingress.map(settings).unwrap_or_default();
            format!("{}:{}{protocol}{settings}", port.service, port.port)
        }
        Target::Invalid { reason } => format!("nothing ({reason})"),
    }
}

fn settings(of: &ServiceSettings) -> String {
    let ServiceSettings {
        ingress,
        is_canary,
        protocol: _,
        balance,
        affinity,
        connect,
        response,
        idle,
        tunnel,
        retries,
        tls,
    } = of;
    let canary = if *is_canary { " canary" } else { "" };
    let mut text = format!(", as {ingress}{canary}");
    for (name, value) in [
        ("balance", balance.as_ref().map(|one| format!("{one:?}"))),
        ("affinity", affinity.as_ref().map(|one| format!("{} {:?}", one.cookie, one.max_age))),
        ("connect", connect.map(|one| format!("{one:?}"))),
        ("response", response.map(|one| format!("{one:?}"))),
        ("idle", idle.map(|one| format!("{one:?}"))),
        ("tunnel", tunnel.map(|one| format!("{one:?}"))),
        ("retries", retries.attempts_max.map(|one| one.to_string())),
        ("retried", retries.statuses.as_ref().map(ToString::to_string)),
        ("tls", tls.as_ref().map(upstream_tls)),
    ] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {value}");
        }
    }
    text
}

fn upstream_tls(tls: &UpstreamTls) -> String {
    let authorities = tls.authorities.as_ref().map(|(secret, pem)| (secret.to_string(), pem.len()));
    format!("{:?} verified by {authorities:?}, presents {:?}", tls.name, tls.certificate)
}

fn service(port: &ServicePort) -> String {
    let mut text = format!("{}:{}", port.service, port.port);
    text.push_str(&name(port.name.as_deref()));
    if let Some(external) = &port.external_name {
        let _ = write!(text, ", external {external}");
    }
    if let Some(protocol) = &port.protocol {
        let _ = write!(text, ", {protocol:?}");
    }
    if let Some(terms) = &port.terms {
        let _ = write!(text, ", at most {:?} in flight", terms.in_flight_max());
    }
    if let Some(max) = port.pod_limit_max {
        let _ = write!(text, ", Pods state at most {max}");
    }
    match &port.tls {
        ServerTls::None => {}
        ServerTls::Invalid { policy } => {
            let _ = write!(text, ", invalid policy {policy}");
        }
        ServerTls::Verified(tls) => {
            let trust = match &tls.trust {
                Trust::System => "system".to_owned(),
                Trust::Authorities(all) => authorities(all),
            };
            let (policy, hostname, names) = (&tls.policy, &tls.hostname, &tls.names);
            let _ = write!(text, ", TLS by {policy}: {hostname} {names:?}, trusts {trust}");
        }
    }
    text
}
