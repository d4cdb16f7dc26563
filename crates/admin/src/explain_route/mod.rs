//! Explains which route a request would take, and which server it would get. The router, the choice of a
//! server and the parser of request heads are those of real requests; nothing is counted or taken.

mod asked;
mod listener;
mod notes;
mod others;
mod server;

use std::net::IpAddr;

use admin_api::routes::{
    ExplainedAnswer, ExplainedRequest, ExplainedRoute, RouteAction, RouteExplanation, RouteService,
};
use decide::route::Arrival;
use decide::{Published, Registry, cors};
use model::path::{canonical, has_dot_segments};
use model::{
    Action, Cause, Denial, DenialCause, Listener, Maintained, Moment, PathMatch, Respond, Route,
    RouteMatch, Snapshot, SplitTarget,
};
use wire::http1::{RequestBody, RequestHead};

pub use asked::RouteQuery;

/// A request and the configuration that it is explained by.
struct Case<'a> {
    registry: &'a Registry,
    published: &'a Published,
    head: &'a RequestHead,
    arrival: Arrival<'a>,
    /// The client's address, even if it is not known well enough for conditions.
    client: Option<IpAddr>,
    now: Moment,
}

impl Case<'_> {
    fn snapshot(&self) -> &Snapshot {
        &self.published.snapshot
    }

    /// Returns where the route at `index` is written.
    fn written_at(&self, index: usize) -> Option<String> {
        self.published.written_at(index).map(|place| place.to_string())
    }
}

/// Explains a request at `now`.
///
/// # Errors
/// What is wrong with the question, in one line.
pub fn explain_route(
    registry: &Registry,
    query: &RouteQuery,
    now: Moment,
) -> Result<RouteExplanation, String> {
    let published = registry.load_full();
    let listener = listener::choose(&published.snapshot.listeners, query)?;
    let head = query.head(listener.listener)?;
    let refusal = refusal(&head, listener.listener);
    let is_refused = refusal.is_some();
    let client = query.client_by(listener.listener, &head);
    let seen = client.filter(|(_, is_known)| *is_known).map(|(client, _)| client);
    let arrival = Arrival { listener: listener.id, client: seen, certificate: None };
    let client = client.map(|(client, _)| client);
    let case = Case { registry, published: &published, head: &head, arrival, client, now };
    let found = published.router.find(&head, &arrival);
    let (considered, not_listed) = others::considered(&case, found);
    let route = found.and_then(|index| published.snapshot.routes.get(index)).map(|route| &**route);
    let mut explanation = RouteExplanation {
        listener: listener.explained,
        request: request(&case),
        answer: refusal.or_else(|| match route {
            Some(route) => own_answer(&case, route),
            None => Some(no_route(&head)),
        }),
        considered,
        not_listed,
        notes: notes::notes(&case, listener.listener, route.filter(|_| !is_refused)),
        ..RouteExplanation::default()
    };
    if let Some((index, route)) = found.zip(route) {
        explanation.route = Some(explained(&case, index, route));
        if let Action::Forward(forward) = &route.action
            && explanation.answer.is_none()
        {
            (explanation.server, explanation.answer) = server::foresee(&case, forward);
        }
    }
    Ok(explanation)
}

fn request(case: &Case<'_>) -> ExplainedRequest {
    let head = case.head;
    let host = head.host();
    ExplainedRequest {
        method: head.method().to_owned(),
        host: host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
        path: canonical(head.path()),
        query: head.query().map(str::to_owned),
        client: case.arrival.client.map(|client| client.to_string()),
    }
}

/// Returns the answer to a request that `listener` refuses, whatever its route.
fn refusal(head: &RequestHead, listener: &Listener) -> Option<ExplainedAnswer> {
    if listener.hosts.as_ref().is_some_and(|hosts| hosts.entry(head.host()).is_none()) {
        let why = "its host is not among hosts of the listener, so no route is tried";
        return Some(answer(Cause::DestinationNotFound, why));
    }
    let RequestBody::Length(length) = head.body() else { return None };
    let why = "its Content-Length is above body_max of the listener, so no route is tried";
    (!listener.allows_body(length)).then(|| answer(Cause::HttpRequestBodyTooLarge, why))
}

/// Returns the answer to a request that no route matches.
fn no_route(head: &RequestHead) -> ExplainedAnswer {
    if has_dot_segments(head.path()) {
        let why = "the path has dot segments (. or ..), which servers resolve differently";
        return answer(Cause::HttpRequestError, why);
    }
    answer(Cause::DestinationNotFound, "no route matches")
}

fn answer(cause: Cause, why: impl Into<String>) -> ExplainedAnswer {
    let status = cause.status();
    let status = (status > 0).then_some(status);
    ExplainedAnswer { status, cause: cause.name().to_owned(), why: why.into() }
}

