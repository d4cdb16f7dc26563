//! `/api/v1/status`: this process.

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use model::Listener;
use observe::{ListenerTotals, Totals};
use serde_json::{Value, json};

use super::{Api, Indented};

pub(super) async fn status(State(api): Api) -> Indented {
    let published = api.published();
    let snapshot = &published.snapshot;
    let totals = api.counters.totals();
    let open: u64 = totals.listeners.values().map(ListenerTotals::connections_open).sum();
    Indented(json!({
        "ready": api.ready.load(Relaxed),
        "version": api.version,
        "pid": std::process::id(),
        // The clock's origin is the program's start.
        "uptime_s": os::clock::now().as_micros() / 1_000_000,
        "generation": published.generation,
        "zone": snapshot.zone,
        "workers": api.workers,
        "connections": { "open": open, "open_max": snapshot.connections_max },
        "listeners": snapshot.listeners.iter().map(|one| listener(one, &totals)).collect::<Value>(),
    }))
}

fn listener(listener: &Listener, totals: &Totals) -> Value {
    let counted = totals.listeners.get(&listener.name);
    json!({
        "name": listener.name,
        "address": listener.address,
        "protocol": listener.protocol.word().as_str(),
        "connections": {
            "open": counted.map_or(0, ListenerTotals::connections_open),
            "open_max": listener.connections_max,
        },
    })
}
