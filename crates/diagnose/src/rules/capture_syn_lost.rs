//! SYNs are retransmitted: the peer, or the path to it, drops them.
//!
//! **When.** A capture shows a client's SYN at least twice, with no answer in between.
//!
//! **Why.** The spacing shows which system retransmits: 1, 1, 1, 1, 1, 2, 4 seconds is Linux 6.5
//! and later; 1, 2, 4 seconds is older Linux and most other systems. The user waits for all of
//! these seconds. A closed port would have answered with a reset, so something drops the SYNs: a
//! listener with full queues, a firewall, a full connection tracking table, or a provider's limit
//! on new connections.
//!
//! **What to do.** Capture at the server too. If the SYNs arrive there, the server drops them, and
//! `weir doctor` shows which queue is full. If they do not arrive, the path drops them: security
//! groups, connection tracking, limits of the instance type. Many clients that run health checks
//! open the most connections.

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
                "SYNs are retransmitted {}: the peer, or the path to it, drops them.",
                words::plural(again, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("never answered", never, "connections"))
        .evidence(Evidence::count("answered by the same server", answered, "connections"))
        .evidence(Evidence::text("seconds between SYNs, worst connection", gaps.join(", ")))
        .evidences(frames(&found, "retransmission"))
        .why("Each lost SYN delays the connection by a second, then more.")
        .remedy(
            "Capture at the server at the same time: if the SYNs arrive, look at its queues",
            &["weir doctor"],
            "none",
        )
        .remedy(
            "If they do not arrive, examine the path: firewalls, connection tracking, a provider's limits",
            &[],
            "none",
        )
        .verify("a new capture: tcp.flags.syn==1 && tcp.flags.ack==0 && tcp.analysis.retransmission shows nothing")
        .source(&["the capture"]),
    );
}
