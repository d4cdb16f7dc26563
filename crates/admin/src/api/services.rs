//! `/api/v1/services`: services and their servers. Times are in milliseconds.

use std::time::Duration;

use admin_api::rounded;
use admin_api::services::{Queue, Server, Service, Services, UnresolvedServer};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use decide::{EndpointView, ServiceView, UnresolvedView};

use super::{Api, Indented, find_service, unreadable_path};
use crate::context::Context;
use crate::problem::Problem;

pub(super) async fn all(State(api): Api) -> Indented<Services> {
    Indented(all_of(&api))
}

pub(super) fn all_of(api: &Context) -> Services {
    let now = os::clock::now();
    let published = api.published();
    let services = published.services.iter().map(|service| of(&service.view(now)));
    Services { services: services.collect() }
}

pub(super) async fn one(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented<Service>, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &name)?;
    Ok(Indented(of(&service.view(os::clock::now()))))
}

/// Describes a service.
pub(super) fn of(service: &ServiceView) -> Service {
    Service {
        name: service.name.to_string(),
        eligible: service.endpoints.iter().filter(|server| server.eligible).count(),
        tier: service.tier.into(),
        reason: service.reason.into(),
        why: service.reason.text().to_owned(),
        queue: Queue {
            length: service.queue_length,
            length_max: service.queue_length_max,
            drain_rate_per_s: rounded(service.drain_rate),
        },
        servers: service.endpoints.iter().map(server).collect(),
        unresolved: service.unresolved.iter().map(unresolved).collect(),
    }
}

fn server(server: &EndpointView) -> Server {
    let milliseconds = |time: Duration| rounded(time.as_secs_f64() * 1e3);
    Server {
        name: server.name.to_string(),
        address: server.address.to_string(),
        zone: server.zone.as_deref().map(str::to_owned),
        eligible: server.eligible,
        health: server.health.into(),
        state: server.administrative.into(),
        ejected_for_ms: server.ejected_for.map(milliseconds),
        weight: server.weight,
        weight_configured: server.weight_configured,
        slow_start_share: rounded(server.share),
        backup: server.backup,
        in_flight: server.in_flight,
        // 0 means "no limit" inside; here a limit that does not exist is null.
        in_flight_max: (server.in_flight_max > 0).then_some(server.in_flight_max),
        requests: server.requests,
        failures: server.failures,
        latency_ms: server.latency.map(milliseconds),
        version: server.version.map(|version| version.to_string()),
    }
}

fn unresolved(server: &UnresolvedView) -> UnresolvedServer {
    UnresolvedServer {
        name: server.name.to_string(),
        zone: server.zone.as_deref().map(str::to_owned),
        weight_configured: server.weight_configured,
        backup: server.backup,
    }
}
