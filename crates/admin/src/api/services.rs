//! `/api/v1/services`: services and their servers. Times are milliseconds.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use decide::{EndpointView, ServiceView};
use serde_json::{Value, json};

use super::{Api, Indented, find_service, rounded, unreadable_path};
use crate::problem::Problem;

pub(super) async fn all(State(api): Api) -> Indented {
    let now = os::clock::now();
    let published = api.published();
    let views = published.services.iter().map(|service| to_json(&service.view(now)));
    Indented(json!({ "services": views.collect::<Value>() }))
}

pub(super) async fn one(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &name)?;
    Ok(Indented(to_json(&service.view(os::clock::now()))))
}

pub(super) fn to_json(service: &ServiceView) -> Value {
    let eligible = service.endpoints.iter().filter(|server| server.eligible).count();
    json!({
        "name": service.name,
        "eligible": eligible,
        "tier": service.tier.as_str(),
        "reason": service.reason.as_str(),
        "why": service.reason.text(),
        "queue": {
            "length": service.queue_length,
            "length_max": service.queue_length_max,
            "drain_rate_per_s": rounded(service.drain_rate),
        },
        "servers": service.endpoints.iter().map(server).collect::<Value>(),
        // Given by a name that has no address at present.
        "unresolved": service.unresolved.iter().map(|server| json!({
            "name": server.name,
            "zone": server.zone,
            "weight_configured": server.weight_configured,
            "backup": server.backup,
        })).collect::<Value>(),
    })
}

fn server(server: &EndpointView) -> Value {
    json!({
        "name": server.name,
        "address": server.address,
        "zone": server.zone,
        "eligible": server.eligible,
        "health": server.health.as_str(),
        "state": server.administrative.as_str(),
        "ejected_for_ms": server.ejected_for.map(|time| rounded(time.as_secs_f64() * 1e3)),
        "weight": server.weight,
        "weight_configured": server.weight_configured,
        "slow_start_share": rounded(server.share),
        "backup": server.backup,
        "in_flight": server.in_flight,
        // 0 means "no limit" inside; here a limit that is not there is null.
        "in_flight_max": (server.in_flight_max > 0).then_some(server.in_flight_max),
        "requests": server.requests,
        "failures": server.failures,
        "latency_ms": server.latency.map(|time| rounded(time.as_secs_f64() * 1e3)),
    })
}
