//! Checks that browsers keep the cookies of routes' sessions, and that nothing else uses their headers.

use model::{RouteMatch, SessionCarrier, cookie_path};

use super::authentications::{is_in_clear_text, written_by};
use crate::diagnostic::{Diagnostic, Problems};
use crate::names::Names;
use crate::raw::{Document, RawAction, RawRoute, http};

pub(super) fn check(document: &Document, names: &Names, problems: &Problems) {
    for route in &document.routes {
        let RawAction::Forward(forward) = &route.action else { continue };
        let Some(affinity) = &forward.affinity else { continue };
        let carrier = &affinity.affinity.carrier;
        match carrier {
            SessionCarrier::Field(name) => field(name, route, document, problems),
            SessionCarrier::Cookie { name, .. } => {
                at_root((name, carrier), route, problems);
                over_https((name, carrier), route, document, names, problems);
            }
        }
    }
}

/// Reports other uses of the header that carries a route's sessions.
fn field(name: &str, route: &RawRoute, document: &Document, problems: &Problems) {
    if let Some(by) = written_by(document, name) {
        problems.report(
            Diagnostic::error(
                format!("{name} carries sessions and an identity"),
                route.span.clone(),
                "the `affinity` of this route names it",
            )
            .help(format!("authentication \"{by}\" writes {name}; use different names")),
        );
    }
    let RawAction::Forward(forward) = &route.action else { return };
    let changes = forward.to.iter().map(|branch| &branch.fields).chain([&forward.fields]);
    let mut written = changes.flat_map(|all| all.response.set.iter().chain(&all.response.add));
    if written.any(|(other, _)| http::is_same_field(other, name)) {
        problems.report(
            Diagnostic::error(
                format!("`response_header` writes {name}"),
                route.span.clone(),
                "the `affinity` of this route writes that field",
            )
            .help("leave it out of `response_header`, or use another name for `affinity.header`"),
        );
    }
}

/// Reports a cookie that browsers do not keep because of its path.
fn at_root((name, carrier): (&str, &SessionCarrier), route: &RawRoute, problems: &Problems) {
    let (path, conditions) = (route.path.clone(), route.conditions.clone());
    let path = cookie_path(&RouteMatch { path, conditions, ..RouteMatch::any() });
    if carrier.needs_root() && route.certain && path != "/" {
        problems.report(
            Diagnostic::error(
                format!("browsers would not keep the cookie {name}"),
                route.span.clone(),
                format!("the cookies of this route have the path {path}"),
            )
            .help(
                "the path of cookies whose name begins with __Host- must be /; write another name",
            ),
        );
    }
}

/// Warns of a cookie that browsers do not keep since it came in clear text.
fn over_https(
    (name, carrier): (&str, &SessionCarrier),
    route: &RawRoute,
    document: &Document,
    names: &Names,
    problems: &Problems,
) {
    let mut listeners = super::listeners_of(route, document, names);
    if carrier.needs_https() && listeners.any(is_in_clear_text) {
        problems.report(
            Diagnostic::warning(
                format!("browsers do not keep the cookie {name} without HTTPS"),
                route.span.clone(),
                "a listener of this route does not use TLS",
            )
            .help("write another name, or listener = \"…\" to name one with `tls`"),
        );
    }
}
