//! The capture contains packets twice, and tshark labels the copies as retransmissions.
//!
//! **When.** At least ten frames, and one in fifty, repeat a segment with the same IP
//! identification, sequence numbers and length within a millisecond.
//!
//! **Why.** A mirror port that copies both directions, a capture on `any`, or on a bridge and its
//! ports records each packet twice. tshark's labels remain in the counts, so that they equal
//! tshark's, but these retransmissions and duplicate acknowledgements did not happen.
//!
//! **What to do.** Capture on one interface, mirror one direction, or remove the duplicates:
//! `editcap -d`.

use crate::captured::{found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer are chance.
const FRAMES_MIN: u64 = 10;
const SHARE_OF: u64 = 50;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) =
        found(capture, |flow| flow.sent.captured_twice > 0, |flow| flow.sent.captured_twice)
    else {
        return;
    };
    let twice = sum(&found, |side| side.captured_twice);
    let segments = sum(&found, |side| side.segments);
    if twice < FRAMES_MIN || twice.saturating_mul(SHARE_OF) < segments {
        return;
    }
    let flagged = sum(&found, |side| side.captured_twice_flagged);
    out.push(
        out.finding(
            capture.name.clone(),
            Severity::Advice,
            Certainty::Certain,
            format!(
                "{} repeat a segment; {} of them are counted as retransmitted or out of order.",
                words::plural(twice, "frame"),
                words::thousands(flagged)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("captured twice", twice, "frames"))
        .evidence(Evidence::count("segments of these directions", segments, "frames"))
        .evidences(frames(&found, "retransmission"))
        .why("These retransmissions did not happen: the same packet was captured at two places.")
        .remedy(
            "Capture on one interface, or remove the duplicates and analyse again",
            &["editcap -d FILE clean.pcap"],
            "editcap also removes segments that were really sent twice within its window",
        )
        .verify("weir trace reports no frames captured twice in the new capture")
        .source(&["the capture"]),
    );
}
