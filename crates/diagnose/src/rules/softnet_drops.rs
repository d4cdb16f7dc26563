//! Packets are dropped on their way from the interface to the protocols.
//!
//! **When.** The second column of `/proc/net/softnet_stat` rises: the backlog queue of a processor
//! was full (`net.core.netdev_max_backlog`), or the flow limit dropped.
//!
//! **Why.** The packets are lost inside this machine; TCP sends them again, and it looks like a bad
//! network. The queue is used by RPS and by interfaces without NAPI (veth, loopback, tunnels).
//!
//! **What to do.** Spread the work over processors (RSS queues, RPS), then raise
//! `netdev_max_backlog`.

use crate::facts::Facts;
use crate::finding::{Certainty, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

const CPUS_SHOWN_MAX: usize = 4;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((first, last)) =
        host_both(&facts.host, "packet processing (softnet_stat)", |sample| &sample.softnet, out)
    else {
        return;
    };
    let mut dropping: Vec<(u32, Change)> = Vec::new();
    for now in last {
        let Some(before) = first.iter().find(|one| one.cpu == now.cpu) else { continue };
        let change = Change::between(before.dropped, now.dropped, host_seconds(&facts.host));
        dropping.extend(change.ok().filter(|one| one.is_rising()).map(|one| (now.cpu, one)));
    }
    if dropping.is_empty() {
        return;
    }
    dropping.sort_by_key(|(_, one)| std::cmp::Reverse(one.by));
    let per_s: f64 = dropping.iter().map(|(_, one)| one.per_s()).sum();
    out.push(
        out.finding(
            "softnet",
            Severity::Critical,
            Certainty::Certain,
            format!(
                "{} packets a second are dropped before the protocols see them.",
                words::number(per_s)
            ),
        )
        .evidences(
            dropping
                .iter()
                .take(CPUS_SHOWN_MAX)
                .map(|(cpu, one)| one.evidence(&format!("dropped on processor {cpu}"))),
        )
        .why("They are lost inside this machine, and it looks like a bad network.")
        .remedy(
            "Spread the work over processors",
            &["ethtool -l eth0", "echo ff > /sys/class/net/eth0/queues/rx-0/rps_cpus"],
            "packets of one flow stay in order; other work on those processors gets less time",
        )
        .remedy(
            "Make the queue longer",
            &["sysctl -w net.core.netdev_max_backlog=16384"],
            "packets that wait longer, up to a few ms",
        )
        .verify("the second column of /proc/net/softnet_stat rises no more")
        .source(&["/proc/net/softnet_stat"]),
    );
}
