//! Segments overtake each other on the way.
//!
//! **When.** A capture near the receiver shows at least ten segments, and one in a thousand, that came after
//! newer ones of the same connection: their bytes come late and for the first time, and their IP
//! identification is older than what came before them. What is sent again for nothing because of it is told
//! by selective acknowledgements and D-SACKs (RFC 2883).
//!
//! **Why.** Several links or queues share a connection's packets. Nothing is lost, but the receiver's
//! duplicate acknowledgements look like loss to the sender: it sends again what has arrived, and may slow
//! down. tshark labels such segments "out of order", or "retransmission" where they come later than a round
//! trip.
//!
//! **What to do.** Keep SACK, D-SACK and timestamps on at both ends: with them Linux learns how far the path
//! reorders and waits for it. Look for what reorders: links bundled packet by packet, several queues
//! without flow hashing. In a provider's network it is often something to live with.

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
                "{} of {} were overtaken by newer ones, and {} sent again for nothing.",
                words::thousands(overtaken),
                words::plural(segments, "segment"),
                words::thousands(needless)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("overtaken", overtaken, "segments"))
        .evidence(Evidence::count("sent again though they had arrived", needless, "segments"))
        .evidence(Evidence::count("reported by D-SACK", sum(&found, |side| side.duplicate_sacks), "times"))
        .evidence(Evidence::count("sent again in all", sum(&found, |side| side.repeated_segments), "segments"))
        .evidences(frames(&found, "out_of_order").or_else(|| frames(&found, "retransmission")))
        .why("Reordering looks like loss to the sender: it sends again what has arrived, and may slow down.")
        .remedy(
            "Keep on what tells late from lost, at both ends",
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