/// Returns the answer that Weir gives itself for a route; `None`: the request goes to a service.
fn own_answer(case: &Case<'_>, route: &Route) -> Option<ExplainedAnswer> {
    if is_in_maintenance(case, route) {
        return Some(answer(Cause::Maintenance, "the route is in maintenance"));
    }
    if is_preflight(case, route) {
        let why = "Weir answers CORS preflight requests itself, by the route's cors";
        return Some(ExplainedAnswer { status: Some(204), ..answer(Cause::Responded, why) });
    }
    let with_status = |status: u16, cause: Cause, why: &str| {
        Some(ExplainedAnswer { status: Some(status), ..answer(cause, why) })
    };
    match &route.action {
        Action::Forward(_) if route.refuses(case.head.method()) => {
            Some(answer(Cause::HttpMethodNotAllowed, "TRACE is forwarded only if a route names it"))
        }
        Action::Forward(_) => None,
        Action::Deny(Denial { status, cause }) => {
            let why = match cause {
                DenialCause::Configured => "the route refuses its requests",
                DenialCause::NoRoute => "no route of the Gateway's listener matches",
                DenialCause::NoBackend => "the route has no valid backend",
            };
            with_status(*status, cause.cause(), why)
        }
        Action::Redirect(redirect) => {
            with_status(redirect.status, Cause::Redirected, "the route redirects")
        }
        Action::Respond(Respond::Fixed { status, .. }) => {
            with_status(*status, Cause::Responded, "the route has a response of its own")
        }
        Action::Respond(Respond::Ready(_)) => {
            let why =
                "the route answers whether Weir and its services are ready: 200, otherwise 503";
            Some(ExplainedAnswer { status: None, ..answer(Cause::Responded, why) })
        }
    }
}

fn is_preflight(case: &Case<'_>, route: &Route) -> bool {
    route.cors().is_some_and(|rules| cors::verdict(rules, case.head).is_preflight())
}

fn is_in_maintenance(case: &Case<'_>, route: &Route) -> bool {
    let switched = case.registry.maintenance();
    switched.in_force(Maintained::Route, &route.name, route.maintenance).is_some()
}

fn explained(case: &Case<'_>, index: usize, route: &Route) -> ExplainedRoute {
    let snapshot = case.snapshot();
    let name_of = |id| snapshot.service(id).name.to_string();
    let conditions = conditions(&route.matches, snapshot);
    let why = if conditions.is_empty() {
        "it matches every request, and no route that is tried before it matches"
    } else {
        "all of its conditions hold, and no route that is tried before it matches"
    };
    let (action, status, services) = match &route.action {
        Action::Forward(forward) => {
            let services = forward.to.iter().map(|branch| {
                let (name, status) = match branch.to {
                    SplitTarget::Service(id) => (name_of(id), None),
                    SplitTarget::Deny(denial) => (String::new(), Some(denial.status)),
                };
                RouteService { name, status, weight: branch.weight }
            });
            (RouteAction::Forward, None, services.collect())
        }
        Action::Redirect(redirect) => (RouteAction::Redirect, Some(redirect.status), Vec::new()),
        Action::Deny(denial) => (RouteAction::Deny, Some(denial.status), Vec::new()),
        Action::Respond(Respond::Fixed { status, .. }) => {
            (RouteAction::Respond, Some(*status), Vec::new())
        }
        Action::Respond(Respond::Ready(_)) => (RouteAction::Respond, None, Vec::new()),
    };
    ExplainedRoute {
        number: index + 1,
        name: route.name.to_string(),
        written_at: case.written_at(index),
        conditions,
        why: why.to_owned(),
        action: action.into(),
        status,
        services,
        mirrors: route.mirrors().iter().map(|mirror| name_of(mirror.service)).collect(),
        authentication: route
            .authentication()
            .map(|id| snapshot.authentication(id).name.to_string()),
        rate_limits: route.rate_limits().map(|limit| limit.name.to_string()).collect(),
        maintenance: is_in_maintenance(case, route),
    }
}

/// Returns the priority, if it has one, and the conditions of a route in words.
fn conditions(matches: &RouteMatch, snapshot: &Snapshot) -> Vec<String> {
    let RouteMatch { priority, listeners, host, path, method, fields, query, conditions, age: _ } =
        matches;
    let listeners = listeners.iter().filter_map(|id| snapshot.listeners.get(id.0 as usize));
    let names: Vec<&str> = listeners.map(|listener| &*listener.name).collect();
    let mut words = Vec::new();
    words.extend((*priority > 0).then(|| format!("priority {priority}")));
    words.extend((!names.is_empty()).then(|| format!("listener {}", names.join(" or "))));
    words.extend(host.iter().map(|host| format!("host {host}")));
    match path {
        PathMatch::Exact(path) => words.push(format!("path exactly {path}")),
        PathMatch::Prefix(prefix) if prefix.is_empty() => {}
        PathMatch::Prefix(prefix) => words.push(format!("path {prefix} and below")),
    }
    words.extend(method.iter().map(|method| format!("method {method}")));
    let shown = |of: &str, field: &model::FieldMatch| {
        format!("{of} {} = {}", field.name, field.value.shown())
    };
    words.extend(fields.iter().map(|field| shown("header", field)));
    words.extend(query.iter().map(|parameter| shown("query", parameter)));
    words.extend(conditions.iter().map(ToString::to_string));
    words
}
