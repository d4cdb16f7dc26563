//! One processor does most of the network's work.
//!
//! **When.** Between the samples one processor processed more than three times as many packets as
//! the median one (`/proc/net/softnet_stat`), more than 10,000 a second, on a machine with three or
//! more.
//!
//! **Why.** That processor is the limit for packets: it drops while the others idle, and programs
//! that share it are slow.
//!
//! **What to do.** More queues on the interface (`ethtool -L`), `irqbalance`, or RPS where it has
//! one queue only.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

const TIMES_MIN: f64 = 3.0;
const PER_S_MIN: f64 = 10_000.0;
const CPUS_MIN: usize = 3;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((first, last)) =
        host_both(&facts.host, "packet processing (softnet_stat)", |sample| &sample.softnet, out)
    else {
        return;
    };
    let mut work: Vec<(f64, u32)> = Vec::new();
    for now in last {
        let Some(before) = first.iter().find(|one| one.cpu == now.cpu) else { continue };
        let change = Change::between(before.processed, now.processed, host_seconds(&facts.host));
        work.extend(change.ok().map(|one| (one.per_s(), now.cpu)));
    }
    work.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(&(most, cpu)), Some(&(median, _))) = (work.last(), work.get(work.len() / 2)) else {
        return;
    };
    if work.len() < CPUS_MIN || most < PER_S_MIN || most <= TIMES_MIN * median {
        return;
    }
    out.push(
        out.finding(
            "interrupts",
            Severity::Advice,
            Certainty::Likely,
            format!(
                "Processor {cpu} processes {} packets a second, the median one {}.",
                words::number(most),
                words::number(median)
            ),
        )
        .evidence(Evidence::number(format!("processor {cpu}"), most, "packets per second"))
        .evidence(Evidence::number("median processor", median, "packets per second"))
        .evidence(Evidence::count("processors", work.len() as u64, "online"))
        .why("It is the limit for packets, while the others idle.")
        .remedy(
            "Use more queues, and spread their interrupts",
            &["ethtool -l eth0", "ethtool -L eth0 combined 4", "systemctl enable --now irqbalance"],
            "changing queues interrupts the interface for a moment",
        )
        .verify("the first column of /proc/net/softnet_stat rises alike on all processors")
        .source(&["/proc/net/softnet_stat"]),
    );
}
