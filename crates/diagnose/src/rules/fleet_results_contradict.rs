//! Another member of the fleet finds servers healthy that fail for this one, or the opposite.
//!
//! **When.** For a minute, this balancer has ignored a member's health check results because they contradict its own.
//! Warning.
//!
//! **Why.** One of the two cannot reach servers that the other can: a firewall, a route, a faulty network card. Or the
//! same address leads to different servers. Meanwhile this balancer runs these checks itself: its traffic is not affected,
//! but the servers receive more checks.
//!
//! **What to do.** Compare `weir status` on both, and check from both machines the path to a server that they see
//! differently.

use model::FleetProblemKind;

use super::{FLEET, FLEET_SHOWN_MAX, FLEET_STATE};
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// A member that was wrong for a moment, such as one that has just been unfrozen, agrees again sooner.
const FOR_S_MIN: u64 = 60;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let names = fleet.subjects(FleetProblemKind::Ignored, FOR_S_MIN);
    if names.is_empty() {
        return;
    }
    let named = words::list(&names, FLEET_SHOWN_MAX);
    let what =
        format!("The health checks of {named} contradict this balancer's own and are ignored.");
    out.push(
        out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
            .evidence(Evidence::count("live members", fleet.members, ""))
            .why("This balancer cannot reach servers that these members can, or the opposite.")
            .remedy(
                "Compare on both balancers which servers are down, and check the path to them",
                &["weir status"],
                "none",
            )
            .verify("weir status no longer names the member")
            .source(FLEET_STATE),
    );
}
