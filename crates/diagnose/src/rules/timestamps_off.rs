//! TCP timestamps are off, which false alarms and SYN cookies need.
//!
//! **When.** `net.ipv4.tcp_timestamps` is 0.
//!
//! **Why.** Without them the kernel cannot undo false retransmissions on paths that reorder,
//! connections made by SYN cookies lose window scaling and SACK, sequence numbers that wrap on fast
//! links are not told apart (PAWS, RFC 7323), and `tcp_tw_reuse` does nothing. With SACK off as
//! well, reordering made an upload 30 times slower in a measurement.
//!
//! **What to do.** Set it to 1. Old advice to turn it off saves 12 bytes a segment; that it would
//! tell an attacker the uptime has not been true since Linux 4.10, which begins each connection at
//! a random offset.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_timestamps";
    if view.setting(SETTING, out) != Some(0) {
        return;
    }
    out.push(
        out.finding(SETTING, Severity::Warning, Certainty::Certain, "TCP timestamps are off.")
            .evidence(Evidence::text(SETTING, "0"))
            .why("False retransmissions can't be undone, and connections made by SYN cookies lose their options.")
            .remedy(
                "Turn timestamps on",
                &["sysctl -w net.ipv4.tcp_timestamps=1"],
                "12 bytes more in each segment",
            )
            .verify("ss -tin shows `ts` on new connections")
            .source(&["/proc/sys/net/ipv4/tcp_timestamps"]),
    );
}
