//! The neighbour table (ARP, NDP) is nearly full or overflows.
//!
//! **When.** It has more entries than `gc_thresh2` (warning), or entries were refused because it
//! was full (`table_fulls` rises: critical; "neighbour table overflow" in the kernel log). All
//! network namespaces of the machine share the table.
//!
//! **Why.** Above `gc_thresh2`, the kernel removes entries after 5 s. At `gc_thresh3`, packets to
//! random hosts of the local network are dropped for lack of an entry. This happens on machines
//! with many containers, or in a large flat network.
//!
//! **What to do.** Raise the three thresholds together. An entry takes about 500 bytes.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    const WHAT: &str = "the neighbour table";
    let Some((first, last)) = host_both(&facts.host, WHAT, |sample| &sample.neighbours, out) else {
        return;
    };
    for now in last {
        let (Some(&entries), Some(&limit)) =
            (out.want(WHAT, &now.entries), out.want(WHAT, &now.gc_thresh2))
        else {
            continue;
        };
        let then = first.iter().find(|one| one.family == now.family);
        let full = then.and_then(|then| {
            let (before, after) = (*then.table_fulls.get()?, *now.table_fulls.get()?);
            Change::between(before, after, host_seconds(&facts.host)).ok()
        });
        let is_full = full.is_some_and(Change::is_rising);
        if !is_full && entries <= limit {
            continue;
        }
        let family = &now.family;
        out.push(
            out.finding(
                format!("neighbours {family}"),
                if is_full { Severity::Critical } else { Severity::Warning },
                Certainty::Certain,
                if is_full {
                    format!("The neighbour table ({family}) is full: packets to hosts on the local network are dropped.")
                } else {
                    format!(
                        "The neighbour table ({family}) has {}, above its threshold of {}.",
                        words::plural(entries, "entry").replace("entrys", "entries"),
                        words::thousands(limit)
                    )
                },
            )
            .evidence(Evidence::count("entries", entries, ""))
            .evidence(Evidence::count("gc_thresh2", limit, "entries"))
            .evidences(now.gc_thresh3.get().map(|&one| Evidence::count("gc_thresh3", one, "entries")))
            .evidences(full.map(|one| one.evidence("table_fulls")))
            .why("Entries are removed early, and beyond gc_thresh3 packets are dropped at random.")
            .remedy(
                "Raise the thresholds",
                &[&format!(
                    "sysctl -w net.{family}.neigh.default.gc_thresh1=4096 \
                     net.{family}.neigh.default.gc_thresh2=8192 net.{family}.neigh.default.gc_thresh3=16384"
                )],
                "about 500 bytes an entry",
            )
            .verify("ip -s neigh show | wc -l stays below gc_thresh2")
            .source(&["/proc/net/stat/arp_cache", "/proc/net/stat/ndisc_cache", "/proc/sys/net"]),
        );
    }
}
