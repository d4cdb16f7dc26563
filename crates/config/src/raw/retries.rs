//! Reads `retries` of a service and of a route.

use std::time::Duration;

use model::{Retries, RouteRetries, StatusSet};

use super::statuses;
use super::table::Table;
use crate::defaults;

/// Reads those of a service.
pub(super) fn of_service(table: Option<Table<'_>>) -> Retries {
    let Some(mut table) = table else {
        return Retries {
            attempts_max: defaults::ATTEMPTS_MAX as u32,
            body_kept_max_bytes: defaults::BODY_KEPT_MAX_BYTES as u32,
            ..Retries::default()
        };
    };
    let retries = Retries {
        attempts_max: table.integer("max").value,
        body_kept_max_bytes: u32::try_from(table.size("body_kept_max").value).unwrap_or(u32::MAX),
        statuses: retried(&mut table).unwrap_or_default(),
        backoff: backoff(&mut table).unwrap_or_default(),
    };
    table.finish();
    retries
}

/// Reads those of a route.
pub(super) fn of_route(mut table: Table<'_>) -> RouteRetries {
    let retries = RouteRetries {
        attempts_max: table.integer_if("max").map(|at| at.value),
        statuses: retried(&mut table),
        backoff: backoff(&mut table),
    };
    table.finish();
    retries
}

fn retried(table: &mut Table<'_>) -> Option<StatusSet> {
    let title = "a retry of a response that is no error";
    statuses::read_errors(table, "status", title).map(|at| at.value)
}

fn backoff(table: &mut Table<'_>) -> Option<Duration> {
    table.duration_if("backoff").map(|at| at.value)
}
