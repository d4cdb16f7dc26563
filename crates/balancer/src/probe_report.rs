//! The probe plan and its results, for the admin API and for metrics.

use std::sync::Arc;

use admin_api::checks::{self, Plan, ProbeResults};
use admin_api::rounded;
use control::Status;
use health::report::{Endpoint, NearDuplicate, ProbeRow, Report, Row};
use observe::exposition::ProbeGauges;

/// Describes the probe plan. Rates are probes per second.
pub(crate) fn plan(report: &Report) -> Plan {
    Plan {
        probes: report.probes(),
        probes_per_s: rounded(report.probes_per_s()),
        unshared_per_s: rounded(report.unshared_per_s()),
        endpoints: report.rows.iter().map(endpoint).collect(),
    }
}

/// Describes the probe plan with the results of its probes.
pub(crate) fn running_plan(status: &Status) -> Plan {
    let (report, probed) = (status.plan(), status.probed());
    let mut plan = plan(&report);
    for (endpoint, row) in plan.endpoints.iter_mut().zip(&report.rows) {
        let Endpoint::Address(address) = &row.endpoint else { continue };
        let probed = probed.get(address).copied().unwrap_or_default();
        endpoint.results = Some(ProbeResults {
            ended: probed.ended,
            failed: probed.failed,
            last_ms: (probed.ended > 0).then(|| rounded(probed.last.as_secs_f64() * 1e3)),
        });
    }
    plan
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

fn endpoint(row: &Row) -> checks::Endpoint {
    checks::Endpoint {
        endpoint: row.endpoint.to_string(),
        probes_per_s: rounded(row.probes_per_s),
        unshared_per_s: rounded(row.unshared_per_s),
        probes: row.probes.iter().map(probe).collect(),
        near_duplicates: row.near_duplicates.iter().map(near_duplicate).collect(),
        near_duplicates_more: row.near_duplicates_more,
        results: None,
    }
}

fn probe(probe: &ProbeRow) -> checks::Probe {
    checks::Probe {
        what: probe.what.clone(),
        interval_ms: u64::try_from(probe.interval.as_millis()).unwrap_or(u64::MAX),
        services: names(&probe.services),
    }
}

fn near_duplicate(near: &NearDuplicate) -> checks::NearDuplicate {
    checks::NearDuplicate {
        services: [names(&near.one), names(&near.other)],
        why: near.to_string(),
    }
}

fn names(services: &[Arc<str>]) -> Vec<String> {
    services.iter().map(ToString::to_string).collect()
}
