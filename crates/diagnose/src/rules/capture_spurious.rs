//! Spurious retransmissions: data is retransmitted although it had arrived.
//!
//! **When.** A capture shows at least ten retransmissions of data that was already acknowledged, or
//! that the receiver reports as duplicate by DSACK; and they are at least a third of all
//! retransmissions.
//!
//! **Why.** The sender took late segments or acknowledgements for lost: they were reordered,
//! delayed by more than its timer, or the acknowledgements were lost. It then slows down
//! unnecessarily.
//!
//! **What to do.** Keep timestamps, SACK and DSACK on: with them, Linux detects and undoes it. Look
//! for reordering, and for sudden changes in delay.

use crate::captured::{certainty, found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are chance.
const TIMES_MIN: u64 = 10;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let needless = |side: &crate::facts::CaptureSide| {
        let labelled =
            side.of("spurious_retransmission").saturating_sub(side.captured_twice_flagged);
        labelled.max(side.duplicate_sacks).max(side.needless_segments)
    };
    let Some(found) = found(
        capture,
        |flow| {
            let times = needless(flow.sent);
            times >= TIMES_MIN && times.saturating_mul(3) >= flow.sent.of("retransmission")
        },
        |flow| needless(flow.sent),
    ) else {
        return;
    };
    let times = sum(&found, needless);
    let all = sum(&found, |side| side.of("retransmission"));
    out.push(
        out.finding(
            found[0].name(),
            Severity::Advice,
            certainty(&found, Certainty::Likely),
            format!(
                "{} of {} retransmitted had already arrived.",
                words::thousands(times),
                words::plural(all, "segment")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count(
            "spurious_retransmission",
            sum(&found, |side| side.of("spurious_retransmission")),
            "segments",
        ))
        .evidence(Evidence::count(
            "reported by DSACK",
            sum(&found, |side| side.duplicate_sacks),
            "segments",
        ))
        .evidences(frames(&found, "spurious_retransmission"))
        .why("The sender takes late packets for lost, retransmits them and slows down.")
        .remedy(
            "Keep SACK, DSACK and timestamps on at both ends",
            &["sysctl -w net.ipv4.tcp_timestamps=1", "sysctl -w net.ipv4.tcp_dsack=1"],
            "none",
        )
        .verify("nstat TcpExtTCPDSACKRecv at the sender rises more slowly")
        .source(&["the capture"]),
    );
}
