//! Members of the fleet do not share session ticket keys and certificates, although `[fleet]` has `tls`.
//!
//! **When.** For two minutes, a live member has announced neither session ticket keys nor certificates, or they could not
//! be fetched from a member, or this balancer could not offer its own (`tls` is invalid, or the TCP port is in use). A
//! member counts as silent if it has announced nothing within 16 seconds of joining, or for a minute. Warning.
//!
//! **Why.** Clients that come from one of these balancers to another make full handshakes, which cost both sides CPU
//! time. A certificate that one of them obtains by ACME does not reach the other, which orders it again.
//!
//! **What to do.** Read the reason. An expired certificate: renew it on the member that it names. A connection that is
//! refused or times out: open the fleet's port for TCP, too, between members. A member without a reason has no `tls` in
//! `[fleet]`, cannot listen on TCP (its own `weir status` says so), or runs an older version.

use model::FleetProblemKind;

use super::{FLEET, FLEET_SHOWN_MAX, FLEET_STATE};
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// An upgrade of all members takes longer, one restart does not.
const FOR_S_MIN: u64 = 120;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let silent = fleet.subjects(FleetProblemKind::NotSharing, FOR_S_MIN);
    let reason = fleet.lasting(FleetProblemKind::NotExchanged, FOR_S_MIN).next();
    let what = match (silent.is_empty(), reason) {
        (true, None) => return,
        (true, Some(_)) => {
            "Session ticket keys or certificates cannot be exchanged within the fleet.".to_owned()
        }
        (false, _) => format!(
            "Session ticket keys and certificates are not shared by {}.",
            words::list(&silent, FLEET_SHOWN_MAX)
        ),
    };
    let mut finding = out.finding(FLEET, Severity::Warning, Certainty::Certain, what);
    if let Some(reason) = reason {
        finding = finding.evidence(Evidence::text("reason", reason.why.clone()));
    }
    out.push(
        finding
            .evidence(Evidence::count("live members", fleet.members, ""))
            .why("TLS sessions do not resume between these balancers, and each may order its own certificates by ACME.")
            .remedy(
                "Fix the reason if one is shown; otherwise set tls in [fleet] on every member, and open the fleet's port for TCP between members",
                &["weir status"],
                "none",
            )
            .verify("the line on session tickets in weir status names no member and no error")
            .source(FLEET_STATE),
    );
}
