//! `/api/v1/changes`: what has changed in the recent past.

use admin_api::changes::Changes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;

use super::{Api, Indented, blocking, not_available, unreadable_query};
use crate::context::Context;
use crate::problem::Problem;

const LIMIT: usize = 200;
const LIMIT_MAX: usize = 1_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only changes at or after this moment, in milliseconds since 1970 (UTC).
    since_unix_ms: Option<u64>,
    /// Maximum number of changes in the answer.
    limit: Option<usize>,
}

pub(super) async fn changes(
    State(api): Api,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Indented<Changes>, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    blocking(move || Ok(Indented(of(&api, &wanted)?))).await?
}

pub(super) fn of(api: &Context, wanted: &Wanted) -> Result<Changes, Problem> {
    let source =
        api.sources.changes.as_ref().ok_or_else(|| not_available("the list of changes"))?;
    let since = wanted.since_unix_ms.unwrap_or(0);
    let mut changes: Vec<_> =
        source().into_iter().take_while(|change| change.at_unix_ms >= since).collect();
    let limit = wanted.limit.unwrap_or(LIMIT).min(LIMIT_MAX);
    let left_out = changes.len().saturating_sub(limit);
    changes.truncate(limit);
    Ok(Changes { changes, left_out })
}
