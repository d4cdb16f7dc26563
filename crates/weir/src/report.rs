//! Reports for programs: what other rooms know, as JSON for the admin API.

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
        "services": probe.services,
    })
}

fn near_duplicate(near: &NearDuplicate) -> Value {
    json!({ "services": [near.one, near.other], "why": near.to_string() })
}

fn rounded(rate: f64) -> f64 {
    (rate * 1e3).round() / 1e3
}
