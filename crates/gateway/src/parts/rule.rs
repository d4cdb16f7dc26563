//! A rule of an HTTPRoute or GRPCRoute → conditions and actions of Weir.

use std::sync::Arc;
use std::time::Duration;

use model::{
    Action, BranchChanges, Condition, ConditionOn, Cors, CorsOrigin, Denial, FieldChanges,
    FieldMatch, Forward, MessageChanges, Mirror, PathChange, Redirect, RequestFilter,
    ResponseFilter, Retries, Rewrite, RouteMatch, RouteRetries, RouteTimeouts, Split, SplitTarget,
    StatusSet, Test,
};

use super::authentication::{self, Authentications};
use super::service::{Services, Use};
use super::session;
use crate::ir::backend::Backend;
use crate::ir::headers::HeaderChanges;
use crate::ir::request::{RequestMatch, RequestRule, Retry, ValueCondition, ValueTest};
use crate::ir::{Gateway, Protocol, Route, filter};

/// The longest body of a request that is copied: the default of `mirror`.
const MIRROR_BODY_MAX_BYTES: u32 = 64_000;

/// What happens to the requests of a rule.
#[derive(Debug)]
pub(super) struct Actions {
    pub(super) action: Action,
    pub(super) filters: Vec<RequestFilter>,
}

