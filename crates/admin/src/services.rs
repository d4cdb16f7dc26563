//! Services and their servers as JSON. Times are milliseconds.

use decide::{EndpointView, ServiceView};
use model::{Administrative, Health};
use serde_json::{Value, json};

pub(crate) fn to_json(service: &ServiceView) -> Value {
    let eligible = service.endpoints.iter().filter(|server| server.eligible).count();
    json!({
        "name": service.name,
        "eligible": eligible,
        "tier": service.tier.name(),
        "reason": service.reason.name(),
        "why": service.reason.text(),
        "queue": {
            "length": service.queue_length,
            "length_max": service.queue_length_max,
            "drain_rate_per_s": rounded(service.drain_rate),
        },
        "servers": service.endpoints.iter().map(server).collect::<Value>(),
    })
}

fn server(server: &EndpointView) -> Value {
    json!({
        "name": server.name,
        "address": server.address,
        "zone": server.zone,
        "eligible": server.eligible,
        "health": health(server.health),
        "state": administrative(server.administrative),
        "ejected_for_ms": server.ejected_for.map(|time| rounded(time.as_secs_f64() * 1e3)),
        "weight": server.weight,
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

fn health(health: Health) -> &'static str {
    match health {
        Health::Unknown => "unknown",
        Health::Up => "up",
        Health::Down => "down",
    }
}

pub(crate) fn administrative(state: Administrative) -> &'static str {
    match state {
        Administrative::Ready => "ready",
        Administrative::Drain => "drain",
        Administrative::Maintenance => "maintenance",
    }
}

/// Three decimals are enough for people, and for programs that draw.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
