//! Changes an operator may make to a server at run time: its state and its weight. Both survive reloads
//! and upgrades, until they are changed again or the process stops.

use model::Address;

use admin_api::fleet::FleetConfirmation;
use admin_api::services::{Service, StateChanged, StateRequest, WeightRequest};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use decide::{Endpoint, LiveService, ServerChange};

use super::{
    Api, Context, Indented, find, find_service, orders, services, unreadable_body, unreadable_path,
};
use crate::problem::Problem;

/// Maximum weight, as in the configuration.
const WEIGHT_MAX: u16 = 1_000;

type ServerPath = Result<Path<(String, String)>, PathRejection>;

pub(super) async fn set_state(
    State(api): Api,
    path: ServerPath,
    body: Result<Json<StateRequest>, JsonRejection>,
) -> Result<Indented<StateChanged>, Problem> {
    let Path((service, server)) = path.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &service)?;
    let Json(StateRequest { state, dry_run, fleet }) = body.map_err(|rejection| {
        unreadable_body(&rejection, r#"{"state": "ready"}, "drain" or "maintenance""#)
    })?;
    let members = if fleet { Some(orders::members(&api, service, &server)?) } else { None };
    if dry_run {
        let Indented(service) = preview(&api, service, &server, ServerChange::State(state))?;
        let fleet = members.map(|members| FleetConfirmation { members, ..Default::default() });
        return Ok(Indented(StateChanged { service, fleet }));
    }
    if fleet {
        let confirmation = orders::set(&api, service, &server, state).await?;
        let service = services::now_of(&api, service);
        return Ok(Indented(StateChanged { service, fleet: Some(confirmation) }));
    }
    let changed = change(&api, service, &server, |endpoint| {
        ServerChange::State(state).make(endpoint);
        tracing::info!(
            service = %service.name(),
            server = %endpoint.row.name,
            address = %endpoint.row.address,
            state = state.as_str(),
            "server state changed through the admin API"
        );
    });
    let Indented(service) = changed?;
    Ok(Indented(StateChanged { service, fleet: None }))
}

pub(super) async fn set_weight(
    State(api): Api,
    path: ServerPath,
    body: Result<Json<WeightRequest>, JsonRejection>,
) -> Result<Indented<Service>, Problem> {
    let Path((service, server)) = path.map_err(unreadable_path)?;
    let published = api.published();
    let service = find_service(&published, &service)?;
    let wanted = r#"{"weight": 0} to {"weight": 1000}, or {"weight": null} for the configured one"#;
    let Json(WeightRequest { weight, dry_run }) =
        body.map_err(|rejection| unreadable_body(&rejection, wanted))?;
    if weight.is_some_and(|weight| weight > WEIGHT_MAX) {
        let message = format!("a weight is at most {WEIGHT_MAX}; send {wanted}");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, "body_not_readable", message));
    }
    if dry_run {
        return preview(&api, service, &server, ServerChange::Weight(weight));
    }
    change(&api, service, &server, |endpoint| {
        ServerChange::Weight(weight).make(endpoint);
        tracing::info!(
            service = %service.name(),
            server = %endpoint.row.name,
            address = %endpoint.row.address,
            weight,
            configured = endpoint.row.weight,
            "server's weight changed through the admin API"
        );
    })
}

/// Returns the service as it would be after a change.
fn preview(
    api: &Context,
    service: &LiveService,
    server: &str,
    change: ServerChange,
) -> Result<Indented<Service>, Problem> {
    let endpoints = service.endpoints();
    let found = find::servers(service, &endpoints, server)?;
    let addresses: Vec<Address> = found.into_iter().map(|one| one.row.address).collect();
    let now = os::clock::now();
    let view = service.preview(&addresses, change, now);
    Ok(Indented(services::of(&view, services::beside(api, service), now)))
}

/// Changes the service's server of that name or address. The change takes effect at once.
fn change(
    api: &Context,
    service: &LiveService,
    server: &str,
    change: impl Fn(&Endpoint),
) -> Result<Indented<Service>, Problem> {
    let endpoints = service.endpoints();
    let found = find::servers(service, &endpoints, server)?;
    let turned = api.sources.switches.turn(|| found.into_iter().for_each(|one| change(one)));
    turned.ok_or_else(Problem::upgrading)?;
    let now = os::clock::now();
    if let Some(tier) = service.refresh(now) {
        tracing::warn!(
            service = %tier.service,
            from = tier.from.as_str(),
            to = tier.to.as_str(),
            why = tier.reason.as_str(),
            evidence = tier.reason.text(),
            "service changed servers"
        );
    }
    Ok(Indented(services::now_of(api, service)))
}
