//! Much of the capture is not TCP, or uses an encapsulation that is not decoded.
//!
//! **When.** At least 10 % of a capture's packets, or of their bytes, contain no TCP segment that could be
//! decoded. This is advice from 50 %, otherwise a note.
//!
//! **Why.** These packets are not analysed. A capture of a tunnel that is not decoded, or of encrypted
//! packets, would otherwise look as if its connections had no problems.
//!
//! **What to do.** Look at the kinds of packets listed. If they are encrypted or use an unknown tunnel,
//! capture where the packets are plain: on the tunnel's own interface, or at the ends of the connections. If
//! they are UDP or other irrelevant traffic, filter them out: `tcpdump ... tcp`.

use crate::captured::needs_both;
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// From 10 % on there is a finding.
const SHARE_MIN: f64 = 0.1;
/// From 50 % on the finding is advice instead of a note.
const ADVICE_MIN: f64 = 0.5;
/// Kinds of packets that are listed.
const NAMED_MAX: usize = 5;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let packets: u64 = capture.undecoded.iter().map(|one| one.packets).fold(0, u64::saturating_add);
    let bytes: u64 = capture.undecoded.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
    let of_packets = share(packets, capture.packets);
    let of_bytes = share(bytes, capture.bytes);
    if of_packets.max(of_bytes) < SHARE_MIN {
        return;
    }
    let is_much = of_packets.max(of_bytes) >= ADVICE_MIN;
    let named = capture.undecoded.iter().take(NAMED_MAX).map(|one| {
        let share = words::percent(share(one.bytes, capture.bytes));
        Evidence::text(
            &one.what,
            format!("{}, {share} of the bytes", words::plural(one.packets, "packet")),
        )
    });
    let finding = out
        .finding(
            capture.name.clone(),
            if is_much { Severity::Advice } else { Severity::Note },
            Certainty::Certain,
            format!(
                "{} contain no TCP segment that could be decoded: {} of all packets, {} of all bytes.",
                words::plural(packets, "packet"),
                words::percent(of_packets),
                words::percent(of_bytes)
            ),
        )
        .evidences(named)
        .why("These packets were not analysed, so problems in them are not reported.")
        .remedy(
            "Capture where the packets are plain, or filter out irrelevant traffic",
            &["tcpdump -i TUNNEL -w FILE tcp"],
            "none",
        )
        .verify("weir trace no longer reports this finding for a new capture")
        .source(&["the capture"]);
    out.push(finding);
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
