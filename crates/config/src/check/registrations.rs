//! Checks `register` of the listeners: against each other, `[consul]`, and the services that take their servers from
//! Consul.

use std::collections::HashMap;
use std::net::IpAddr;

use model::Registration;

use crate::diagnostic::{Diagnostic, Problems, Span};
use crate::raw::{Document, RawSource};

pub(super) fn check(document: &Document, problems: &Problems) {
    let listeners = document.listeners.iter().filter_map(|listener| listener.register.as_ref());
    let entries = listeners.filter_map(|raw| Some((&**raw.registration.as_ref()?, &raw.span)));
    let entries: Vec<(&Registration, &Span)> = entries.collect();
    ids(&entries, problems);
    for &(entry, span) in &entries {
        reachable(entry, span, problems);
        loops(document, entry, span, problems);
    }
    if !entries.is_empty() {
        agent(document, &entries, problems);
    }
}

/// Reports listeners that would replace each other's entries. Consul's catalogue does not distinguish IDs by case.
fn ids(entries: &[(&Registration, &Span)], problems: &Problems) {
    let mut known: HashMap<String, &Span> = HashMap::new();
    for &(entry, span) in entries {
        let id = entry.id.to_ascii_lowercase();
        if let Some(&first) = known.get(&id) {
            let title = format!("two listeners are registered as {id}");
            problems.report(
                Diagnostic::error(title, span.clone(), "again here")
                    .other(first.clone(), "first here")
                    .help("write another name or another port, or give each its own `id`"),
            );
        } else {
            known.insert(id, span);
        }
    }
}

/// Reports an address that clients on other machines cannot connect to.
fn reachable(entry: &Registration, span: &Span, problems: &Problems) {
    let Some(address) = &entry.address else { return };
    let kind = match address.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) if ip.is_loopback() => "a loopback address",
        Ok(ip) if ip.is_multicast() => "a multicast address",
        Ok(IpAddr::V4(ip)) if ip.is_link_local() => "a link-local address",
        Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => "a link-local address",
        Err(_) if address.eq_ignore_ascii_case("localhost") => "a loopback address",
        _ => return,
    };
    let title = format!("clients on other machines cannot connect to {address}");
    let help = "write the address that clients use as `address` in `register`";
    problems.report(Diagnostic::warning(title, span.clone(), kind).help(help));
}

/// Reports a service that would find this listener among its servers.
fn loops(document: &Document, entry: &Registration, span: &Span, problems: &Problems) {
    for raw in &document.services {
        let Some(discover) = &raw.discover else { continue };
        let Some(RawSource::Consul { service, tag }) = &discover.source else { continue };
        let has_tag = tag.as_ref().is_none_or(|tag| entry.tags.iter().any(|own| **own == **tag));
        if !has_tag || !service.eq_ignore_ascii_case(&entry.service) {
            continue;
        }
        let title = format!("service \"{}\" finds Weir's own listener in Consul", raw.service.name);
        problems.report(
            Diagnostic::warning(title, discover.span.clone(), "its requests come back")
                .other(span.clone(), "registered here")
                .help(
                    "write another name in `register`, or distinguish them by `tag` in `discover`",
                ),
        );
    }
}

/// Reports an agent on another machine: it may be a load balancer for several, and it does not know this machine.
fn agent(document: &Document, entries: &[(&Registration, &Span)], problems: &Problems) {
    let consul = document.registries.consul.as_ref();
    let url = consul.and_then(|consul| consul.urls.first());
    let Some(url) = url.filter(|at| !at.value.is_of_this_machine()) else { return };
    let title = "listeners are registered at an agent on another machine";
    problems.report(
        Diagnostic::warning(title, url.span.clone(), "not this machine")
            .help("use the local agent; a load balancer in front of several agents does not work"),
    );
    for (_, span) in entries.iter().filter(|(entry, _)| entry.address.is_none()) {
        problems.report(
            Diagnostic::warning(
                "Consul publishes the address of the agent's node",
                (*span).clone(),
                "no `address`",
            )
            .other(url.span.clone(), "the agent is on another machine")
            .help("write the address of this machine as `address` in `register`"),
        );
    }
}
