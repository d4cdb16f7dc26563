//! No member of the fleet answers at an address where the configuration or its source lists one.
//!
//! **When.** For a minute, an address in `members` or from `discover` in `[fleet]` has belonged to no live member. Warning.
//!
//! **Why.** The member does not run, cannot be reached, or has another key. The others run its health checks. Its shares
//! of concurrency limits and rate limits for the whole fleet stay unused, because it may still be running behind a
//! partition. If all others are missing, nothing is shared.
//!
//! **What to do.** If the member was removed, remove its address from the list. If it runs, read its own `weir status`,
//! open its port for UDP (and for TCP, with `tls`) between members, and compare `advertise` there with the address in the
//! list here: they must be the same. This balancer's own entry in the list must equal its `advertise`, too.
//! `weir_fleet_datagrams_total` counts datagrams with an unknown key.

use std::time::Duration;

use model::FleetProblemKind;

use super::{FLEET, FLEET_SHOWN_MAX, FLEET_STATE};
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// A restart takes less time.
const FOR_S_MIN: u64 = 60;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let kind = FleetProblemKind::Missing;
    let seconds = fleet.lasting(kind, FOR_S_MIN).map(|one| one.for_s);
    let Some(longest) = seconds.max() else { return };
    let named = words::list(&fleet.subjects(kind, FOR_S_MIN), FLEET_SHOWN_MAX);
    let what = match fleet.members {
        0 | 1 => format!("This balancer is alone in its fleet: no member answers at {named}."),
        _ => format!("No member of the fleet answers at {named}."),
    };
    let since = words::duration(Duration::from_secs(longest));
    out.push(
        out.finding(FLEET, Severity::Warning, Certainty::Certain, what)
            .evidence(Evidence::text("missing for", since))
            .evidence(Evidence::count("live members", fleet.members, ""))
            .why("The shares that missing members have of limits for the whole fleet stay unused, because they may still be running.")
            .remedy(
                "Start them and open their port between members, or remove them from the list of members",
                &["weir status"],
                "none",
            )
            .verify("weir status no longer names them")
            .source(FLEET_STATE),
    );
}
