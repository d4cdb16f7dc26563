//! Session persistence of a rule.

use model::{RouteAffinity, RouteMatch, cookie_path, has_field_meaning};

use super::duration;
use super::syntax;
use crate::ir::request::{RequestMatch, Session, SessionCarrier};
use crate::objects::route::SessionPersistence;
use crate::resolve::status::Problem;

/// Reads session persistence.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn read(stated: &SessionPersistence, matches: &[RequestMatch]) -> Result<Session, Problem> {
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
        ("Cookie", _) if name.is_some_and(|name| !is_kept(name, matches)) => {
            return Err(Problem::unsupported(format!(
                "Browsers would not keep the cookie {name:?}: the path of cookies whose name begins with __Host- must be /, \
                 and that of this rule is another. Use another name.",
                name = name.unwrap_or_default()
            )));
        }
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

/// Returns whether browsers keep a cookie of this name at all paths of a rule.
fn is_kept(name: &str, matches: &[RequestMatch]) -> bool {
    let carrier = model::SessionCarrier::Cookie { name: name.to_owned(), is_permanent: false };
    let at_root = |one: &RequestMatch| {
        let (path, expression) = one.path.parts();
        let conditions = one.conditions.iter().cloned().chain(expression).collect();
        cookie_path(&RouteMatch { path, conditions, ..RouteMatch::any() }) == "/"
    };
    !carrier.needs_root() || matches.iter().all(at_root)
}

/// Checks that a field can carry sessions: Weir adds it to responses in place of a server's own.
fn carries_sessions(name: &str) -> Result<(), Problem> {
    if has_field_meaning(&syntax::changeable_field(name)?) {
        return Err(Problem::unsupported(format!(
            "sessionPersistence.sessionName {name:?} is a header field with a meaning of its own. \
             Use another name."
        )));
    }
    Ok(())
}
