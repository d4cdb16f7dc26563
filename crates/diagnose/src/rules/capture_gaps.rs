//! The capture itself has holes: data was acknowledged that it does not show.
//!
//! **When.** Acknowledgements cover at least 10,000 bytes that are not in the capture, or whoever captured
//! says that packets were dropped.
//!
//! **Why.** What was acknowledged had arrived, so it was not lost on the network: the capture missed it, for
//! want of buffer, disk or processor, or since part of the traffic went another way. Lost segments and
//! out-of-order ones that tshark reports there say nothing about the network.
//!
//! **What to do.** Capture less of each packet (`tcpdump -s 128`), filter, give it a larger buffer
//! (`-B 65536`), write to memory.

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
                "{} were acknowledged that the capture does not have, {} dropped while capturing.",
                words::plural(unseen, "byte"),
                words::thousands(dropped)
            ),
        )
        .evidence(Evidence::count("acknowledged and not captured", unseen, "bytes"))
        .evidence(Evidence::count("dropped while capturing", dropped, "packets"))
        .evidences(frames(&found, "lost_segment"))
        .why("What is missing was not lost on the network, and conclusions from this capture are weaker.")
        .remedy(
            "Capture less of each packet, with a larger buffer",
            &["tcpdump -s 128 -B 65536 -w FILE"],
            "none",
        )
        .verify("tcpdump says: 0 packets dropped by kernel")
        .source(&["the capture"]),
    );
}
