//! The API's routes, and what their handlers share. JSON is indented, since people read it through curl.
//! The answers' types are in `admin_api`.

mod causes;
mod changes;
mod document;
mod find;
mod fleet;
mod maintenance;
#[cfg(test)]
mod openapi;
mod orders;
mod reload;
mod requests;
mod routes;
mod servers;
mod services;
mod status;
mod stream;
mod traffic;

use std::sync::Arc;

use admin_api::Configuration;
use admin_api::checks::Plan;
use admin_api::findings::Findings;
use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use decide::{LiveService, Published};
use observe::exposition::Format;
use serde::Serialize;

use crate::access::Access;
use crate::context::Context;
use crate::problem::Problem;
use crate::{Source, access, gather, guard, page, ui};

/// Maximum size of a request body. The largest valid one is like `{"state": "maintenance"}`.
const BODY_MAX_BYTES: usize = 4096;

/// Every route: path, method, handler.
const ROUTES: [(&str, &str, Answerer); 27] = [
    ("/", "get", || get(page::index)),
    ("/metrics", "get", || get(metrics)),
    ("/api/v1/openapi.json", "get", || get(document::openapi)),
    ("/api/v1/status", "get", || get(status::status)),
    ("/api/v1/services", "get", || get(services::all)),
    ("/api/v1/services/{service}", "get", || get(services::one)),
    ("/api/v1/services/{service}/servers/{server}/state", "post", || post(servers::set_state)),
    ("/api/v1/services/{service}/servers/{server}/weight", "post", || post(servers::set_weight)),
    ("/api/v1/services/{service}/maintenance", "post", || post(maintenance::set_service)),
    ("/api/v1/routes/{route}/maintenance", "post", || post(maintenance::set_route)),
    ("/api/v1/routes/explain", "get", || get(routes::explain)),
    ("/api/v1/routes/published", "get", || get(routes::published)),
    ("/api/v1/fleet", "get", || get(fleet::fleet)),
    ("/api/v1/requests", "get", || get(requests::in_flight)),
    ("/api/v1/requests/ended", "get", || get(requests::ended)),
    ("/api/v1/traffic", "get", || get(traffic::now)),
    ("/api/v1/history", "get", || get(traffic::past)),
    ("/api/v1/changes", "get", || get(changes::changes)),
    ("/api/v1/stream", "get", || get(stream::stream)),
    ("/api/v1/causes", "get", || get(causes::all)),
    ("/api/v1/causes/{cause}", "get", || get(causes::one)),
    ("/api/v1/checks", "get", || get(checks)),
    ("/api/v1/findings", "get", || get(findings)),
    ("/api/v1/configuration", "get", || get(configuration)),
    ("/api/v1/reload", "post", || post(reload::reload)),
    ("/api/v1/reloads", "get", || get(reload::reloads)),
    ("/api/v1/upgrade", "post", || post(reload::upgrade)),
];

type Answerer = fn() -> MethodRouter<Arc<Context>>;

type Api = State<Arc<Context>>;

/// Returns everything that a server on `port` (`None`: a Unix socket) answers: the API for those who have
/// `access`, and the dashboard.
pub(crate) fn router(context: Context, port: Option<u16>, access: Option<Arc<Access>>) -> Router {
    let mut router = Router::new();
    for (path, _, answerer) in ROUTES {
        router = router.route(path, answerer());
    }
    router
        .fallback(nothing_here)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Arc::new(context))
        .layer(from_fn(guard::note_allowed))
        .layer(from_fn_with_state(access.clone(), access::require))
        .merge(dashboard(access))
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .layer(from_fn_with_state(port, guard::refuse_strangers))
        .layer(from_fn(harden))
}

/// Returns the routes of the dashboard. They are public, and must not hold connections that others need.
fn dashboard(access: Option<Arc<Access>>) -> Router {
    let is_open = access.is_none();
    let router = ui::router(access).method_not_allowed_fallback(method_not_allowed);
    if is_open {
        router.layer(from_fn(guard::note_allowed))
    } else {
        router.layer(from_fn(guard::note_public))
    }
}

