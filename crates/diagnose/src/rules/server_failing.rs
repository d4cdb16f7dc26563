//! One server or one zone causes nearly all failures of its service.
//!
//! **When.** In the last 10 seconds (or the last minute, if it still fails), at least 20 attempts at a
//! service's servers failed. One server, or the servers of one zone together, have 80 % of the failures but
//! less than 60 % of the attempts, and fail at least 1 % of their own attempts. The service has other servers
//! elsewhere. If requests choose their server (`balance = "hash"`, affinity), it is only *possible*.
//!
//! **Why.** The server is at fault, not the application: a bad deployment on one host, a full disk,
//! a worker that hangs. If several servers of one zone are affected, the zone or the path to it is
//! at fault.
//!
//! **What to do.** Drain the server, and examine it. A health check that detects the fault, or
//! passive health checks, would remove it automatically.

use std::collections::BTreeMap;

use crate::evidence::Units;
use crate::facts::{Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::traffic::{Group, SpanOf};
use crate::view::Out;
use crate::words;

const FAILURES_MIN: u64 = 20;
const FAILURES_SHARE_MIN: f64 = 0.8;
const ATTEMPTS_SHARE_MAX: f64 = 0.6;
/// A server that fails less of its own attempts does not matter yet.
const OWN_SHARE_MIN: f64 = 0.01;
/// Servers that are named to be drained.
const DRAINED_MAX: usize = 3;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        let recent: SpanOf = |one| &one.recent;
        let minute: SpanOf = |one| &one.minute;
        let found = find(service, recent).or_else(|| {
            let still = |found: &Found<'_>| failed(&found.group.servers, |one| &one.fresh) > 0;
            find(service, minute).filter(still)
        });
        if let Some(found) = found {
            out.push(finding(out, service, &found));
        }
    }
}

pub(super) struct Found<'a> {
    group: Group<'a>,
    span: SpanOf,
    failures_share: f64,
    attempts_share: f64,
}

/// Returns the server or the zone that has nearly all failures of a service, and not its work.
pub(super) fn find<'a>(service: &'a TrafficService, span: SpanOf) -> Option<Found<'a>> {
    let all: Vec<&TrafficServer> = service.servers.iter().collect();
    let (failures, attempts) = (failed(&all, span), sent(&all, span));
    // Requests that began before the span can fail when none begins any more.
    if failures < FAILURES_MIN || attempts == 0 || all.len() < 2 {
        return None;
    }
    let share = |some: u64, all: u64| some as f64 / all as f64;
    let candidate = |group: Group<'a>| {
        let failures_share = share(failed(&group.servers, span), failures);
        let attempts_share = share(sent(&group.servers, span), attempts);
        let own = Units::new(failed(&group.servers, span), sent(&group.servers, span));
        let is_it = failures_share >= FAILURES_SHARE_MIN
            && attempts_share < ATTEMPTS_SHARE_MAX
            && (own.of == 0 || own.share() >= OWN_SHARE_MIN);
        is_it.then_some(Found { group, span, failures_share, attempts_share })
    };
    // One server alone comes first: it says more than its zone.
    let worst = service.servers.iter().max_by_key(|one| span(one).failed())?;
    candidate(service.alone(worst)).or_else(|| service.zones().into_iter().find_map(candidate))
}

fn failed(servers: &[&TrafficServer], span: SpanOf) -> u64 {
    words::sum(servers.iter().map(|one| span(one).failed()))
}

fn sent(servers: &[&TrafficServer], span: SpanOf) -> u64 {
    words::sum(servers.iter().map(|one| span(one).sent))
}

fn finding(out: &Out, service: &TrafficService, found: &Found<'_>) -> Finding {
    let Found { group, span, failures_share, attempts_share } = found;
    let what = format!(
        "{} causes {} of the failures, with {} of the attempts.",
        group.name,
        words::percent(*failures_share),
        words::percent(*attempts_share)
    );
    let why = if service.is_bound {
        "Requests choose their server here: it is at fault, or the requests that only it gets."
    } else if group.servers.len() == 1 {
        "The server is at fault, not the application: other servers handle the same requests."
    } else {
        "The zone or the path to it is at fault, not the application: servers elsewhere handle the same requests."
    };
    let certainty = if service.is_bound { Certainty::Possible } else { Certainty::Likely };
    let drains = group.drains(service, DRAINED_MAX);
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    let action = match group.servers.len().saturating_sub(DRAINED_MAX) {
        0 if group.servers.len() == 1 => "Drain it, and examine it".to_owned(),
        0 => "Drain these servers, and examine them".to_owned(),
        more => format!("Drain these servers and {more} more, and examine them"),
    };
    let finding = out.finding(group.name.clone(), Severity::Warning, certainty, what);
    with_causes(group.mark(finding, service), &group.servers, *span)
        .why(why)
        .remedy(action, &drains, "the other servers take its load")
        .verify("the service's failures fall by that share")
        .source(&["the balancer's counters by server and cause"])
}

/// The causes of some servers' failures, most frequent first.
pub(super) fn with_causes(finding: Finding, servers: &[&TrafficServer], span: SpanOf) -> Finding {
    const CAUSES_SHOWN_MAX: usize = 4;
    let mut of_cause: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in servers.iter().flat_map(|one| &span(one).failures) {
        let sum = of_cause.entry(cause).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut causes: Vec<(&str, u64)> =
        of_cause.into_iter().filter(|(_, count)| *count > 0).collect();
    causes.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    let seconds = servers.iter().map(|one| span(one).seconds).max().unwrap_or(0).max(1);
    let evidence = |name: &str, count: u64| {
        Evidence::number(name, count as f64 / seconds as f64, "per second")
    };
    finding.evidence(evidence("attempts", sent(servers, span))).evidences(
        causes.into_iter().take(CAUSES_SHOWN_MAX).map(|(cause, count)| evidence(cause, count)),
    )
}
