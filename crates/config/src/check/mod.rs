//! Checks what the tables must agree on: references, address clashes, contradicting
//! limits. Single values are checked when they are read.

mod acme;
mod affinity;
mod authentications;
mod listeners;
mod otlp;
mod registrations;
mod registries;
mod routes;
mod services;

use std::sync::Arc;

use model::{HttpUrl, ListenerId};

use crate::build;
use crate::diagnostic::{At, Diagnostic, Problems, nearest, quote};
use crate::names::Names;
use crate::raw::{Document, RawListener, RawRoute, RawScheme};
use foldhash::{HashMap, HashMapExt as _};

/// After this many mistakes, unknown names are no longer compared with the existing ones.
const HELPED_MAX: usize = 100;

/// Checks everything that tables must agree on.
pub(crate) fn document(document: &Document, names: &Names, problems: &Problems) {
    references(document, names, problems);
    listeners::check(document, problems);
    acme::check(document, problems);
    otlp::check(document, problems);
    registries::check(document, problems);
    fleet_zone(document, problems);
    registrations::check(document, problems);
    routes::check(document, names, problems);
    services::check(document, names, problems);
    authentications::check(document, names, problems);
    affinity::check(document, names, problems);
}

/// Returns whether others can read what is sent to this URL.
fn is_in_clear_text(url: &HttpUrl) -> bool {
    !url.is_https() && !url.is_of_this_machine()
}

/// Warns if a secret that is sent to this URL can be read on the way. `what`: the secret, in words.
fn secret_in_clear_text(url: &At<HttpUrl>, what: &str, problems: &Problems) {
    if is_in_clear_text(&url.value) {
        let title = format!("{what} is sent in clear text");
        let label = "it can be read on the way";
        problems.report(Diagnostic::warning(title, url.span.clone(), label).help("write https://"));
    }
}

/// Checks that every name refers to something.
fn references(document: &Document, names: &Names, problems: &Problems) {
    for listener in &document.listeners {
        for service in listener.protocol.services() {
            known_service(service, names, problems);
        }
    }
    let consul = document.registries.consul.iter();
    for listener in consul.flat_map(|raw| &raw.route_listeners) {
        known_listener(listener, names, problems);
    }
    for authentication in &document.authentications {
        if let Some(RawScheme::Forward(forward)) = &authentication.scheme {
            known_service(&forward.service, names, problems);
        }
    }
    for route in &document.routes {
        for service in route.action.services() {
            known_service(service, names, problems);
        }
        if let Some(required) = &route.authenticate
            && names.authentication(&required.value).is_none()
            && names.authentications_known
        {
            unknown("authentication", required, names.authentications.keys(), problems);
        }
        for listener in &route.listeners {
            known_listener(listener, names, problems);
        }
    }
}

/// Returns the listeners whose requests a route may match.
fn listeners_of<'a>(
    route: &RawRoute,
    document: &'a Document,
    names: &Names,
) -> impl Iterator<Item = &'a RawListener> {
    let of = build::listeners_of(route, names);
    let listeners = (0..).map(ListenerId).zip(&document.listeners);
    listeners.filter(move |(id, _)| of.is_empty() || of.contains(id)).map(|(_, listener)| listener)
}

fn known_listener(listener: &At<Arc<str>>, names: &Names, problems: &Problems) {
    if names.listener(&listener.value).is_none() && names.listeners_known {
        unknown("listener", listener, names.listeners.keys(), problems);
    }
}

fn known_service(service: &At<Arc<str>>, names: &Names, problems: &Problems) {
    if names.service(&service.value).is_none() && names.services_known {
        unknown("service", service, names.services.keys(), problems);
    }
}

fn unknown<'a>(
    what: &str,
    name: &At<Arc<str>>,
    known: impl Iterator<Item = &'a Arc<str>>,
    problems: &Problems,
) {
    const NAMES_SHOWN_MAX: usize = 10;
    let diagnostic = Diagnostic::error(
        format!("there is no {what} {}", quote(&name.value)),
        name.span.clone(),
        "unknown",
    );
    // Each name is compared with all others, so only as many as a person reads.
    if problems.count() >= HELPED_MAX {
        return problems.report_absence(diagnostic);
    }
    let mut known: Vec<&str> = known.map(AsRef::as_ref).collect();
    known.sort_unstable();
    let heading = match what {
        "service" => "[service.NAME]",
        "authentication" => "[authentication.NAME]",
        _ => "[[listener]]",
    };
    let help = if let Some(near) = nearest(&name.value, known.iter().copied()) {
        format!("did you mean {}?", quote(near))
    } else if known.is_empty() {
        format!("there is no {heading} at all")
    } else if known.len() <= NAMES_SHOWN_MAX {
        format!("{what}s in the configuration: {}", known.join(", "))
    } else {
        format!("no name in the configuration comes near; a {heading} makes one")
    };
    problems.report_absence(diagnostic.help(help));
}

/// Reports duplicate names among things that need unique ones.
fn twice<'a>(what: &str, named: impl Iterator<Item = &'a At<Arc<str>>>, problems: &Problems) {
    let mut seen: HashMap<&str, &At<Arc<str>>> = HashMap::new();
    for name in named {
        if let Some(first) = seen.get(name.value.as_ref()) {
            problems.report(
                Diagnostic::error(
                    format!("two {what}s are called {}", quote(&name.value)),
                    name.span.clone(),
                    "again here",
                )
                .other(first.span.clone(), "first here")
                .help("logs and metrics tell them apart by name"),
            );
        } else {
            seen.insert(&name.value, name);
        }
    }
}

/// Reports a zone that is too long for the messages of a fleet.
fn fleet_zone(document: &Document, problems: &Problems) {
    const ZONE_BYTES_MAX: usize = 64;
    if document.fleet.is_some()
        && let Some(zone) = document.zone.as_ref().filter(|zone| zone.value.len() > ZONE_BYTES_MAX)
    {
        let title = format!("with [fleet], `zone` has at most {ZONE_BYTES_MAX} bytes");
        let error = Diagnostic::error(title, zone.span.clone(), "too long");
        problems.report(error.help("shorten it on all members"));
    }
}
