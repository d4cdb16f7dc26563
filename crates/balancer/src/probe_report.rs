//! Converts probe reports of other crates to JSON for the admin API.

use std::sync::Arc;

use control::Status;
use health::report::{Endpoint, NearDuplicate, ProbeRow, Report, Row};
use observe::exposition::ProbeGauges;
use serde_json::{Value, json};

/// Returns the probe plan. Rates are probes per second.
pub(crate) fn plan(report: &Report) -> Value {
    json!({
        "probes": report.probes(),
        "probes_per_s": rounded(report.probes_per_s()),
        "unshared_per_s": rounded(report.unshared_per_s()),
        "endpoints": report.rows.iter().map(row).collect::<Value>(),
    })
}

/// Returns the running probe plan, with probe statistics.
pub(crate) fn running_plan(status: &Status) -> Value {
    let (report, probed) = (status.plan(), status.probed());
    let mut value = plan(&report);
    let rows = value["endpoints"].as_array_mut().into_iter().flatten();
    for (value, row) in rows.zip(&report.rows) {
        let Endpoint::Address(address) = &row.endpoint else { continue };
        let probed = probed.get(address).copied().unwrap_or_default();
        let last = (probed.ended > 0).then(|| rounded(probed.last.as_secs_f64() * 1e3));
        value["ended"] = json!(probed.ended);
        value["failed"] = json!(probed.failed);
        value["last_ms"] = json!(last);
    }
    value
}

/// Returns probe statistics by address, as metrics.
pub(crate) fn probes(status: &Status) -> Vec<ProbeGauges> {
    let probed = status.probed();
    let plan = status.plan();
    let gauges = plan.rows.iter().filter_map(|row| {
        let Endpoint::Address(address) = row.endpoint else { return None };
        let probed = probed.get(&address).copied().unwrap_or_default();
        Some(ProbeGauges {
            address,
            per_second: row.probes_per_s,
            per_second_unshared: row.unshared_per_s,
            ended: probed.ended,
            failed: probed.failed,
            time: probed.time,
            last: probed.last,
        })
    });
    gauges.collect()
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

/// Rounds to three decimals. An empty sum is -0.0; adding 0.0 makes it 0.0.
fn rounded(rate: f64) -> f64 {
    (rate * 1e3).round() / 1e3 + 0.0
}
