//! `/api/v1/causes`: what each cause means, and how many requests ended with it.

use admin_api::causes::{Cause as CauseRow, Causes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use model::{Cause, Page};
use observe::Totals;

use super::{Api, Indented, unreadable_path};
use crate::problem::Problem;

pub(super) async fn all(State(api): Api) -> Indented<Causes> {
    let totals = api.counters.totals();
    Indented(Causes {
        requests: totals.listeners.values().map(|listener| listener.exchanges.sum()).sum(),
        causes: Cause::ALL.iter().map(|&cause| row(cause, &totals)).collect(),
    })
}

pub(super) async fn one(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented<CauseRow>, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let cause = Cause::from_name(&name).ok_or_else(|| {
        let message = format!("no cause is named {name:?}; /api/v1/causes lists them");
        Problem::not_found("cause_not_found", message)
    })?;
    Ok(Indented(row(cause, &api.counters.totals())))
}

fn row(cause: Cause, totals: &Totals) -> CauseRow {
    let Page { what, why, remedy } = cause.page();
    let services = totals
        .services
        .iter()
        .map(|(name, service)| (name.to_string(), service.exchanges.of_cause(cause)))
        .filter(|(_, count)| *count > 0);
    CauseRow {
        name: cause.name().to_owned(),
        fault: cause.fault().into(),
        // 0 means "none" inside.
        status: (cause.status() > 0).then_some(cause.status()),
        summary: cause.summary().to_owned(),
        what,
        why,
        remedy,
        // Every exchange came in on a listener; not every one found a service.
        count: totals.listeners.values().map(|one| one.exchanges.of_cause(cause)).sum(),
        services: services.collect(),
    }
}
