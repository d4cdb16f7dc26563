//! The hypervisor gives this machine's processor time to others.
//!
//! **When.** Steal (`/proc/stat`, eighth field) is above 5 % of all processor time between the
//! samples (warning), or above 10 % (critical).
//!
//! **Why.** The machine wanted to run and was not let: a neighbour takes too much, or an instance
//! of a burstable kind has spent its credits. Programs that show CPU without steal hide it: a
//! machine at "80 %" may have nothing left. A company's graphs did exactly that.
//!
//! **What to do.** Look at the credit balance at the provider (the machine itself can't see it),
//! choose a kind without credits, or move. Steal of 0 does not prove that credits remain.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, host_both};
use crate::words;

const WARNING_SHARE: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.10;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((first, last)) = host_both(&facts.host, "processor time", |sample| &sample.cpu, out) else {
        return;
    };
    let (Some(total), Some(steal)) =
        (last.total().checked_sub(first.total()), last.steal.checked_sub(first.steal))
    else {
        return out.could_not("processor time", "the counters went backwards between the samples");
    };
    let share = steal as f64 / total.max(1) as f64;
    if share <= WARNING_SHARE {
        return;
    }
    let idle = last.idle.saturating_sub(first.idle) as f64 / total.max(1) as f64;
    out.push(
        out.finding(
            "steal",
            if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning },
            Certainty::Likely,
            format!("{} of the processor time is given to other machines.", words::percent(share)),
        )
        .evidence(Evidence::text("steal", format!("{} of all processor time", words::percent(share))))
        .evidence(Evidence::text("idle", format!("{} of all processor time", words::percent(idle))))
        .evidences(
            facts.host.hypervisor.get().and_then(Option::as_ref).map(|one| Evidence::text("hypervisor", one)),
        )
        .why("Requests wait while the machine is stopped, and no program on it can see why.")
        .remedy(
            "Look at the credit balance at the provider; choose a kind without credits, or move",
            &["vmstat 1 5"],
            "a larger instance costs more",
        )
        .verify("`st` in vmstat 1 stays below 1")
        .source(&["/proc/stat"]),
    );
}
