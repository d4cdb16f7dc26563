//! Packets arrive out of order, and senders retransmit segments that were not lost.
//!
//! **When.** Between the samples, a sender on this host detected reordering at least ten times a
//! second, or provably for more than one segment in a thousand (`TcpExtTCPSACKReorder`,
//! `TCPTSReorder`, `TCPRenoReorder`), and peers reported duplicate segments (`TcpExtTCPDSACKRecv`),
//! or false retransmissions were undone. A warning if at least four fifths of the retransmissions
//! were unnecessary, or if `loss` is not reported; otherwise advice, because `loss` is then the
//! main problem. For received data: if more than 1 % of the segments arrived out of order
//! (`TcpExtTCPOFOQueue`), the finding is advice, because a receiver cannot distinguish this from
//! loss.
//!
//! **Why.** The sender takes late segments for lost: it retransmits them unnecessarily and slows
//! down. With SACK and timestamps, the kernel detects and undoes this; without either it does not.
//!
//! **What to do.** Keep SACK, DSACK and timestamps on, on both sides. With `net.ipv4.tcp_recovery =
//! 1` (RACK, the default) the kernel waits a little before it considers a segment lost. Look for
//! the source: links bonded per packet, several queues without flow hashing, a provider's network.
//! Providers consider reordering normal, so you may not be able to remove it.

use crate::evidence::Units;
use crate::finding::{Certainty, Evidence, Severity};
use crate::segments::Segments;
use crate::view::{Change, Out, View};
use crate::words;

/// Reordering seen so often a second is no accident.
const PER_S_MIN: f64 = 10.0;
/// And so is this share of what was sent.
const SHARE_MIN: f64 = 0.001;
/// Of what is sent again, this much for nothing: then it is reordering rather than loss. Not half:
/// where packets are lost on a path that also reorders, the kernel's haste to repair the loss makes
/// up to two thirds of what is sent again superfluous, and the loss is what matters. Not all: a
/// report of a segment that came twice (DSACK) may be lost itself.
const SPURIOUS_SHARE_MIN: f64 = 0.8;
/// Of what arrives, this much ahead of its turn.
const AHEAD_SHARE_MIN: f64 = 0.01;

const SEEN: [&str; 3] = ["TcpExtTCPSACKReorder", "TcpExtTCPTSReorder", "TcpExtTCPRenoReorder"];
const UNDONE: [&str; 4] =
    ["TcpExtTCPFullUndo", "TcpExtTCPPartialUndo", "TcpExtTCPDSACKUndo", "TcpExtTCPSpuriousRTOs"];

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(segments) = Segments::of(view, out) else { return as_receiver(view, out) };
    let (sent, again) = (segments.sent, segments.again);
    let rising = |name: &'static str| {
        view.counter_if_any(name).filter(|one| one.is_rising()).map(|one| (name, one))
    };
    let seen: Vec<(&str, Change)> = SEEN.into_iter().filter_map(rising).collect();
    let undone: Vec<(&str, Change)> = UNDONE.into_iter().filter_map(rising).collect();
    let twice = rising("TcpExtTCPDSACKRecv");
    let seen_by = words::sum(seen.iter().map(|(_, one)| one.by));
    let is_seen = seen_by as f64 / sent.seconds >= PER_S_MIN
        || Units::new(seen_by, sent.by).exceeds(SHARE_MIN, 1);
    if !is_seen || (twice.is_none() && undone.is_empty()) {
        return as_receiver(view, out);
    }
    let spurious = segments.share_for_nothing();
    let severity =
        if spurious < SPURIOUS_SHARE_MIN && super::loss::speaks(view, &segments).is_some() {
            // Enough of what is sent again was lost after all, and `loss` says so.
            Severity::Advice
        } else {
            Severity::Warning
        };
    out.push(
        out.finding(
            "reordering",
            severity,
            Certainty::Likely,
            format!(
                "Packets are reordered {} times a second, and {} of the retransmissions were unnecessary.",
                words::number(seen_by as f64 / sent.seconds),
                words::percent(spurious)
            ),
        )
        .evidences(seen.into_iter().chain(twice).chain(undone).map(|(name, one)| one.evidence(name)))
        .evidence(again.evidence("TcpRetransSegs"))
        .evidences(view.setting_if_any("net.ipv4.tcp_sack").map(|one| Evidence::text("net.ipv4.tcp_sack", one.to_string())))
        .why("The sender takes late segments for lost, retransmits them unnecessarily and slows down.")
        .remedy(
            "Keep SACK, DSACK and timestamps on, here and on the peers",
            &[
                "sysctl -w net.ipv4.tcp_sack=1",
                "sysctl -w net.ipv4.tcp_dsack=1",
                "sysctl -w net.ipv4.tcp_timestamps=1",
                "sysctl -w net.ipv4.tcp_recovery=1",
            ],
            "none on a kernel of 2019 or later",
        )
        .remedy(
            "Find the source of reordering: links bonded per packet, queues without flow hashing",
            &["ss -tin state established | grep reord_seen"],
            "none",
        )
        .verify("nstat TcpExtTCPSACKReorder TcpExtTCPDSACKRecv no longer rise under the same load")
        .source(&["/proc/net/netstat", "/proc/net/snmp"]),
    );
}

fn as_receiver(view: View<'_>, out: &mut Out) {
    let Some(ahead) = view.counter_if_any("TcpExtTCPOFOQueue") else { return };
    let Some(arrived) = view.counter_if_any("TcpInSegs") else { return };
    if !Units::new(ahead.by, arrived.by).exceeds(AHEAD_SHARE_MIN, 1) {
        return;
    }
    let share = ahead.by as f64 / arrived.by as f64;
    out.push(
        out.finding(
            "reordering of received segments",
            Severity::Advice,
            Certainty::Possible,
            format!("{} of the received segments arrive out of order.", words::percent(share)),
        )
        .evidence(ahead.evidence("TcpExtTCPOFOQueue"))
        .evidence(arrived.evidence("TcpInSegs"))
        .why("Earlier segments were lost or are late; only the sender can tell which.")
        .remedy(
            "Run weir doctor on the senders, or capture both directions",
            &["weir doctor"],
            "none",
        )
        .verify("nstat TcpExtTCPOFOQueue rises more slowly")
        .source(&["/proc/net/netstat", "/proc/net/snmp"]),
    );
}
