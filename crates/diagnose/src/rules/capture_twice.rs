//! The capture shows packets twice, and tshark takes the second for retransmissions.
//!
//! **When.** At least ten frames, and one in fifty, show a segment of the same IP identification, numbers and
//! length as one within the millisecond before.
//!
//! **Why.** A mirror port that copies both the way in and the way out, a capture on `any`, on a bridge and
//! its ports: each packet is there twice. tshark's labels stay in the counts, so that they are the same
//! as tshark's, but these retransmissions and duplicate acknowledgements did not happen.
//!
//! **What to do.** Capture on one interface, mirror one direction, or take duplicates out: `editcap -d`.

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
                "{} show a segment a second time; {} of them are counted as sent again or out of order.",
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
            "Capture on one interface, or take the duplicates out and look again",
            &["editcap -d FILE clean.pcap"],
            "editcap also takes out what was really sent twice within its window",
        )
        .verify("weir trace of the new capture says nothing of frames captured twice")
        .source(&["the capture"]),
    );
}
