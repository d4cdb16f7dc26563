//! This balancer is not a member of its fleet, or another process has its name.
//!
//! **When.** The configuration has a `[fleet]`, and for 30 seconds this process could not become a member; or at
//! least ten messages came within a minute from another process that has its name. Warning.
//!
//! **Why.** A balancer that is not a member runs all health checks by itself, and of limits for the whole fleet it
//! uses only what it may use alone. Two processes with one name replace each other in the other members' lists again and
//! again.
//!
//! **What to do.** Read the reason: often another program has the port of `address`. Give each balancer a `name` of its
//! own in `[fleet]`; by default it is the machine's host name, which copies of a virtual machine have in common.

use std::time::Duration;

use model::FleetProblemKind;

use super::FLEET;
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// A port that the previous process still has is free sooner.
const FOR_S_MIN: u64 = 30;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let warning = |what| out.finding(FLEET, Severity::Warning, Certainty::Certain, what);
    let mut findings = Vec::new();
    for problem in fleet.lasting(FleetProblemKind::NotJoined, FOR_S_MIN) {
        let since = words::duration(Duration::from_secs(problem.for_s));
        let what = format!("This balancer has not been a member of its fleet for {since}.");
        findings.push(
            warning(what)
                .evidence(Evidence::text("reason", problem.why.clone()))
                .why("It runs all health checks by itself and uses only its own part of shared limits.")
                .remedy("Remove the reason; it tries again each second", &["weir status"], "none")
                .verify("weir status shows it as one of the members"),
        );
    }
    for problem in fleet.lasting(FleetProblemKind::NameConflict, 0) {
        let what =
            format!("Another process of the fleet has this balancer's name, {}.", problem.subject);
        findings.push(
            warning(what)
                .evidence(Evidence::count("members that it knows", fleet.members, ""))
                .why("The other members take the two for one that starts again and again.")
                .remedy(
                    "Give each balancer its own name in [fleet]; the change takes effect with an upgrade",
                    &["weir upgrade"],
                    "none",
                )
                .verify("weir status no longer mentions another process of this name"),
        );
    }
    for finding in findings {
        out.push(finding.source(&["the state of the fleet in /api/v1/fleet"]));
    }
}
