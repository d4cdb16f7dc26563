//! The source that a service takes its servers from cannot be read.
//!
//! **When.** What `discover` of the service names (Consul, etcd, files and so on) has not given a usable
//! answer for at least 30 seconds: warning. Critical if the service has no servers at all.
//!
//! **Why.** Weir goes on with the servers of the last good answer, so requests are served. But it does not see
//! servers that are added or removed meanwhile: new ones get no requests, and removed ones still do until their
//! checks fail.
//!
//! **What to do.** Read the reason. Consul: is the agent running, does it have a leader, is the token still valid
//! (`service:read` and `node:read`)? Nomad: does the token have `read-job`? etcd: has the cluster a leader, may the
//! user read the prefix? SRV records: does the DNS server answer, and
//! do the records exist? Files: is the file that the reason names complete? `kept_max` limits how long
//! the last servers are used.

use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Shorter failures are those of a restart or of an election.
const FAILING_S_MIN: u64 = 30;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for source in &traffic.sources {
        let Some(failing_s) = source.failing_s.filter(|seconds| *seconds >= FAILING_S_MIN) else {
            continue;
        };
        let servers = source.servers;
        let severity = if servers == 0 { Severity::Critical } else { Severity::Warning };
        let since = words::duration(std::time::Duration::from_secs(failing_s));
        let what = match servers {
            0 => format!(
                "{} has no servers: {} has failed for {since}.",
                source.service, source.source
            ),
            _ => format!(
                "{} goes on with the servers of the last answer: {} has failed for {since}.",
                source.service, source.source
            ),
        };
        out.push(
            out.finding(source.service.clone(), severity, Certainty::Certain, what)
                .about(&source.service, [""; 0])
                .evidence(Evidence::text("reason", source.error.clone()))
                .evidence(Evidence::count("servers in use", servers, ""))
                .why("Servers that are added or removed meanwhile are not seen.")
                .remedy(
                    "Let the source answer again; the reason says what it lacks",
                    &["weir status"],
                    "none",
                )
                .verify("weir status shows that the source answered some seconds ago")
                .source(&["the state of the service's source in /api/v1/services"]),
        );
    }
}
