//! Tail loss: the last segment of a burst is lost, and only the retransmission timer resends it.
//!
//! **When.** A capture shows at least three times that the last segment sent is retransmitted after
//! 150 ms or more.
//!
//! **Why.** Duplicate acknowledgements reveal a loss in the middle within a round trip. After the
//! last segment nothing follows, so the sender waits for its timer: at least 200 ms on Linux, where
//! tail loss probes need SACK. Short responses consist only of tail.
//!
//! **What to do.** Find the cause of the loss. Keep SACK and `net.ipv4.tcp_early_retrans = 3` (tail
//! loss probes, the default) on at the sender.

use crate::captured::{certainty, found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are chance.
const TIMES_MIN: u64 = 3;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(mut found) = found(
        capture,
        |flow| flow.sent.tail_retransmissions > 0,
        |flow| flow.sent.tail_retransmissions,
    ) else {
        return;
    };
    found.retain(|flow| !flow.sent.is_stuck);
    let times = sum(&found, |side| side.tail_retransmissions);
    if times < TIMES_MIN {
        return;
    }
    out.push(
        out.finding(
            found[0].name(),
            Severity::Warning,
            certainty(&found, Certainty::Likely),
            format!(
                "Tail loss: the last segment of a burst waits for the retransmission timer {}.",
                words::plural(times, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("last segments retransmitted by the timer", times, "segments"))
        .evidences(frames(&found, "retransmission"))
        .why("No duplicate acknowledgements report a lost last segment: each costs 200 ms or more.")
        .remedy(
            "Keep tail loss probes and SACK on at the sender, and find the cause of the loss",
            &["sysctl -w net.ipv4.tcp_early_retrans=3", "sysctl -w net.ipv4.tcp_sack=1"],
            "none",
        )
        .verify("nstat TcpExtTCPTimeouts at the sender rises more slowly")
        .source(&["the capture"]),
    );
}
