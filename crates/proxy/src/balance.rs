//! What binds a request to its server: the hash key, and the cookie or session in its response.

use std::net::IpAddr;
use std::time::Duration;

use decide::placement::{self, Bound};
use decide::session::{Session, service_token};
use decide::{Published, Slot};
use model::{Forward, Route, RouteAffinity, Service, SessionCarrier, cookie_path};
use wire::http1::{Known, RequestHead, is_same_field};

use crate::authentication::Identity;

const SET_COOKIE: &str = "Set-Cookie";

/// Returns the key by which `hash` places this request, if the service hashes and the request has
/// one. A field that tells servers who sent the request has the value that they receive.
pub(crate) fn key<'a>(
    service: &Service,
    request: &'a RequestHead,
    identity: Option<&'a Identity>,
    client: IpAddr,
) -> Option<u64> {
    let verified = |name: &str| identity.and_then(|identity| identity.field(name));
    placement::key(service, request, verified, Some(client))
}

/// Returns the field that tells the client of its server or session, unless it knows already, for a
/// response from `slot`'s server; `https`: the client uses HTTPS. A route's affinity counts in place of
/// its service's. `stays`: the request's session stays at its own server, although another one answered.
pub(crate) fn affinity_field<'a>(
    (route, forward, service): (&'a Route, &'a Forward, &'a Service),
    (bound, stays): (Bound, bool),
    slot: &Slot,
    published: &Published,
    https: bool,
) -> Option<(&'a str, String)> {
    if let Some(affinity) = &forward.affinity {
        let bound = (bound.session, stays);
        return session_value((route, affinity, service), bound, slot, published, https);
    }
    let affinity = service.affinity.as_ref()?;
    let token = slot.endpoint().affinity_token;
    if bound.server == Some(token) {
        return None;
    }
    let value = format!("{token:016x}");
    Some((SET_COOKIE, cookie(&affinity.cookie, &value, "/", affinity.max_age, https)))
}

/// Returns what carries the sessions of a route.
pub(crate) fn session_carrier(forward: &Forward) -> Option<&SessionCarrier> {
    forward.affinity.as_ref().map(|affinity| &affinity.carrier)
}

/// Returns whether a server's field would replace the client's session: the server may be a balancer as well, with
/// sessions of its own, and the client would send them here.
pub(crate) fn replaces_session(
    carrier: Option<&SessionCarrier>,
    (known, name, value): (Known, &[u8], &[u8]),
) -> bool {
    match carrier {
        Some(SessionCarrier::Field(field)) => is_same_field(field.as_bytes(), name),
        Some(SessionCarrier::Cookie { name, .. }) => {
            let cookie = value.split(|&byte| byte == b'=' || byte == b';').next();
            known == Known::SetCookie
                && cookie.is_some_and(|cookie| cookie.trim_ascii() == name.as_bytes())
        }
        None => false,
    }
}

fn session_value<'a>(
    (route, affinity, service): (&'a Route, &'a RouteAffinity, &'a Service),
    (asked, stays): (Option<Session>, bool),
    slot: &Slot,
    published: &Published,
    https: bool,
) -> Option<(&'a str, String)> {
    let wall = os::clock::wall();
    let at = match asked {
        Some(asked) if stays => (asked.service, asked.server),
        _ => (service_token(&service.name), slot.endpoint().token),
    };
    let session = Session::renewed(asked, at, affinity, wall)?;
    let value = published.session_key(affinity).seal(&session);
    Some(match &affinity.carrier {
        SessionCarrier::Field(name) => (name, value),
        SessionCarrier::Cookie { name, is_permanent } => {
            let max_age = session.left(affinity, wall).filter(|_| *is_permanent);
            let path = cookie_path(&route.matches);
            (SET_COOKIE, cookie(name, &value, &path, max_age, https))
        }
    })
}

/// Returns the value of a Set-Cookie field. GEP-1619 recommends `SameSite=Strict`, but with it a
/// browser that follows a link from another site would not send the cookie, and lose its server.
fn cookie(name: &str, value: &str, path: &str, max_age: Option<Duration>, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    let max_age = max_age.map(|age| format!("; Max-Age={}", age.as_secs())).unwrap_or_default();
    format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}{max_age}")
}
