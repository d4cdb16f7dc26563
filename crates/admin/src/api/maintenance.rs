//! Maintenance of services and routes: switched on and off by an operator, beside what the file says.
//! It survives reloads and upgrades, as long as the name stays in the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use admin_api::maintenance::{Maintenance as Row, MaintenanceRequest};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use decide::Published;
use decide::maintenance::Switched;
use model::{Maintained, Maintenance};

use super::{Api, Context, Indented, find_service, unreadable_body, unreadable_path};
use crate::problem::Problem;

/// Routes named in an error.
const NAMES_SHOWN_MAX: usize = 20;
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);

type Name = Result<Path<String>, PathRejection>;
type Body = Result<Json<MaintenanceRequest>, JsonRejection>;

pub(super) async fn set_service(
    State(api): Api,
    name: Name,
    body: Body,
) -> Result<Indented<Row>, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    find_service(&published, &name)?;
    set(&api, &published, (Maintained::Service, &name), body)
}

pub(super) async fn set_route(
    State(api): Api,
    name: Name,
    body: Body,
) -> Result<Indented<Row>, Problem> {
    let Path(name) = name.map_err(unreadable_path)?;
    let published = api.published();
    let routes = &published.snapshot.routes;
    if !routes.iter().any(|route| *route.name == *name) {
        let known: BTreeSet<&str> = routes.iter().map(|route| &*route.name).collect();
        let shown: Vec<_> = known.iter().copied().take(NAMES_SHOWN_MAX).collect();
        let more = if known.len() > shown.len() { ", …" } else { "" };
        let message = format!("no route is named {name:?}; there are: {}{more}", shown.join(", "));
        return Err(Problem::not_found("route_not_found", message));
    }
    set(&api, &published, (Maintained::Route, &name), body)
}

fn set(
    api: &Context,
    published: &Published,
    (kind, name): (Maintained, &str),
    body: Body,
) -> Result<Indented<Row>, Problem> {
    let wanted = r#"{"on": true}, {"on": true, "retry_after_ms": 600000} or {"on": false}"#;
    let Json(MaintenanceRequest { on, retry_after_ms }) =
        body.map_err(|rejection| unreadable_body(&rejection, wanted))?;
    let retry_after = retry_after_ms.map(Duration::from_millis);
    let allowed = RETRY_AFTER_MIN..=Maintenance::RETRY_AFTER_MAX;
    if retry_after.is_some_and(|time| !allowed.contains(&time)) {
        let message = format!(
            "`retry_after_ms` is from 1000 (a second) to 604800000 (a week); send {wanted}"
        );
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, "body_not_readable", message));
    }
    let switched = api.registry.maintenance();
    let to = on.then_some(Maintenance { retry_after });
    api.sources.switches.turn(|| switched.set(kind, name, to)).ok_or_else(Problem::upgrading)?;
    tracing::info!(
        kind = kind.as_str(),
        name,
        on,
        retry_after_ms,
        "maintenance changed through the admin API"
    );
    Ok(Indented(row(switched, (kind, name), in_file(published, kind, name))))
}

/// Returns everything that is in maintenance, in order of kind and name.
pub(super) fn all(api: &Context, published: &Published) -> Vec<Row> {
    let switched = api.registry.maintenance();
    let snapshot = &published.snapshot;
    let services = snapshot.services.iter().filter(|service| service.maintenance.is_some());
    let routes = snapshot.routes.iter().filter(|route| route.maintenance.is_some());
    let services = services.map(|service| (Maintained::Service, Arc::clone(&service.name)));
    let routes = routes.map(|route| (Maintained::Route, Arc::clone(&route.name)));
    let by_operators = switched.rows().into_iter().map(|(kind, name, _)| (kind, name));
    let mut all: Vec<_> = services.chain(routes).chain(by_operators).collect();
    all.sort_by(|one, other| (one.0.as_str(), &one.1).cmp(&(other.0.as_str(), &other.1)));
    all.dedup();
    let rows = all
        .iter()
        .map(|(kind, name)| row(switched, (*kind, name), in_file(published, *kind, name)));
    rows.collect()
}

/// Returns what the file says; of routes with one name, the first that is in maintenance.
fn in_file(published: &Published, kind: Maintained, name: &str) -> Option<Maintenance> {
    let snapshot = &published.snapshot;
    match kind {
        Maintained::Service => {
            snapshot.services.iter().find(|service| *service.name == *name)?.maintenance
        }
        Maintained::Route => {
            let mut named = snapshot.routes.iter().filter(|route| *route.name == *name);
            named.find_map(|route| route.maintenance)
        }
    }
}

fn row(switched: &Switched, (kind, name): (Maintained, &str), in_file: Option<Maintenance>) -> Row {
    let in_force = switched.in_force(kind, name, in_file);
    let retry_after = in_force.and_then(|maintenance| maintenance.retry_after);
    Row {
        kind: kind.into(),
        name: name.to_owned(),
        on: in_force.is_some(),
        in_file: in_file.is_some(),
        by_operator: switched.by_operator(kind, name).is_some(),
        retry_after_ms: retry_after.map(|time| time.as_millis() as u64),
    }
}
