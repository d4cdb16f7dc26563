//! The capture is incomplete: it lacks data that was acknowledged.
//!
//! **When.** Acknowledgements cover at least 10,000 bytes that are not in the capture, or the
//! capturing program reports dropped packets.
//!
//! **Why.** Acknowledged data arrived, so it was not lost on the network. The capture missed it,
//! for lack of buffer, disk or processor time, or because part of the traffic took another path. In
//! these places, tshark's labels for lost and out-of-order segments say nothing about the network.
//!
//! **What to do.** Capture less of each packet (`tcpdump -s 128`), filter, use a larger buffer (`-B
//! 65536`), write to memory.

use crate::captured::{found, frames, needs_both, sum};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are a packet or two at the edges.
const UNSEEN_MIN_BYTES: u64 = 10_000;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let found = found(capture, |flow| flow.sent.unseen_bytes > 0, |flow| flow.sent.unseen_bytes);
    let found = found.unwrap_or_default();
    let unseen = sum(&found, |side| side.unseen_bytes);
    let dropped = capture.dropped.unwrap_or(0);
    if unseen < UNSEEN_MIN_BYTES && dropped == 0 {
        return;
    }
    out.push(
        out.finding(
            capture.name.clone(),
            Severity::Advice,
            Certainty::Certain,
            format!(
                "The capture lacks {} that were acknowledged; {} were dropped while capturing.",
                words::plural(unseen, "byte"),
                words::thousands(dropped)
            ),
        )
        .evidence(Evidence::count("acknowledged but not captured", unseen, "bytes"))
        .evidence(Evidence::count("dropped while capturing", dropped, "packets"))
        .evidences(frames(&found, "lost_segment"))
        .why("The missing data was not lost on the network, and conclusions from this capture are less reliable.")
        .remedy(
            "Capture less of each packet, with a larger buffer",
            &["tcpdump -s 128 -B 65536 -w FILE"],
            "none",
        )
        .verify("tcpdump reports: 0 packets dropped by kernel")
        .source(&["the capture"]),
    );
}
