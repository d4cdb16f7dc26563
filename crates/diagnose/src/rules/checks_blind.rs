//! A server passes its health check while requests to it fail.
//!
//! **When.** Between the samples no probe of a server failed and some passed, while of at least 20
//! attempts more than 5 % failed (warning), or more than 30 % (critical).
//!
//! **Why.** The check looks at something else than what fails: it only connects, or asks for a page
//! that needs no database; or it has a way of its own to the server. So the balancer keeps sending
//! requests there.
//!
//! **What to do.** Let the check ask for what requests need (`check.path`), and let failures of
//! real requests count (passive health). If the failures are resets or unanswered SYNs, look at the
//! network: probes are few, and get through.

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
                .why("The balancer goes on sending requests there: the check does not see what fails.")
                .remedy(
                    "Let the check ask for what requests need",
                    &["check = { path = \"/health\", expect = 200 }"],
                    "a check that asks more takes servers out for what they share, such as a database",
                )
                .remedy(
                    "Take it out meanwhile",
                    &[&format!("weir drain {} {}", server.now.service, server.now.address)],
                    "the other servers get its load",
                )
                .verify("its probes fail when its requests do")
                .source(&["the balancer's counters by server, probes and cause"]),
        );
    }
}
