//! Segments overtake each other or are lost, and without SACK too much is sent again.
//!
//! **When.** A capture shows data out of order or sent again, at least ten times on a connection whose
//! handshake has no SACK on one side or the other.
//!
//! **Why.** Without selective acknowledgements a receiver can only say where the first hole is. The
//! sender then sends again what had arrived, one hole a round trip, or all of it after its timer. Where
//! the network reorders, that happens without any loss. At a company, uploads of 200 MB over a path that
//! reordered took 130 seconds without SACK and 6 with it.
//!
//! **What to do.** Turn SACK on again. It was often turned off in 2019 against SACK Panic
//! (CVE-2019-11477), which kernels since then have mended.

use crate::captured::{certainty, found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are nothing to speak of.
const AGAIN_MIN: u64 = 10;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(
        capture,
        |flow| {
            let is_off =
                [flow.sent.sack_permitted, flow.answered.sack_permitted].contains(&Some(false));
            is_off
                && flow.sent.of("retransmission").saturating_add(flow.sent.of("out_of_order"))
                    >= AGAIN_MIN
        },
        |flow| flow.sent.of("retransmission").saturating_add(flow.sent.of("out_of_order")),
    ) else {
        return;
    };
    let again = sum(&found, |side| side.of("retransmission"));
    let ahead = sum(&found, |side| side.of("out_of_order"));
    let worst = found[0];
    let mut by: Vec<&str> = Vec::new();
    for (end, side) in [(worst.from, worst.sent), (worst.to, worst.answered)] {
        if side.sack_permitted == Some(false) {
            by.push(end);
        }
    }
    out.push(
        out.finding(
            worst.name(),
            Severity::Warning,
            certainty(&found, Certainty::Likely),
            format!(
                "{} sent again and {} out of order on connections without SACK.",
                words::plural(again, "segment"),
                words::thousands(ahead)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::text("SACK is not permitted by", by.join(", ")))
        .evidence(Evidence::count("sent once", sum(&found, |side| side.unique_bytes), "bytes"))
        .evidence(Evidence::count("sent in all", sum(&found, |side| side.payload_bytes), "bytes"))
        .evidences(frames(&found, "retransmission"))
        .why("Without SACK a sender sends again what has arrived, one hole a round trip or all after a timer.")
        .remedy(
            "Turn SACK on where it is off",
            &["sysctl -w net.ipv4.tcp_sack=1"],
            "kernels older than June 2019 can be made to crash by it (CVE-2019-11477)",
        )
        .verify("a new capture: both SYNs carry SACK permitted, and less is sent again")
        .source(&["the capture"]),
    );
}
