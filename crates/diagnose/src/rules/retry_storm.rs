//! Retries are a large part of a service's load.
//!
//! **When.** In the last 10 seconds it is proved that more than 8 % of the attempts at the service's servers
//! were retries.
//!
//! **Why.** Each retry is additional load, at a time when servers fail. If they fail because of load, retries keep
//! them failing after the original reason is gone. Weir's retry budget bounds the share;
//! clients that retry on their own come on top.
//!
//! **What to do.** Fix what fails: the causes say what. If the failures continue, lower `retries.max`, or take
//! statuses out of `retries.status`, until the servers have recovered.

use crate::evidence::Units;
use crate::facts::{Traffic, TrafficService};
use crate::finding::{Certainty, Evidence, Severity};
use crate::traffic::SpanOf;
use crate::view::Out;
use crate::words;

use super::server_failing::with_causes;

/// About half of what the retry budget allows: 20 retries for 100 requests are 17 % of the attempts.
const SHARE: f64 = 0.08;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        let retries = Units::new(service.recent.retries, service.recent.attempts);
        if retries.exceeds(SHARE, traffic.services.len()) {
            push(out, service, retries);
        }
    }
}

fn push(out: &mut Out, service: &TrafficService, retries: Units) {
    let recent: SpanOf = |one| &one.recent;
    let servers: Vec<_> = service.servers.iter().collect();
    let failing = servers.iter().filter(|one| recent(one).failed() > 0).count();
    let per_s = |count: u64| count as f64 / service.recent.seconds.max(1) as f64;
    let finding = out
        .finding(
            service.name.clone(),
            Severity::Warning,
            Certainty::Certain,
            format!(
                "{} of the attempts at the servers of {} are retries.",
                words::percent(retries.share()),
                service.name
            ),
        )
        .about(&service.name, [""; 0])
        .evidence(Evidence::number("retries", per_s(retries.affected), "per second"))
        .evidence(Evidence::text("servers that failed", format!("{failing} of {}", servers.len())));
    out.push(
        with_causes(finding, &servers, recent)
            .why("Retries are additional load while servers fail. If they fail because of load, retries prolong it.")
            .remedy(
                "Fix what fails; until then, limit retries",
                &["retries = { max = 1 }"],
                "requests that a retry would have saved fail",
            )
            .verify("weir status shows fewer retries of the service")
            .source(&["the balancer's counters by service, server and cause"]),
    );
}
