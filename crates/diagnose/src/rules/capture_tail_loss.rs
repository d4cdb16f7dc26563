//! The last segment of a burst is lost, and only the timer sends it again.
//!
//! **When.** A capture shows at least three times that the last segment sent is sent again after 150 ms
//! or more.
//!
//! **Why.** A loss in the middle is told by duplicate acknowledgements within a round trip. Behind the last
//! segment comes nothing, so the sender waits for its timer: 200 ms at least on Linux, where tail loss
//! probes need SACK. Short answers are all tail.
//!
//! **What to do.** Find the loss. Keep SACK and `net.ipv4.tcp_early_retrans = 3` (tail loss probes, the
//! default) on at the sender.

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
                "The last segment of a burst waits for the timer {}.",
                words::plural(times, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("last segments sent again by the timer", times, "segments"))
        .evidences(frames(&found, "retransmission"))
        .why("Nothing behind a last segment tells that it is lost: each costs 200 ms or more.")
        .remedy(
            "Keep tail loss probes and SACK on at the sender, and look for what loses packets",
            &["sysctl -w net.ipv4.tcp_early_retrans=3", "sysctl -w net.ipv4.tcp_sack=1"],
            "none",
        )
        .verify("nstat TcpExtTCPTimeouts at the sender rises less")
        .source(&["the capture"]),
    );
}
