//! `/api/v1/routes/explain`: which route a request would take, and which server it would get.
//! `/api/v1/routes/published`: the routes that services publish.

use admin_api::published::PublishedRoutes;
use admin_api::routes::RouteExplanation;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::{Api, Indented, blocking, internal_error, unreadable_query};
use crate::context::Context;
use crate::explain_route::{RouteQuery, explain_route};
use crate::problem::Problem;

/// One explanation at a time: queries whose clients have gone cannot pile up.
static ONE: Semaphore = Semaphore::const_new(1);

pub(super) async fn published(State(api): Api) -> Indented<PublishedRoutes> {
    Indented(published_of(&api))
}

pub(super) fn published_of(api: &Context) -> PublishedRoutes {
    api.sources.published_routes.as_ref().map(|published| published()).unwrap_or_default()
}

pub(super) async fn explain(
    State(api): Api,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Indented<RouteExplanation>, Problem> {
    let Query(parameters) = parameters.map_err(unreadable_query)?;
    let unusable = |why| Problem::new(StatusCode::BAD_REQUEST, "query_not_readable", why);
    let query = RouteQuery::read(&parameters).map_err(unusable)?;
    // It is never closed.
    let permit = ONE.acquire().await.map_err(|_| internal_error())?;
    // With many routes it takes a while.
    let explain = move || {
        // Held until it is done, even if the client is gone by then.
        let _permit = permit;
        explain_route(&api.registry, &query, os::clock::now())
    };
    let explained = blocking(explain).await?;
    explained.map(Indented).map_err(unusable)
}
