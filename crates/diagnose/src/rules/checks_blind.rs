//! A server passes its health check while requests to it fail.
//!
//! **When.** Between the samples, a server's probes passed and none failed, while more than 5 %
//! (warning) or 30 % (critical) of at least 20 attempts failed.
//!
//! **Why.** The check does not test what fails: it only connects, or requests a page that needs no
//! database, or it reaches the server over another path. So the balancer continues to send requests
//! to the server.
//!
//! **What to do.** Let the check request something that needs what real requests need
//! (`check.path`), and enable passive health checks (outlier ejection), so that failures of real
//! requests count. If the failures are resets or unanswered SYNs, examine the network: probes are
//! few and often get through.

use super::server_failing::with_causes;
use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::servers::servers;
use crate::view::Out;
use crate::words;

const ATTEMPTS_MIN: u64 = 20;
const WARNING_SHARE: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.3;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((servers, seconds)) = servers(facts) else {
        return super::balancer_unknown(facts, out);
    };
    for server in &servers {
        // Without a check there is none that could be blind.
        let Some((passed, failed)) = server.checks else { continue };
        let share = server.failed() as f64 / server.attempts.max(1) as f64;
        if failed > 0 || passed == 0 || server.attempts < ATTEMPTS_MIN || share <= WARNING_SHARE {
            continue;
        }
        let finding = out.finding(
            server.name(),
            if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning },
            Certainty::Certain,
            format!(
                "{} of the attempts at {} fail while its check passes.",
                words::percent(share),
                server.name()
            ),
        );
        out.push(
            with_causes(finding, &[server], seconds)
                .evidence(Evidence::count("probes passed", passed, "none failed"))
                .why("The balancer continues to send requests to it: the check does not test what fails.")
                .remedy(
                    "Let the check request what real requests need",
                    &["check = { path = \"/health\", expect = 200 }"],
                    "a deeper check also removes all servers when a shared dependency fails, such as a database",
                )
                .remedy(
                    "Drain the server until then",
                    &[&format!("weir drain {} {}", server.now.service, server.now.address)],
                    "the other servers take its load",
                )
                .verify("its probes fail when its requests fail")
                .source(&["the balancer's counters by server, probes and cause"]),
        );
    }
}
