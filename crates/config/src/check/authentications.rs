//! Checks that authentications are required by routes, that credentials stay secret, and that nothing
//! else decides by, or writes, the fields that tell servers who sent a request.

use std::collections::HashSet;

use model::{AddressField, ConditionOn, IdentityField, IdentityValue, RateKey};

use crate::diagnostic::{Diagnostic, Problems};
use crate::names::Names;
use crate::raw::{
    Document, RawAction, RawAuthentication, RawForwardAuth, RawListener, RawProtocol, RawRateLimit,
    RawRoute, RawScheme, http,
};

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
        any_audience(authentication, problems);
    }
    for listener in &document.listeners {
        finds_clients_by_identity(listener, document, problems);
    }
    let mut exposed = HashSet::new();
    for route in &document.routes {
        clear_text(route, document, names, &mut exposed, problems);
        decides_by_identity(route, document, problems);
        limits_by_identity(route, document, names, problems);
        changes_identity(route, document, names, problems);
    }
}

/// Warns of tokens that may have been issued for another service.
fn any_audience(authentication: &RawAuthentication, problems: &Problems) {
    let Some(RawScheme::Token(token)) = &authentication.scheme else { return };
    if token.audiences.is_empty() {
        let title =
            format!("authentication \"{}\" accepts tokens for any audience", authentication.name);
        problems.report(
            Diagnostic::warning(title, authentication.span.clone(), "`audience` is not set")
                .help("write jwt = { audience = \"…\" }; otherwise tokens for other services pass"),
        );
    }
}

/// Warns of credentials in clear text, once for each authentication and listener: where a listener of
/// the route neither uses TLS nor is behind a proxy that may.
fn clear_text<'a>(
    route: &'a RawRoute,
    document: &'a Document,
    names: &Names,
    exposed: &mut HashSet<(&'a str, usize)>,
    problems: &Problems,
) {
    let Some(required) = &route.authenticate else { return };
    let what = match of_route(route, document, names).map(|known| &known.scheme) {
        Some(Some(RawScheme::Basic { .. })) => "passwords are",
        Some(Some(RawScheme::Token(_))) => "tokens are",
        Some(Some(RawScheme::Forward(_))) => "cookies and other credentials are",
        Some(None) | None => return,
    };
    let listeners = super::listeners_of(route, document, names);
    let listeners = listeners.filter(|listener| is_in_clear_text(listener));
    let new = listeners.filter(|one| exposed.insert((&required.value, one.span.start)));
    if new.count() > 0 {
        problems.report(
            Diagnostic::warning(
                format!("{what} sent in clear text"),
                required.span.clone(),
                "a listener of this route has no TLS",
            )
            .help("write listener = \"…\" to name one with `tls`"),
        );
    }
}

/// Returns whether clients of a listener send requests in clear text: it neither uses TLS, nor is it behind a proxy that
/// may, nor are all clients on this machine.
pub(super) fn is_in_clear_text(listener: &RawListener) -> bool {
    let is_local = listener.address.as_ref().is_some_and(|at| at.value.is_local());
    matches!(listener.protocol, RawProtocol::Http)
        && listener.tls.is_none()
        && listener.trusted.is_empty()
        && !is_local
}

/// Reports conditions on, and limits by, fields that no request has before it is authenticated.
fn decides_by_identity(route: &RawRoute, document: &Document, problems: &Problems) {
    let tested = route.conditions.iter().filter_map(|condition| match &condition.on {
        ConditionOn::Field(name) => Some(name),
        _ => None,
    });
    let tested = tested.chain(route.fields.iter().map(|field| &field.name));
    for (name, by) in tested.filter_map(|name| Some((name, written_by(document, name)?))) {
        problems.report(
            Diagnostic::error(
                format!("no request has {name} while its route is chosen"),
                route.span.clone(),
                "this route has a condition on it",
            )
            .help(format!(
                "authentication \"{by}\" writes {name}, and Weir removes it from what clients send"
            )),
        );
    }
    for RawRateLimit { limit, span, .. } in &route.rate_limits {
        if let RateKey::Field(name) = &limit.by
            && let Some(by) = written_by(document, name)
        {
            problems.report(
                Diagnostic::error(
                    format!("no request has {name} while its rate is limited"),
                    span.clone(),
                    "by this field",
                )
                .help(format!(
                    "authentication \"{by}\" writes {name} later; limit by \"user\", or \"claim:NAME\" of a token"
                )),
            );
        }
    }
}

