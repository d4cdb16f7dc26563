//! One processor handles most of the network traffic.
//!
//! **When.** Between the samples, one processor handled more than three times as many packets as
//! the median processor (`/proc/net/softnet_stat`), and more than 10,000 a second, on a machine
//! with at least three processors. The finding names the queues whose interrupts that processor
//! handles (`/proc/interrupts`).
//!
//! **Why.** That processor limits the packet rate: it drops packets while the others are idle, and
//! slows down the programs that share it.
//!
//! **What to do.** Use more queues on the interface (RSS, `ethtool -L`), `irqbalance`, or RPS if
//! the interface has only one queue.

use crate::facts::{Facts, HostSample, NetworkInterrupt};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

const TIMES_MIN: f64 = 3.0;
const PER_S_MIN: f64 = 10_000.0;
const CPUS_MIN: usize = 3;
const QUEUES_SHOWN_MAX: usize = 3;

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
                "Processor {cpu} handles {} packets a second, the median processor {}.",
                words::number(most),
                words::number(median)
            ),
        )
        .evidence(Evidence::number(format!("processor {cpu}"), most, "packets per second"))
        .evidence(Evidence::number("median processor", median, "packets per second"))
        .evidence(Evidence::count("processors", work.len() as u64, "online"))
        .evidences(queues_of(facts, cpu))
        .why("It limits the packet rate while the others are idle.")
        .remedy(
            "Use more queues (RSS), and spread their interrupts",
            &["ethtool -l eth0", "ethtool -L eth0 combined 4", "systemctl enable --now irqbalance"],
            "changing queues briefly interrupts the interface",
        )
        .verify("the first column of /proc/net/softnet_stat rises equally on all processors")
        .source(&["/proc/net/softnet_stat", "/proc/interrupts"]),
    );
}

/// The network queues that interrupt this processor most, with their rates between the samples.
fn queues_of<'a>(facts: &'a Facts, cpu: u32) -> Vec<Evidence> {
    let samples = &facts.host.samples;
    let rows = |sample: Option<&'a HostSample>| sample.and_then(|one| one.interrupts.get());
    let (Some(first), Some(last)) = (rows(samples.first()), rows(samples.last())) else {
        return Vec::new();
    };
    let count = |row: &NetworkInterrupt| {
        row.per_cpu.iter().find(|(at, _)| *at == cpu).map_or(0, |&(_, count)| count)
    };
    let rate = |row: &NetworkInterrupt| {
        let before = first.iter().find(|one| one.irq == row.irq).map_or(0, &count);
        Change::between(before, count(row), host_seconds(&facts.host)).ok()
    };
    let mut queues: Vec<(&NetworkInterrupt, Change)> = last
        .iter()
        .filter_map(|row| Some((row, rate(row).filter(|one| one.is_rising())?)))
        .collect();
    queues.sort_by_key(|(_, change)| std::cmp::Reverse(change.by));
    queues
        .into_iter()
        .take(QUEUES_SHOWN_MAX)
        .map(|(row, change)| {
            let name = format!("{} (interrupt {}) on processor {cpu}", row.name, row.irq);
            Evidence::number(name, change.per_s(), "per second")
        })
        .collect()
}
