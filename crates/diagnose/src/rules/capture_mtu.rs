//! Full-size segments never arrive: an MTU black hole.
//!
//! **When.** A capture shows that a segment of 1,000 bytes or more was sent again at least twice and not
//! acknowledged before the capture ended, while shorter ones were.
//!
//! **Why.** Somewhere the path takes only smaller packets, and the ICMP message that says so is filtered.
//! The handshake and short answers pass, long ones never do: a page hangs after its first bytes. Tunnels
//! (VPN, VXLAN, `PPPoE`) are the usual place.
//!
//! **What to do.** Let ICMP "fragmentation needed" and "packet too big" through. Or have the sender find
//! out by itself: `net.ipv4.tcp_mtu_probing = 1`. Or clamp the MSS where the tunnel begins.

use crate::captured::{found, frames, needs_both, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// No path takes less than that and calls itself one.
const FULL_MIN_BYTES: u64 = 1_000;
const REPEATS_MIN: u64 = 2;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(
        capture,
        |flow| {
            let sent = flow.sent;
            sent.is_stuck
                && sent.repeats_max >= REPEATS_MIN
                && sent.repeated_bytes >= FULL_MIN_BYTES
                && sent.advance_max_bytes > 0
                && sent.advance_max_bytes < sent.repeated_bytes
                && !flow.connection.is_one_sided
        },
        |flow| flow.sent.repeats_max,
    ) else {
        return;
    };
    let worst = found[0].sent;
    let most = if found.len() > 1 { Certainty::Likely } else { Certainty::Possible };
    out.push(
        out.finding(
            found[0].name(),
            Severity::Critical,
            most,
            format!(
                "Segments of {} bytes do not arrive, shorter ones do: the path takes only smaller packets.",
                words::thousands(worst.repeated_bytes)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("sent again in a row", worst.repeats_max, "times"))
        .evidence(Evidence::count("most bytes acknowledged at once", worst.advance_max_bytes, "bytes"))
        .evidences(frames(&found, "retransmission"))
        .why("Long answers never arrive, and no message says why: connections hang.")
        .remedy(
            "Let ICMP's messages through that tell the size, or have the sender find it out",
            &["sysctl -w net.ipv4.tcp_mtu_probing=1"],
            "probing costs a few timeouts on each new path",
        )
        .remedy(
            "Clamp the MSS where a tunnel begins",
            &["nft add rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu"],
            "none",
        )
        .verify("ping -M do -s 1472 from the sender passes, or says the size; transfers finish")
        .source(&["the capture"]),
    );
}
