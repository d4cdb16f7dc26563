//! The probe plan as a table; endpoints with the same probes share a line.

use std::fmt::Write as _;

use diagnose::kinds::grouped;
use health::report::{Endpoint, Report, Row};
use model::Address;

use super::columns::Columns;
use super::few;

const ENDPOINTS_SHOWN_MAX: usize = 4;
const SERVICES_SHOWN_MAX: usize = 3;

pub(super) fn text(plan: &Report) -> String {
    if plan.rows.is_empty() {
        return "no service has a check\n".to_owned();
    }
    let (shared, unshared) = (rate(plan.probes_per_s()), rate(plan.unshared_per_s()));
    let mut out = if shared == unshared {
        format!("checks send {shared}/s; no two services share a probe\n")
    } else {
        format!("checks send {shared}/s; {unshared}/s if every service checked for itself\n")
    };
    let groups: Vec<(Vec<[String; 2]>, Vec<&Row>)> =
        grouped(plan.rows.iter().map(|row| (probes(row), row)));
    let heading = ["ENDPOINT", "PROBES/S EACH", "UNSHARED", "PROBE", "FOR"];
    let mut columns = Columns::headed(heading);
    for (probes, rows) in &groups {
        let names: Vec<_> = rows.iter().map(|row| row.endpoint.to_string().into()).collect();
        let mut first = [
            few(names.iter(), ENDPOINTS_SHOWN_MAX),
            rate(rows[0].probes_per_s),
            rate(rows[0].unshared_per_s),
        ];
        for [what, services] in probes {
            let [endpoint, shared, unshared] = std::mem::take(&mut first);
            columns.row([endpoint, shared, unshared, what.clone(), services.clone()]);
        }
    }
    out.push_str(&columns.text());
    notes(&mut out, &groups);
    out
}

/// Each probe of an endpoint and the services that use it, in a form that allows comparing endpoints.
fn probes(row: &Row) -> Vec<[String; 2]> {
    let own_host = format!("Host {}", row.endpoint);
    let own_tls = match &row.endpoint {
        Endpoint::Address(Address::Ip(address)) => format!("TLS as {}", address.ip()),
        // What names no other host names localhost, which is shown as it is.
        Endpoint::Address(Address::Unix(_)) | Endpoint::Name(..) => String::new(),
    };
    row.probes
        .iter()
        .map(|probe| {
            let parts = probe.what.split(", ").map(|part| match part {
                part if part == own_host => "Host its address",
                part if part == own_tls => "TLS as its address",
                part => part,
            });
            let what = parts.collect::<Vec<_>>().join(", ");
            let every = model::units::show_duration(probe.interval);
            [format!("{what}, every {every}"), few(probe.services.iter(), SERVICES_SHOWN_MAX)]
        })
        .collect()
}

/// Probes that would be one but for a detail: worth a look, since each costs the servers.
fn notes(out: &mut String, groups: &[(Vec<[String; 2]>, Vec<&Row>)]) {
    for (_, rows) in groups {
        let row = rows[0];
        for near in &row.near_duplicates {
            // Writing into a String cannot fail.
            _ = writeln!(out, "note: {}: {near}", row.endpoint);
        }
        if row.near_duplicates_more > 0 {
            _ = writeln!(out, "note: {}: {} more alike", row.endpoint, row.near_duplicates_more);
        }
    }
}

/// A number with at most two decimals.
pub(super) fn rate(rate: f64) -> String {
    let text = format!("{rate:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