/// Returns what happens to the requests of a rule at a listener with this port and protocol.
pub(super) fn action(
    rule: &RequestRule,
    route: &Route,
    (gateway, port, protocol): (&Gateway, u16, Protocol),
    (services, known): (Services<'_>, &Authentications),
) -> Actions {
    let cors = rule.filters.cors.as_ref().map(cors).map(Arc::new).map(RequestFilter::Cors);
    let extras = rule.extras.as_deref();
    let filters = match authentication::filters(extras, cors, gateway, (services, known)) {
        Ok(filters) => filters,
        Err(denial) => return Actions { action: Action::Deny(denial), filters: Vec::new() },
    };
    let action = match &rule.filters.redirect {
        Some(to) => Action::Redirect(redirect(to, port)),
        None => forward((rule, route), Use::of(route.kind, protocol), gateway, services),
    };
    Actions { action, filters }
}

fn forward(
    (rule, route): (&RequestRule, &Route),
    using: Use,
    gateway: &Gateway,
    services: Services<'_>,
) -> Action {
    let filters = &rule.filters;
    let compression = rule.extras.as_ref().and_then(|extras| extras.compression.as_ref());
    let fields = MessageChanges {
        request: changes(&filters.request_headers),
        response: changes(&filters.response_headers),
    };
    let branch = |backend: &Backend| {
        let service = services.id(&backend.target, using, gateway);
        let own = MessageChanges {
            request: changes(&backend.request_headers),
            response: changes(&backend.response_headers),
        };
        // A backend's changes are nearest to it: the last ones to its requests, the first to its responses.
        let all = MessageChanges {
            request: fields.then(&own).request,
            response: own.then(&fields).response,
        };
        let fields = (!own.is_empty()).then(|| Box::new(BranchChanges { all, own }));
        // A share whose backend is invalid gets the status that the API demands.
        let to = service.map_or(SplitTarget::Deny(Denial::no_backend()), SplitTarget::Service);
        Split { to, weight: backend.weight, fields }
    };
    let to: Vec<Split> = rule.backends.iter().map(branch).collect();
    if to.iter().all(|branch| branch.weight == 0) {
        return Action::Deny(Denial::no_backend());
    }
    let rewrite = filters.rewrite.as_ref().map_or_else(Rewrite::default, |rewrite| Rewrite {
        path: rewrite.path.as_ref().map(path_change),
        host: rewrite.hostname.clone(),
    });
    let mirrors = filters.mirrors.iter().filter_map(|mirror| {
        let share = f64::from(mirror.numerator) / f64::from(mirror.denominator.max(1));
        let service = services.id(&mirror.target, using, gateway)?;
        let share = share.min(1.0);
        (share > 0.0).then_some(Mirror { service, share, body_max_bytes: MIRROR_BODY_MAX_BYTES })
    });
    Action::Forward(Box::new(Forward {
        to,
        rewrite,
        filters: compression.cloned().map(ResponseFilter::Compress).into_iter().collect(),
        mirrors: mirrors.collect(),
        timeouts: RouteTimeouts { total: rule.timeouts.request, attempt: rule.timeouts.attempt },
        retries: rule.retry.as_ref().map(retries).unwrap_or_default(),
        affinity: session::affinity(rule, route).map(Box::new),
        fields,
    }))
}

/// What a rule does not state is as the service's defaults say.
fn retries(retry: &Retry) -> RouteRetries {
    let statuses: StatusSet = retry.codes.iter().map(|&code| (code, code)).collect();
    RouteRetries {
        attempts_max: retry.attempts.map(|attempts| attempts.min(Retries::ATTEMPTS_MAX)),
        statuses: Some(statuses).filter(|set| !set.0.is_empty()),
        backoff: retry.backoff.map(|backoff| backoff.min(Retries::BACKOFF_MAX)),
    }
}

/// Returns the redirect. The API wants the port of the listener where a rule names neither port nor scheme.
fn redirect(to: &filter::Redirect, port: u16) -> Redirect {
    let of_listener = || to.scheme.is_none().then_some(port);
    Redirect {
        status: to.status,
        scheme: to.scheme.clone(),
        host: to.hostname.clone(),
        port: to.port.or_else(of_listener),
        path: to.path.as_ref().map(path_change),
    }
}

fn path_change(change: &filter::PathChange) -> PathChange {
    match change {
        filter::PathChange::Full(path) => PathChange::Whole(path.clone()),
        // Like the prefix itself.
        filter::PathChange::Prefix(path) => {
            PathChange::Prefix(path.trim_end_matches('/').to_owned())
        }
    }
}

fn changes(of: &HeaderChanges) -> FieldChanges {
    let pairs = |pairs: &[(String, String)]| {
        pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
    };
    FieldChanges { remove: of.remove.clone(), set: pairs(&of.set), add: pairs(&of.add) }
}

fn cors(of: &crate::objects::route::Cors) -> Cors {
    let origin = |text: &String| {
        let text = text.to_ascii_lowercase();
        match text.split_once("://*") {
            // Any host of a scheme, perhaps at another port than the scheme's.
            Some((scheme, port)) if port.is_empty() || port.starts_with(':') => {
                let is_usual = matches!((scheme, port), ("http", ":80") | ("https", ":443"));
                let after = if is_usual { String::new() } else { port.to_owned() };
                Some(CorsOrigin::Subdomains { before: format!("{scheme}://"), after })
            }
            _ => CorsOrigin::parse(&text),
        }
    };
    Cors {
        origins: of.allow_origins.iter().filter_map(origin).collect(),
        methods: of.allow_methods.join(", "),
        headers: of.allow_headers.join(", "),
        expose: of.expose_headers.join(", "),
        credentials: of.allow_credentials,
        max_age: Some(Duration::from_secs(u64::from(of.max_age))),
    }
}

/// Returns the conditions of a match, without host and listener.
pub(super) fn conditions(of: &RequestMatch) -> RouteMatch {
    let mut others = of.conditions.clone();
    let (path, expression) = of.path.parts();
    others.extend(expression);
    let mut exact = |all: &[ValueCondition], on: fn(String) -> ConditionOn| {
        let mut fields = Vec::new();
        for ValueCondition { name, value } in all {
            match value {
                ValueTest::Exact(value) => {
                    let value = value.as_str().into();
                    fields.push(FieldMatch { name: name.clone(), value });
                }
                ValueTest::Regex(pattern) => {
                    let (on, test) = (on(name.clone()), Test::Pattern(pattern.clone()));
                    others.push(Condition { on, test, negated: false });
                }
            }
        }
        fields.sort();
        fields
    };
    let fields = exact(&of.headers, ConditionOn::Field);
    let query = exact(&of.query, ConditionOn::Query);
    others.sort();
    RouteMatch {
        path,
        method: of.method.clone(),
        fields,
        query,
        conditions: others,
        ..RouteMatch::any()
    }
}
