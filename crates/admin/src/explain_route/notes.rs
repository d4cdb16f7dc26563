//! What an explanation assumes or leaves out, in sentences.

use model::{Balance, ConditionOn, HashOn, Listener, Route, Snapshot};
use tls::HTTP_01_PREFIX;

use super::{Case, is_preflight, others};

/// Returns the notes about a request that comes in on `listener` and takes `route`.
pub(super) fn notes(case: &Case<'_>, listener: &Listener, route: Option<&Route>) -> Vec<String> {
    let snapshot = case.snapshot();
    let mut notes: Vec<String> = Vec::new();
    if case.arrival.client.is_none() && needs_client(snapshot) {
        let key = if case.client.is_none() { ", and it has no hash key" } else { "" };
        notes.push(format!("the client's address is not known: conditions on it do not hold{key}"));
    }
    if !listener.trusted.is_empty() {
        notes.push(format!(
            "listener {} trusts proxies: if the given client is one of them, its fields name the client",
            listener.name
        ));
    }
    if listener.tls.is_some() && listener.hosts.is_some() {
        notes.push(
            "it is assumed that the server name (SNI) of the client's connection belongs to the same entry of hosts as the request's host: otherwise the answer is 421"
                .to_owned(),
        );
    }
    if case.published.router.reads_certificates() {
        notes.push(
            "it is assumed that the client shows no certificate: conditions on one do not hold"
                .to_owned(),
        );
    }
    if others::is_partial(snapshot.routes.len()) {
        notes.push("only a part of the other routes was examined".to_owned());
    }
    if case.head.field("cdn-loop").is_some() {
        notes.push(
            "CDN-Loop was not examined: Weir refuses requests that have passed it too often"
                .to_owned(),
        );
    }
    if snapshot.acme.is_some() && case.head.path().starts_with(HTTP_01_PREFIX) {
        notes.push(
            "while an ACME challenge is pending, Weir answers it before the routes are tried"
                .to_owned(),
        );
    }
    notes.extend(route.into_iter().flat_map(|route| of_route(case, route)));
    notes
}

fn needs_client(snapshot: &Snapshot) -> bool {
    let is_on_client = |route: &Route| {
        route.matches.conditions.iter().any(|condition| condition.on == ConditionOn::Client)
    };
    let mut services = snapshot.services.iter();
    let hashes_client = services.any(
        |service| matches!(&service.balance, Balance::Hash(hash) if hash.on == HashOn::Client),
    );
    hashes_client || snapshot.routes.iter().any(|route| is_on_client(route))
}

/// Returns what may happen before the route acts.
fn of_route(case: &Case<'_>, route: &Route) -> Vec<String> {
    let mut notes = Vec::new();
    // A preflight request is answered before.
    if let Some(id) = route.authentication().filter(|_| !is_preflight(case, route)) {
        let name = &case.snapshot().authentication(id).name;
        notes.push(format!(
            "before the route acts, authentication {name:?} may refuse the request (401, 403)"
        ));
    }
    if route.rate_limits().next().is_some() {
        notes.push("before the route acts, a rate limit may refuse the request (429)".to_owned());
    }
    notes
}
