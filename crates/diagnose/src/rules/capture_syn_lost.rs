//! SYNs are sent again: the peer, or the path to it, drops them.
//!
//! **When.** A capture shows a client's SYN at least twice, and no answer between.
//!
//! **Why.** The spacing tells who waits: 1, 1, 1, 1, 1, 2, 4 seconds is Linux 6.5 and later, 1, 2, 4
//! seconds is older Linux and most others. Each of these seconds is one that a user waits. A closed port
//! would have answered with a reset, so somebody throws the SYNs away: a listener whose queues are full,
//! a firewall, connection tracking that is full, a provider's limit on new connections.
//!
//! **What to do.** Capture at the server too. If the SYNs arrive there, the server drops them: `weir
//! doctor` says which queue. If they do not, the path does: security groups, connection tracking,
//! limits of the instance type. Many clients that check health open the most connections of all.

use crate::captured::{SYN_GAP_MIN_MS, certainty, found, frames, needs_both, sum, which};
use crate::facts::{Capture, CaptureConnection};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(
        capture,
        |flow| {
            flow.sent.syns >= 2
                && flow.sent.syn_gaps_ms.first().is_some_and(|gap| *gap >= SYN_GAP_MIN_MS)
                && (flow.answered.syns == 0 || flow.answered.syns < flow.sent.syns)
                && flow.from == flow.connection.client
        },
        |flow| flow.sent.syns,
    ) else {
        return;
    };
    let worst = found[0];
    let gaps: Vec<String> =
        worst.sent.syn_gaps_ms.iter().map(|gap| words::number(*gap as f64 / 1e3)).collect();
    let never = found.iter().filter(|flow| flow.answered.segments == 0).count() as u64;
    let severity = if never > 0 { Severity::Critical } else { Severity::Warning };
    let again = sum(&found, |side| side.syns - 1);
    let is_answered =
        |one: &&CaptureConnection| one.server == worst.to && one.from_server.segments > 0;
    let answered = capture.connections.iter().filter(is_answered).count() as u64;
    out.push(
        out.finding(
            worst.name(),
            severity,
            certainty(&found, Certainty::Likely),
            format!(
                "SYNs are sent again {}: the peer, or the path to it, drops them.",
                words::plural(again, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("never answered", never, "connections"))
        .evidence(Evidence::count("answered by the same server", answered, "connections"))
        .evidence(Evidence::text("seconds between SYNs of the worst", gaps.join(", ")))
        .evidences(frames(&found, "retransmission"))
        .why("Each SYN that is lost costs whoever connects a second, then more.")
        .remedy(
            "Capture at the server at the same time: if the SYNs arrive, look at its queues",
            &["weir doctor"],
            "none",
        )
        .remedy(
            "If they do not arrive, look at what is between: firewalls, connection tracking, a provider's limits",
            &[],
            "none",
        )
        .verify("a new capture: tcp.flags.syn==1 && tcp.flags.ack==0 && tcp.analysis.retransmission shows nothing")
        .source(&["the capture"]),
    );
}
