//! The parts of a request that determine its service and server: the hash key, and the session or the
//! cookie of a service's affinity.

use std::net::IpAddr;
use std::time::Duration;

use model::{Balance, Forward, HashOn, Service, ServiceId, SessionCarrier, Split, SplitTarget};
use wire::http1::RequestHead;

use crate::registry::Published;
use crate::route;
use crate::session::{Session, service_token};
use crate::token::{hash_key, hash_parameter, hash_path};

/// How many cookies of one name are looked at: a browser sends one for each path that it has one for.
const COOKIES_MAX: usize = 4;

/// The branch of a split that a request takes, and what binds it to a server there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement<'a> {
    /// The branch.
    pub branch: &'a Split,
    /// Whether it was drawn by weight: no session chose its service.
    pub is_drawn: bool,
    /// The server.
    pub bound: Bound,
}

/// What binds a request to a server, by the affinity of its route or else of its service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// The server's token, for [`crate::Ask::affinity`].
    pub server: Option<u64>,
    /// The session of the route's affinity that names it.
    pub session: Option<Session>,
}

impl Bound {
    /// Returns what a service's affinity binds a request to, if its cookie is well-formed.
    pub fn of_service(service: &Service, request: &RequestHead) -> Bound {
        Bound { server: cookie_token(service, request), session: None }
    }
}

/// Chooses the branch for a request: that of its session if the route has affinity and the request a session
/// that holds, else one drawn by weight. `wall` is the time since 1970.
///
/// A session's branch may have the weight 0: "the persistence to a single backend MUST be maintained across services,
/// even if the weight is set to 0" (GEP-1619, Traffic Splitting). If the server is not ready, the session is over. The
/// request still takes a branch of the same service, unless that has the weight 0 or no server: versions
/// of an application that share a route should not be mixed more than necessary.
///
/// A browser may have several cookies of the name. The first whose server is ready counts, else the first whose service is.
pub fn place<'a>(
    published: &Published,
    forward: &'a Forward,
    request: &RequestHead,
    wall: impl Fn() -> Duration,
    rng: &mut fastrand::Rng,
) -> Placement<'a> {
    let Some(affinity) = &forward.affinity else {
        let branch = route::split(forward, rng);
        let bound = match branch.to {
            SplitTarget::Service(id) => Bound::of_service(published.snapshot.service(id), request),
            SplitTarget::Deny(_) => Bound::default(),
        };
        return Placement { branch, is_drawn: true, bound };
    };
    let key = published.session_key(affinity);
    let mut without_server = None;
    let mut try_value = |value: &[u8]| {
        let session = key.open(value).filter(|session| session.holds(affinity, wall()))?;
        let placed = placed_by(&session, published, forward)?;
        if placed.bound.session.is_none() {
            without_server = without_server.or(Some(placed));
            return None;
        }
        Some(placed)
    };
    let placed = match &affinity.carrier {
        SessionCarrier::Cookie { name, .. } => {
            request.cookies(name).take(COOKIES_MAX).find_map(try_value)
        }
        SessionCarrier::Field(name) => request.field(name).and_then(&mut try_value),
    };
    placed.or(without_server).unwrap_or_else(|| Placement {
        branch: route::split(forward, rng),
        is_drawn: true,
        bound: Bound::default(),
    })
}

/// Returns the branch of a session, if it is not over.
fn placed_by<'a>(
    session: &Session,
    published: &Published,
    forward: &'a Forward,
) -> Option<Placement<'a>> {
    let is_its =
        |id: ServiceId| service_token(&published.snapshot.service(id).name) == session.service;
    let of_service = || {
        forward.to.iter().filter_map(|branch| match branch.to {
            SplitTarget::Service(id) if is_its(id) => Some((branch, id)),
            SplitTarget::Service(_) | SplitTarget::Deny(_) => None,
        })
    };
    let (_, id) = of_service().next()?;
    let total: u64 = of_service().map(|(branch, _)| u64::from(branch.weight)).sum();
    // Without weights, the shares are equal.
    let weight = |branch: &Split| if total == 0 { 1 } else { u64::from(branch.weight) };
    let mut at = session.fixed() % of_service().map(|(branch, _)| weight(branch)).sum::<u64>();
    // Branches of one service differ in what they change in messages: a session keeps to one of them.
    let (branch, _) = of_service().find(|(branch, _)| {
        let is_here = at < weight(branch);
        at = at.saturating_sub(weight(branch));
        is_here
    })?;
    let endpoints = published.service(id).endpoints();
    if endpoints.by_token(session.server).is_some() {
        let bound = Bound { server: Some(session.server), session: Some(*session) };
        return Some(Placement { branch, is_drawn: false, bound });
    }
    let is_open = total > 0 && !endpoints.eligible.is_empty();
    is_open.then_some(Placement { branch, is_drawn: false, bound: Bound::default() })
}

/// Returns the key by which `hash` places this request, if the service hashes and the request has
/// one. `verified` returns the value that servers receive for a field that tells them who sent the
/// request, in place of the request's own. `client` is `None` if it is not known.
pub fn key<'a>(
    service: &Service,
    request: &'a RequestHead,
    verified: impl Fn(&str) -> Option<&'a str>,
    client: Option<IpAddr>,
) -> Option<u64> {
    let Balance::Hash(hash) = &service.balance else {
        return None;
    };
    match &hash.on {
        HashOn::Client => client_key(service, client?),
        HashOn::Field(name) => {
            verified(name).map(str::as_bytes).or_else(|| request.field(name)).map(hash_key)
        }
        HashOn::Cookie(name) => request.cookie(name).map(hash_key),
        HashOn::Path => Some(hash_path(request.path())),
        HashOn::Parameter(name) => hash_parameter(request.query()?, name),
    }
}

/// Returns the hash key of a connection that carries no request.
pub fn client_key(service: &Service, client: IpAddr) -> Option<u64> {
    if !matches!(&service.balance, Balance::Hash(hash) if hash.on == HashOn::Client) {
        return None;
    }
    Some(match client.to_canonical() {
        IpAddr::V4(ip) => hash_key(&ip.octets()),
        IpAddr::V6(ip) => hash_key(&ip.octets()),
    })
}

/// Returns the server that the cookie of a service's affinity names, if the request has a well-formed one.
fn cookie_token(service: &Service, request: &RequestHead) -> Option<u64> {
    let cookie = request.cookie(&service.affinity.as_ref()?.cookie)?;
    if cookie.len() != 16 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(cookie).ok()?, 16).ok()
}
