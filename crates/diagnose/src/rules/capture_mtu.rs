//! Full-size segments never arrive: an MTU black hole.
//!
//! **When.** A capture shows that a segment of 1,000 bytes or more is retransmitted at least twice
//! and not acknowledged before the capture ends, while shorter segments arrive. Shorter segments
//! count as arriving if the receiver acknowledged less data than that at a time; or if the
//! handshake was completed and the receiver sent packets afterwards, on any connection, or the same
//! is seen on at least two connections. If shorter segments are stuck as well, or an equally long
//! segment has arrived between these hosts, `capture_dead_peer` applies instead.
//!
//! **Why.** Part of the path accepts only smaller packets, and the ICMP message that reports this
//! is filtered. The handshake and short responses arrive, long ones never do: a page hangs after
//! its first bytes. Tunnels (VPN, VXLAN, `PPPoE`) are the usual cause.
//!
//! **What to do.** Allow ICMP "fragmentation needed" and "packet too big". Or let the sender find
//! the MTU by probing: `net.ipv4.tcp_mtu_probing = 1`. Or clamp the MSS at the tunnel's entrance.

use std::collections::BTreeMap;

use crate::captured::{Between, Flow, by_hosts, found, frames, host, needs_both, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// No path takes less than that and calls itself one.
const FULL_MIN_BYTES: u64 = 1_000;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let hosts = by_hosts(capture);
    let Some(found) =
        found(capture, |flow| is_black_hole(flow, &hosts), |flow| flow.sent.repeats_max)
    else {
        return;
    };
    let worst = found[0].sent;
    let unanswered = found.iter().filter(|flow| flow.sent.advance_max_bytes == 0).count() as u64;
    let most = if found.len() > 1 { Certainty::Likely } else { Certainty::Possible };
    out.push(
        out.finding(
            found[0].name(),
            Severity::Critical,
            most,
            format!(
                "MTU black hole: segments of {} bytes do not arrive, shorter ones do.",
                words::thousands(worst.repeated_bytes)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("retransmissions in a row", worst.repeats_max, "times"))
        .evidence(Evidence::count("largest acknowledgement", worst.advance_max_bytes, "bytes"))
        .evidence(Evidence::count("only the handshake acknowledged", unanswered, "connections"))
        .evidences(frames(&found, "retransmission"))
        .why("Long responses never arrive, and no error message explains it: connections hang.")
        .remedy(
            "Allow the ICMP messages that report the MTU, or let the sender probe for it",
            &["sysctl -w net.ipv4.tcp_mtu_probing=1"],
            "probing costs a few timeouts on each new path",
        )
        .remedy(
            "Clamp the MSS at the entrance of a tunnel",
            &["nft add rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu"],
            "none",
        )
        .verify("ping -M do -s 1472 from the sender succeeds or reports the MTU; transfers finish")
        .source(&["the capture"]),
    );
}

/// Whether full-size segments of `flow` never arrive, and shorter ones do.
pub(super) fn is_black_hole(flow: &Flow<'_>, hosts: &BTreeMap<(&str, &str), Between>) -> bool {
    let bytes = flow.sent.repeated_bytes;
    if !flow.is_stuck() || bytes < FULL_MIN_BYTES || flow.sent.advance_max_bytes >= bytes {
        return false;
    }
    let between = hosts.get(&(host(flow.from), host(flow.to))).copied().unwrap_or_default();
    if between.stuck_min_bytes < FULL_MIN_BYTES {
        return false;
    }
    if flow.sent.advance_max_bytes > 0 {
        return true;
    }
    // Nothing but the handshake was acknowledged.
    let has_handshake = flow.sent.syns > 0 && flow.answered.syns > 0;
    let is_alive = between.heard_ms > flow.sent.stuck_since_ms;
    has_handshake && between.advance_max_bytes < bytes && (is_alive || between.stuck > 1)
}
