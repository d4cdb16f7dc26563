//! This balancer is not a member of its fleet, or another process has its name.
//!
//! **When.** This process has not been able to join its fleet for 30 seconds, or at least ten messages
//! came from another process with the same name in each of two minutes. Warning.
//!
//! **Why.** A balancer that is not a member runs all health checks itself. It has no slots of services with
//! `in_flight_scope = "fleet"`, so requests to them wait or are refused, and it counts only its own requests for rate limits of
//! the fleet. If two processes have the same name, each replaces the other in the lists of the other members, again and
//! again.
//!
//! **What to do.** Read the reason. Often another program uses the port of `address`. Give each balancer a unique `name`
//! in `[fleet]`. The default is the host name, which is the same on copies of a virtual machine.

use std::time::Duration;

use model::FleetProblemKind;

use super::{FLEET, FLEET_STATE};
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// The port of the previous process is free sooner.
const FOR_S_MIN: u64 = 30;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    // There is at most one of each kind.
    if let Some(problem) = fleet.lasting(FleetProblemKind::NotJoined, FOR_S_MIN).next() {
        let since = words::duration(Duration::from_secs(problem.for_s));
        let what = format!("This balancer has not been a member of its fleet for {since}.");
        out.push(
            out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
                .evidence(Evidence::text("reason", problem.why.clone()))
                .why("It runs all health checks itself, has no slots of shared concurrency limits, and counts shared rate limits alone.")
                .remedy("Fix the cause; Weir tries again every second", &["weir status"], "none")
                .verify("weir status shows it as one of the members")
                .source(FLEET_STATE),
        );
    }
    if let Some(problem) = fleet.lasting(FleetProblemKind::NameConflict, 0).next() {
        let what =
            format!("Another process of the fleet has this balancer's name, {}.", problem.subject);
        out.push(
            out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
                .evidence(Evidence::count("live members", fleet.members, ""))
                .why("The other members treat the two processes as one that keeps restarting.")
                .remedy(
                    "Give each balancer its own name in [fleet]; the change takes effect with an upgrade",
                    &["weir upgrade"],
                    "none",
                )
                .verify("weir status no longer mentions another process of this name")
                .source(FLEET_STATE),
        );
    }
}
