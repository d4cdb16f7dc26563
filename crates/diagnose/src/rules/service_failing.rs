//! A service fails at all of its servers, or none of them responds any more.
//!
//! **When.** It is proved that in the last 10 seconds more than 20 % (critical: 50 %) of the attempts at a service's
//! servers failed, at least 20, and no server or zone has nearly all of the failures
//! (`server_failing`). Or requests have waited for ten seconds without a response from any server, at least five of
//! them, which is three times as long as any response of the last minute took.
//!
//! **Why.** What all servers need is at fault: a database, another service, a deployment, or the network to all of
//! them.
//!
//! **What to do.** Look at the servers' logs, and at what they share. Draining servers does not help.

use std::time::Duration;

use super::server_failing::{self, with_causes};
use crate::evidence::Units;
use crate::facts::{Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::traffic::{SpanOf, together};
use crate::view::Out;
use crate::words;

const WARNING_SHARE: f64 = 0.2;
const CRITICAL_SHARE: f64 = 0.5;
const FAILED_MIN: u64 = 20;
const SILENT_S: u64 = 10;
const SILENT_TIMES: u32 = 3;
const WAITING_MIN: u64 = 5;
/// So many responses show how long they usually take.
const RESPONSES_MIN: u64 = 20;

const RECENT: SpanOf = |one| &one.recent;
const MINUTE: SpanOf = |one| &one.minute;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        let servers: Vec<&TrafficServer> = service.servers.iter().collect();
        if let Some(waiting) = hangs(service, &servers) {
            push_hanging(out, service, &servers, waiting);
        } else if let Some(units) = fails(service, &servers, traffic.services.len()) {
            push_failing(out, service, &servers, units);
        }
    }
}

fn fails(service: &TrafficService, servers: &[&TrafficServer], services: usize) -> Option<Units> {
    let failed = words::sum(servers.iter().map(|one| one.recent.failed()));
    let sent = words::sum(servers.iter().map(|one| one.recent.sent));
    let units = Units::new(failed, sent.max(failed));
    // Requests that began before these seconds can fail when none begins any more.
    let is_failing = failed >= FAILED_MIN && sent > 0 && units.exceeds(WARNING_SHARE, services);
    (is_failing && server_failing::find(service, RECENT).is_none()).then_some(units)
}

/// Returns how many requests wait, if no server responds any more.
fn hangs(service: &TrafficService, servers: &[&TrafficServer]) -> Option<u64> {
    let waiting = words::sum(servers.iter().map(|one| one.waiting));
    let silent_s = servers.iter().map(|one| one.silent_s).max().unwrap_or(0);
    // The silence of a server begins with its next request.
    let is_silent = |one: &&TrafficServer| one.waiting == 0 || one.silent_s >= SILENT_S / 2;
    let responds = |one: &&TrafficServer| one.fresh.first_byte.count() > 0;
    let usual = together(servers, MINUTE);
    let longest = usual.quantile(1.0).unwrap_or(Duration::MAX);
    let is_hanging = !service.is_tcp
        && waiting >= WAITING_MIN
        && silent_s >= SILENT_S
        && servers.iter().all(is_silent)
        && !servers.iter().any(responds)
        && usual.count() >= RESPONSES_MIN
        && longest.saturating_mul(SILENT_TIMES) <= Duration::from_secs(silent_s);
    is_hanging.then_some(waiting)
}

fn push_failing(out: &mut Out, service: &TrafficService, servers: &[&TrafficServer], units: Units) {
    let failing = servers.iter().filter(|one| one.recent.failed() > 0).count();
    let is_critical = units.share() > CRITICAL_SHARE;
    let what = format!(
        "{} of the attempts at {} fail, at {failing} of {}.",
        words::percent(units.share()),
        service.name,
        words::plural(servers.len() as u64, "server"),
    );
    let severity = if is_critical { Severity::Critical } else { Severity::Warning };
    let finding = out.finding(service.name.clone(), severity, Certainty::Certain, what);
    let finding = with_causes(finding, servers, RECENT);
    out.push(ending(finding, service));
}

fn push_hanging(out: &mut Out, service: &TrafficService, servers: &[&TrafficServer], waiting: u64) {
    let silent_s = servers.iter().map(|one| one.silent_s).max().unwrap_or(0);
    let what = format!(
        "No server of {} has responded for {silent_s} s, though {} wait.",
        service.name,
        words::plural(waiting, "request"),
    );
    let usual = together(servers, MINUTE).quantile(1.0).unwrap_or_default();
    let finding = out
        .finding(service.name.clone(), Severity::Critical, Certainty::Certain, what)
        .evidence(Evidence::count("requests without a response", waiting, ""))
        .evidence(Evidence::count("no response for", silent_s, "s"))
        .evidence(Evidence::text("longest response of the last minute", words::duration(usual)));
    out.push(ending(finding, service));
}

fn ending(finding: Finding, service: &TrafficService) -> Finding {
    finding
        .about(&service.name, [""; 0])
        .why("No single server is at fault: what all of them need is, or the network to all of them.")
        .remedy(
            "Look at the servers' logs, and at what they share: a database, another service, a deployment",
            &["weir status"],
            "none",
        )
        .verify("weir status shows responses, and few failures")
        .source(&["the balancer's counters of requests, responses and failures by server"])
}
