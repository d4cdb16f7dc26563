//! `/api/v1/status`: this process.

use std::sync::atomic::Ordering::Relaxed;

use admin_api::status::{Connections, Listener as ListenerStatus, Registration, Status};
use axum::extract::State;
use model::Listener;
use observe::{ListenerTotals, Totals};

use super::{Api, Indented, fleet, maintenance, routes};
use crate::context::Context;

pub(super) async fn status(State(api): Api) -> Indented<Status> {
    Indented(of(&api))
}

pub(super) fn of(api: &Context) -> Status {
    let published = api.published();
    let snapshot = &published.snapshot;
    let totals = api.counters.totals();
    let mut entries = api.sources.registrations.as_ref().map(|all| all()).unwrap_or_default();
    let open = totals.listeners.values().map(ListenerTotals::connections_open).sum();
    Status {
        ready: api.ready.load(Relaxed),
        version: api.version.to_owned(),
        pid: std::process::id(),
        // The clock's origin is the program's start.
        uptime_s: os::clock::now().as_micros() / 1_000_000,
        generation: published.generation,
        zone: snapshot.zone.as_deref().map(str::to_owned),
        workers: api.workers,
        connections: Connections { open, open_max: snapshot.connections_max.into() },
        listeners: snapshot
            .listeners
            .iter()
            .map(|one| listener(one, &totals, entries.remove(&one.name)))
            .collect(),
        maintenance: maintenance::all(api, &published),
        acme: api.sources.acme.as_ref().and_then(|acme| acme()),
        published_routes: routes::published_of(api).source,
        fleet: fleet::of(api).map(|fleet| fleet.summary()),
        kubernetes: api.sources.kubernetes.as_ref().map(|state| state()),
    }
}

fn listener(
    listener: &Listener,
    totals: &Totals,
    registration: Option<Registration>,
) -> ListenerStatus {
    let counted = totals.listeners.get(&listener.name);
    ListenerStatus {
        name: listener.name.to_string(),
        address: listener.address.to_string(),
        protocol: listener.protocol.word().into(),
        connections: Connections {
            open: counted.map_or(0, ListenerTotals::connections_open),
            open_max: listener.connections_max.into(),
        },
        registration,
    }
}
