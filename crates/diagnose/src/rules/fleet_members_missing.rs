//! No member of the fleet answers at an address where the configuration or its source lists one.
//!
//! **When.** For a minute, no member has lived at an address of `members` or `discover` in `[fleet]`. Warning.
//!
//! **Why.** The member does not run, the network between the two is cut, or it has another key. The others do
//! without it: they run its health checks. But its shares of concurrency limits and of rate limits for the whole fleet
//! are unused meanwhile, since it may be alive behind a partition. If all others are missing, nothing is shared.
//!
//! **What to do.** If the member was removed, remove its address from the list. If it runs, look at its own
//! `weir status`, open its port for UDP (and for TCP, with `tls`) between members, and compare `advertise` there with the
//! address in the list here: they must be the same. `weir_fleet_datagrams_total` counts datagrams with an unknown key.

use std::time::Duration;

use model::FleetProblemKind;

use super::FLEET;
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// A restart is over sooner.
const FOR_S_MIN: u64 = 60;
const SHOWN_MAX: usize = 3;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let missing = fleet.lasting(FleetProblemKind::Missing, FOR_S_MIN);
    let (addresses, seconds): (Vec<String>, Vec<u64>) =
        missing.map(|one| (one.subject.clone(), one.for_s)).unzip();
    let Some(longest) = seconds.into_iter().max() else { return };
    let named = words::list(&addresses, SHOWN_MAX);
    let since = words::duration(Duration::from_secs(longest));
    let what = match fleet.members {
        0 | 1 => format!("This balancer is alone in its fleet: no member answers at {named}."),
        _ => format!("No member of the fleet answers at {named}."),
    };
    out.push(
        out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
            .evidence(Evidence::text("for", since))
            .evidence(Evidence::count("members that live", fleet.members, ""))
            .why("Their shares of the limits for the whole fleet are unused, since they may be alive.")
            .remedy(
                "Start them and open their port between members, or remove them from the list of members",
                &["weir status"],
                "none",
            )
            .verify("weir status no longer names them")
            .source(&["the state of the fleet in /api/v1/fleet"]),
    );
}
