//! `/api/v1/services`: services and their servers. Times are in milliseconds.

use std::time::Duration;

use admin_api::rounded;
use admin_api::services::{
    Listing, Queue, Server, Service, ServiceSource, Services, UnresolvedServer, WantedServers,
};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use decide::{EndpointView, LiveService, ServiceView, UnresolvedView};
use model::Moment;

use super::{Api, Indented, find_service, unreadable_path};
use crate::context::Context;
use crate::problem::Problem;

pub(super) async fn all(State(api): Api) -> Indented<Services> {
    Indented(all_of(&api))
}

pub(super) fn all_of(api: &Context) -> Services {
    let now = os::clock::now();
    let published = api.published();
    let mut sources = api.server_sources();
    let mut wanted = api.wanted_servers();
    let services = published.services.iter().map(|service| {
        let beside = (sources.remove(service.name()), wanted.remove(service.name()));
        of(&service.view(now), beside, now)
    });
    Services { services: services.collect() }
}

pub(super) async fn one(
    State(api): Api,
    name: Result<Path<String>, PathRejection>,
) -> Result<Indented<Service>, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &name)?;
    Ok(Indented(now_of(&api, service)))
}

/// Describes a service as it is now.
pub(super) fn now_of(api: &Context, service: &LiveService) -> Service {
    let now = os::clock::now();
    of(&service.view(now), beside(api, service), now)
}

/// What a service's view does not have: the source of its servers, and how many it should have.
pub(super) type Beside = (Option<ServiceSource>, Option<WantedServers>);

pub(super) fn beside(api: &Context, service: &LiveService) -> Beside {
    (api.server_sources().remove(service.name()), api.wanted_servers().remove(service.name()))
}

/// Describes a service.
pub(super) fn of(service: &ServiceView, (source, wanted): Beside, now: Moment) -> Service {
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
        servers: service.endpoints.iter().map(|one| server(one, now)).collect(),
        unresolved: service.unresolved.iter().map(unresolved).collect(),
        source,
        wanted,
    }
}

fn server(server: &EndpointView, now: Moment) -> Server {
    let milliseconds = |time: Duration| rounded(time.as_secs_f64() * 1e3);
    Server {
        name: server.name.to_string(),
        address: server.address.to_string(),
        zone: server.zone.as_deref().map(str::to_owned),
        eligible: server.eligible,
        health: server.health.into(),
        state: server.administrative.into(),
        leaving: server.leaving,
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
        listing: server.listing.as_deref().map(|listing| Listing {
            source: listing.source.into(),
            object: listing.object.to_string(),
            index: listing.index,
            standing: listing.standing.into(),
            for_ms: milliseconds(now.since(listing.since)),
        }),
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
