//! `/api/v1/causes`: what each cause means, and how often it was.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use model::{Cause, Page};
use observe::Totals;
use serde_json::{Map, Value, json};

use super::{Api, Indented, unreadable_path};
use crate::problem::Problem;

pub(super) async fn all(State(api): Api) -> Indented {
    let totals = api.counters.totals();
    let requests: u64 = totals.listeners.values().map(|listener| listener.exchanges.sum()).sum();
    let causes = Cause::ALL.iter().map(|&cause| to_json(cause, &totals));
    Indented(json!({ "requests": requests, "causes": causes.collect::<Value>() }))
}

pub(super) async fn one(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let cause = Cause::from_name(&name).ok_or_else(|| {
        let message = format!("no cause is named {name:?}; /api/v1/causes lists them");
        Problem::not_found("cause_not_found", message)
    })?;
    Ok(Indented(to_json(cause, &api.counters.totals())))
}

fn to_json(cause: Cause, totals: &Totals) -> Value {
    let Page { what, why, remedy } = cause.page();
    // Every exchange came in on a listener; not every one found a service.
    let count: u64 = totals.listeners.values().map(|one| one.exchanges.of_cause(cause)).sum();
    let services: Map<String, Value> = totals
        .services
        .iter()
        .map(|(name, service)| (name, service.exchanges.of_cause(cause)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_string(), count.into()))
        .collect();
    json!({
        "name": cause.name(),
        "fault": cause.fault().as_str(),
        // 0 means "none" inside.
        "status": (cause.status() > 0).then_some(cause.status()),
        "summary": cause.summary(),
        "what": what,
        "why": why,
        "remedy": remedy,
        "count": count,
        "services": services,
    })
}
