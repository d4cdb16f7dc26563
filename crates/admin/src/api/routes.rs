//! `/api/v1/routes/explain`: which route a request would take, and which server it would get.

use admin_api::routes::RouteExplanation;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;

use super::{Api, Indented, blocking, unreadable_query};
use crate::explain_route::{RouteQuery, explain_route};
use crate::problem::Problem;

pub(super) async fn explain(
    State(api): Api,
    parameters: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Indented<RouteExplanation>, Problem> {
    let Query(parameters) = parameters.map_err(unreadable_query)?;
    let unusable = |why| Problem::new(StatusCode::BAD_REQUEST, "query_not_readable", why);
    let query = RouteQuery::read(&parameters).map_err(unusable)?;
    // With many routes it takes a while.
    let explained =
        blocking(move || explain_route(&api.registry, &query, os::clock::now())).await?;
    explained.map(Indented).map_err(unusable)
}
