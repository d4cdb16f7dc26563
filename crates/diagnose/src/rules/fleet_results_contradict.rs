//! Another member of the fleet finds servers healthy that fail for this one, or the opposite.
//!
//! **When.** A member's results of health checks have contradicted this one's own so often that they are ignored here,
//! for a minute. Warning.
//!
//! **Why.** One of the two cannot reach the servers although the other can: a firewall, a route, a broken network
//! card. Or the address is not the same server for both. This balancer runs these checks itself meanwhile, so its own
//! traffic is safe, but the servers get more checks.
//!
//! **What to do.** Compare `weir status` on both, and check from both machines the path to a server that they see
//! differently.

use model::FleetProblemKind;

use super::FLEET;
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

const FOR_S_MIN: u64 = 60;
const SHOWN_MAX: usize = 3;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let ignored = fleet.lasting(FleetProblemKind::Ignored, FOR_S_MIN);
    let names: Vec<String> = ignored.map(|one| one.subject.clone()).collect();
    if names.is_empty() {
        return;
    }
    let named = words::list(&names, SHOWN_MAX);
    let what =
        format!("The health checks of {named} contradict this balancer's own and are ignored.");
    out.push(
        out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
            .evidence(Evidence::count("members that live", fleet.members, ""))
            .why("One of the two cannot reach servers that the other one can.")
            .remedy(
                "Compare on both balancers which servers are down, and check the path to them",
                &["weir status"],
                "none",
            )
            .verify("weir status no longer names the member")
            .source(&["the state of the fleet in /api/v1/fleet"]),
    );
}
