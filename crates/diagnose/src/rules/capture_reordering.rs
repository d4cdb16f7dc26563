//! Packets of a connection are reordered on the path.
//!
//! **When.** A capture near the receiver shows at least ten segments, and at least one in a
//! thousand, that arrived after newer ones of the same connection: their bytes appear late and for
//! the first time, and their IP identification is older than that of the packets before them.
//! Selective acknowledgements and D-SACKs (RFC 2883) show how much was retransmitted unnecessarily
//! because of it.
//!
//! **Why.** Several links or queues share a connection's packets. Nothing is lost, but to the
//! sender the receiver's duplicate acknowledgements look like loss: it retransmits data that has
//! arrived, and may slow down. tshark labels such segments "out of order", or "retransmission" if
//! they are more than a round trip late.
//!
//! **What to do.** Keep SACK, D-SACK and timestamps on at both ends: with them, Linux learns how
//! far the path reorders, and waits accordingly. Look for the source: links bonded per packet,
//! several queues without flow hashing. In a provider's network you may not be able to remove it.

use crate::captured::{Flow, certainty, found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are chance.
const OVERTAKEN_MIN: u64 = 10;
/// Of segments sent, one in so many.
const SHARE_OF: u64 = 1_000;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let is_reordered = |flow: &Flow<'_>| {
        let overtaken = flow.sent.overtaken_segments;
        overtaken >= OVERTAKEN_MIN && overtaken.saturating_mul(SHARE_OF) >= flow.sent.segments
    };
    let Some(found) = found(capture, is_reordered, |flow| flow.sent.overtaken_segments) else {
        return;
    };
    let overtaken = sum(&found, |side| side.overtaken_segments);
    let segments = sum(&found, |side| side.segments);
    let needless = sum(&found, |side| side.needless_segments);
    out.push(
        out.finding(
            found[0].name(),
            Severity::Advice,
            certainty(&found, Certainty::Likely),
            format!(
                "{} of {} arrived after newer ones, and {} were retransmitted unnecessarily.",
                words::thousands(overtaken),
                words::plural(segments, "segment"),
                words::thousands(needless)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("reordered", overtaken, "segments"))
        .evidence(Evidence::count("retransmitted although they had arrived", needless, "segments"))
        .evidence(Evidence::count("reported by D-SACK", sum(&found, |side| side.duplicate_sacks), "times"))
        .evidence(Evidence::count("retransmitted in total", sum(&found, |side| side.repeated_segments), "segments"))
        .evidences(frames(&found, "out_of_order").or_else(|| frames(&found, "retransmission")))
        .why("To the sender, reordering looks like loss: it retransmits data that has arrived, and may slow down.")
        .remedy(
            "Keep SACK, D-SACK and timestamps on at both ends",
            &[
                "sysctl -w net.ipv4.tcp_sack=1",
                "sysctl -w net.ipv4.tcp_dsack=1",
                "sysctl -w net.ipv4.tcp_timestamps=1",
            ],
            "none",
        )
        .remedy("Look for links or queues that share a connection's packets", &[], "none")
        .verify("a new capture at the receiver shows fewer segments out of order")
        .source(&["the capture"]),
    );
}
