//! Members of the fleet do not share session ticket keys and certificates, although `[fleet]` has `tls`.
//!
//! **When.** For two minutes, a member that lives has announced none, or none could be fetched from one. Warning.
//!
//! **Why.** Clients that come from one of these balancers to another make full handshakes, which cost both sides CPU
//! time. A certificate that one of them obtains by ACME does not reach the other, which orders it again.
//!
//! **What to do.** Read the reason. An expired certificate: renew it on the member that it names. A connection that is
//! refused or times out: open the fleet's port for TCP, too, between members. A member without a reason has no `tls` in
//! `[fleet]`, cannot listen on TCP (its own `weir status` says so), or runs an older version.

use model::FleetProblemKind;

use super::FLEET;
use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// An upgrade of all members takes longer, one restart does not.
const FOR_S_MIN: u64 = 120;
const SHOWN_MAX: usize = 3;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(fleet) = &traffic.fleet else { return };
    let silent = fleet.lasting(FleetProblemKind::NotSharing, FOR_S_MIN);
    let names: Vec<String> = silent.map(|one| one.subject.clone()).collect();
    let reason = fleet.lasting(FleetProblemKind::NotFetched, FOR_S_MIN).next();
    let what = match (names.is_empty(), reason) {
        (true, None) => return,
        (true, Some(_)) => {
            "Session ticket keys or certificates of the fleet cannot be exchanged.".to_owned()
        }
        (false, _) => format!(
            "This balancer shares session ticket keys and certificates, but not with {}.",
            words::list(&names, SHOWN_MAX)
        ),
    };
    let mut finding = out.finding(FLEET, Severity::Warning, Certainty::Certain, what);
    if let Some(reason) = reason {
        finding = finding.evidence(Evidence::text("reason", reason.why.clone()));
    }
    out.push(
        finding
            .evidence(Evidence::count("members that live", fleet.members, ""))
            .why("Sessions of clients that come from there do not resume here, and certificates are ordered more than once.")
            .remedy(
                "Renew the members' certificates, and open the fleet's port for TCP between members",
                &["weir status"],
                "none",
            )
            .verify("the line on session tickets in weir status names no member and no error")
            .source(&["the state of the fleet in /api/v1/fleet"]),
    );
}
