//! Packet loss: segments are lost and retransmitted.
//!
//! **When.** A capture shows, on a connection with SACK or whose handshake is not in the capture,
//! at least ten retransmissions of missing segments, and at least one in a hundred. The capture
//! shows the same bytes twice, or it shows them late and with a newer IP identification than the
//! segments before. It does not count segments that had arrived (as acknowledgements, SACK or
//! D-SACK show), last segments that the timer retransmits, packets captured twice, and, if the capture
//! lacks data that was acknowledged, as many segments as may seem late only because their first copy
//! was not captured. tshark's label is not used, because near a fast sender it labels retransmissions
//! "out of order".
//!
//! **Why.** Each loss makes a sender slow down, and the data behind it is delayed by a round trip.
//! The place of the capture shows where packets are lost: segments that appear twice were lost
//! after this place, on the way to the receiver; segments that appear once and late were lost
//! before it.
//!
//! **What to do.** Capture at another place on the path, to find the side on which packets are
//! lost. A queue that is too short in front of a slow link loses packets in bursts; a bad cable or
//! radio link loses them evenly; traffic shaping drops what exceeds its rate.

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
                "{} of {} were lost and retransmitted, {}.",
                words::thousands(again),
                words::plural(segments, "segment"),
                words::percent(again as f64 / segments.max(1) as f64)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("lost after the place of the capture", again - before, "segments"))
        .evidence(Evidence::count("lost before it", before, "segments"))
        .evidence(Evidence::count("retransmitted although they had arrived", sum(&found, needless), "segments"))
        .evidence(Evidence::count("not lost, but reordered", sum(&found, |side| side.overtaken_segments), "segments"))
        .evidence(Evidence::count("sent once", sum(&found, |side| side.unique_bytes), "bytes"))
        .evidence(Evidence::count("sent in total", sum(&found, |side| side.payload_bytes), "bytes"))
        .evidences(frames(&found, "retransmission").or_else(|| frames(&found, "out_of_order")))
        .why("The sender slows down with each loss, and the data behind it waits a round trip or more.")
        .remedy(
            "Capture nearer to the other end: the loss is between a place that shows the data twice and a place that shows it late",
            &[],
            "none",
        )
        .remedy(
            "Look for drops at the bottlenecks of the path: queues, shapers, interfaces",
            &["tc -s qdisc", "ip -s link", "weir doctor"],
            "none",
        )
        .verify("a new capture shows fewer than one segment in a hundred retransmitted")
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
    let late = side.late_segments.saturating_sub(side.overtaken_segments);
    late.saturating_sub(first_not_captured(side))
}

/// Of the segments sent again, as many as may have been sent before without being captured: the share of the data that
/// the capture lacks, and as much again for chance.
fn first_not_captured(side: &CaptureSide) -> u64 {
    let sent = side.unique_bytes.saturating_add(side.unseen_bytes).max(1);
    let share = side.unseen_bytes as f64 / sent as f64;
    (side.repeated_segments as f64 * share * 2.0).ceil() as u64
}
