//! An interface drops packets, or receives broken ones.
//!
//! **When.** Its counters of missed packets (the ring was full), of errors, or of dropped packets
//! rise by more than one a second. `rx_dropped` alone is advice: packets of protocols that nobody
//! wants count too.
//!
//! **Why.** Packets lost here look like loss on the network, and both sides slow down.
//!
//! **What to do.** Missed: enlarge the ring, spread interrupts over processors. Errors: cable,
//! port, duplex. Dropped while sending: the queue is too short, or the interface too slow.

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
            ("not sent for errors", rising(|one| one.tx_errors)),
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
            .why("It looks like loss on the network, and both sides slow down.");
        let finding = match now.rings.get().filter(|rings| rings.rx < rings.rx_max) {
            Some(rings) => finding.remedy(
                "Enlarge the ring",
                &[&format!("ethtool -G {} rx {}", now.name, rings.rx_max)],
                "interrupts the interface for a moment",
            ),
            None => finding.remedy(
                "See which counter of the driver rises",
                &[&format!("ethtool -S {} | grep -iE 'drop|miss|err' | grep -v ': 0'", now.name)],
                "none",
            ),
        };
        out.push(
            finding
                .verify(format!("ip -s -s link show {} counts no more of them", now.name))
                .source(&["/proc/net/dev", "ethtool"]),
        );
    }
}
