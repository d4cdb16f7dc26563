//! Segments are reordered or lost, and without SACK too much data is retransmitted.
//!
//! **When.** A capture shows data out of order or retransmitted at least ten times on connections
//! whose handshake lacks SACK on at least one side.
//!
//! **Why.** Without selective acknowledgements, a receiver can report only the first gap. The
//! sender then retransmits data that has already arrived, one gap per round trip, or all of it
//! after its timer. On a network that reorders packets, this happens without any loss. At one
//! company, uploads of 200 MB over a path with reordering took 130 seconds without SACK and 6 with
//! it.
//!
//! **What to do.** Turn SACK on. Many administrators turned it off in 2019 because of SACK Panic
//! (CVE-2019-11477), which newer kernels have fixed.

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
                "{} retransmitted and {} out of order on connections without SACK.",
                words::plural(again, "segment"),
                words::thousands(ahead)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::text("SACK is not permitted by", by.join(", ")))
        .evidence(Evidence::count("sent once", sum(&found, |side| side.unique_bytes), "bytes"))
        .evidence(Evidence::count("sent in total", sum(&found, |side| side.payload_bytes), "bytes"))
        .evidences(frames(&found, "retransmission"))
        .why("Without SACK a sender retransmits data that has arrived, one gap per round trip or all after a timer.")
        .remedy(
            "Turn SACK on",
            &["sysctl -w net.ipv4.tcp_sack=1"],
            "attackers can crash kernels older than June 2019 (CVE-2019-11477)",
        )
        .verify("a new capture: both SYNs carry SACK permitted, and less is retransmitted")
        .source(&["the capture"]),
    );
}
