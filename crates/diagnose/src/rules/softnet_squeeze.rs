//! Packet processing stops at its budget (`time_squeeze`) while packets still wait.
//!
//! **When.** The third column of `/proc/net/softnet_stat` (`time_squeeze`) rises by more than ten a
//! second, summed over all processors.
//!
//! **Why.** The kernel ends a round of packet processing (NAPI) after `net.core.netdev_budget`
//! packets or `netdev_budget_usecs`. The remaining packets wait for the next round. This adds a
//! little latency, and if it persists, the interface drops packets.
//!
//! **What to do.** Nothing, if latency is fine. Otherwise spread the work over more queues, or
//! double the budget.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

const PER_S_MIN: f64 = 10.0;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((first, last)) =
        host_both(&facts.host, "packet processing (softnet_stat)", |sample| &sample.softnet, out)
    else {
        return;
    };
    let sum = |rows: &[crate::facts::Softnet]| words::sum(rows.iter().map(|row| row.time_squeeze));
    let change = Change::between(sum(first), sum(last), host_seconds(&facts.host));
    let Some(change) = change.ok().filter(|one| one.per_s() > PER_S_MIN) else { return };
    let settings = facts.namespaces.iter().find_map(|namespace| namespace.settings.get());
    let budget =
        settings.and_then(|settings| settings.number("net.core.netdev_budget").get().copied());
    out.push(
        out.finding(
            "softnet",
            Severity::Advice,
            Certainty::Certain,
            format!(
                "Packet processing exhausts its budget {} times a second (time_squeeze).",
                words::number(change.per_s())
            ),
        )
        .evidence(change.evidence("time_squeeze"))
        .evidences(
            budget.map(|budget| Evidence::count("net.core.netdev_budget", budget, "packets")),
        )
        .why("The remaining packets wait for the next round, which adds a little latency.")
        .remedy(
            "Raise the budget of a round",
            &["sysctl -w net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000"],
            "programs on the same processor wait longer",
        )
        .verify("the third column of /proc/net/softnet_stat rises by less than ten a second")
        .source(&["/proc/net/softnet_stat"]),
    );
}
