//! Reports for programs: what other rooms know, as JSON for the admin API.

use std::sync::Arc;

use health::report::{NearDuplicate, ProbeRow, Report, Row};
use serde_json::{Value, json};

/// The probe plan. Rates are probes per second.
pub(crate) fn plan(report: &Report) -> Value {
    json!({
        "probes": report.probes(),
        "probes_per_s": rounded(report.probes_per_s()),
        "unshared_per_s": rounded(report.unshared_per_s()),
        "endpoints": report.rows.iter().map(row).collect::<Value>(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "endpoint": row.endpoint.to_string(),
        "probes_per_s": rounded(row.probes_per_s),
        "unshared_per_s": rounded(row.unshared_per_s),
        "probes": row.probes.iter().map(probe).collect::<Value>(),
        "near_duplicates": row.near_duplicates.iter().map(near_duplicate).collect::<Value>(),
        "near_duplicates_more": row.near_duplicates_more,
    })
}

fn probe(probe: &ProbeRow) -> Value {
    json!({
        "what": probe.what,
        "interval_ms": u64::try_from(probe.interval.as_millis()).unwrap_or(u64::MAX),
        "services": names(&probe.services),
    })
}

fn near_duplicate(near: &NearDuplicate) -> Value {
    let services = [names(&near.one), names(&near.other)];
    json!({ "services": services, "why": near.to_string() })
}

fn names(services: &[Arc<str>]) -> Value {
    services.iter().map(|name| &**name).collect()
}

/// To three decimals. An empty sum is -0.0; adding 0.0 makes it 0.0.
fn rounded(rate: f64) -> f64 {
    (rate * 1e3).round() / 1e3 + 0.0
}
