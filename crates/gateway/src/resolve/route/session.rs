//! Session persistence of a rule.

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
        ("Header", _) => {
            name.map(syntax::changeable_field).transpose()?;
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
