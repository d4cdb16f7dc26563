//! Packets are dropped between the network interface and the protocol stack.
//!
//! **When.** The second column of `/proc/net/softnet_stat` rises: a processor's backlog queue was
//! full (`net.core.netdev_max_backlog`), or the flow limit dropped packets.
//!
//! **Why.** The packets are lost inside this machine. TCP retransmits them, so it looks like a bad
//! network. RPS and interfaces without NAPI (veth, loopback, tunnels) use this queue.
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
                "{} packets a second are dropped before they reach the protocol stack.",
                words::number(per_s)
            ),
        )
        .evidences(
            dropping
                .iter()
                .take(CPUS_SHOWN_MAX)
                .map(|(cpu, one)| one.evidence(&format!("dropped on processor {cpu}"))),
        )
        .why("They are lost inside this machine; it looks like a bad network.")
        .remedy(
            "Spread the work over processors (RSS or RPS)",
            &["ethtool -l eth0", "echo ff > /sys/class/net/eth0/queues/rx-0/rps_cpus"],
            "packets of one flow stay in order; other work on those processors gets less time",
        )
        .remedy(
            "Enlarge the queue",
            &["sysctl -w net.core.netdev_max_backlog=16384"],
            "packets may wait longer, up to a few ms",
        )
        .verify("the second column of /proc/net/softnet_stat no longer rises")
        .source(&["/proc/net/softnet_stat"]),
    );
}
