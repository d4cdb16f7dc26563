//! A network interface drops packets, or receives corrupt ones.
//!
//! **When.** Its counters of missed packets (the ring was full), errors or dropped packets rise by
//! more than one a second. `rx_dropped` alone is advice, because it also counts packets of
//! protocols that no program uses.
//!
//! **Why.** Packets dropped here look like loss on the network, and both sides slow down.
//!
//! **What to do.** For missed packets, enlarge the receive ring and spread interrupts over
//! processors (RSS). For errors, check cable, port and duplex. For packets dropped while sending,
//! the queue is too short or the interface too slow.

use crate::facts::Interface;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const PER_S_MIN: f64 = 1.0;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let (Some(first), Some(last)) = (view.namespace.samples.first(), view.last()) else { return };
    let (Some(before), Some(after)) =
        (out.want("interfaces", &first.interfaces), out.want("interfaces", &last.interfaces))
    else {
        return;
    };
    for now in after {
        let Some(then) = before.iter().find(|one| one.name == now.name) else { continue };
        let rising = |of: fn(&Interface) -> u64| {
            Change::between(of(then), of(now), view.seconds())
                .ok()
                .filter(|one| one.per_s() > PER_S_MIN)
        };
        let counts = [
            ("missed, the ring was full", rising(|one| one.rx_missed)),
            ("received with errors", rising(|one| one.rx_errors)),
            ("dropped while sending", rising(|one| one.tx_dropped)),
            ("not sent because of errors", rising(|one| one.tx_errors)),
            ("received and dropped", rising(|one| one.rx_dropped)),
        ];
        let Some(worst) = counts.iter().find_map(|&(kind, one)| Some((kind, one?))) else {
            continue;
        };
        let is_harmless = worst.0 == counts[4].0;
        let finding = out
            .finding(
                now.name.clone(),
                if is_harmless { Severity::Advice } else { Severity::Warning },
                if is_harmless { Certainty::Possible } else { Certainty::Certain },
                format!(
                    "On {} {} packets a second are {}.",
                    now.name,
                    words::number(worst.1.per_s()),
                    worst.0
                ),
            )
            .evidences(counts.iter().filter_map(|&(kind, one)| Some(one?.evidence(kind))))
            .evidences(now.rings.get().map(|rings| {
                Evidence::text("receive ring", format!("{} of {} packets", rings.rx, rings.rx_max))
            }))
            .why("This looks like packet loss on the network, and both sides slow down.");
        let finding = match now.rings.get().filter(|rings| rings.rx < rings.rx_max) {
            Some(rings) => finding.remedy(
                "Enlarge the receive ring",
                &[&format!("ethtool -G {} rx {}", now.name, rings.rx_max)],
                "briefly interrupts the interface",
            ),
            None => finding.remedy(
                "Find the driver counter that rises",
                &[&format!("ethtool -S {} | grep -iE 'drop|miss|err' | grep -v ': 0'", now.name)],
                "none",
            ),
        };
        out.push(
            finding
                .verify(format!("ip -s -s link show {} no longer shows rising counters", now.name))
                .source(&["/proc/net/dev", "ethtool"]),
        );
    }
}
