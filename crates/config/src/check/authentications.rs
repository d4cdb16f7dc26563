//! Checks that authentications are required by routes, and by routes that keep passwords secret.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Problems};
use crate::names::Names;
use crate::raw::{Document, RawListener, RawProtocol, RawRoute, RawScheme};

pub(super) fn check(document: &Document, names: &Names, problems: &Problems) {
    let required = document.routes.iter().filter_map(|route| route.authenticate.as_ref());
    let required: HashSet<&str> = required.map(|required| &*required.value).collect();
    for authentication in &document.authentications {
        let name = &*authentication.name;
        if !required.contains(name) {
            let title = format!("authentication \"{name}\" is not required by any route");
            problems.report(
                Diagnostic::warning(title, authentication.span.clone(), "not used")
                    .help(format!("write authenticate = \"{name}\" in a [[route]]")),
            );
        }
    }
    for route in &document.routes {
        plain_passwords(route, document, names, problems);
    }
}

/// Warns of passwords in clear text: where a listener of the route neither uses TLS nor is behind a
/// proxy that may.
fn plain_passwords(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    let Some(required) = &route.authenticate else { return };
    let known = names.authentication(&required.value);
    let scheme = known.map(|id| &document.authentications[id.0 as usize].scheme);
    if !matches!(scheme, Some(Some(RawScheme::Basic { .. }))) {
        return;
    }
    let is_exposed = |listener: &RawListener| {
        let is_local = listener.address.as_ref().is_some_and(|at| at.value.ip().is_loopback());
        matches!(listener.protocol, RawProtocol::Http)
            && listener.tls.is_none()
            && listener.trusted.is_empty()
            && !is_local
    };
    if super::listeners_of(route, document, names).any(is_exposed) {
        problems.report(
            Diagnostic::warning(
                "passwords are sent in clear text",
                required.span.clone(),
                "a listener of this route has no TLS",
            )
            .help("write listener = \"…\" to name one with `tls`"),
        );
    }
}
