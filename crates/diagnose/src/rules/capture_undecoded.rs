//! Much of the capture is not TCP, or in a form that is not decoded.
//!
//! **When.** At least a tenth of a capture's packets, or of their bytes, hold no TCP segment that could be
//! read. Advice if it is half or more, otherwise a note.
//!
//! **Why.** Nothing is said of these packets. A capture of a tunnel that is not decoded, or of encrypted
//! packets, looks as if nothing were wrong with the connections in it.
//!
//! **What to do.** Look at what they are. For what is encrypted or in an unknown tunnel, capture where the
//! packets are plain: on the tunnel's own interface, or at the ends of the connections. If they are
//! UDP or other traffic that does not matter here, filter: `tcpdump ... tcp`.

use crate::captured::needs_both;
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// A tenth.
const SHARE_MIN: f64 = 0.1;
/// From here on it is more than worth knowing.
const ADVICE_MIN: f64 = 0.5;
/// Kinds that are named.
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
        Evidence::text(&one.what, format!("{}, {share} of the bytes", words::plural(one.packets, "packet")))
    });
    let finding = out
        .finding(
            capture.name.clone(),
            if is_much { Severity::Advice } else { Severity::Note },
            Certainty::Certain,
            format!(
                "{} hold no TCP that could be read, {} of all and {} of the bytes.",
                words::plural(packets, "packet"),
                words::percent(of_packets),
                words::percent(of_bytes)
            ),
        )
        .evidences(named)
        .why("Nothing is said of these packets, whatever is wrong with them.")
        .remedy(
            "Capture where packets are plain, or only what matters",
            &["tcpdump -i TUNNEL -w FILE tcp"],
            "none",
        )
        .verify("weir trace of the new capture says nothing of packets that could not be read")
        .source(&["the capture"]);
    out.push(finding);
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
