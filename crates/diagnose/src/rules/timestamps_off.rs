//! TCP timestamps are off; the kernel needs them to undo false retransmissions and for SYN cookies.
//!
//! **When.** `net.ipv4.tcp_timestamps` is 0.
//!
//! **Why.** Without timestamps, the kernel cannot undo false retransmissions on paths that reorder
//! packets, connections from SYN cookies lose window scaling and SACK, wrapped sequence numbers on
//! fast links cannot be detected (PAWS, RFC 7323), and `tcp_tw_reuse` has no effect. With SACK off
//! as well, reordering made an upload 30 times slower in a measurement.
//!
//! **What to do.** Set it to 1. Turning timestamps off saves 12 bytes per segment. The old argument
//! that they reveal the uptime to attackers has not been valid since Linux 4.10, which starts each
//! connection at a random offset.

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
            .why("False retransmissions cannot be undone, and connections from SYN cookies lose their options.")
            .remedy(
                "Turn timestamps on",
                &["sysctl -w net.ipv4.tcp_timestamps=1"],
                "12 bytes more in each segment",
            )
            .verify("ss -tin shows `ts` on new connections")
            .source(&["/proc/sys/net/ipv4/tcp_timestamps"]),
    );
}
