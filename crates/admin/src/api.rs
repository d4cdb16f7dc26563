//! The routes and what each answers. JSON is indented, since people read it through curl.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use decide::{LiveService, Published};
use model::{Administrative, Moment};
use observe::exposition::Format;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::{Options, guard, metrics, page, services};

/// The largest request body. The only one that means anything is `{"state": "maintenance"}`.
const BODY_MAX_BYTES: usize = 4096;

type Api = State<Arc<Context>>;

/// What handlers need.
struct Context {
    options: Options,
    started: Moment,
}

impl Context {
    fn published(&self) -> Arc<Published> {
        self.options.registry.load_full()
    }
}

/// The API on a server that listens on `port`.
pub(crate) fn router(options: Options, port: u16) -> Router {
    let context = Arc::new(Context { options, started: os::clock::now() });
    Router::new()
        .route("/", get(page::index))
        .route("/metrics", get(metrics))
        .route("/api/v1/status", get(status))
        .route("/api/v1/services", get(all_services))
        .route("/api/v1/services/{service}", get(one_service))
        .route("/api/v1/services/{service}/servers/{address}/state", post(set_state))
        .route("/api/v1/checks", get(checks))
        .route("/api/v1/configuration", get(configuration))
        .fallback(nothing_here)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(context)
        .layer(DefaultBodyLimit::max(BODY_MAX_BYTES))
        .layer(from_fn(harden))
        .layer(from_fn_with_state(port, guard::refuse_strangers))
}

/// Fields that every answer bears: it is the present state, and it is what it says it is.
async fn harden(request: Request, next: Next) -> Response {
    const FIELDS: [(HeaderName, HeaderValue); 2] = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let mut response = next.run(request).await;
    response.headers_mut().extend(FIELDS);
    response
}

async fn metrics(State(api): Api, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = accept.map_or(Format::Prometheus, Format::for_accept);
    let text = metrics::exposition(&api.options, &api.published(), format, os::clock::now());
    ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
}

async fn status(State(api): Api) -> Indented {
    let published = api.published();
    let listeners = published.snapshot.listeners.iter();
    Indented(json!({
        "ready": api.options.ready.load(Relaxed),
        "version": api.options.version,
        "pid": std::process::id(),
        "uptime_s": os::clock::now().since(api.started).as_secs(),
        "generation": published.generation,
        "workers": api.options.workers,
        "listeners": listeners
            .map(|listener| json!({ "name": listener.name, "address": listener.address }))
            .collect::<Value>(),
    }))
}

async fn all_services(State(api): Api) -> Indented {
    let now = os::clock::now();
    let services = api.published();
    let views = services.services.iter().map(|service| services::to_json(&service.view(now)));
    Indented(json!({ "services": views.collect::<Value>() }))
}

async fn one_service(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &name)?;
    Ok(Indented(services::to_json(&service.view(os::clock::now()))))
}

async fn checks(State(api): Api) -> Indented {
    Indented((api.options.plan)())
}

async fn configuration(State(api): Api) -> Indented {
    let published = api.published();
    Indented(json!({
        "generation": published.generation,
        "configuration": (api.options.configuration)(&published.snapshot),
    }))
}

/// What a person may say of a server.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AskedState {
    Ready,
    Drain,
    Maintenance,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateRequest {
    state: AskedState,
}

async fn set_state(
    State(api): Api,
    path: Result<Path<(String, String)>, PathRejection>,
    body: Result<Json<StateRequest>, JsonRejection>,
) -> Result<Indented, Problem> {
    let Path((service, server)) = path.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &service)?;
    let Json(StateRequest { state }) = body.map_err(|rejection| unreadable_body(&rejection))?;
    let state = match state {
        AskedState::Ready => Administrative::Ready,
        AskedState::Drain => Administrative::Drain,
        AskedState::Maintenance => Administrative::Maintenance,
    };
    put_aside(service, &server, state)?;
    Ok(Indented(services::to_json(&service.view(os::clock::now()))))
}

/// Sets what a person says of the service's server at `address`, and lets it count at once.
fn put_aside(service: &LiveService, address: &str, state: Administrative) -> Result<(), Problem> {
    let endpoints = service.endpoints();
    let found = address.parse().ok().and_then(|address| endpoints.by_address(address));
    let Some(endpoint) = found else {
        let known = endpoints.all.iter().map(|endpoint| endpoint.row.address.to_string());
        let message = format!(
            "service {:?} has no server at {address:?}; its servers: {}",
            service.name(),
            known.collect::<Vec<_>>().join(", ")
        );
        return Err(Problem::not_found("server_not_found", message));
    };
    endpoint.state.set_administrative(state);
    let tier = service.refresh(os::clock::now());
    tracing::info!(
        service = %service.name(),
        server = %endpoint.row.name,
        address = %endpoint.row.address,
        state = services::administrative(state),
        "server put aside or back through the admin API"
    );
    if let Some(tier) = tier {
        tracing::warn!(
            service = %tier.service,
            from = tier.from.name(),
            to = tier.to.name(),
            why = tier.reason.name(),
            evidence = tier.reason.text(),
            "service changed servers"
        );
    }
    Ok(())
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
    let message = format!("nothing is at {}; / says what there is", request.uri().path());
    Problem::not_found("not_found", message)
}

async fn method_not_allowed(request: Request) -> Problem {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

fn unreadable_path(rejection: PathRejection) -> Problem {
    Problem::new(rejection.status(), "path_not_readable", rejection.body_text())
}

fn unreadable_body(rejection: &JsonRejection) -> Problem {
    let message = format!(
        "{}; wanted is, with Content-Type: application/json, {{\"state\": \"ready\"}}, \"drain\" \
         or \"maintenance\"",
        rejection.body_text()
    );
    Problem::new(rejection.status(), "body_not_readable", message)
}

/// JSON for people too.
struct Indented(Value);

impl IntoResponse for Indented {
    fn into_response(self) -> Response {
        let mut text = format!("{:#}", self.0);
        text.push('\n');
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    }
}
