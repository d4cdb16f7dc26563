//! Window scaling is off: a connection can have at most 64 KiB in flight.
//!
//! **When.** `net.ipv4.tcp_window_scaling` is 0.
//!
//! **Why.** A window of 65,535 bytes limits every connection to that amount per round trip: 0.94
//! MB/s over 70 ms, whatever the link and the buffers.
//!
//! **What to do.** Set it to 1. Firewalls that could not handle it disappeared many years ago.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_window_scaling";
    if view.setting(SETTING, out) != Some(0) {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            Severity::Warning,
            Certainty::Certain,
            "Window scaling is off, so a connection carries at most 64 KiB per round trip.",
        )
        .evidence(Evidence::text(SETTING, "0"))
        .why("Over a path of 70 ms that is 0.94 MB/s, whatever the link.")
        .remedy(
            "Turn window scaling on",
            &["sysctl -w net.ipv4.tcp_window_scaling=1"],
            "none known; this applies to new connections",
        )
        .verify("ss -tin shows `wscale` on new connections")
        .source(&["/proc/sys/net/ipv4/tcp_window_scaling"]),
    );
}
