//! SYN cookies are sent for every connection, a setting for tests only.
//!
//! **When.** `net.ipv4.tcp_syncookies` is 2.
//!
//! **Why.** Every connection is then created from a SYN cookie, which encodes only eight MSS values
//! and, without timestamps, neither window scaling nor SACK. The value exists for testing the code.
//!
//! **What to do.** Set it to 1.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_syncookies";
    if view.setting(SETTING, out) != Some(2) {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            Severity::Warning,
            Certainty::Certain,
            "Every connection is created from a SYN cookie, a setting for tests.",
        )
        .evidence(Evidence::text(SETTING, "2"))
        .evidences(
            view.counter_if_any("TcpExtSyncookiesSent")
                .map(|one| one.evidence("TcpExtSyncookiesSent")),
        )
        .why("Such connections have coarser TCP options, or none if the client has no timestamps.")
        .remedy(
            "Send cookies only when the SYN queue is full",
            &["sysctl -w net.ipv4.tcp_syncookies=1"],
            "none",
        )
        .verify("nstat -az TcpExtSyncookiesSent rises only in bursts")
        .source(&["/proc/sys/net/ipv4/tcp_syncookies"]),
    );
}