/// Reports limits by who sends a request, on routes that do not find out.
fn limits_by_identity(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    for RawRateLimit { limit, span, .. } in &route.rate_limits {
        let by = &limit.by;
        if !by.needs_identity() {
            continue;
        }
        let Some(required) = &route.authenticate else {
            if route.authenticates {
                continue;
            }
            let title = format!("a rate limit by {by} on a route without `authenticate`");
            let diagnostic = Diagnostic::error(title, span.clone(), "no user is known here");
            problems.report(diagnostic.help("write authenticate = \"…\", or by = \"client\""));
            continue;
        };
        let Some(scheme) = of_route(route, document, names).and_then(|one| one.scheme.as_ref())
        else {
            continue;
        };
        let names_user = |forward: &RawForwardAuth| {
            forward.identity_fields.iter().any(|field| field.value == IdentityValue::User)
        };
        let (title, label, other, help) = match (scheme, by) {
            (RawScheme::Basic { .. }, RateKey::Claim(_)) => (
                format!("a rate limit by {by} where users send passwords"),
                "claims are in tokens",
                "this authentication is `basic`",
                "write by = \"user\"",
            ),
            (RawScheme::Forward(_), RateKey::Claim(_)) => (
                format!("a rate limit by {by} where a server is asked"),
                "claims are in tokens that Weir verifies",
                "this authentication is `forward`",
                "write by = \"user\"",
            ),
            (RawScheme::Forward(forward), RateKey::User) if !names_user(forward) => (
                format!("a rate limit by {by} without a name for users"),
                "no user is known here",
                "this authentication has no `user_header`",
                "write user_header = \"…\" in its `forward`",
            ),
            _ => continue,
        };
        problems.report(
            Diagnostic::error(title, span.clone(), label)
                .other(required.span.clone(), other)
                .help(help),
        );
    }
}

/// Reports a listener that would read the client's address from a field that is removed before.
fn finds_clients_by_identity(listener: &RawListener, document: &Document, problems: &Problems) {
    if let AddressField::Single(field) = &listener.client_address.field
        && let Some(by) = written_by(document, field)
    {
        problems.report(
            Diagnostic::error(
                format!("no request has {field} when its client's address is read"),
                listener.span.clone(),
                "`client_address` of this listener names it",
            )
            .help(format!(
                "authentication \"{by}\" writes {field}, and Weir removes it from what it receives"
            )),
        );
    }
}

/// Reports changes of a field that the route's own authentication writes.
fn changes_identity(route: &RawRoute, document: &Document, names: &Names, problems: &Problems) {
    let RawAction::Forward(forward) = &route.action else { return };
    let Some(known) = of_route(route, document, names) else { return };
    let of_branches = forward.to.iter().map(|branch| &branch.fields);
    let changes = of_branches.chain([&forward.fields]).map(|fields| &fields.request);
    let names = changes.flat_map(|changes| {
        let written = changes.set.iter().chain(&changes.add).map(|(name, _)| name);
        written.chain(&changes.remove)
    });
    for name in names {
        if identity_fields(known).any(|field| http::is_same_field(&field.name, name)) {
            problems.report(
                Diagnostic::error(
                    format!("`request_header` changes {name}"),
                    route.span.clone(),
                    "this route's authentication writes that field",
                )
                .help(format!(
                    "leave it out of `request_header`, or out of authentication \"{}\"",
                    known.name
                )),
            );
        }
    }
}

/// Returns the authentication that a route requires.
fn of_route<'a>(
    route: &RawRoute,
    document: &'a Document,
    names: &Names,
) -> Option<&'a RawAuthentication> {
    let id = names.authentication(&route.authenticate.as_ref()?.value)?;
    Some(&document.authentications[id.0 as usize])
}

/// Returns the name of the authentication that writes a field.
pub(super) fn written_by<'a>(document: &'a Document, name: &str) -> Option<&'a str> {
    let writes = |one: &&RawAuthentication| {
        identity_fields(one).any(|field| http::is_same_field(&field.name, name))
    };
    Some(&*document.authentications.iter().find(writes)?.name)
}

fn identity_fields(authentication: &RawAuthentication) -> impl Iterator<Item = &IdentityField> {
    let fields: &[IdentityField] = match &authentication.scheme {
        Some(RawScheme::Basic { identity_fields, .. }) => identity_fields,
        Some(RawScheme::Token(token)) => &token.identity_fields,
        Some(RawScheme::Forward(forward)) => &forward.identity_fields,
        None => &[],
    };
    fields.iter()
}
