//! One server or one zone causes nearly all failures of its service.
//!
//! **When.** Between the samples, at least 20 attempts at a service's servers failed. One server,
//! or the servers of one zone together, have 80 % of the failures but less than 60 % of the
//! attempts, and the service has other servers elsewhere.
//!
//! **Why.** The server is at fault, not the application: a bad deployment on one host, a full disk,
//! a worker that hangs. If several servers of one zone are affected, the zone or the path to it is
//! at fault.
//!
//! **What to do.** Drain the server, and examine it. A health check that detects the fault, or
//! passive health checks, would remove it automatically.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::servers::{Server, servers};
use crate::view::Out;
use crate::words;

const FAILURES_MIN: u64 = 20;
const FAILURES_SHARE_MIN: f64 = 0.8;
const ATTEMPTS_SHARE_MAX: f64 = 0.6;
/// Servers that are named to be drained.
const DRAINED_MAX: usize = 3;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((servers, seconds)) = servers(facts) else {
        return super::balancer_unknown(facts, out);
    };
    let services: BTreeSet<&str> = servers.iter().map(|one| &*one.now.service).collect();
    for service in services {
        let all: Vec<&Server<'_>> =
            servers.iter().filter(|one| one.now.service == service).collect();
        let zones: BTreeSet<&str> = all.iter().filter_map(|one| one.now.zone.as_deref()).collect();
        let in_zone = |zone: &str| -> Vec<&Server<'_>> {
            all.iter().filter(|one| one.now.zone.as_deref() == Some(zone)).copied().collect()
        };
        // One server alone is said first: it says more than its zone.
        let alone = all.iter().map(|one| (one.name(), vec![*one]));
        let together =
            zones.iter().map(|zone| (format!("zone {zone} of {service}"), in_zone(zone)));
        let failing = alone.chain(together).find(|(_, some)| stands_for(some, &all));
        if let Some((subject, some)) = failing {
            out.push(finding(out, subject, &some, &all, seconds));
        }
    }
}

/// Whether some servers of a service have nearly all of its failures, and not its work.
fn stands_for(some: &[&Server<'_>], all: &[&Server<'_>]) -> bool {
    let (failures, attempts) = shares(some, all);
    some.len() < all.len()
        && failed(all) >= FAILURES_MIN
        // Requests that began before the first sample can fail when none begins any more.
        && self::attempts(all) > 0
        && failures >= FAILURES_SHARE_MIN
        && attempts < ATTEMPTS_SHARE_MAX
}

/// Shares of the failures and of the attempts.
fn shares(some: &[&Server<'_>], all: &[&Server<'_>]) -> (f64, f64) {
    let share = |some: u64, all: u64| some as f64 / all.max(1) as f64;
    (share(failed(some), failed(all)), share(attempts(some), attempts(all)))
}

fn failed(servers: &[&Server<'_>]) -> u64 {
    words::sum(servers.iter().map(|one| one.failed()))
}

fn attempts(servers: &[&Server<'_>]) -> u64 {
    words::sum(servers.iter().map(|one| one.attempts))
}

fn finding(
    out: &Out,
    subject: String,
    some: &[&Server<'_>],
    all: &[&Server<'_>],
    seconds: f64,
) -> Finding {
    let (failures, attempts) = shares(some, all);
    let what = format!(
        "{subject} causes {} of the failures, with {} of the attempts.",
        words::percent(failures),
        words::percent(attempts)
    );
    let why = if some.len() == 1 {
        "The server is at fault, not the application: other servers handle the same requests."
    } else {
        "The zone or the path to it is at fault, not the application: servers elsewhere handle the same requests."
    };
    let drains = some.iter().take(DRAINED_MAX);
    let drains: Vec<String> =
        drains.map(|one| format!("weir drain {} {}", one.now.service, one.now.address)).collect();
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    let action = match some.len().saturating_sub(DRAINED_MAX) {
        0 => "Drain it, and examine it".to_owned(),
        more => format!("Drain these servers and {more} more, and examine them"),
    };
    let finding = out.finding(subject, Severity::Warning, Certainty::Likely, what);
    with_causes(finding, some, seconds)
        .why(why)
        .remedy(action, &drains, "the other servers take its load")
        .verify("the service's failures fall by that share")
        .source(&["the balancer's counters by server and cause"])
}

/// The causes of some servers' failures, most frequent first.
pub(super) fn with_causes(finding: Finding, servers: &[&Server<'_>], seconds: f64) -> Finding {
    const CAUSES_SHOWN_MAX: usize = 4;
    let mut of_cause: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, count) in servers.iter().flat_map(|one| &one.failures) {
        let sum = of_cause.entry(cause).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut causes: Vec<(&str, u64)> = of_cause.into_iter().collect();
    causes.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    let evidence =
        |(cause, count): (&str, u64)| Evidence::number(cause, count as f64 / seconds, "per second");
    finding
        .evidence(Evidence::number("attempts", attempts(servers) as f64 / seconds, "per second"))
        .evidences(causes.into_iter().take(CAUSES_SHOWN_MAX).map(evidence))
}
