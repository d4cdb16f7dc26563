//! Packets are lost: data is sent again that is missing.
//!
//! **When.** A capture shows on a connection with SACK, or of which nobody knows, at least ten segments that
//! were sent again and had been missing, and one in a hundred: the same bytes twice, or late and with a
//! newer IP identification than what came before. What had arrived (by
//! acknowledgements, selective ones among them, or by a D-SACK), the timer's for a last segment, and what was
//! captured twice does not count; tshark's label does not either, since near a fast sender it calls what is
//! sent again "out of order".
//!
//! **Why.** Each loss makes a sender slow down, and whoever waits for the data behind it waits a round trip
//! longer. Where it happens can be told by the place of the capture: what the capture shows twice was lost
//! behind it, on the way to the receiver; what it shows late and once was lost before it.
//!
//! **What to do.** Capture at another place on the path, and see on which side of it the loss is. A queue
//! that is too short before a slow link loses in bursts; a bad cable or radio link loses evenly; a shaped
//! interface loses what is above its rate.

use crate::captured::{Flow, certainty, found, frames, needs_both, sum, which};
use crate::facts::{Capture, CaptureSide};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are chance.
const AGAIN_MIN: u64 = 10;
/// Of segments sent, one in so many.
const SHARE_OF: u64 = 100;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(capture, is_lossy, |flow| lost(flow.sent)) else {
        return;
    };
    let worst = found[0];
    let again = sum(&found, lost);
    let segments = sum(&found, |side| side.segments);
    let before = sum(&found, lost_before).min(again);
    out.push(
        out.finding(
            worst.name(),
            Severity::Warning,
            certainty(&found, Certainty::Likely),
            format!(
                "{} of {} were lost and sent again, {}.",
                words::thousands(again),
                words::plural(segments, "segment"),
                words::percent(again as f64 / segments.max(1) as f64)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("lost behind the place of the capture", again - before, "segments"))
        .evidence(Evidence::count("lost before it", before, "segments"))
        .evidence(Evidence::count("sent again though they had arrived", sum(&found, needless), "segments"))
        .evidence(Evidence::count("not lost, but overtaken", sum(&found, |side| side.overtaken_segments), "segments"))
        .evidence(Evidence::count("sent once", sum(&found, |side| side.unique_bytes), "bytes"))
        .evidence(Evidence::count("sent in all", sum(&found, |side| side.payload_bytes), "bytes"))
        .evidences(frames(&found, "retransmission").or_else(|| frames(&found, "out_of_order")))
        .why("The sender slows down with each loss, and what comes behind it waits a round trip or more.")
        .remedy(
            "Capture nearer to the other end: the loss is where data is shown twice on one side and late on the other",
            &[],
            "none",
        )
        .remedy(
            "Look at drops where the path narrows: queues, shapers, interfaces",
            &["tc -s qdisc", "ip -s link", "weir doctor"],
            "none",
        )
        .verify("a new capture shows fewer than one segment in a hundred sent again")
        .source(&["the capture"]),
    );
}

fn is_lossy(flow: &Flow<'_>) -> bool {
    let again = lost(flow.sent);
    let is_sack_off =
        [flow.sent.sack_permitted, flow.answered.sack_permitted].contains(&Some(false));
    again >= AGAIN_MIN && again.saturating_mul(SHARE_OF) >= flow.sent.segments && !is_sack_off
}

/// Segments sent again that had been missing, and that the timer was not needed for.
fn lost(side: &CaptureSide) -> u64 {
    let again = side.repeated_segments.saturating_add(lost_before(side));
    again.saturating_sub(needless(side)).saturating_sub(side.tail_retransmissions)
}

/// Segments sent again whose bytes had arrived.
fn needless(side: &CaptureSide) -> u64 {
    let labelled = side.of("spurious_retransmission").saturating_sub(side.captured_twice_flagged);
    labelled.max(side.duplicate_sacks).max(side.needless_segments)
}

/// Those that the capture shows once and late.
fn lost_before(side: &CaptureSide) -> u64 {
    side.late_segments.saturating_sub(side.overtaken_segments)
}
