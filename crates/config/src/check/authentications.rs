//! Checks the references of routes to authentications.

use crate::diagnostic::{Diagnostic, Problems};
use crate::names::Names;
use crate::raw::{Document, RawRoute, RawScheme};
use model::ListenerId;

use crate::build::listeners_of;

pub(super) fn check(document: &Document, names: &Names, problems: &Problems) {
    let used = |name: &str| {
        let mut required = document.routes.iter().filter_map(|route| route.authenticate.as_ref());
        required.any(|required| *required.value == *name)
    };
    for authentication in &document.authentications {
        if !used(&authentication.name) {
            let title =
                format!("authentication \"{}\" is not required by any route", authentication.name);
            problems.report(
                Diagnostic::warning(title, authentication.span.clone(), "not used").help(format!(
                    "write authenticate = \"{}\" in a [[route]]",
                    authentication.name
                )),
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
    let mut known = document.authentications.iter();
    let is_basic = known.any(|known| {
        known.name == required.value && matches!(known.scheme, Some(RawScheme::Basic { .. }))
    });
    let of = listeners_of(route, names);
    let is_exposed = |(index, listener): (u32, &crate::raw::RawListener)| {
        let is_local = listener.address.as_ref().is_some_and(|at| at.value.ip().is_loopback());
        (of.is_empty() || of.contains(&ListenerId(index)))
            && matches!(listener.protocol, crate::raw::RawProtocol::Http)
            && listener.tls.is_none()
            && listener.trusted.is_empty()
            && !is_local
    };
    if is_basic && (0..).zip(&document.listeners).any(is_exposed) {
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
