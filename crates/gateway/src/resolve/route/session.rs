//! Session persistence of a rule.

use model::RouteAffinity;

use super::duration;
use super::syntax;
use crate::ir::request::{Session, SessionCarrier};
use crate::objects::route::SessionPersistence;
use crate::resolve::status::Problem;

/// Reads session persistence.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn read(stated: &SessionPersistence) -> Result<Session, Problem> {
    let lifetime = match stated.absolute_timeout.as_deref() {
        None => None,
        Some(text) => Some(duration::read(text).ok_or_else(|| {
            Problem::unsupported(format!(
                "sessionPersistence.absoluteTimeout {text} is not a duration."
            ))
        })?),
    };
    if lifetime.is_some_and(|lifetime| lifetime < RouteAffinity::TIME_MIN) {
        return Err(Problem::unsupported(
            "sessionPersistence.absoluteTimeout must be at least 1s: times of sessions are whole \
             seconds.",
        ));
    }
    let cookie = stated.cookie_config.as_ref().and_then(|cookie| cookie.lifetime_type.as_deref());
    let name = stated.session_name.as_deref();
    if let Some(name) = name.filter(|name| !syntax::is_token(name)) {
        return Err(Problem::unsupported(format!(
            "sessionPersistence.sessionName {name:?} is not a name of a cookie or header field. \
             Use letters, digits and hyphens."
        )));
    }
    let carrier = match (stated.kind.as_deref().unwrap_or("Cookie"), cookie.unwrap_or("Session")) {
        ("Cookie", "Session") => SessionCarrier::SessionCookie,
        ("Cookie", "Permanent") if lifetime.is_some() => SessionCarrier::PermanentCookie,
        ("Cookie", "Permanent") => {
            return Err(Problem::unsupported(
                "A permanent cookie needs sessionPersistence.absoluteTimeout.",
            ));
        }
        ("Header", _) if stated.cookie_config.is_some() => {
            return Err(Problem::unsupported(
                "sessionPersistence.cookieConfig can only be set with the type Cookie. Remove one.",
            ));
        }
        ("Header", _) => {
            name.map(carries_sessions).transpose()?;
            SessionCarrier::Header
        }
        (kind, lifetime) => {
            return Err(Problem::unsupported(format!(
                "sessionPersistence has the type {kind} with the lifetime {lifetime}, which is not \
                 supported."
            )));
        }
    };
    Ok(Session { name: stated.session_name.clone(), carrier, lifetime })
}

/// Checks that a field can carry sessions: Weir adds it to responses in place of a server's own.
fn carries_sessions(name: &str) -> Result<(), Problem> {
    const OTHERS: [&str; 4] = ["authorization", "cookie", "location", "set-cookie"];
    const PREFIXES: [&str; 3] = ["content-", "grpc-", "x-forwarded-"];
    let field = syntax::changeable_field(name)?.replace('_', "-");
    if OTHERS.contains(&&*field) || PREFIXES.iter().any(|prefix| field.starts_with(prefix)) {
        return Err(Problem::unsupported(format!(
            "sessionPersistence.sessionName {name:?} is a header field with a meaning of its own. \
             Use another name."
        )));
    }
    Ok(())
}
