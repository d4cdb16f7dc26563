//! One server stands for nearly all failures of its service.
//!
//! **When.** Between the samples at least 20 attempts at a service's servers failed, one server has
//! 80 % of the failures and less than 60 % of the attempts, and its service has others.
//!
//! **Why.** It is that server, not the application: a bad deployment of one host, a full disk, a
//! worker that hangs.
//!
//! **What to do.** Drain it, and look there. A check that notices it, or passive health, would do
//! so by itself.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::servers::{Server, servers};
use crate::view::Out;
use crate::words;

const FAILURES_MIN: u64 = 20;
const FAILURES_SHARE_MIN: f64 = 0.8;
const ATTEMPTS_SHARE_MAX: f64 = 0.6;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((servers, seconds)) = servers(facts) else {
        return super::balancer_unknown(facts, out);
    };
    for server in &servers {
        let of_service = || servers.iter().filter(|one| one.now.service == server.now.service);
        let failed = words::sum(of_service().map(Server::failed));
        let attempts = words::sum(of_service().map(|one| one.attempts));
        if of_service().count() < 2
            || failed < FAILURES_MIN
            || (server.failed() as f64) < FAILURES_SHARE_MIN * failed as f64
            || server.attempts as f64 >= ATTEMPTS_SHARE_MAX * attempts as f64
        {
            continue;
        }
        let share = server.failed() as f64 / failed as f64;
        let finding = out.finding(
            server.name(),
            Severity::Warning,
            Certainty::Likely,
            format!(
                "{} stands for {} of the failures, with {} of the attempts.",
                server.name(),
                words::percent(share),
                words::percent(server.attempts as f64 / attempts.max(1) as f64)
            ),
        );
        out.push(
            with_causes(finding, server, seconds)
                .why("It is that server and not the application: others do the same work well.")
                .remedy(
                    "Take it out, and look there",
                    &[&format!("weir drain {} {}", server.now.service, server.now.address)],
                    "the other servers get its load",
                )
                .verify("failures of the service fall by that share")
                .source(&["the balancer's counters by server and cause"]),
        );
    }
}

/// The causes of a server's failures, most frequent first.
pub(super) fn with_causes(finding: Finding, server: &Server<'_>, seconds: f64) -> Finding {
    const CAUSES_SHOWN_MAX: usize = 4;
    let mut causes: Vec<(&str, u64)> = server.failures.iter().map(|(cause, n)| (*cause, *n)).collect();
    causes.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    let evidence = |(cause, count): (&str, u64)| {
        Evidence::number(cause, count as f64 / seconds, "per second")
    };
    finding
        .evidence(Evidence::number("attempts", server.attempts as f64 / seconds, "per second"))
        .evidences(causes.into_iter().take(CAUSES_SHOWN_MAX).map(evidence))
}