/// Adds the fields of every answer: not to be stored unless the handler sets Cache-Control, and not to be
/// sniffed for another type.
pub(crate) async fn harden(request: Request, next: Next) -> Response {
    const FIELDS: [(HeaderName, HeaderValue); 2] = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let mut response = next.run(request).await;
    for (name, value) in FIELDS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

pub(crate) async fn metrics(State(api): Api, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = accept.map_or(Format::Prometheus, Format::for_accept);
    let body = gather::exposition(&api, format, os::clock::now());
    ([(header::CONTENT_TYPE, format.content_type())], body).into_response()
}

async fn checks(State(api): Api) -> Indented<Plan> {
    Indented((api.sources.plan)())
}

async fn findings(State(api): Api) -> Result<Indented<Findings>, Problem> {
    Ok(Indented(ask(findings_of(&api)?).await?))
}

fn findings_of(api: &Context) -> Result<&Source<Findings>, Problem> {
    api.sources.findings.as_ref().ok_or_else(|| not_available("the doctor"))
}

async fn configuration(State(api): Api) -> Indented<Configuration> {
    let published = api.published();
    Indented(Configuration {
        generation: published.generation,
        configuration: (api.sources.configuration)(&published.snapshot),
    })
}

fn find_service<'a>(published: &'a Published, name: &str) -> Result<&'a Arc<LiveService>, Problem> {
    let mut services = published.services.iter();
    services.find(|service| **service.name() == *name).ok_or_else(|| {
        let known: Vec<_> = published.services.iter().map(|known| &**known.name()).collect();
        let message = format!("no service is named {name:?}; there are: {}", known.join(", "));
        Problem::not_found("service_not_found", message)
    })
}

async fn nothing_here(request: Request) -> Problem {
    let message = format!("nothing is at {}; / lists the paths", request.uri().path());
    Problem::not_found("not_found", message)
}

pub(crate) async fn method_not_allowed(request: Request) -> Problem {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

pub(crate) fn unreadable_path(rejection: PathRejection) -> Problem {
    Problem::new(rejection.status(), "path_not_readable", rejection.body_text())
}

fn unreadable_query(rejection: QueryRejection) -> Problem {
    Problem::new(rejection.status(), "query_not_readable", rejection.body_text())
}

/// Returns the error for a body that is not as `wanted`.
pub(crate) fn unreadable_body(rejection: &JsonRejection, wanted: &str) -> Problem {
    let message =
        format!("{}; send, with Content-Type: application/json, {wanted}", rejection.body_text());
    Problem::new(rejection.status(), "body_not_readable", message)
}

/// Returns the error for a feature that this process does not have.
fn not_available(what: &str) -> Problem {
    let message = format!("{what} is not available in this process");
    Problem::new(StatusCode::NOT_IMPLEMENTED, "not_available", message)
}

/// Calls a source that may block, outside the API's thread.
async fn ask<T: Send + 'static>(source: &Source<T>) -> Result<T, Problem> {
    let source = Arc::clone(source);
    blocking(move || source()).await
}

/// Does work that takes a while, outside the API's thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a task of the admin API panicked");
        internal_error()
    })
}

pub(crate) fn internal_error() -> Problem {
    let message = "an internal error; see the log for details".to_owned();
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
}

/// Returns the error for an answer that cannot be written as JSON.
fn not_written(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "an answer of the admin API cannot be written as JSON");
    internal_error()
}

/// Indented JSON.
struct Indented<T>(T);

impl<T: Serialize> IntoResponse for Indented<T> {
    fn into_response(self) -> Response {
        let mut text = match serde_json::to_string_pretty(&self.0) {
            Ok(text) => text,
            Err(error) => return not_written(&error).into_response(),
        };
        text.push('\n');
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}
