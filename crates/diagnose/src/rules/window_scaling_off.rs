//! Window scaling is off: no connection can have more than 64 KiB on its way.
//!
//! **When.** `net.ipv4.tcp_window_scaling` is 0.
//!
//! **Why.** A window of 65,535 bytes caps every connection at its size per round trip: over 70 ms
//! 0.94 MB/s, whatever the link and the buffers.
//!
//! **What to do.** Set it to 1. The firewalls that choked on it are gone for many years.

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
            "Window scaling is off, so a connection carries 64 KiB per round trip at most.",
        )
        .evidence(Evidence::text(SETTING, "0"))
        .why("Over a path of 70 ms that is 0.94 MB/s, whatever the link.")
        .remedy(
            "Turn window scaling on",
            &["sysctl -w net.ipv4.tcp_window_scaling=1"],
            "none known; it counts for connections made from then on",
        )
        .verify("ss -tin shows `wscale` on new connections")
        .source(&["/proc/sys/net/ipv4/tcp_window_scaling"]),
    );
}
